"""Where a kernel's source comes from, and what is said where there is none."""

import contextlib
import functools
import importlib.util
import linecache
import os
import subprocess
import sys
import textwrap

import pytest

from hawk.language import KernelError, Mutable, Scalar, trace


def plain(x: Scalar, y: Mutable[Scalar]):
    y = 2 * x


KERNEL = "from hawk.language import *\ndef k(x: Scalar, y: Mutable[Scalar]):\n    y = {} * x\n"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def constants(program):
    return [i.attr for i in program.body if i.op == "const"]


def marked(function):
    return function


def test_indented_decorated_and_continued_definitions():
    class Holder:
        # a comment above
        @marked
        @functools.partial(marked)
        def k(x: Scalar, y: Mutable[Scalar]):
            """Its docstring."""
            y = 5 + \
                x  # fmt: skip

    with contextlib.nullcontext():
        if True:

            def inner(
                x: Scalar,
                y: Mutable[Scalar],
            ):
                y = x + 6

    assert constants(trace(Holder.k)) == [5.0]
    program = trace(inner)
    assert constants(program) == [6.0]
    span = program.body[-1].span
    assert (span.line, span.text) == (inner.__code__.co_firstlineno + 4, "y = x + 6")
    assert span.file == __file__


def test_several_lambdas_on_one_line_are_told_apart():
    double, triple = lambda x: 2 * x, lambda x: 3 * x

    def k(x: Scalar, y: Mutable[Scalar]):
        y = triple(x)

    def other(x: Scalar, y: Mutable[Scalar]):
        y = double(x)

    assert constants(trace(k)) == [3.0]
    assert constants(trace(other)) == [2.0]


def test_exec_needs_its_text():
    text = KERNEL.format(7)
    names = {}
    exec(text, names)
    with pytest.raises(KernelError, match=r"(?s)Python keeps none for code defined in <string>.*source="):
        trace(names["k"])
    assert constants(trace(names["k"], source=text)) == [7.0]
    only = text.split("\n", 1)[1]
    assert constants(trace(names["k"], source=textwrap.indent(only, "    "))) == [7.0]


def test_the_text_must_be_that_of_the_function():
    names = {}
    exec(KERNEL.format(7), names)
    with pytest.raises(KernelError, match="the text given as source= holds another k"):
        trace(names["k"], source=KERNEL.format(8))
    with pytest.raises(KernelError, match="does not define k"):
        trace(names["k"], source="z = 1")
    with pytest.raises(KernelError, match="no longer parses"):
        trace(names["k"], source="def k(:")


@pytest.mark.parametrize("how", ["-c", "stdin"])
def test_programs_without_a_file(how):
    text = KERNEL.format(3) + "try:\n    trace(k)\n    print('fine')\nexcept KernelError as error:\n    print(error)\n"
    command = [sys.executable, *(["-c", text] if how == "-c" else ["-"])]
    done = subprocess.run(command, input=None if how == "-c" else text, capture_output=True, text=True, check=True)
    if sys.version_info >= (3, 13):
        assert done.stdout.startswith(("fine", "the source of k is needed"))
    else:
        assert "the source of k is needed, but Python keeps none for code defined in <" in done.stdout
        assert "hawk.kernel(source=...)" in done.stdout


def test_a_file_edited_after_import(tmp_path):
    path = tmp_path / "edited_kernel.py"
    path.write_text(KERNEL.format(2))
    module = load(path)
    path.write_text("# a new first line\n" + KERNEL.format(3))
    os.utime(path, (1, 1))
    linecache.clearcache()
    with pytest.raises(KernelError, match=r"(?s)was changed after it was imported.*import the module again"):
        trace(module.k)
    path.write_text(KERNEL.format(4))
    with pytest.raises(KernelError, match="was changed after it was imported"):
        trace(module.k)
    path.write_text("def k(:")
    with pytest.raises(KernelError, match="no longer parses"):
        trace(module.k)


def test_a_module_loaded_again_is_read_again(tmp_path):
    path = tmp_path / "again_kernel.py"
    for factor in (2, 3):
        path.write_text(KERNEL.format(factor))
        os.utime(path, (factor, factor))
        assert constants(trace(load(path).k)) == [float(factor)]


def test_a_file_that_is_gone(tmp_path):
    path = tmp_path / "gone_kernel.py"
    path.write_text(KERNEL.format(2))
    module = load(path)
    path.unlink()
    linecache.clearcache()
    with pytest.raises(KernelError, match=r"gone_kernel\.py cannot be read"):
        trace(module.k)


def test_a_notebook_cell_is_found_in_linecache():
    text = KERNEL.format(9)
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    assert constants(trace(names["k"])) == [9.0]


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (lambda x: x, "not from a lambda"),
        (functools.partial(plain, 1), "not from partial"),
        (len, "not from builtin_function_or_method len"),
        (Holder := type("Holder", (), {}), "not from the class Holder"),
    ],
)
def test_only_plain_functions_become_kernels(thing, words):
    with pytest.raises(KernelError, match=words):
        trace(thing)


def test_a_wrapping_decorator_is_noticed():
    def wrap(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    with pytest.raises(KernelError, match=r"(?s)wrapper takes \*args.*a decorator below"):
        trace(wrap(plain))
