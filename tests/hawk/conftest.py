"""Shared by hawk's tests: the modules beside this file can be imported, and the object cache is a temporary one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, database=None, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def object_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled objects of this test session are kept."""
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="session", autouse=True)
def _objects_apart(object_folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAWK_CACHE_DIR", str(object_folder))
        yield
