"""The entry of a kernel that is one loop each sample leaves when it likes: a lane that is done takes the next
sample.

The ops before the loop and after it are run whenever enough lanes are idle, for those lanes alone: finished
samples are completed and stored where they belong, the next ones are loaded in their place. Lanes compute
independently, so which lane a sample had cannot be seen in its bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.program import PER_SAMPLE, Instr, Program, Region, Role, Value
from ..ir.types import Type
from .frame import Frame
from .llvm_lanes import suffix
from .lower import from_stored, stored, to_stored
from .text import Function, Operand, phi_text


def is_refillable(program: Program) -> bool:
    """Whether lanes can take turns: one loop at the top that samples may leave at different times, no sums."""
    loops = [i for i in program.body if i.op == "loop"]
    if len(loops) != 1 or program.tapes or program.effects:
        return False
    if any(a.role in (Role.SUM, Role.TABLE_SUM) for a in program.arguments):
        return False
    (region,) = loops[0].regions
    always = {i.result for i in (*program.body, *region.body) if i.op == "const" and i.attr is True}
    return region.yields[0] not in always


def emit_refilling(program: Program, symbol: str, width: int) -> Function:
    """The entry of a refillable program as LLVM IR."""
    return _Refill(program, symbol, width).run()


class _Refill(Frame):
    """Control flows ``entry -> refill -> step -> step ... -> refill -> ... -> done``.

    What a lane holds while it steps: the index of its sample, the trips it has run, the carried values, and
    `kept`, what the ops before the loop computed and later ones use.
    """

    def __init__(self, program: Program, symbol: str, width: int) -> None:
        super().__init__(program, symbol, width)
        at = next(k for k, i in enumerate(program.body) if i.op == "loop")
        self._before, self._loop, self._after = program.body[:at], program.body[at], program.body[at + 1 :]
        (self._region,) = self._loop.regions
        self._limit = self._loop.args[0]

    def run(self) -> Function:
        f = self.f
        self.prologue()
        # What completes a sample is worth waiting for company if it is long: the search for an event, say.
        is_long = any(i.op == "loop" or i.regions for i in self._after)
        self._idle_lanes = self.width if is_long else max(1, self.width // 4)
        kept = self._kept()
        carried = [p.type for p in self._region.params[1:]]
        self._types = [Type.I64, Type.BOOL, Type.BOOL, Type.I32, *carried, *(v.type for v in kept)]
        empty = [self.m.splat(_element(t), "false" if t is Type.BOOL else _zero(t)) for t in self._types]
        start = f.block
        f.jump("refill")

        f.start("refill")
        slots = [f.placeholder() for _ in range(1 + len(self._types))]
        names = [Operand(v.type, f"%{f.fresh('r')}") for v in empty]
        following = Operand("i64", f"%{f.fresh('next')}")
        count = 4 + len(carried)
        self._finish(
            names[0], names[1], names[2], names[3], names[4:count], dict(zip(kept, names[count:], strict=True))
        )
        filled, ahead = self._fill(following, names, kept, len(carried))
        refilled = f.block
        f.branch(self.m.any(filled[2]), "step", "none")
        f.start("none")  # no sample of these takes a step: complete them and go on
        f.branch(self.m.any(filled[1]), "refill", "done")

        f.start("step")
        active, trips, stepped = self._step(refilled, filled, len(carried), kept)
        end = f.block
        idle = self._wants_refill(active, ahead)
        f.branch(idle, "refill", "step")
        again = [filled[0], filled[1], active, trips, *stepped, *filled[count:]]
        incoming = [(empty, start), (filled, "none"), (again, end)]
        for slot, name, k in zip(slots[1:], names, range(len(names)), strict=True):
            f.fill(slot, f"{name.text} = {phi_text([(values[k], label) for values, label in incoming])}")
        edges = [(Operand("i64", "0"), start), (ahead, "none"), (ahead, end)]
        f.fill(slots[0], f"{following.text} = {phi_text(edges)}")
        self._fill_step_phis(end, active, trips, stepped)
        f.start("done")
        f.line("ret void")
        return f

    def _kept(self) -> list[Value]:
        """The lane values from before the loop that the loop or what follows it reads."""
        made = {v for _, v in self.program.inputs} | {r for i in self._before for r in i.results}
        read = {self._limit, *_region_reads(self._region), *_read(self._after), *(v for _, v in self.program.outputs)}
        ordered = [*(v for _, v in self.program.inputs), *(r for i in self._before for r in i.results)]
        return [v for v in ordered if v in made and v in read and v not in self.lower.scalars]

    # completing samples

    def _finish(
        self,
        index: Operand,
        valid: Operand,
        active: Operand,
        trips: Operand,
        carried: Sequence[Operand],
        kept: dict[Value, Operand],
    ) -> None:
        """Run what follows the loop for the samples that are done, and store them."""
        f = self.f
        done = self.m.both(valid, self.m.no(active))
        f.branch(self.m.any(done), "finish", "finished")
        f.start("finish")
        with f.scope():
            self._complete(index, done, trips, carried, kept)
        f.jump("finished")
        f.start("finished")

    def _complete(
        self, index: Operand, done: Operand, trips: Operand, carried: Sequence[Operand], kept: dict[Value, Operand]
    ) -> None:
        f = self.f
        self.lower.lanes.update(kept)
        self.lower.lanes.update(zip(self._loop.results, [trips, *carried], strict=True))
        self.lower.mask = done
        self.lower.first_sample = self._sample(index)
        self.lower.block(self._after)
        for place, value in self.program.outputs:
            pointer = self.pointers[place.argument, place.component, True]
            lane = to_stored(self.m, self.lower.lane(value), value.type)
            if self.width == 1:  # the only lane is done
                f.line(f"store {lane}, {self.at(pointer, index, value.type)}")
            else:
                self.m.scatter(stored(value.type), pointer, index, lane, done)

    def _sample(self, index: Operand) -> Operand:
        return self.m.binary("add", index, self.m.broadcast(Operand("i64", "%first")))

    # taking new ones

    def _fill(
        self, following: Operand, held: Sequence[Operand], kept: Sequence[Value], carried: int
    ) -> tuple[list[Operand], Operand]:
        """What the lanes hold once the idle ones have taken the next samples; and the sample after those."""
        f, m = self.f, self.m
        index, valid, active, trips = held[:4]
        idle = m.no(active)
        taken = self._ranked(following, idle)
        fresh = m.both(idle, m.compare("icmp slt", taken, m.broadcast(Operand("i64", "%count"))))
        ahead = f.value("i64", f"add {following}, {self._popcount(idle).text}")
        self._load(following, fresh)
        self.lower.mask = fresh
        self.lower.first_sample = self._sample(taken)
        self.lower.block(self._before)
        limit, again = self.lower.lane(self._limit), self.lower.lane(self._loop.args[1])
        starts = [self.lower.lane(a) for a in self._loop.args[2:]]
        begins = m.both(fresh, m.both(again, m.compare("icmp sgt", limit, m.splat("i32", "0"))))
        new = [*starts, *(self.lower.lane(v) for v in kept)]
        mixed = [m.select(fresh, a, b) for a, b in zip(new, held[4:], strict=True)]
        return [
            m.select(fresh, taken, index),
            m.either(m.both(valid, active), fresh),
            m.either(active, begins),
            m.select(fresh, m.splat("i32", "0"), trips),
            *mixed,
        ], ahead

    def _ranked(self, following: Operand, idle: Operand) -> Operand:
        """For the idle lanes, in order: following, following + 1, ..."""
        m = self.m
        if self.width == 1:
            return following
        base = m.broadcast(following)
        steps = self.f.constant_table("i64", [str(k) for k in range(self.width)])
        return m.binary("add", base, self._expanded("i64", Operand("ptr", steps), idle))

    def _expanded(self, element: str, pointer: Operand, mask: Operand) -> Operand:
        """Consecutive elements of memory, given to the lanes of a mask in order."""
        kind = self.m.vector(element)
        zero = Operand(kind, "zeroinitializer")
        return self.f.call(kind, f"llvm.masked.expandload.{suffix(kind)}", [pointer, mask, zero])

    def _popcount(self, mask: Operand) -> Operand:
        if self.width == 1:
            return self.f.value("i64", f"zext {mask} to i64")
        bits = self.f.value(f"i{self.width}", f"bitcast {mask} to i{self.width}")
        count = self.f.call(bits.type, f"llvm.ctpop.{bits.type}", [bits])
        return count if self.width == 64 else self.f.value("i64", f"zext {count} to i64")

    def _load(self, following: Operand, fresh: Operand) -> None:
        for place, value in self.program.inputs:
            if self.program.argument(place.argument).role not in PER_SAMPLE:
                continue
            where = self.at(self.pointers[place.argument, place.component, False], following, value.type)
            element = stored(value.type)
            raw = self._load_if(fresh, element, where) if self.width == 1 else self._expanded(element, where, fresh)
            self.lower.lanes[value] = from_stored(self.m, raw, value.type)

    def _load_if(self, fresh: Operand, element: str, where: Operand) -> Operand:
        f = self.f
        before, inside, after = f.block, f.fresh("load"), f.fresh("loaded")
        f.branch(fresh, inside, after)
        f.start(inside)
        value = f.value(element, f"load {element}, {where}")
        f.jump(after)
        f.start(after)
        return f.phi([(value, inside), (Operand(element, "zeroinitializer"), before)])

    # stepping

    def _step(
        self, refilled: str, filled: Sequence[Operand], carried: int, kept: Sequence[Value]
    ) -> tuple[Operand, Operand, list[Operand]]:
        """One trip of every active lane: who goes on, the trips run, the carried values."""
        f, m = self.f, self.m
        starts = filled[2 : 4 + carried]  # active, trips, carried
        self._phis = [(f.placeholder(), Operand(v.type, f"%{f.fresh('s')}"), v, refilled) for v in starts]
        active, trips, *values = (name for _, name, _, _ in self._phis)
        self.lower.lanes.update(zip(kept, filled[4 + carried :], strict=True))
        self.lower.lanes[self._region.params[0]] = trips
        self.lower.lanes.update(zip(self._region.params[1:], values, strict=True))
        self.lower.mask = active
        self.lower.first_sample = self._sample(filled[0])
        self.lower.block(self._region.body)
        more, *following = (self.lower.lane(y) for y in self._region.yields)
        one_more = m.binary("add", trips, m.splat("i32", "1"))
        counted = m.select(active, one_more, trips)
        stepped = [v if v == c else m.select(active, v, c) for v, c in zip(following, values, strict=True)]
        below = m.compare("icmp slt", one_more, self.lower.lane(self._limit))
        return m.both(m.both(active, more), below), counted, stepped

    def _fill_step_phis(self, end: str, active: Operand, trips: Operand, stepped: Sequence[Operand]) -> None:
        for (slot, name, start, label), back in zip(self._phis, [active, trips, *stepped], strict=True):
            self.f.fill(slot, f"{name.text} = {phi_text([(start, label), (back, end)])}")

    def _wants_refill(self, active: Operand, ahead: Operand) -> Operand:
        """Enough lanes are idle and samples are left; or no lane is active."""
        f = self.f
        count = self._popcount(active)
        few = f.value("i1", f"icmp sle {count}, {self.width - self._idle_lanes}")
        left = f.value("i1", f"icmp slt {ahead}, %count")
        none = f.value("i1", f"icmp eq {count}, 0")
        worth = f.value("i1", f"and {few}, {left.text}")
        return f.value("i1", f"or {worth}, {none.text}")


def _read(body: Sequence[Instr]) -> Iterator[Value]:
    for instr in body:
        yield from instr.args
        for region in instr.regions:
            yield from _region_reads(region)


def _region_reads(region: Region) -> Iterator[Value]:
    yield from _read(region.body)
    yield from region.yields


def _element(type: Type) -> str:
    return {Type.F64: "double", Type.F32: "float", Type.I64: "i64", Type.BOOL: "i1"}.get(type, "i32")


def _zero(type: Type) -> str:
    return "0x0000000000000000" if type.is_real else "0"
