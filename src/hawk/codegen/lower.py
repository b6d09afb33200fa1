"""IR to lanes: every op of a program on W samples at a time.

Ops on reals are the text of `hawk.elementary.real_ops`, those on integers and conversions that of `integers`. Values
that every sample shares (constants, params and what is computed from them) stay scalar and are broadcast
where lanes need them. An `if` whose condition differs between lanes computes both sides and selects, jumping
over a long side that no lane takes; a `loop` runs until no lane is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..elementary.real_ops import REAL_OPS
from ..ir.ops import ELEMENTARY
from ..ir.program import Instr, Program, Region, Role, Tape, Value
from ..ir.types import Type
from .integers import ELEMENTS, INTEGERS, convert, literal
from .llvm_lanes import ELEMENT_BYTES, LlvmLanes, suffix
from .text import Function, Operand, phi_text

_LONG = 16  # a side of an `if` of at least this weight is jumped over when no lane takes it


class Lowering:
    """Emits a program's instructions into a function, `width` lanes at a time.

    `scalars` holds the values all samples share, `lanes` the others. `mask` is the lanes that take part
    (None: all). `bases` gives the base pointer of each table argument.
    """

    def __init__(self, function: Function, width: int, program: Program) -> None:
        self.f = function
        self.width = width
        self._program = program
        self._shared = {a.name: a for a in program.arguments if a.role in (Role.TABLE, Role.TABLE_SUM)}
        self._wide = {bits: LlvmLanes(function, width, bits) for bits in (64, 32)}
        self._single = {bits: LlvmLanes(function, 1, bits) for bits in (64, 32)}
        self.scalars: dict[Value, Operand] = {}
        self.lanes: dict[Value, Operand] = {}
        self.mask: Operand | None = None
        self.bases: dict[str, Operand] = {}
        self.first_sample: Operand | None = None
        self._tapes: dict[str, tuple[Tape, Operand, Operand]] = {}

    def place_tapes(self, arena: Operand) -> None:
        """Lay the tapes out in scratch memory, one after the other: for each element a row of lanes.

        The values of the params that give capacities must be known already.
        """
        params = {place.argument: value for place, value in self._program.inputs}
        base = arena
        for tape in self._program.tapes:
            if isinstance(tape.capacity, int):
                rows = Operand("i32", str(tape.capacity))
            else:
                rows = self.scalars[params[tape.capacity]]
            self._tapes[tape.name] = (tape, base, rows)
            wide = self.f.value("i64", f"sext {rows} to i64")
            size = self.f.value("i64", f"mul {wide}, {row_bytes(tape, self.width)}")
            base = self.f.value("ptr", f"getelementptr i8, {base}, {size}")

    def machine(self, bits: int = 64) -> LlvmLanes:
        return self._wide[bits]

    def lane(self, value: Value) -> Operand:
        """`value` in every lane."""
        found = self.lanes.get(value)
        return found if found is not None else self._wide[64].broadcast(self.scalars[value])

    def uniform_block(self, body: Sequence[Instr]) -> None:
        """Emit what all samples share, before the loop over samples."""
        for instr in body:
            if self._is_uniform(instr):
                self._uniform(instr)
                value = instr.result
                if self.scalars[value].text.startswith("%"):
                    self.lanes[value] = self._wide[64].broadcast(self.scalars[value])

    def block(self, body: Sequence[Instr]) -> None:
        for instr in body:
            if instr.results and instr.results[0] in self.scalars:
                continue
            if instr.op == "if":
                self._if(instr)
            elif instr.op == "loop":
                self._loop(instr)
            elif instr.op == "custom":
                self.lanes.update((r, self.lane(a)) for r, a in zip(instr.results, instr.args, strict=False))
            elif instr.op in ("load", "store"):
                self._tape(instr)
            elif instr.op == "scatter":
                self._scatter(instr)
            elif instr.op == "most":
                self.scalars[instr.result] = self._most(instr.args[0])
            elif self._is_uniform(instr):
                self._uniform(instr)
            else:
                args = [self.lane(a) for a in instr.args]
                self.lanes[instr.result] = self._scalar(self._wide, instr, args)

    def _is_uniform(self, instr: Instr) -> bool:
        if instr.regions or instr.op in ("sample", "scatter", "load", "store", "most"):
            return False
        return all(a in self.scalars for a in instr.args)

    def _uniform(self, instr: Instr) -> None:
        args = [self.scalars[a] for a in instr.args]
        self.scalars[instr.result] = self._scalar(self._single, instr, args)

    def _scalar(self, machines: dict[int, LlvmLanes], instr: Instr, args: Sequence[Operand]) -> Operand:
        result = instr.result.type
        m = machines[32 if result is Type.F32 else 64]
        if instr.op == "const":
            return _constant(m, result, instr.attr)
        if instr.op == "cast":
            return convert(m, args[0], instr.args[0].type, result)
        if instr.op == "table":
            index = self._inside(m, args[0], self._size(instr))
            return m.gather(ELEMENTS[result], self.bases[str(instr.attr)], index)
        if instr.op == "sample":
            assert self.first_sample is not None
            return self.first_sample
        subject = instr.args[-1].type
        if subject.is_real:
            return REAL_OPS[instr.op](machines[32 if subject is Type.F32 else 64], *args)
        return INTEGERS[instr.op](m, subject, args)

    def _inside(self, m: LlvmLanes, index: Operand, size: Operand) -> Operand:
        """An index clamped into 0 ... size - 1, as i64."""
        last = self._single[64].binary("sub", size, Operand("i32", "1"))
        low = INTEGERS["maximum"](m, Type.I32, [index, literal(m, Type.I32, 0)])
        clamped = INTEGERS["minimum"](m, Type.I32, [low, m.broadcast(last)])
        return m.convert("sext", clamped, m.vector("i64"))

    def _scatter(self, instr: Instr) -> None:
        """Add lane after lane, in sample order; a lane that takes no part adds -0.0, which changes nothing."""
        m, base = self._wide[64], self.bases[str(instr.attr)]
        element = ELEMENTS[instr.args[1].type]
        index = self._inside(m, self.lane(instr.args[0]), self._size(instr))
        value = self.lane(instr.args[1])
        if self.mask is not None:
            value = m.select(self.mask, value, m.splat(element, "0x8000000000000000"))
        for k in range(self.width):
            at, share = m.extract("i64", index, k), m.extract(element, value, k)
            where = self.f.value("ptr", f"getelementptr {element}, {base}, {at}")
            before = self.f.value(element, f"load {element}, {where}")
            self.f.line(f"store {m.add(before, share)}, {where}")

    def _size(self, instr: Instr) -> Operand:
        return Operand("i32", str(self._shared[str(instr.attr)].size))

    # tapes: rows of lanes in local memory

    def _tape(self, instr: Instr) -> None:
        """One row where all lanes agree on the index; element by element where they do not."""
        tape, base, capacity = self._tapes[str(instr.attr)]
        m = self._wide[64]
        row = self.scalars.get(instr.args[0])
        element = stored(tape.type)
        if row is not None:
            start = self.f.value(
                "i64", f"mul {self._inside(self._single[64], row, capacity)}, {row_bytes(tape, self.width)}"
            )
            where = self.f.value("ptr", f"getelementptr i8, {base}, {start}")
            if instr.op == "store":
                self.f.line(f"store {to_stored(m, self.lane(instr.args[1]), tape.type)}, {where}, align 4")
            else:
                kind = m.vector(element)
                raw = self.f.value(kind, f"load {kind}, {where}, align {4 if self.width > 1 else 1}")
                self.lanes[instr.result] = from_stored(m, raw, tape.type)
            return
        rows = self._inside(m, self.lane(instr.args[0]), capacity)
        scaled = m.binary("mul", rows, m.splat("i64", str(row_bytes(tape, self.width) // ELEMENT_BYTES[element])))
        index = m.binary("add", scaled, m.iota())
        if instr.op == "store":
            m.scatter(element, base, index, to_stored(m, self.lane(instr.args[1]), tape.type), self.mask)
        else:
            self.lanes[instr.result] = from_stored(m, m.gather(element, base, index), tape.type)

    def _most(self, value: Value) -> Operand:
        """The largest over the lanes that take part."""
        if value in self.scalars:
            return self.scalars[value]
        lane = self.lanes[value]
        if self.width == 1:
            return lane
        if self.mask is not None:
            lane = self._wide[64].select(self.mask, lane, Operand(lane.type, "zeroinitializer"))
        return self.f.call(ELEMENTS[value.type], f"llvm.vector.reduce.smax.{suffix(lane.type)}", [lane])

    # structure

    def _within(self, condition: Operand) -> Operand:
        return condition if self.mask is None else self._wide[64].both(self.mask, condition)

    def _if(self, instr: Instr) -> None:
        condition = self.scalars.get(instr.args[0])
        if condition is not None:
            self._uniform_if(instr, condition)
            return
        chosen = self.lanes[instr.args[0]]
        m, outer = self._wide[64], self.mask
        sides = []
        for region, mask in zip(instr.regions, (chosen, m.no(chosen)), strict=True):
            self.mask = outer
            self.mask = self._within(mask)
            sides.append(self._side(region, self.mask))
        self.mask = outer
        for result, a, b in zip(instr.results, *sides, strict=True):
            self.lanes[result] = a if a == b else m.select(chosen, a, b)

    def _side(self, region: Region, mask: Operand) -> list[Operand]:
        if _weight(region.body) < _LONG:
            self.block(region.body)
            return [self.lane(y) for y in region.yields]
        before, inside, after = self.f.block, self.f.fresh("side"), self.f.fresh("joined")
        self.f.branch(self._wide[64].any(mask), inside, after)
        self.f.start(inside)
        with self.f.scope():
            self.block(region.body)
            values = [self.lane(y) for y in region.yields]
        end = self.f.block
        self.f.jump(after)
        self.f.start(after)
        return [self.f.phi([(v, end), (Operand(v.type, "zeroinitializer"), before)]) for v in values]

    def _uniform_if(self, instr: Instr, condition: Operand) -> None:
        labels = [self.f.fresh("then"), self.f.fresh("else")]
        after = self.f.fresh("joined")
        self.f.branch(condition, *labels)
        sides: list[tuple[list[Operand], str]] = []
        for region, label in zip(instr.regions, labels, strict=True):
            self.f.start(label)
            with self.f.scope():
                self.block(region.body)
                sides.append(([self.lane(y) for y in region.yields], self.f.block))
            self.f.jump(after)
        self.f.start(after)
        for k, result in enumerate(instr.results):
            self.lanes[result] = self.f.phi([(values[k], end) for values, end in sides])

    def _loop(self, instr: Instr) -> None:
        (region,) = instr.regions
        limit = self.scalars.get(instr.args[0])
        if limit is not None and self._always(instr.args[1], ()) and self._always(region.yields[0], region.body):
            self._counted_loop(instr, limit)
        else:
            self._masked_loop(instr)

    def _always(self, value: Value, body: Sequence[Instr]) -> bool:
        """Whether a condition is the constant true."""
        if value in self.scalars:
            return self.scalars[value] == Operand("i1", "true")
        return any(i.op == "const" and i.attr is True and i.results == (value,) for i in body)

    def _counted_loop(self, instr: Instr, limit: Operand) -> None:
        """All lanes run the same number of trips: nothing is masked."""
        (region,) = instr.regions
        f = self.f
        starts = [self.lane(a) for a in instr.args[2:]]
        before, head, after = f.block, f.fresh("loop"), f.fresh("left")
        f.branch(f.value("i1", f"icmp sgt {limit}, 0"), head, after)
        f.start(head)
        slots = [f.placeholder() for _ in range(1 + len(starts))]
        trip = Operand("i32", f"%{f.fresh('trip')}")
        carried = [Operand(v.type, f"%{f.fresh('c')}") for v in starts]
        self.scalars[region.params[0]] = trip
        self.lanes.update(zip(region.params[1:], carried, strict=True))
        with f.scope():
            self.block(region.body)
            following = [self.lane(y) for y in region.yields[1:]]
            step = f.value("i32", f"add {trip}, 1")
            end = f.block
            f.branch(f.value("i1", f"icmp slt {step}, {limit.text}"), head, after)
        starts_all, back = [Operand("i32", "0"), *starts], [step, *following]
        for slot, name, start, value in zip(slots, [trip, *carried], starts_all, back, strict=True):
            f.fill(slot, f"{name.text} = {phi_text([(start, before), (value, end)])}")
        f.start(after)
        for result, start, value in zip(instr.results[1:], starts, following, strict=True):
            self.lanes[result] = f.phi([(start, before), (value, end)])
        self.scalars[instr.results[0]] = INTEGERS["maximum"](self._single[64], Type.I32, [limit, Operand("i32", "0")])

    def _masked_loop(self, instr: Instr) -> None:
        """Lanes run in step; those that have ended keep their values until the last one ends."""
        (region,) = instr.regions
        f, m = self.f, self._wide[64]
        limit, again = self.lane(instr.args[0]), self.lane(instr.args[1])
        starts = [self.lane(a) for a in instr.args[2:]]
        outer, zero = self.mask, m.splat("i32", "0")
        first = self._within(m.both(again, m.compare("icmp slt", zero, limit)))
        before, head, after = f.block, f.fresh("loop"), f.fresh("left")
        f.branch(m.any(first), head, after)
        f.start(head)
        slots = [f.placeholder() for _ in range(3 + len(starts))]
        trip = Operand("i32", f"%{f.fresh('trip')}")
        phis = [Operand(v.type, f"%{f.fresh('c')}") for v in (first, zero, *starts)]
        active, trips, carried = phis[0], phis[1], phis[2:]
        self.mask = active
        self.scalars[region.params[0]] = trip
        self.lanes.update(zip(region.params[1:], carried, strict=True))
        with f.scope():
            self.block(region.body)
            more, *following = (self.lane(y) for y in region.yields)
            step = f.value("i32", f"add {trip}, 1")
            counted = m.select(active, m.broadcast(step), trips)
            following = [v if v == c else m.select(active, v, c) for v, c in zip(following, carried, strict=True)]
            still = m.both(m.both(active, more), m.compare("icmp slt", m.broadcast(step), limit))
            end = f.block
            f.branch(m.any(still), head, after)
        back = [step, still, counted, *following]
        starts_all = [Operand("i32", "0"), first, zero, *starts]
        for slot, name, start, value in zip(slots, [trip, *phis], starts_all, back, strict=True):
            f.fill(slot, f"{name.text} = {phi_text([(start, before), (value, end)])}")
        f.start(after)
        self.mask = outer
        results = [(zero, counted), *zip(starts, following, strict=True)]
        for result, (start, value) in zip(instr.results, results, strict=True):
            self.lanes[result] = f.phi([(start, before), (value, end)])


def _constant(m: LlvmLanes, type: Type, number: object) -> Operand:
    assert isinstance(number, (bool, int, float))
    if type.is_real:
        return LlvmLanes(m.f, m.width, 32 if type is Type.F32 else 64).real(float(number))
    return m.splat(ELEMENTS[type], str(bool(number)).lower() if type is Type.BOOL else str(int(number)))


def stored(type: Type) -> str:
    """The element of a plane or tape in memory: a bool is a byte."""
    return "i8" if type is Type.BOOL else ELEMENTS[type]


def row_bytes(tape: Tape, width: int) -> int:
    """The bytes of one element of a tape in all lanes; a multiple of 64 so that rows stay aligned."""
    return (ELEMENT_BYTES[stored(tape.type)] * width + 63) // 64 * 64


def to_stored(m: LlvmLanes, lane: Operand, type: Type) -> Operand:
    return m.convert("zext", lane, m.vector("i8")) if type is Type.BOOL else lane


def from_stored(m: LlvmLanes, raw: Operand, type: Type) -> Operand:
    return m.compare("icmp ne", raw, Operand(raw.type, "zeroinitializer")) if type is Type.BOOL else raw


def _weight(body: Sequence[Instr]) -> int:
    """Roughly, how many machine operations a block takes."""
    total = 0
    for instr in body:
        total += 10 if instr.op in ELEMENTARY else 4 if instr.op in ("div", "sqrt") else 1
        if instr.op != "custom":
            total += sum(_weight(r.body) for r in instr.regions) + (100 if instr.op == "loop" else 0)
    return total
