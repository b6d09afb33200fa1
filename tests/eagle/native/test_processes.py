"""Threads, the interpreter's lock, Ctrl-C, fork: each in a process of its own, so a hang is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eagle._native import set_threads

LIMIT = 60  # seconds, for a hang; no test is about time


def child(program: str, threads: int | str | None) -> list[str]:
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    code = "import sys; sys.path.insert(0, sys.argv[1]); from native import child; child.PROGRAMS[sys.argv[2]]()"
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1]), program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


def test_the_same_bits_for_every_number_of_threads() -> None:
    alone, *bits = child("bits", 1)
    assert alone == "1"
    assert len(set(bits)) == 4
    for threads in (2, 3, 8):
        assert child("bits", threads) == [str(threads), *bits]


def test_the_number_of_threads_can_change() -> None:
    assert child("resized", 2) == ["1"]


@pytest.mark.parametrize("threads", [-1, 0, 1025])
def test_numbers_of_threads_that_make_no_sense(threads: int) -> None:
    with pytest.raises(ValueError, match=f"a team of {threads} threads; give a number from 1 to 1024"):
        set_threads(threads)


def test_the_usual_number_of_threads() -> None:
    assert child("how_many", "3,2") == ["3"]
    assert child("how_many", "100000") == ["1024"]
    for meaningless in (None, "0", "many"):
        assert child("how_many_on_one_core", meaningless) == ["1"]
    assert 1 <= int(child("how_many", None)[0]) <= len(os.sched_getaffinity(0))


def test_a_team_shares_the_blocks_and_runs_each_once() -> None:
    for threads in (2, 5):
        assert child("team", threads) == [str(threads), "41", str(256 * 40 + 1)]


def test_many_short_runs() -> None:
    for threads in (2, 8):
        assert child("often", threads) == ["True"]


def test_runs_of_several_threads_at_a_time() -> None:
    for threads in (2, 3):
        assert child("callers", threads) == ["1"]


def test_helpers_without_work_sleep() -> None:
    assert child("asleep", 4) == ["3"]


def test_other_python_threads_run_meanwhile() -> None:
    assert child("lock", 1) == ["released"]


def test_ctrl_c_drops_the_blocks_that_have_not_started() -> None:
    for threads in (1, 2, 8):
        assert child("interrupt", threads) == ["interrupted", "True", "-1.0", "-1.0", "True"]


def test_the_process_ends_with_its_helpers() -> None:
    assert child("leave", 3) == ["left"]


def test_the_process_ends_during_a_run() -> None:
    for threads in (1, 2):
        assert child("leave_busy", threads) == ["left"]


def test_a_forked_child_has_its_own_team_and_the_same_bits() -> None:
    assert child("fork", 2) == ["2", "2", "2", "1"]
