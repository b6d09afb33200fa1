"""Compiled functions for executors: void(const Address*, int64_t count, int64_t first), as kernels are."""

from __future__ import annotations

import llvmlite.binding as llvm

# For every sample: load `inputs` planes of doubles as %x0, %x1, ...; compute %value; store it in the next.
_ELEMENTWISE = """
define void @entry(ptr %addresses, i64 %count, i64 %first) {{
start:
{bases}
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
{loads}
{body}
  %to = getelementptr double, ptr %base{inputs}, i64 %i
  store double %value, ptr %to
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}}
"""

# Writes the first sample of a plane's two components to the two components of a sum's partials.
_FIRST = """
define void @entry(ptr %addresses, i64 %count, i64 %first) {
  %plane = load ptr, ptr %addresses
  %at.plane_stride = getelementptr i8, ptr %addresses, i64 8
  %plane_stride = load i64, ptr %at.plane_stride
  %at.sum = getelementptr i8, ptr %addresses, i64 16
  %sum = load ptr, ptr %at.sum
  %at.sum_stride = getelementptr i8, ptr %addresses, i64 24
  %sum_stride = load i64, ptr %at.sum_stride
  %plane1 = getelementptr i8, ptr %plane, i64 %plane_stride
  %sum1 = getelementptr i8, ptr %sum, i64 %sum_stride
  %v0 = load REAL, ptr %plane
  %v1 = load REAL, ptr %plane1
  store REAL %v0, ptr %sum
  store REAL %v1, ptr %sum1
  ret void
}
"""

# Waits until the integer in a cell is not 0.
_WAIT = """
define void @entry(ptr %addresses, i64 %count, i64 %first) {
start:
  %cell = load ptr, ptr %addresses
  br label %loop
loop:
  %flag = load volatile i64, ptr %cell
  %set = icmp ne i64 %flag, 0
  br i1 %set, label %end, label %loop
end:
  ret void
}
"""

# Adds 1 to the double in a plane's first sample as many times as the cell says: slow on purpose.
_SLOW = """
define void @entry(ptr %addresses, i64 %count, i64 %first) {
start:
  %cell = load ptr, ptr %addresses
  %trips = load i64, ptr %cell
  %at.plane = getelementptr i8, ptr %addresses, i64 16
  %plane = load ptr, ptr %at.plane
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  %old = load volatile double, ptr %plane
  %new = fadd double %old, 1.0
  store volatile double %new, ptr %plane
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %trips
  br i1 %again, label %loop, label %end
end:
  ret void
}
"""

# Adds the plane (second argument) to the element of a table sum (third) that the index plane (first) names.
_SCATTER = """
define void @entry(ptr %addresses, i64 %count, i64 %first) {
start:
  %indices = load ptr, ptr %addresses
  %at.plane = getelementptr i8, ptr %addresses, i64 16
  %plane = load ptr, ptr %at.plane
  %at.table = getelementptr i8, ptr %addresses, i64 32
  %table = load ptr, ptr %at.table
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  %at.index = getelementptr i64, ptr %indices, i64 %i
  %index = load i64, ptr %at.index
  %at.value = getelementptr REAL, ptr %plane, i64 %i
  %value = load REAL, ptr %at.value
  %element = getelementptr REAL, ptr %table, i64 %index
  %old = load REAL, ptr %element
  %new = fadd REAL %old, %value
  store REAL %new, ptr %element
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}
"""


class Compiled:
    """A compiled entry; `address` is good as long as this object lives."""

    def __init__(self, text: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        self._engine.finalize_object()
        self.address = self._engine.get_function_address("entry")


def elementwise(inputs: int, body: str) -> Compiled:
    """`body` computes %value from %x0, %x1, ...; the arguments are `inputs` planes and the output plane."""
    bases, loads = [], []
    for k in range(inputs + 1):
        bases.append(f"  %at{k} = getelementptr i8, ptr %addresses, i64 {16 * k}")
        bases.append(f"  %base{k} = load ptr, ptr %at{k}")
    for k in range(inputs):
        loads.append(f"  %from{k} = getelementptr double, ptr %base{k}, i64 %i")
        loads.append(f"  %x{k} = load double, ptr %from{k}")
    text = _ELEMENTWISE.format(bases="\n".join(bases), loads="\n".join(loads), body=body, inputs=inputs)
    return Compiled(text)


def twice() -> Compiled:
    return elementwise(1, "  %value = fmul double %x0, 2.0")


def product() -> Compiled:
    return elementwise(2, "  %value = fmul double %x0, %x1")


def scaled() -> Compiled:
    """The output is the value in a cell (the second argument) times the plane."""
    body = "  %cell = load double, ptr %base1\n  %value = fmul double %x0, %cell"
    return elementwise(2, body)


def first_of_block(real: str = "double") -> Compiled:
    return Compiled(_FIRST.replace("REAL", real))


def scatter(real: str = "double") -> Compiled:
    return Compiled(_SCATTER.replace("REAL", real))


def number() -> Compiled:
    """The output is the number of the sample in the batch, as a double."""
    return elementwise(0, "  %k = add i64 %first, %i\n  %value = sitofp i64 %k to double")


def wait_for_cell() -> Compiled:
    return Compiled(_WAIT)


def slow() -> Compiled:
    return Compiled(_SLOW)
