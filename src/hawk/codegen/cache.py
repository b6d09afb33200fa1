"""Compiled objects on disk, found by the hash of everything that shapes them.

A file is written whole to a temporary name and moved into place, so another process sees all of it or
nothing. It begins with a checksum of its key and code; a damaged, truncated or misplaced file is as good as none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import llvmlite
import platformdirs

from .target import Target

_MAGIC = b"eaglehawk object 1\n"


def digest(program_text: str, kind: str, target: Target) -> str:
    """The key of an object: the IR, what was made of it, the CPU, and LLVM's version."""
    version = f"{llvmlite.__version__} {llvmlite.binding.llvm_version_info}"
    parts = [program_text, kind, target.triple, target.cpu, target.features, str(target.vector_bits), version]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class ObjectCache:
    """A folder of objects. Reading and writing never fail: what cannot be kept is compiled again."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else default_folder()

    def load(self, key: str) -> bytes | None:
        try:
            content = (self._folder / f"{key}.o").read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + 32
        code = content[head:]
        intact = content[: len(_MAGIC)] == _MAGIC and content[len(_MAGIC) : head] == _checksum(key, code)
        return code if intact else None

    def store(self, key: str, code: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=f".{key[:16]}-")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + _checksum(key, code) + code)
            os.replace(name, self._folder / f"{key}.o")
        except OSError:
            Path(name).unlink(missing_ok=True)


def _checksum(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()


def default_folder() -> Path:
    """``HAWK_CACHE_DIR`` if set, else the user's cache folder."""
    chosen = os.environ.get("HAWK_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("eaglehawk")) / "objects"
