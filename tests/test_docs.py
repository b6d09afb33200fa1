"""The pages say what their code prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECK = ROOT / "docs" / "check.py"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_or_heading_leads_there(page):
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if "://" not in link]
    for link in links:
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_block_prints_what_its_page_says():
    found = subprocess.run([sys.executable, CHECK], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("code", "said", "code_of_exit"), [("print(2)", "2", 0), ("print(2)", "1", 1), ("1 / 0", "", 1)]
)
def test_the_check_sees_differences_and_failures(tmp_path, code, said, code_of_exit):
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{code}\n```\n\n```text\n{said}\n```\n")
    found = subprocess.run([sys.executable, CHECK, page], capture_output=True, text=True, timeout=300)
    assert found.returncode == code_of_exit, found.stdout + found.stderr
