"""A run in one file: stopped in one process, continued in another, with the same bits.

The file is a checksum and an ``.npz`` archive: the kernel as IR text, the options, every plane, and where each
sample stands. Nothing in it is executed when it is read but the kernel, which is compiled again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import hawk
from hawk.ir.definition import Traced
from hawk.ir.parse import ParseError, parse
from hawk.ir.printer import text
from hawk.kernel import Stepping

from ..errors import SavedRunError
from ..plan import auto
from .options import Options
from .runner import Runner

_MAGIC = b"eagle run 1\n"


def save(runner: Runner, path: str | Path) -> None:
    """Write a run, finished or stopped after some steps, to one file. See `Runner.save`."""
    definition = runner.plan.kernel.definition
    if not isinstance(definition, Traced):
        raise SavedRunError(
            f"{runner.plan.name} cannot be saved: its kernel is not traced from source but derived or loaded"
        )
    how_far, arrays = runner.standing()
    about = {
        "kernel": text(definition.traced),
        "stepping": asdict(runner.plan.kernel.stepping),
        "mode": runner.plan.mode,
        "options": asdict(runner.options),
        "how far": how_far,
    }
    buffer = io.BytesIO()
    np.savez(buffer, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    content = buffer.getvalue()
    _write(Path(path), _MAGIC + hashlib.sha256(content).digest() + content)


def _write(path: Path, content: bytes) -> None:
    """The whole file or none: written beside its place, then moved."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def resume(path: str | Path) -> Runner:
    """A run from the file that `Runner.save` wrote, ready to go on: ``resume(path).run()``.

    Its planes are new arrays, in ``runner.planes``. The same kernel is compiled for this machine, so the run
    ends with the bits it would have had.

    Raises SavedRunError for a file that is damaged, cut short, of another version, or no saved run.
    """
    about, arrays = _read(Path(path))
    try:
        kernel = hawk.Kernel(
            parse(about["kernel"]).name, Traced(parse(about["kernel"])), None, Stepping(**about["stepping"])
        )
    except (ParseError, KeyError, TypeError) as error:
        raise SavedRunError(f"{path}: it was written by another version of eagle: {error}") from error
    (plan,) = auto([kernel], mode=about["mode"])
    planes = {name.removeprefix("plane "): array for name, array in arrays.items() if name.startswith("plane ")}
    runner = Runner(plan, Options(**about["options"]), planes)
    runner.take_up(about["how far"], arrays)
    return runner


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    content = path.read_bytes()
    head = len(_MAGIC) + 32
    if not content.startswith(b"eagle run "):
        raise SavedRunError(f"{path} is no saved run")
    if content[: len(_MAGIC)] != _MAGIC:
        raise SavedRunError(f"{path} is a saved run of another version; this one reads version 1")
    if hashlib.sha256(content[head:]).digest() != content[len(_MAGIC) : head]:
        raise SavedRunError(f"{path} is damaged: its checksum does not fit; save the run again")
    try:
        with np.load(io.BytesIO(content[head:]), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return json.loads(arrays.pop("about").tobytes().decode()), arrays
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise SavedRunError(f"{path} is damaged: {error}") from error
