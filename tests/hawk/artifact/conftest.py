"""What the tests of bundles share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hawk.codegen.compile import Compiler, host_compiler


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the kernels compiled from here on, by a compiler that knows none, with an empty cache on disk."""
    names: list[str] = []
    object_code = Compiler.object_code

    def noted(self: Compiler, program, symbol: str, width: int) -> bytes:
        names.append(program.name)
        return object_code(self, program, symbol, width)

    monkeypatch.setattr(Compiler, "object_code", noted)
    monkeypatch.setenv("HAWK_CACHE_DIR", str(tmp_path / "no objects"))
    host_compiler.cache_clear()
    yield names
    host_compiler.cache_clear()
