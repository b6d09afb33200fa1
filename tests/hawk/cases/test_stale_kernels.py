"""A kernel is its own definition: nothing compiled for another is used for it, and nothing is compiled twice."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import hawk
from eagle.plan import Plan
from hawk import Mutable, Scalar, kernel
from hawk import math as hm
from hawk.codegen.cache import ObjectCache
from hawk.codegen.compile import Compiler, host_compiler
from hawk.diff import jvp, vjp

X = np.array([1.0, 2.0, 5.0])


def value(k: hawk.Kernel, mode: str = "float64") -> np.ndarray:
    x, y = X.astype(mode), np.zeros(3, mode)
    Plan(k, mode).bind(x=x, y=y).launch()
    return y


def slope(k: hawk.Kernel, mode: str = "float64") -> np.ndarray:
    x, back = X.astype(mode), np.zeros(3, mode)
    Plan(hawk.Kernel("back", vjp(k)), mode).bind(x=x, bar_y=np.ones_like(x), bar_x=back).launch()
    return back


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the kernels compiled from here on, with nothing known and an empty cache on disk."""
    names: list[str] = []
    object_code = Compiler.object_code

    def noted(self: Compiler, program, symbol: str, width: int) -> bytes:
        names.append(program.name)
        return object_code(self, program, symbol, width)

    monkeypatch.setattr(Compiler, "object_code", noted)
    monkeypatch.setenv("HAWK_CACHE_DIR", str(tmp_path / "objects"))
    host_compiler.cache_clear()
    yield names
    host_compiler.cache_clear()


# closures, globals, helpers


def scaled_by(factor: float) -> hawk.Kernel:
    @kernel
    def k(x: Scalar, y: Mutable[Scalar]):
        y = factor * x

    return k


def through(function: Callable) -> hawk.Kernel:
    @kernel
    def k(x: Scalar, y: Mutable[Scalar]):
        y = function(x)

    return k


def test_closures_of_one_name_have_their_own_constants_and_functions():
    two, three = scaled_by(2.0), scaled_by(3.0)
    square, cube = through(lambda x: x * x), through(lambda x: x * x * x)
    for _ in range(2):
        np.testing.assert_array_equal(value(two), 2 * X)
        np.testing.assert_array_equal(value(three), 3 * X)
        np.testing.assert_array_equal(slope(three), [3, 3, 3])
        np.testing.assert_array_equal(slope(two), [2, 2, 2])
        np.testing.assert_array_equal(value(square), X**2)
        np.testing.assert_array_equal(value(cube), X**3)
        np.testing.assert_array_equal(slope(cube), 3 * X**2)
        np.testing.assert_array_equal(slope(square), 2 * X)


OFFSET = 1.0


def test_a_global_is_as_it_was_at_decoration_in_value_and_derivative(monkeypatch):
    def define() -> hawk.Kernel:
        @kernel
        def k(x: Scalar, y: Mutable[Scalar]):
            y = OFFSET * x + OFFSET

        return k

    before = define()
    monkeypatch.setattr(sys.modules[__name__], "OFFSET", 10.0)
    after = define()
    np.testing.assert_array_equal(value(before), X + 1)
    np.testing.assert_array_equal(slope(before), [1, 1, 1])
    np.testing.assert_array_equal(value(after), 10 * X + 10)
    np.testing.assert_array_equal(slope(after), [10, 10, 10])


def test_one_source_at_two_precisions():
    k = scaled_by(0.1)
    assert value(k, "float32").dtype == np.float32
    np.testing.assert_array_equal(value(k, "float32"), X.astype(np.float32) * np.float32(0.1))
    np.testing.assert_array_equal(value(k), X * 0.1)


def test_a_cell_run_again_under_the_same_name():
    cell = "@kernel(source=text)\ndef step(x: Scalar, y: Mutable[Scalar]):\n    y = {} * x\n"
    for factor in (2.0, 3.0, 2.0):
        names = {"kernel": kernel, "Scalar": Scalar, "Mutable": Mutable, "text": cell.format(factor)}
        exec(names["text"], names)
        np.testing.assert_array_equal(value(names["step"]), factor * X)
        np.testing.assert_array_equal(slope(names["step"]), [factor] * 3)


MAIN = """\
import sys
import numpy as np
import eagle, hawk
from hawk import Mutable, Scalar, kernel
from hawk.codegen.compile import Compiler
from hawk.diff import vjp
from eagle.plan import Plan
from near import middle

compiled = []
object_code = Compiler.object_code
Compiler.object_code = lambda self, program, symbol, width: (
    compiled.append(program.name) or object_code(self, program, symbol, width)
)

def inner(x):
    return FACTOR * x

def outer(x):
    return inner(x) + middle(x)

@kernel
def k(x: Scalar, y: Mutable[Scalar]):
    y = outer(x)

x, y, back = np.ones(1), np.zeros(1), np.zeros(1)
Plan(k, "float64").bind(x=x, y=y).launch()
Plan(hawk.Kernel("back", vjp(k)), "float64").bind(x=x, bar_y=np.ones(1), bar_x=back).launch()
print(y[0], back[0], *compiled)
"""


def run(folder: Path, main: str, near: str, seed: str = "0") -> list[str]:
    """Values of a program of two files in a process of its own, and what it had to compile."""
    (folder / "main.py").write_text(main)
    (folder / "near.py").write_text(near)
    env = os.environ | {
        "PYTHONHASHSEED": seed,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HAWK_CACHE_DIR": str(folder / "objects"),
    }
    command = [sys.executable, folder / "main.py"]
    found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def test_edited_helpers_are_seen_and_unchanged_ones_are_found_by_other_processes(tmp_path):
    main, near = (
        MAIN.replace("FACTOR", "2.0"),
        "def middle(x):\n    return deep(x)\n\ndef deep(x):\n    return 10.0 * x\n",
    )
    assert run(tmp_path, main, near, "1") == ["12.0", "12.0", "k", "back"]
    assert run(tmp_path, main, near, "2") == ["12.0", "12.0"]
    edited = near.replace("10.0", "30.0")
    assert run(tmp_path, main, edited, "3") == ["32.0", "32.0", "k", "back"]
    assert run(tmp_path, main.replace("2.0", "5.0"), edited, "4") == ["35.0", "35.0", "k", "back"]
    assert run(tmp_path, main, near, "5") == ["12.0", "12.0"]


# the cache


def test_derivatives_are_compiled_when_they_are_asked_for(compiled):
    k = scaled_by(7.0)
    assert compiled == []
    value(k)
    assert compiled == ["k"]
    back = hawk.Kernel("back", vjp(k))
    hawk.Kernel("push", jvp(k))
    assert compiled == ["k"]
    Plan(back, "float64").bind(x=X, bar_y=np.ones(3), bar_x=np.zeros(3)).launch()
    assert compiled == ["k", "back"]


def test_the_same_kernel_made_again_and_again_is_compiled_once_and_keeps_no_memory(compiled):
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def make(times: int) -> None:
        for _ in range(times):
            np.testing.assert_array_equal(value(scaled_by(11.0)), 11 * X)

    make(100)
    before = resident()
    make(600)
    assert compiled == ["k"]
    assert resident() - before < 4 << 20


@pytest.mark.parametrize(
    "damage", [lambda c: c[: len(c) // 2], lambda c: c[:-1] + bytes([c[-1] ^ 1]), lambda c: b"", lambda c: b"x" * 99]
)
def test_a_damaged_object_is_compiled_again(compiled, damage):
    k = scaled_by(13.0)
    value(k)
    (file,) = Path(os.environ["HAWK_CACHE_DIR"]).iterdir()
    intact = file.read_bytes()
    file.write_bytes(damage(intact))
    host_compiler.cache_clear()
    np.testing.assert_array_equal(value(k), 13 * X)
    assert compiled == ["k", "k"]
    assert file.read_bytes() == intact
    host_compiler.cache_clear()
    value(k)
    assert compiled == ["k", "k"]


def test_a_process_killed_while_it_writes_leaves_no_half_object(tmp_path):
    code = (
        "import sys; from pathlib import Path; from hawk.codegen.cache import ObjectCache\n"
        "cache = ObjectCache(Path(sys.argv[1]))\n"
        "print('begun', flush=True)\n"
        "while True: cache.store('key', bytes(1 << 22))\n"
    )
    for wait in (0.02, 0.05, 0.1):
        writer = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"begun\n"
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.wait(60)
        writer.stdout.close()
        assert ObjectCache(tmp_path).load("key") in (None, bytes(1 << 22))


def test_many_threads_on_several_kernels_of_several_kinds():
    """Values, slopes and loops of three kernels, sixteen threads at once, different numbers of samples."""

    @kernel
    def wave(x: Scalar, y: Mutable[Scalar]):
        y = hm.sin(3.25 * x) * x

    @kernel
    def climb(x: Scalar, y: Mutable[Scalar]):
        s = x
        while hm.bounded(s < 40, 100):
            s = s * 1.5 + 0.8125
        y = s

    @kernel
    def long(x: Scalar, y: Mutable[Scalar]):
        s = x
        for i in range(100):
            s = s + 0.001 * i * hm.cos(s)
        y = s

    def work(k: hawk.Kernel, n: int) -> bytes:
        x, y, back = np.linspace(0.5, 3, n), np.zeros(n), np.zeros(n)
        Plan(k, "float64").bind(x=x, y=y).launch()
        Plan(hawk.Kernel("back", vjp(k)), "float64").bind(x=x, bar_y=np.ones(n), bar_x=back).launch()
        return y.tobytes() + back.tobytes()

    start, found = threading.Barrier(16), {}

    def thread(k: int) -> None:
        start.wait(60)
        for j in range(13):
            case = (k + j) % 3, (1, 7, 255, 600)[(k * j) % 4]
            found[k, j] = case, work((wave, climb, long)[case[0]], case[1])

    threads = [threading.Thread(target=thread, args=(k,)) for k in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 16 * 13
    expected = {case: work((wave, climb, long)[case[0]], case[1]) for case, _ in found.values()}
    assert all(result == expected[case] for case, result in found.values())
