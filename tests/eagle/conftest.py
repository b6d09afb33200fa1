"""Shared by eagle's tests: the packages beside this file can be imported, and the object cache is a temporary one."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, database=None, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def _objects_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAWK_CACHE_DIR", str(tmp_path_factory.mktemp("objects")))
        yield
