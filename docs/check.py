"""Run every ```python block of the pages, and compare what it prints with the ```text block that follows it.

The blocks of a page run in order, in one namespace. Only words are compared, so that a long line may be wrapped.
`python docs/check.py [page ...]` exits with 1 if anything differs; with ``--write`` it puts the true output in.
"""

from __future__ import annotations

import argparse
import difflib
import io
import linecache
import re
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path

FAILED = "Traceback (most recent call last)"
ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<text>.*?)^```\n)?", re.M | re.S)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def run_page(path: Path) -> list[tuple[re.Match[str], str]]:
    """Every block of a page with what it printed; an exception ends the page and is part of the output."""
    page = path.read_text()
    name = named(path)
    namespace: dict[str, object] = {"__name__": path.stem}
    done = []
    for block in BLOCK.finditer(page):
        before = page[: block.start("code")].count("\n")
        code = "\n" * before + block["code"]  # so that errors name the lines of the page
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        printed = io.StringIO()
        with redirect_stdout(printed):
            try:
                exec(compile(code, name, "exec"), namespace)
            except Exception:
                traceback.print_exc(file=printed)
        done.append((block, printed.getvalue()))
        if FAILED in printed.getvalue():
            break
    return done


def check(path: Path) -> bool:
    """Whether every block printed what the page says; the differences are shown."""
    same = True
    for block, printed in run_page(path):
        written = block["text"] or ""
        if written.split() != printed.split() or FAILED in printed:
            same = False
            line = path.read_text()[: block.start()].count("\n") + 1
            print(f"{named(path)}, block at line {line}:")
            for difference in difflib.unified_diff(written.splitlines(), printed.splitlines(), "page", "printed"):
                print(difference.rstrip())
    return same


def write(path: Path) -> None:
    """Put what the blocks print into the page; text that is right stays as it is wrapped."""
    for block, printed in reversed(run_page(path)):
        if (block["text"] or "").split() != printed.split():
            page = path.read_text()
            code = f"```python\n{block['code']}```\n\n"
            path.write_text(page[: block.start()] + f"{code}```text\n{printed}```\n" + page[block.end() :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: README.md and docs/*.md")
    parser.add_argument("--write", action="store_true", help="put the true output into the pages")
    options = parser.parse_args()
    pages = [page.resolve() for page in options.pages] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if options.write:
        for page in pages:
            write(page)
            write(page)  # the lines that errors name may have moved
    wrong = [page for page in pages if not check(page)]
    print(f"{len(pages)} pages, {len(wrong)} with differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
