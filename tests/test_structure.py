"""The house keeps its plan: imports go one way, optional packages live in one place, files stay small."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))

# What a part may import beside itself: everything on a lower floor. Parts of one floor do not know each other.
FLOORS = (
    {"raptor", "hawk.stages"},
    {"hawk.elementary"},
    {"hawk.ir"},
    {"hawk.language", "hawk.diff"},
    {"hawk.codegen"},
    {"hawk"},  # the modules of the package itself
    {"eagle"},
)
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
# A kernel that is called runs on the runtime, which is looked up when first needed.
LOOKED_UP = {("hawk.kernel", "eagle")}

LONGEST = 440  # lines; what is longer should be taken apart
TABLES = {"hawk.elementary.coefficients"}  # numbers made by a script


def name_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """The longest entry of the plan that a module belongs to."""
    parts = module.split(".")
    candidates = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((c for c in candidates if c in FLOOR_OF), parts[0])


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every import: also those inside functions, and by name through import_module.

    Of ``from package import name`` it is ``package.name`` where that is a module.
    """
    module = name_of(file)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *(node.module.split(".") if node.module else [])])
            yield from ((node.lineno, _longest(base, alias.name)) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield node.lineno, ast.literal_eval(node.args[0])


def _longest(base: str, name: str) -> str:
    path = SOURCE.joinpath(*base.split("."), name)
    return f"{base}.{name}" if path.is_dir() or path.with_suffix(".py").exists() else base


OURS = {"raptor", "hawk", "eagle"}


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_go_down(file):
    module = name_of(file)
    mine = part_of(module)
    for line, target in imports(file):
        if target.split(".")[0] not in OURS or (module, target) in LOOKED_UP:
            continue
        other = part_of(target)
        below = FLOOR_OF[other] < FLOOR_OF[mine]
        assert below or other == mine, f"{file}:{line}: {mine} may not import {target}"


def required() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {requirement.split(">")[0].strip() for requirement in project["dependencies"]}


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_only_interop_imports_what_need_not_be_installed(file):
    allowed = OURS | required() | sys.stdlib_module_names
    if name_of(file).startswith("eagle.interop"):
        return
    for line, target in imports(file):
        package = target.split(".")[0]
        assert package in allowed, f"{file}:{line}: {package} is optional: import it in eagle.interop"


def test_every_required_package_is_used():
    used = {target.split(".")[0] for file in FILES for _, target in imports(file)}
    assert required() <= used


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_files_stay_small(file):
    if name_of(file) not in TABLES:
        lines = len(file.read_text().splitlines())
        assert lines <= LONGEST, f"{file} has {lines} lines"


def test_the_plan_is_of_parts_that_are_there():
    modules = {name_of(file) for file in FILES}
    for part in FLOOR_OF:
        assert part in modules
    for module in TABLES | {module for module, _ in LOOKED_UP}:
        assert module in modules


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_module_asks_what_an_object_happens_to_have(file):
    names = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)]
    assert not [f"line {node.lineno}" for node in names if node.id == "hasattr"]
