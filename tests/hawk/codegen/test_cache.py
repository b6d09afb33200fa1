"""Objects on disk: found again by every process, never mixed up, and as good as none when damaged."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hawktest.compiled import launch

from hawk import Kernel, Scalar, kernel
from hawk import math as hm
from hawk.codegen.cache import ObjectCache, default_folder
from hawk.codegen.compile import Compiler
from hawk.codegen.target import host
from hawk.diff import vjp
from hawk.ir.program import Program


@kernel
def doubled(x: Scalar) -> Scalar:
    return 2 * x


@kernel
def tripled(x: Scalar) -> Scalar:
    return 3 * x


class Counting:
    """A compiler like a new process's, with a count of what it did not find."""

    def __init__(self, folder: Path) -> None:
        self._compiler = Compiler(host())
        self._folder = folder
        self.compiled = 0
        make = self._compiler.object_code

        def counted(program: Program, symbol: str, width: int) -> bytes:
            self.compiled += 1
            return make(program, symbol, width)

        self._compiler.object_code = counted  # type: ignore[method-assign]

    def run(self, k: Kernel, x: float = 5.0) -> float:
        """What the kernel gives for one sample."""
        program = k.program()
        entry = self._compiler.launch_entry(program, self._folder, width=8)
        return float(launch(program, {"x": [x]}, 8, entry=entry)["out"][0])


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.o"))


def test_an_object_is_kept_and_found_by_the_next_process(tmp_path):
    first, second = Counting(tmp_path), Counting(tmp_path)
    assert [first.run(doubled), first.run(doubled), second.run(doubled)] == [10, 10, 10]
    assert (first.compiled, second.compiled) == (1, 0)
    assert len(files(tmp_path)) == 1
    assert not list(tmp_path.glob(".*"))


def flip(content: bytes) -> bytes:
    return content[:-40] + bytes([content[-40] ^ 1]) + content[-39:]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated in the head": lambda content: content[:10],
    "truncated in the checksum": lambda content: content[:30],
    "truncated in the code": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "a bit flipped": flip,
    "another format": lambda content: b"eaglehawk object 0\n" + content[19:],
    "foreign": lambda content: b"\x7fELF" + bytes(2000),
    "text": lambda content: b"Not Found\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_object_is_compiled_again_and_put_right(tmp_path, damage):
    Counting(tmp_path).run(doubled)
    (file,) = files(tmp_path)
    sound = file.read_bytes()
    file.write_bytes(DAMAGE[damage](sound))
    again = Counting(tmp_path)
    assert again.run(doubled) == 10
    assert again.compiled == 1
    assert file.read_bytes()[:19] == sound[:19]
    third = Counting(tmp_path)
    assert third.run(doubled) == 10
    assert third.compiled == 0


def test_an_object_under_the_key_of_another_is_compiled_again(tmp_path):
    Counting(tmp_path).run(doubled)
    (file,) = files(tmp_path)
    Counting(tmp_path).run(tripled)
    (other,) = set(files(tmp_path)) - {file}
    other.write_bytes(file.read_bytes())
    again = Counting(tmp_path)
    assert again.run(tripled) == 15
    assert again.compiled == 1


def test_a_writer_that_was_killed_leaves_nothing_that_matters(tmp_path):
    (tmp_path / ".0123456789abcdef-unfinished").write_bytes(b"eaglehawk obj")
    counting = Counting(tmp_path)
    assert counting.run(doubled) == 10
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("place", ["below a file", "a file", "a folder where the object goes"])
def test_a_cache_that_cannot_be_used_costs_time_only(tmp_path, place):
    taken = tmp_path / "taken"
    if place == "a folder where the object goes":
        Counting(taken).run(doubled)
        (file,) = files(taken)
        file.unlink()
        file.mkdir()
        folder = taken
    else:
        taken.write_text("not a folder")
        folder = taken / "objects" if place == "below a file" else taken
    for _ in range(2):
        counting = Counting(folder)
        assert counting.run(doubled) == 10
        assert counting.compiled == 1


def test_a_write_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    ObjectCache(tmp_path).store("k" * 64, b"code")
    assert list(tmp_path.iterdir()) == []
    assert ObjectCache(tmp_path).load("k" * 64) is None


def test_the_folder_is_that_of_the_environment_or_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("HAWK_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_folder() == tmp_path / "chosen"
    monkeypatch.setenv("HAWK_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert default_folder().name == "objects"
    assert "eaglehawk" in default_folder().parts


def test_another_process_with_another_hash_seed_finds_the_same_objects(tmp_path):
    (tmp_path / "model.py").write_text(
        "from hawk import Int32, Kernel, Param, Scalar, Table, kernel, math as hm\n"
        "from hawk.diff import jvp, vjp\n"
        "\n"
        "@kernel\n"
        "def model(x: Scalar, p: Param, q: Param, n: Int32, t: Table['row':4]) -> Scalar:\n"
        "    a, b, c = x, p, q\n"
        "    for i in range(n):\n"
        "        if a > b:\n"
        "            a, b = b * hm.sin(c), a + t.at(i)\n"
        "        else:\n"
        "            c = c * a + t.at(2)\n"
        "    return a + b + c\n"
        "\n"
        "reverse = Kernel('reverse', vjp(model))\n"
        "kernels = [model, reverse, Kernel('forward', jvp(model)), Kernel('both', jvp(reverse))]\n"
    )
    script = (
        "from hawk.codegen.compile import Compiler, host_compiler\n"
        "made, make = [], Compiler.object_code\n"
        "Compiler.object_code = lambda self, *args: (made.append(0), make(self, *args))[1]\n"
        "from model import kernels\n"
        "for k in kernels:\n"
        "    for mode in ('float64', 'float32'):\n"
        "        host_compiler().launch_entry(k.program(mode))\n"
        "print(len(made))\n"
    )
    counts = []
    for seed in ("1", "2"):
        paths = [str(tmp_path), *sys.path]
        environment = os.environ | {
            "PYTHONHASHSEED": seed, "HAWK_CACHE_DIR": str(tmp_path / "objects"), "PYTHONPATH": os.pathsep.join(paths),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        counts.append(int(done.stdout))
    assert counts == [8, 0]


# what has its own definition has its own code


def times(factor: float) -> Kernel:
    @kernel
    def k(x: Scalar) -> Scalar:
        return factor * x

    return k


def applied(function: Callable[[object], object]) -> Kernel:
    @kernel
    def k(x: Scalar) -> Scalar:
        return function(x)

    return k


def test_closures_of_one_name_do_not_share_code(tmp_path):
    counting = Counting(tmp_path)
    assert [counting.run(times(f)) for f in (2.0, 3.0, 2.0)] == [10, 15, 10]
    assert counting.compiled == 2
    assert [counting.run(applied(f)) for f in (hm.sqrt, hm.abs)] == [np.sqrt(5.0), 5]
    assert counting.compiled == 4


def test_neither_do_their_derivatives():
    for factor in (2.0, 3.0):
        program = vjp(times(factor)).program(times(factor).definition.precisions[0])
        written = launch(program, {"x": [1.0], "bar_out": [1.0]}, 8)
        assert written["bar_x"] == factor


def test_precision_and_width_are_part_of_the_key(tmp_path):
    compiler = Compiler(host())
    for mode in ("float64", "float32"):
        for width in (4, 8):
            compiler.launch_entry(doubled.program(mode), tmp_path, width)
    assert len(files(tmp_path)) == 4


def test_threads_that_ask_at_once_get_one_compilation(tmp_path):
    counting = Counting(tmp_path)
    barrier, found = threading.Barrier(8), []

    def ask() -> None:
        barrier.wait()
        found.append(counting.run(doubled))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [10] * 8
    assert counting.compiled == 1
