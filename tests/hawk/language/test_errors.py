"""What the language refuses, in words: what was written, where, and what to write instead."""

import typing

import pytest

from hawk import math as hm
from hawk.language import (
    Bool,
    Int32,
    KernelError,
    Matrix,
    Mutable,
    Param,
    Scalar,
    Table,
    Terminated,
    UInt32,
    Vector,
    samples_first,
    trace,
)  # fmt: skip


def refused(text, **names):
    namespace = {"Scalar": Scalar, "Mutable": Mutable, "Param": Param, "hm": hm, **names}
    exec(text, namespace)
    with pytest.raises(KernelError) as caught:
        trace(namespace["k"], source=text)
    return caught.value


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ("try:\n        y = x\n    except ValueError:\n        y = 0", "no exceptions: try"),
        ("with x:\n        y = x", "no contexts: with"),
        ("y = (yield x)", "yields nothing: yield"),
        ("global z\n    y = z = x", "changes no globals"),
        ("import math\n    y = x", "import inside a kernel"),
        ("y = x\n    del y", "deletes nothing: del"),
        ("class C:\n        pass\n    y = x", "a class inside a kernel"),
        ("y = {x}", "a set inside a kernel"),
        ("y = {i: x for i in range(2)}[0]", "a dict comprehension"),
        ("match x:\n        case 1:\n            y = x", "match inside a kernel"),
        ("y = x if x is hm.pi else 0", "`is` asks which object"),
        ("y = 1.0 if x in (1, 2) else 0", "`in` with a value that the kernel computes"),
        ("y = {x: 1}[x]", "a key of a dict"),
        ("y = len([v for v in (1, 2) if x > v])", "how many items a list has"),
        ("assert x > 0\n    y = x", "assert of a value"),
        ("assert 1 > 2, 'no'\n    y = x", "the assertion `1 > 2` fails: no"),
        ("raise ValueError('no')\n    y = x", "a kernel raises nothing: raise ValueError('no')"),
        ("if x > 0:\n        raise ValueError\n    y = x", "a kernel raises nothing"),
        ("a, b = x, x, x\n    y = a", "a tuple of 3 unpacked into 2 names"),
        ("a, *b, c = (x,)\n    y = a", "unpacked into at least 2 names"),
        ("a, b = x\n    y = a", "a real cannot be unpacked"),
        ("hm.pi = x\n    y = x", "changes no objects: .pi"),
        ("y = f'{x}'", "has no text while it is traced"),
        ("y = x.real", "a real has no attribute real"),
        ("y = z\n    z = x", "z is read before anything is assigned to it"),
        ("y = zz", "the name zz is not defined"),
        ("y = x and 1", "and needs a bool, not a real"),
        ("y = ~x", "~ takes an integer"),
        ("y = x & 1", "and does not take a real"),
        ("y = x + 'a'", "a real + 'a'"),
        ("y = x + 1j", "complex"),
        ("y = [1, 2][x]", "an index is a whole number"),
        ("for i in range(x):\n        y = i", "range takes whole numbers"),
        ("y = sum(range(int(x)))", "a range whose length the kernel computes"),
        ("for i in x:\n        y = i", "a real cannot be unpacked or iterated"),
        ("while hm.bounded(x > 0, 1.5):\n        y = x", "most is a whole number"),
        ("for i in range(3):\n        y = x\n    else:\n        break", "break or continue in the else"),
        ("y = hm.sin(x, x)", "hm.sin takes 1 argument"),
        ("y = hm.land(x, True)", "hm.land takes bools"),
        ("y = hm.where(x, 1, 2)", "where needs a bool"),
        ("z = x", "k never assigns to y"),
        ("y = x\n    return x", "k returns a real"),
    ],
)
def test_constructs_are_refused(statements, words):
    if "else:\n        break" in statements:
        statements = "for j in range(2):\n        " + statements.replace("\n", "\n    ")
    error = refused(f"def k(x: Scalar, y: Mutable[Scalar]):\n    {statements}\n")
    assert words in str(error)
    assert error.lineno >= 1
    assert error.filename == "<source of k>"
    assert str(error).count("\n") >= 2


def test_the_report_has_file_line_source_line_and_a_way_out():
    import math

    def k(x: Scalar, y: Mutable[Scalar]):
        z = x * x
        y = z + math.cos(z)

    with pytest.raises(KernelError) as caught:
        trace(k)
    line = k.__code__.co_firstlineno + 2
    assert str(caught.value) == (
        "math.cos cannot take a real that the kernel computes\n"
        f'  File "{__file__}", line {line}\n'
        "    y = z + math.cos(z)\n"
        "  write hm.cos(...), with `from hawk import math as hm`"
    )
    assert isinstance(caught.value, SyntaxError)


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("x, y: Mutable[Scalar]", "argument x: x has no annotation"),
        ("x: float, y: Mutable[Scalar]", "argument x: float is not an annotation of hawk"),
        ("x: int, y: Mutable[Scalar]", "hawk.Int32"),
        ("x: typing.List[int], y: Mutable[Scalar]", "is not an annotation of hawk"),
        ("x: 'Scalr', y: Mutable[Scalar]", "name 'Scalr' is not defined"),
        ("x: Vector, y: Mutable[Scalar]", "Vector alone does not say of what"),
        ("x: Mutable, y: Mutable[Scalar]", "Mutable alone does not say of what"),
        ("x: Table, y: Mutable[Scalar]", "Table alone does not say of what"),
        ("x: Scalar = 1, y: Mutable[Scalar] = 0", "an argument of k has a default value"),
        ("x: Scalar, y: Mutable[Scalar], *rest", "k takes *rest"),
        ("x: Scalar, y: Mutable[Scalar], **rest", "k takes **rest"),
    ],
)
def test_signatures_are_refused(signature, words):
    error = refused(f"def k({signature}):\n    y = x\n", Vector=Vector, Table=Table, typing=typing)
    assert words in str(error)
    assert error.lineno == 1


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("Vector[0]", "a size is a whole number from 1, not 0"),
        ("Vector[2, 2]", "has 2 sizes"),
        ("Matrix[2]", "has 1 sizes"),
        ("Matrix[2, 1.5]", "not 1.5"),
        ("Param[Mutable[Scalar]]", "nests two roles"),
        ("Mutable[float]", "float is not an annotation"),
        ("Table[16]", "needs a name and a size"),
        ("Table['a b':2]", "needs a name and a size"),
        ("Table['i':2, 'i':3]", "two axes named 'i'"),
        ("Table['i':0]", "not 0"),
    ],
)
def test_annotations_are_refused_where_they_are_written(annotation, words):
    with pytest.raises(KernelError) as caught:
        eval(annotation)
    assert words in str(caught.value)


def test_annotations_print_as_written():
    for text in (
        "Scalar", "Int32", "UInt32", "Bool", "Terminated", "Vector[3]", "Matrix[2, 3]", "Param[Vector[2]]",
        "Mutable[Int32]", "Mutable[samples_first(Vector[3])]", "Table['i':16, 'j':2]",
    ):  # fmt: skip
        assert repr(eval(text)) == text
    assert repr(samples_first(Mutable[Matrix[2, 2]])) == "Mutable[samples_first(Matrix[2, 2])]"
    assert (Bool.type.value, UInt32.type.value, Int32.type.value, Terminated.role.value) == (
        "bool", "u32", "i32", "terminated",
    )  # fmt: skip


def test_building_a_vector_from_an_annotation():
    assert Vector[2](1, 2).items == (1.0, 2.0)
    with pytest.raises(KernelError, match="takes 2 components, got 3"):
        Vector[2](1, 2, 3)
    with pytest.raises(KernelError, match="it builds no value"):
        Scalar(1)
