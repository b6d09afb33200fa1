"""The progress of a run, in finished samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(name: str, samples: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """What to call with the number of finished samples; with ``wanted``, a bar by tqdm shows it."""
    if not wanted:
        yield lambda finished: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=samples, unit=" samples", desc=name) as bar:
        yield lambda finished: bar.update(finished - bar.n)
