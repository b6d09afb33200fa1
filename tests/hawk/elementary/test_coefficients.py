"""The committed coefficient tables are what tools/coefficients.py says they are."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hawk.elementary import coefficients as tables

TOOL = Path(__file__).parents[3] / "tools" / "coefficients.py"
TEXT = Path(tables.__file__).read_text()


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coefficients_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tool = load_tool()


@pytest.mark.parametrize("fit", tool.FITS, ids=lambda fit: fit.name)
def test_a_table_has_the_error_it_states(fit: object) -> None:
    coefficients = getattr(tables, fit.name)  # type: ignore[attr-defined]
    stated = re.search(rf"error 2\*\*(-[\d.]+)\n{fit.name} = ", TEXT)  # type: ignore[attr-defined]
    assert stated is not None
    assert tool.error_bits(fit, coefficients[::-1], count=60) <= float(stated[1]) + 0.05


def test_the_constants_are_those_of_the_tool() -> None:
    assert TEXT.endswith(tool.constants())


def test_making_one_table_anew_gives_the_same_text() -> None:
    assert tool.tables(["COS_32"]) == TEXT
