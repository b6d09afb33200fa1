"""The examples, as their readers run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *options: str, expect: int = 0) -> str:
    found = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *options],
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == expect, found.stdout + found.stderr
    return found.stdout + found.stderr


def test_hare_lynx_finds_the_published_fit_and_draws_it(tmp_path):
    printed = run("hare_lynx", "--quick", "--out", str(tmp_path / "new" / "folder"))
    table = re.findall(r"^(.{14}) *([\d.e-]+) +([\d.e-]+)$", printed, re.M)
    assert [name.strip() for name, *_ in table] == [
        *["alpha", "beta", "gamma", "delta"],
        *["hare in 1900", "lynx in 1900"],
    ]
    for _, found, published in table:
        assert float(found) == pytest.approx(float(published), rel=0.05)  # a mode beside the mean of a posterior
    assert "WRONG" not in printed
    assert (tmp_path / "new" / "folder" / "hare_lynx.png").read_bytes().startswith(b"\x89PNG")


def test_hare_lynx_refuses_no_starts():
    assert "--starts" in run("hare_lynx", "--starts", "0", expect=2)
