"""Kernels as objects: how they are made, what they show, what they refuse."""

import pytest

import hawk
from hawk import Int32, Kernel, Mutable, Param, Scalar, kernel
from hawk.codegen.compile import Compiler
from hawk.codegen.target import host
from hawk.diff import jvp, vjp
from hawk.ir.types import Type


@kernel
def scaled(x: Scalar, p: Param, n: Int32) -> Scalar:
    """Scale x."""
    return 0.1 * x * p + n


# making one


def test_a_kernel_keeps_its_function_its_name_and_its_doc():
    assert scaled.name == "scaled"
    assert scaled.__doc__ == "Scale x."
    assert scaled.__wrapped__(2.0, 3.0, 1) == 0.1 * 2.0 * 3.0 + 1
    assert repr(scaled) == "<hawk kernel scaled(x, p, n, out)>"


def test_a_kernel_can_be_given_another_name():
    @kernel(name="other")
    def k(x: Scalar) -> Scalar:
        return x

    assert k.name == "other"
    assert str(k).startswith("kernel other\n")
    again = Kernel("third", k)
    assert (again.name, again.program().name) == ("third", "third")
    assert again.definition is k.definition
    assert again.__wrapped__ is k.__wrapped__


@pytest.mark.parametrize("make", [kernel, lambda f: kernel()(f)], ids=["@kernel", "@kernel()"])
def test_both_spellings_of_the_decorator(make):
    def k(x: Scalar) -> Scalar:
        return 2 * x

    assert isinstance(make(k), Kernel)


def test_a_derivative_becomes_a_kernel_under_a_name():
    gradient = Kernel("gradient", vjp(scaled))
    assert repr(gradient) == "<hawk kernel gradient(x, p, n, bar_out, bar_x, bar_p)>"
    assert gradient.__wrapped__ is None
    assert gradient.__doc__ is None
    assert repr(Kernel("push", jvp(scaled, ("x",)))) == "<hawk kernel push(x, p, n, dot_x, dot_out)>"


def test_what_is_no_definition_is_refused():
    with pytest.raises(
        TypeError, match=r"Kernel\('k', ...\): expected a derivative such as hawk.diff.vjp\(kernel\), found function"
    ):
        Kernel("k", lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Kernel\('two words', ...\): a kernel's name is a Python identifier"):
        Kernel("two words", vjp(scaled))


# its program


def test_the_program_of_each_mode_is_made_once():
    assert scaled.program().body is scaled.program("float64").body
    assert scaled.program().argument("x").type is Type.F64
    assert scaled.program("float32").argument("x").type is Type.F32
    assert scaled.program("float32").argument("n").type is Type.I32


@pytest.mark.parametrize("mode", ["double", "f64", 64, None, ["float64"]])
def test_an_unknown_mode(mode):
    with pytest.raises(ValueError, match="a kernel is built for 'float64' or 'float32'"):
        scaled.program(mode)


def test_the_text_of_a_kernel():
    assert str(scaled) == (
        "kernel scaled frozen\n"
        "  sample x: scalar f64\n"
        "  param p: scalar f64\n"
        "  sample n: scalar i32\n"
        "  mutable out: scalar f64\n"
        "  %0 = read x[0] : f64\n"
        "  %1 = read p[0] : f64\n"
        "  %2 = read n[0] : i32\n"
        "  %3 = const 0.1 : f64\n"
        "  %4 = mul %3 %0 : f64\n"
        "  %5 = cast %2 : f64\n"
        "  %6 = fma %4 %1 %5 : f64\n"
        "  write out[0] = %6\n"
        "  return out"
    )


def test_globals_and_closures_are_those_of_the_decoration():
    factor = 2.0

    @kernel
    def k(x: Scalar) -> Scalar:
        return factor * x

    before = str(k)
    factor = 3.0
    assert str(k) == before
    assert "const 2.0" in before


# what a run knows of it


@kernel(steps=4, time="t", time_step="dt")
def clocked(t: Mutable[Scalar], dt: Param):
    t = t + dt


def test_stepping_is_kept():
    assert (clocked.stepping.steps, clocked.stepping.time, clocked.stepping.time_step) == (4, "t", "dt")
    assert Kernel("other", clocked).stepping == clocked.stepping


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, r"k: steps=0; give a number of steps >= 1, or 'auto'"),
        ({"steps": True}, r"k: steps=True; give a number of steps >= 1, or 'auto'"),
        ({"steps": "many"}, r"k: steps='many'; give a number of steps >= 1, or 'auto'"),
        ({"time": "x", "time_step": "dt"}, r"k: time='x' is no Mutable\[Scalar\] of the kernel; it has t, n"),
        ({"time": "n", "time_step": "dt"}, r"k: time='n' is no Mutable\[Scalar\] of the kernel; it has t, n"),
        ({"time": "t", "time_step": "t"}, r"k: time_step='t' is no Param of the kernel; it has dt"),
        ({"time": "t"}, r"k: time= and time_step= go together; name both or neither"),
    ],
)
def test_stepping_that_does_not_fit(options, message):
    def k(t: Mutable[Scalar], n: Mutable[Int32], dt: Param, x: Scalar):
        t = t + dt * x
        n = n + 1

    with pytest.raises(ValueError, match=message):
        kernel(**options)(k)


# looking inside


def test_stages_are_shown_where_the_environment_asks(monkeypatch, capfd):
    monkeypatch.setenv("HAWK_SHOW", "traced,ir,llvm,optimised,assembly")

    @kernel
    def shown(x: Scalar) -> Scalar:
        return 3 * x

    Compiler(host()).object_code(shown.program(), "shown", 4)
    err = capfd.readouterr().err
    for stage in ("traced", "ir", "llvm", "optimised", "assembly"):
        assert f"--- {stage} of shown\n" in err
    assert "define void @shown" in err
    monkeypatch.setenv("HAWK_SHOW", "")
    Compiler(host()).object_code(shown.program(), "shown", 4)
    assert capfd.readouterr().err == ""


def test_what_the_package_offers_is_there():
    for name in hawk.__all__:
        getattr(hawk, name)
