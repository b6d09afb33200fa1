"""The examples, as their readers run them."""

import importlib.util
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
    checked = re.findall(r"^(.{14}) +-?[\d.]+ +-?[\d.]+ +([\d.e-]+)$", printed, re.M)
    assert [name for name, _ in checked] == [name for name, *_ in table]
    assert all(float(apart) < 1e-6 for _, apart in checked)
    assert (tmp_path / "new" / "folder" / "hare_lynx.png").read_bytes().startswith(b"\x89PNG")


def test_hare_lynx_refuses_no_starts():
    assert "--starts" in run("hare_lynx", "--starts", "0", expect=2)


def test_autodiff_agrees_with_its_judges():
    printed = run("autodiff_vs_torch", "--device", "--quick", "--out", "nowhere")
    assert "host (manifest exec_targets ['host'])" in printed
    assert "64 x 0.01" in printed
    errors = re.findall(r"^(.+?) *: max relative error = (\S+) \(tolerance 1e-05\)$", printed, re.M)
    assert [what for what, _ in errors][:2] == ["vjp vs float64 FD (8 samples)", "jvp vs float64 FD (8 samples)"]
    assert all(0 < float(error) < 1e-6 for _, error in errors)
    installed = importlib.util.find_spec("torch") is not None
    assert len(errors) == (4 if installed else 2)
    said = "ms for 4,096 samples" if installed else "torch is not installed, so there is nothing to time against"
    assert said in printed
