"""`Lanes` as LLVM IR: `width` lanes in a vector, or plain scalars when the width is 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..elementary.lanes import Lanes, Numbers
from .text import Function, Operand, hex_double

Index = int  # `int` in the class is an operation


class LlvmLanes(Lanes):
    """Emits into a function, `width` lanes of `bits`-wide reals at a time."""

    def __init__(self, function: Function, width: int, bits: int) -> None:
        self.f = function
        self.width = width
        self.bits = bits
        self.real_element = "double" if bits == 64 else "float"
        self.int_element = f"i{bits}"
        self.real_type, self.int_type = self.vector(self.real_element), self.vector(self.int_element)
        self.mask_type = self.vector("i1")

    # types and constants

    def vector(self, element: str) -> str:
        return f"<{self.width} x {element}>" if self.width > 1 else element

    def splat(self, element: str, literal: str) -> Operand:
        return Operand(self.vector(element), f"splat ({element} {literal})" if self.width > 1 else literal)

    def real(self, number: float) -> Operand:
        if self.bits == 32:
            with np.errstate(over="ignore"):
                number = float(np.float32(number))
        return self.splat(self.real_element, hex_double(number))

    def int(self, number: int) -> Operand:
        half, span = 1 << (self.bits - 1), 1 << self.bits
        return self.splat(self.int_element, str((number + half) % span - half))

    def extract(self, element: str, value: Operand, lane: Index) -> Operand:
        """One lane of a value."""
        if self.width == 1:
            return value
        return self.f.value(element, f"extractelement {value}, i64 {lane}")

    def broadcast(self, scalar: Operand) -> Operand:
        """A scalar in every lane."""
        if self.width == 1:
            return scalar
        if not scalar.text.startswith("%"):
            return self.splat(scalar.type, scalar.text)
        kind = self.vector(scalar.type)
        first = self.f.value(kind, f"insertelement {kind} poison, {scalar}, i64 0")
        return self.f.value(kind, f"shufflevector {first}, {kind} poison, <{self.width} x i32> zeroinitializer")

    def any(self, mask: Operand) -> Operand:
        """Whether any lane of a mask holds, as an i1."""
        if self.width == 1:
            return mask
        bits = self.f.value(f"i{self.width}", f"bitcast {mask} to i{self.width}")
        return self.f.value("i1", f"icmp ne {bits}, 0")

    # emission

    def binary(self, op: str, x: Operand, y: Operand) -> Operand:
        return self.f.value(x.type, f"{op} {x}, {y.text}")

    def compare(self, op: str, x: Operand, y: Operand) -> Operand:
        return self.f.value(self.mask_type, f"{op} {x}, {y.text}")

    def convert(self, op: str, x: Operand, type: str) -> Operand:
        return self.f.value(type, f"{op} {x} to {type}")

    def intrinsic(self, name: str, *args: Operand) -> Operand:
        return self.f.call(args[0].type, f"llvm.{name}.{suffix(args[0].type)}", args)

    # reals

    def add(self, x: Operand, y: Operand) -> Operand:
        return self.binary("fadd", x, y)

    def sub(self, x: Operand, y: Operand) -> Operand:
        return self.binary("fsub", x, y)

    def mul(self, x: Operand, y: Operand) -> Operand:
        return self.binary("fmul", x, y)

    def div(self, x: Operand, y: Operand) -> Operand:
        return self.binary("fdiv", x, y)

    def fma(self, x: Operand, y: Operand, z: Operand) -> Operand:
        return self.intrinsic("fma", x, y, z)

    def neg(self, x: Operand) -> Operand:
        return self.f.value(x.type, f"fneg {x}")

    def abs(self, x: Operand) -> Operand:
        return self.intrinsic("fabs", x)

    def sqrt(self, x: Operand) -> Operand:
        return self.intrinsic("sqrt", x)

    def rint(self, x: Operand) -> Operand:
        return self.intrinsic("rint", x)

    def floor(self, x: Operand) -> Operand:
        return self.intrinsic("floor", x)

    def ceil(self, x: Operand) -> Operand:
        return self.intrinsic("ceil", x)

    def trunc(self, x: Operand) -> Operand:
        return self.intrinsic("trunc", x)

    def copysign(self, x: Operand, y: Operand) -> Operand:
        return self.intrinsic("copysign", x, y)

    def lt(self, x: Operand, y: Operand) -> Operand:
        return self.compare("fcmp olt", x, y)

    def le(self, x: Operand, y: Operand) -> Operand:
        return self.compare("fcmp ole", x, y)

    def eq(self, x: Operand, y: Operand) -> Operand:
        return self.compare("fcmp oeq", x, y)

    def ne(self, x: Operand, y: Operand) -> Operand:
        return self.compare("fcmp une", x, y)

    # masks

    def both(self, a: Operand, b: Operand) -> Operand:
        return self.binary("and", a, b)

    def either(self, a: Operand, b: Operand) -> Operand:
        return self.binary("or", a, b)

    def no(self, a: Operand) -> Operand:
        return self.binary("xor", a, self.splat("i1", "true"))

    def select(self, mask: Operand, chosen: Operand, other: Operand) -> Operand:
        return self.f.value(chosen.type, f"select {mask}, {chosen}, {other}")

    # bits and integers

    def to_bits(self, x: Operand) -> Operand:
        return self.convert("bitcast", x, self.int_type)

    def from_bits(self, i: Operand) -> Operand:
        return self.convert("bitcast", i, self.real_type)

    def to_int(self, x: Operand) -> Operand:
        """`freeze` makes an out-of-range conversion some number instead of poison."""
        return self.f.value(self.int_type, f"freeze {self.convert('fptosi', x, self.int_type)}")

    def to_real(self, i: Operand) -> Operand:
        return self.convert("sitofp", i, self.real_type)

    def iadd(self, i: Operand, j: Operand) -> Operand:
        return self.binary("add", i, j)

    def isub(self, i: Operand, j: Operand) -> Operand:
        return self.binary("sub", i, j)

    def imul(self, i: Operand, j: Operand) -> Operand:
        return self.binary("mul", i, j)

    def iand(self, i: Operand, j: Operand) -> Operand:
        return self.binary("and", i, j)

    def ior(self, i: Operand, j: Operand) -> Operand:
        return self.binary("or", i, j)

    def ixor(self, i: Operand, j: Operand) -> Operand:
        return self.binary("xor", i, j)

    def shl(self, i: Operand, j: Operand) -> Operand:
        return self.binary("shl", i, j)

    def lshr(self, i: Operand, j: Operand) -> Operand:
        return self.binary("lshr", i, j)

    def ashr(self, i: Operand, j: Operand) -> Operand:
        return self.binary("ashr", i, j)

    def ieq(self, i: Operand, j: Operand) -> Operand:
        return self.compare("icmp eq", i, j)

    def ilt(self, i: Operand, j: Operand) -> Operand:
        return self.compare("icmp slt", i, j)

    # memory and control

    def lookup(self, table: Numbers, index: Operand) -> Operand:
        real = isinstance(table[0], float)
        element = self.real_element if real else self.int_element
        make = LlvmLanes(self.f, 1, self.bits)
        literals = [make.real(x).text if real else make.int(int(x)).text for x in table]
        return self.gather(element, Operand("ptr", self.f.constant_table(element, literals)), index)

    def gather(self, element: str, base: Operand, index: Operand) -> Operand:
        """Element `index` of the array at `base`, in every lane."""
        pointer = self.vector("ptr")
        where = self.f.value(pointer, f"getelementptr {element}, {base}, {index}")
        kind = self.vector(element)
        if self.width == 1:
            return self.f.value(kind, f"load {kind}, {where}")
        every = self.splat("i1", "true")
        size = Operand("i32", str(ELEMENT_BYTES[element]))
        name = f"llvm.masked.gather.{suffix(kind)}.v{self.width}p0"
        return self.f.call(kind, name, [where, size, every, Operand(kind, "poison")])

    def scatter(self, element: str, base: Operand, index: Operand, value: Operand, mask: Operand | None) -> None:
        """Set element `index` of the array at `base`, in the lanes of `mask` (None: all)."""
        where = self.f.value(self.vector("ptr"), f"getelementptr {element}, {base}, {index}")
        if self.width == 1:
            self.f.line(f"store {value}, {where}")  # a lane that does not take part has jumped over this
            return
        size = Operand("i32", str(ELEMENT_BYTES[element]))
        name = f"llvm.masked.scatter.{suffix(value.type)}.v{self.width}p0"
        self.f.call_void(name, [value, where, size, mask or self.splat("i1", "true")])

    def iota(self) -> Operand:
        """0, 1, 2, ... as i64."""
        if self.width == 1:
            return Operand("i64", "0")
        return Operand(self.vector("i64"), f"<{', '.join(f'i64 {k}' for k in range(self.width))}>")

    def rare(self, mask: Operand, usual: Operand, slow: Callable[[], Operand]) -> Operand:
        before, inside, after = self.f.block, self.f.fresh("rare"), self.f.fresh("usual")
        self.f.branch(self.any(mask), inside, after)
        self.f.start(inside)
        with self.f.scope():
            mixed = self.select(mask, slow(), usual)
        end = self.f.block
        self.f.jump(after)
        self.f.start(after)
        return self.f.phi([(usual, before), (mixed, end)])

    # another precision

    def wide(self) -> LlvmLanes:
        return LlvmLanes(self.f, self.width, 64)

    def widen(self, x: Operand) -> Operand:
        return self.convert("fpext", x, self.vector("double"))

    def narrow(self, x: Operand) -> Operand:
        return self.convert("fptrunc", x, self.vector("float"))


ELEMENT_BYTES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i8": 1}
_SUFFIX = {"double": "f64", "float": "f32"}


def suffix(type: str) -> str:
    """The name LLVM's overloaded intrinsics give a type: <8 x double> is v8f64."""
    if type.startswith("<"):
        count, _, element = type[1:-1].split(" ")
        return f"v{count}{suffix(element)}"
    return _SUFFIX.get(type, type)
