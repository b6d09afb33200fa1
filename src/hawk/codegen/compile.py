"""Programs to machine code in this process: emit, optimise, assemble, keep the object, link it in."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from .. import stages
from ..ir.printer import text
from ..ir.program import Program
from .cache import ObjectCache, digest
from .launch import emit_launch
from .target import Target, host, lanes, machine

# Raise when emitted code changes for the same IR: old objects must not be found.
GENERATION = "3"


@dataclass(frozen=True, slots=True)
class Entry:
    """A native launch entry: its address, and what keeps its code in memory."""

    address: int
    width: int
    library: object


class Compiler:
    """Compiles programs for this CPU; each distinct program once, whichever thread asks."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._entries: dict[str, Entry] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._jit: Any = None

    def launch_entry(self, program: Program, cache_dir: Path | None = None, width: int | None = None) -> Entry:
        """The launch entry of `program`, compiled now, taken from disk, or already here."""
        width = width or lanes(program, self._target)
        key = digest(text(program), f"launch {width} {GENERATION}", self._target)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._entries:
                self._entries[key] = self._make(program, key, width, ObjectCache(cache_dir))
            return self._entries[key]

    def _make(self, program: Program, key: str, width: int, cache: ObjectCache) -> Entry:
        symbol = f"hawk_{key[:32]}"
        code = cache.load(key)
        if code is None:
            code = self.object_code(program, symbol, width)
            cache.store(key, code)
        with self._lock:
            if self._jit is None:
                self._jit = llvm.create_lljit_compiler(machine(self._target))
            builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol).add_current_process()
            library = builder.link(self._jit, symbol)
        return Entry(library[symbol], width, library)

    def object_code(self, program: Program, symbol: str, width: int) -> bytes:
        """The object file of a program's launch entry."""
        stages.show("ir", program.name, lambda: text(program))
        source = emit_launch(program, symbol, width).text("nounwind")
        stages.show("llvm", program.name, lambda: source)
        module = optimised(source, self._target)
        stages.show("optimised", program.name, lambda: str(module))
        stages.show("assembly", program.name, lambda: machine(self._target).emit_assembly(module))
        return machine(self._target).emit_object(module)  # type: ignore[no-any-return]


def optimised(source: str, target: Target) -> llvm.ModuleRef:
    """Parse and clean up. The code is vector code already, so three passes do what can be done: LLVM's whole
    pipelines took five times as long for no gain."""
    module = llvm.parse_assembly(source)
    module.triple = target.triple
    module.data_layout = str(machine(target).target_data)
    builder = llvm.create_pass_builder(machine(target), llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return module


@cache
def host_compiler() -> Compiler:
    """The compiler for the CPU this process runs on."""
    return Compiler(host())
