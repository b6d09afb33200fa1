"""Threads, the interpreter's lock, Ctrl-C, fork: each in a process of its own, so a hang is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from eagle._native import OPENMP

LIMIT = 60  # seconds, for a hang; no test is about time


def expected(threads: int) -> str:
    return str(threads if OPENMP else 1)


def child(program: str, threads: int) -> list[str]:
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from native import child; child.PROGRAMS[sys.argv[2]]()"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1]), program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_same_bits_for_every_number_of_threads() -> None:
    alone, *bits = child("bits", 1)
    assert alone == "1"
    assert len(set(bits)) == 4
    for threads in (2, 3):
        assert child("bits", threads) == [expected(threads), *bits]


def test_a_team_shares_the_blocks_and_runs_each_once() -> None:
    assert child("team", 2) == [expected(2), "41", str(256 * 40 + 1)]


def test_other_python_threads_run_meanwhile() -> None:
    assert child("lock", 1) == ["released"]


def test_ctrl_c_drops_the_blocks_that_have_not_started() -> None:
    for threads in (1, 2):
        assert child("interrupt", threads) == ["interrupted", "True", "-1.0", "-1.0", "True"]


def test_a_forked_child_has_the_same_bits_and_does_not_hang() -> None:
    assert child("fork", 2) == [expected(2), "1", expected(2), "True"]
