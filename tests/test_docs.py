"""The pages say what their code prints."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parent.parent / "docs" / "check.py"


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
