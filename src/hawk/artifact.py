"""Bundles: kernels built into a folder, to be loaded by another process or on another machine.

The folder holds ``manifest.json`` (`raptor.schema` says what is in it) and, for each kernel, an object file for
the CPU it was built on and its IR. Where the CPU or LLVM is another, the IR is compiled instead: same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final
from uuid import uuid4

import llvmlite.binding as llvm

from raptor.schema import SCHEMA_VERSION, ManifestError, manifest_digest, validate_manifest

from .codegen.compile import Object, host_compiler
from .codegen.target import host
from .diff import Derivative, Jvp, Vjp
from .ir.definition import Built, Definition
from .ir.parse import ParseError, parse
from .ir.printer import text
from .ir.program import Program
from .ir.types import Type, precision
from .ir.verify import VerifyError, verify
from .kernel import Kernel, Stepping

MANIFEST = "manifest.json"

_TARGETS = ("host",)
_KINDS: dict[str, type[Derivative]] = {kind.kind: kind for kind in (Vjp, Jvp)}


@final
class BundleError(ValueError):
    """A folder that is no whole, undamaged bundle; names the file and what is wrong with it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plugin:
    """One kernel of a bundle, at the precision it was built for; `eagle.plan.plan` makes a plan of it."""

    kernel: Kernel
    mode: str
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.kernel.name


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A bundle read from its folder, every file checked. ``manifest`` is what its manifest.json says."""

    manifest: dict[str, Any] = field(repr=False)
    directory: Path
    plugins: Mapping[str, Plugin]

    @property
    def exec_targets(self) -> tuple[str, ...]:
        return tuple(self.manifest["exec_targets"])


def build(
    kernels: Iterable[Kernel],
    directory: str | os.PathLike[str],
    *,
    mode: str = "float64",
    targets: Sequence[str] = ("host",),
) -> Bundle:
    """Compile kernels for this CPU into a folder, and return the bundle as `load` reads it back.

    `mode` is the precision, "float64" or "float32". The folder is made if need be; files of an earlier bundle
    are replaced. The manifest is written last, so a folder that was written in part is never a valid bundle.

    Raises TypeError for what is no kernel; ValueError for two kernels of one name and for an unknown mode or
    target; OSError for a folder that cannot be written.
    """
    real = precision(mode)
    kernels, targets = _checked_kernels(kernels), _checked_targets(targets)
    folder = Path(directory)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files = _Files(kernels, real)
    manifest: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "mode": mode,
        "exec_targets": list(targets),
        "host": _host(),
        "kernels": [files.kernel(k, mode) for k in kernels],
    }
    manifest["sha256"] = manifest_digest(manifest)
    with _writing(folder):
        _write(folder, files.contents | {MANIFEST: json.dumps(manifest, indent=1).encode() + b"\n"})
    return load(folder)


def load(directory: str | os.PathLike[str]) -> Bundle:
    """Read the bundle in a folder. Every file must be there and be the one that was built.

    A bundle holds machine code: load only what you would run.

    Raises BundleError, which names the file, for a folder that is no bundle, a file that is missing, damaged or
    of another bundle, and a manifest of another schema version.
    """
    folder = Path(directory)
    manifest = _manifest(folder / MANIFEST)
    reader = _Reader(folder, manifest)
    loaded = [reader.plugin(entry) for entry in manifest["kernels"]]
    return Bundle(manifest, folder, {plugin.name: plugin for plugin in loaded})


def plugins(bundle: Bundle) -> dict[str, Plugin]:
    """The plugins of a bundle by the names of their kernels."""
    if not isinstance(bundle, Bundle):
        raise TypeError(f"plugins() takes a bundle, from hawk.build(...) or hawk.load(directory), found {bundle!r}")
    return dict(bundle.plugins)


def _checked_kernels(kernels: object) -> tuple[Kernel, ...]:
    if isinstance(kernels, (Kernel, str)) or not isinstance(kernels, Iterable):
        raise TypeError("hawk.build takes a list of kernels: hawk.build([kernel], directory)")
    checked: dict[str, Kernel] = {}
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            raise TypeError(
                f"hawk.build takes hawk kernels, found {kernel!r}; decorate a function with @hawk.kernel, and make a "
                "kernel of a derivative: hawk.Kernel(name, hawk.diff.vjp(kernel))"
            )
        same = checked.setdefault(kernel.name.casefold(), kernel)  # files of a bundle are named after its kernels
        if same is not kernel:
            names = f"are named {kernel.name!r}" if same.name == kernel.name else (
                f"are named {same.name!r} and {kernel.name!r}, one file name on some systems"
            )  # fmt: skip
            raise ValueError(f"hawk.build: two kernels {names}; rename one: hawk.kernel(name=...)(function)")
    if not checked:
        raise ValueError("hawk.build: there are no kernels to build")
    return tuple(checked.values())


def _checked_targets(targets: object) -> tuple[str, ...]:
    if isinstance(targets, str) or not isinstance(targets, Sequence) or not targets:
        raise ValueError(f'targets={targets!r}: expected a list of targets, for example targets=("host",)')
    for target in targets:
        if target not in _TARGETS:
            raise ValueError(f"targets={targets!r}: {target!r} is not a target; kernels are built for 'host'")
    return tuple(dict.fromkeys(targets))


def _host() -> dict[str, Any]:
    """The manifest's entry for this CPU and the LLVM that compiles for it."""
    target = host()
    return {
        "triple": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "vector_bits": target.vector_bits,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
    }


def _arguments(program: Program) -> list[dict[str, Any]]:
    return [
        {
            "name": a.name,
            "role": a.role.value,
            "shape": list(a.shape),
            "dtype": a.type.dtype.name,
            "axes": list(a.axes),
            "samples_first": a.samples_first,
        }
        for a in program.arguments
    ]


class _Files:
    """The files of a bundle to be, by name, and the manifest's entries for them."""

    def __init__(self, kernels: Sequence[Kernel], real: Type) -> None:
        self.contents: dict[str, bytes] = {}
        self._real = real
        self._stems: dict[Definition, str] = {k.definition: k.name for k in reversed(kernels)}

    def kernel(self, kernel: Kernel, mode: str) -> dict[str, Any]:
        program = kernel.program(mode)
        made = host_compiler().launch_object(program)
        code = self._add(f"{kernel.name}.o", made.code)
        return {
            "name": kernel.name,
            "arguments": _arguments(program),
            "returns": list(program.returns),
            "ir": self._ir(kernel.definition, kernel.name),
            "derivative": self._derivative(kernel.definition, kernel.name),
            "stepping": asdict(kernel.stepping),
            "objects": {"host": code | {"symbol": made.symbol, "lanes": made.width, "key": made.key}},
        }

    def _add(self, name: str, content: bytes) -> dict[str, Any]:
        self.contents[name] = content
        return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}

    def _ir(self, definition: Definition, stem: str) -> dict[str, Any]:
        return self._add(f"{stem}.ir", text(definition.program(self._real)).encode() + b"\n")

    def _derivative(self, definition: Definition, stem: str) -> dict[str, Any] | None:
        if not isinstance(definition, Derivative):
            return None
        stem = self._stems.setdefault(definition.primal, f"{stem}.primal")
        primal = {"ir": self._ir(definition.primal, stem), "derivative": self._derivative(definition.primal, stem)}
        return {"kind": definition.kind, "wrt": list(definition.wrt), "primal": primal}


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"hawk.build cannot write a bundle here ({error.strerror}); choose another directory"
        raise OSError(error.errno, message, str(folder)) from error


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Each file whole or not at all, in order."""
    for name, content in files.items():
        temporary = folder / f".{name}.{uuid4().hex}"
        try:
            temporary.write_bytes(content)
            os.replace(temporary, folder / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        hint = "hawk.build makes bundles" if path.name == MANIFEST else "the manifest names it; build the bundle again"
        raise BundleError(f"{path}: there is no such file; {hint}") from None
    except OSError as error:
        raise BundleError(f"{path}: it cannot be read ({error.strerror})") from error


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(_read(path).decode())
        validate_manifest(manifest)
    except ManifestError as error:
        raise BundleError(f"{path}: {error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BundleError(f"{path}: it is damaged, or no JSON at all ({error}); build the bundle again") from error
    if manifest["sha256"] != manifest_digest(manifest):
        raise BundleError(f"{path}: it is not as it was built, its sha256 is another; build the bundle again")
    return manifest


class _Reader:
    """Makes plugins of a bundle's files."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self._folder = folder
        self._mode: str = manifest["mode"]
        self._real = precision(self._mode)
        self._targets = tuple(manifest["exec_targets"])
        self._native = manifest["host"] == _host()
        self._definitions: dict[str, Definition] = {}

    def plugin(self, entry: dict[str, Any]) -> Plugin:
        kernel = Kernel(entry["name"], self._definition(entry), stepping=Stepping(**entry["stepping"]))
        program = kernel.program(self._mode)
        described = {"arguments": _arguments(program), "returns": list(program.returns)}
        for key, found in described.items():
            if entry[key] != found:
                raise self._fault(entry["ir"], f"its {key} are not those the manifest gives for {kernel.name}")
        for target in self._targets:
            made = entry["objects"].get(target)
            if made is None:
                raise BundleError(f"{self._folder / MANIFEST}: {kernel.name} has no object for the target {target!r}")
            code = self._file(made)
            if self._native:
                host_compiler().accept(program, Object(made["key"], made["symbol"], made["lanes"], code))
        return Plugin(kernel, self._mode, self._targets)

    def _definition(self, entry: dict[str, Any]) -> Definition:
        """The definition of a kernel, or of a primal: one for each file of IR."""
        file, derivative = entry["ir"]["file"], entry["derivative"]
        if file not in self._definitions:
            program = self._program(entry["ir"])
            made: Definition
            if derivative is None:
                made = Built(program, self._real)
            else:
                primal = self._definition(derivative["primal"])
                made = self._derivative(derivative, primal, program)
            if made.name != program.name:
                raise self._fault(entry["ir"], f"it is the IR of {program.name}, not of {made.name}")
            self._definitions[file] = made
        return self._definitions[file]

    def _derivative(self, entry: dict[str, Any], primal: Definition, program: Program) -> Derivative:
        try:
            return _KINDS[entry["kind"]](primal, tuple(entry["wrt"]), {self._real: program})
        except (TypeError, ValueError) as error:
            raise BundleError(f"{self._folder / MANIFEST}: {error}") from error

    def _program(self, entry: dict[str, Any]) -> Program:
        try:
            return verify(parse(self._file(entry).decode()))
        except (UnicodeDecodeError, ParseError, VerifyError) as error:
            raise self._fault(entry, str(error)) from error

    def _file(self, entry: dict[str, Any]) -> bytes:
        content = _read(self._folder / entry["file"])
        found = hashlib.sha256(content).hexdigest()
        if found != entry["sha256"]:
            raise self._fault(
                entry, f"it is damaged or of another bundle: its sha256 is {found}, the manifest says {entry['sha256']}"
            )
        return content

    def _fault(self, entry: dict[str, Any], what: str) -> BundleError:
        return BundleError(f"{self._folder / entry['file']}: {what}; build the bundle again")
