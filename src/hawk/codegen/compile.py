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
from ..ir.verify import verify
from .cache import ObjectCache, digest
from .launch import emit_launch
from .target import Target, host, lanes, machine

# Raise when emitted code changes for the same IR: old objects must not be found.
GENERATION = "6"


@dataclass(frozen=True, slots=True)
class Entry:
    """A native launch entry: its address, and what keeps its code in memory."""

    address: int
    width: int
    library: object


@dataclass(frozen=True, slots=True)
class Object:
    """An object file with one launch entry: the key of everything that shapes it, its symbol, its lanes."""

    key: str
    symbol: str
    width: int
    code: bytes


class Compiler:
    """Compiles programs for this CPU; each distinct program once, whichever thread asks."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._entries: dict[str, Entry] = {}
        self._accepted: dict[str, bytes] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._jit: Any = None

    def launch_entry(self, program: Program, cache_dir: Path | None = None, width: int | None = None) -> Entry:
        """The launch entry of `program`, compiled now, taken from disk, or already here."""
        width = width or lanes(program, self._target)
        key = self._key(program, width)
        with self._turn(key):
            if key not in self._entries:
                code = self._code(program, key, width, ObjectCache(cache_dir))
                self._entries[key] = self._link(code, _symbol(key), width)
            return self._entries[key]

    def launch_object(self, program: Program, cache_dir: Path | None = None) -> Object:
        """The object file of `program`'s launch entry, to be kept and given to `accept`."""
        width = lanes(program, self._target)
        key = self._key(program, width)
        with self._turn(key):
            return Object(key, _symbol(key), width, self._code(program, key, width, ObjectCache(cache_dir)))

    def accept(self, program: Program, object: Object) -> bool:
        """Use `object` when `program` is asked for; False if it is not what this compiler would make of it now."""
        if object.key != self._key(program, lanes(program, self._target)):
            return False
        with self._lock:
            self._accepted.setdefault(object.key, object.code)
        return True

    def _key(self, program: Program, width: int) -> str:
        return digest(text(program), f"launch {width} {GENERATION}", self._target)

    def _turn(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def _code(self, program: Program, key: str, width: int, cache: ObjectCache) -> bytes:
        code = self._accepted.get(key) or cache.load(key)
        if code is None:
            code = self.object_code(program, _symbol(key), width)
            cache.store(key, code)
        return code

    def _link(self, code: bytes, symbol: str, width: int) -> Entry:
        with self._lock:
            if self._jit is None:
                self._jit = llvm.create_lljit_compiler(machine(self._target))
            builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol).add_current_process()
            library = builder.link(self._jit, symbol)
        return Entry(library[symbol], width, library)

    def object_code(self, program: Program, symbol: str, width: int) -> bytes:
        """The object file of a program's launch entry."""
        verify(program)  # LLVM would end the process over what this refuses
        stages.show("ir", program.name, lambda: text(program))
        source = emit_launch(program, symbol, width).text("nounwind")
        stages.show("llvm", program.name, lambda: source)
        module = optimised(source, self._target)
        stages.show("optimised", program.name, lambda: str(module))
        stages.show("assembly", program.name, lambda: machine(self._target).emit_assembly(module))
        return machine(self._target).emit_object(module)


def _symbol(key: str) -> str:
    return f"hawk_{key[:32]}"


def optimised(source: str, target: Target) -> llvm.ModuleRef:
    """Parse and clean up. The code is vector code without a repeated instruction already, so two passes do what
    can be done: LLVM's whole pipelines took five times as long for no gain."""
    module = llvm.parse_assembly(source)
    module.triple = target.triple
    module.data_layout = str(machine(target).target_data)
    builder = llvm.create_pass_builder(machine(target), llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return module


@cache
def host_compiler() -> Compiler:
    """The compiler for the CPU this process runs on."""
    return Compiler(host())
