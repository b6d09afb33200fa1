"""A run stopped, saved to one file, and continued elsewhere."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from eagletest.numpy_sums import bits

import eagle
import hawk
from eagle.errors import SavedRunError
from eagle.plan import Plan

from . import kernels as k
from .running import pendulums


def same(left: object, right: object) -> None:
    assert bits(np.asarray(left)) == bits(np.asarray(right))


def runner(n: int = 600, **options: object) -> eagle.runs.Runner:
    return eagle.until_done(Plan(k.pendulum, "float64"), max_steps=400, **pendulums(n), **options)


@pytest.mark.parametrize("steps", [0, 1, 77])
def test_a_resumed_run_ends_with_the_bits_of_one_go(tmp_path: Path, steps: int) -> None:
    whole = runner(record=True)
    whole.run()
    stopped = runner(record=True)
    stopped.run(steps=steps)
    stopped.save(tmp_path / "run")
    resumed = eagle.resume(tmp_path / "run")
    resumed.run()
    same(resumed.planes["x"], whole.planes["x"])
    same(resumed.steps, whole.steps)
    seeds = {"x": np.ones(600)}
    there, here = (eagle.diff.reverse(r.record, seeds) for r in (resumed, whole))
    for key in here:
        same(there[key], here[key])


CHILD = """
import sys
import numpy as np
import eagle
runner = eagle.resume(sys.argv[1])
runner.run()
np.save(sys.argv[2], np.stack([runner.planes["x"], runner.planes["t"]]))
"""


def test_it_goes_on_in_another_process_that_never_saw_the_kernel(tmp_path: Path) -> None:
    whole = runner()
    whole.run()
    stopped = runner()
    stopped.run(steps=50)
    stopped.save(tmp_path / "run")
    command = [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(tmp_path / "end.npy")]
    subprocess.run(command, check=True, timeout=120)
    same(np.load(tmp_path / "end.npy"), np.stack([whole.planes["x"], whole.planes["t"]]))


def test_refined_runs_resume_too(tmp_path: Path) -> None:
    y = np.linspace(1.0, 5.0, 7)
    planes = {"dt": 0.1, "g": 9.81, "y": y, "v": np.zeros(7), "t": np.zeros(7)}
    stopped = eagle.until_done(Plan(k.fall, "float64"), max_steps=200, events="refine", **planes)
    stopped.run(steps=5)
    stopped.save(tmp_path / "run")
    resumed = eagle.resume(tmp_path / "run")
    resumed.run()
    np.testing.assert_allclose(resumed.t_stop, np.sqrt(2 * np.linspace(1.0, 5.0, 7) / 9.81), rtol=1e-13)
    assert (resumed.event_status == eagle.Status.EVENT).all()


def test_a_finished_run_keeps_its_record(tmp_path: Path) -> None:
    done = runner(record=True)
    done.run()
    done.save(tmp_path / "run")
    seeds = {"v": np.ones(600)}
    again = eagle.resume(tmp_path / "run")
    same(eagle.diff.reverse(again.record, seeds)["c"], eagle.diff.reverse(done.record, seeds)["c"])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    stopped = runner(5)
    stopped.run(steps=3)
    stopped.save(tmp_path / "run")
    whole = (tmp_path / "run").read_bytes()
    for name, content in {
        "flipped": whole[:700] + bytes([whole[700] ^ 1]) + whole[701:],
        "cut": whole[: len(whole) // 2],
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SavedRunError, match=f"{name} is damaged"):
            eagle.resume(tmp_path / name)
    (tmp_path / "other").write_bytes(b"something else")
    with pytest.raises(SavedRunError, match="other is no saved run"):
        eagle.resume(tmp_path / "other")
    (tmp_path / "newer").write_bytes(b"eagle run 9\n" + whole[12:])
    with pytest.raises(SavedRunError, match="another version; this one reads version 1"):
        eagle.resume(tmp_path / "newer")


def test_a_derived_kernel_cannot_be_saved(tmp_path: Path) -> None:
    step = hawk.Kernel("tangent", hawk.diff.jvp(k.decay, wrt=("x",)))
    planes = {"dt": 0.1, "rate": np.ones(3), "x": np.ones(3), "dot_x": np.ones(3)}
    run = eagle.until_done(Plan(step, "float64"), max_steps=3, **planes)
    with pytest.raises(SavedRunError, match="tangent cannot be saved"):
        run.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_record_is_saved_as_it_is_and_no_other(tmp_path: Path) -> None:
    run, seeds = runner(5, record=True), {"x": np.ones(5)}
    run.run()
    expected = eagle.diff.reverse(run.record, seeds)
    run.reset()  # the planes are at the start again; the record is of the run that was
    run.save(tmp_path / "run")
    again = eagle.resume(tmp_path / "run")
    same(eagle.diff.reverse(again.record, seeds)["c"], expected["c"])
    with pytest.raises(eagle.errors.RecordError, match="there is no complete run"):
        _ = again.result
    run.set_start({"t_final": np.full(5, 0.2)})  # the record is void
    run.save(tmp_path / "run")
    with pytest.raises(eagle.errors.RecordError, match="there is no complete run to reverse"):
        _ = eagle.resume(tmp_path / "run").record
