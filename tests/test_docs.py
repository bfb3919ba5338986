"""The code of the documentation runs, block after block as on the page."""

import re
import warnings
from pathlib import Path

import pytest
from outcomes import make_outcome

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs" / "extend").glob("*.md")), ROOT / "docs" / "methods.md"]
# What a page takes for granted.
GIVEN = {"table.md": lambda: {"outcome": make_outcome(n_samples=20, n_classes=5, paper=None)}}


def blocks(path):
    """Return the blocks of Python on a page, with empty lines before them, so that errors name the right line."""
    text = path.read_text(encoding="utf-8")
    return [
        "\n" * text[: found.start(1)].count("\n") + found[1]
        for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_code_of_the_page_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = GIVEN.get(path.name, dict)()
    assert blocks(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for code in blocks(path):
            exec(compile(code, str(path), "exec"), given)


def test_there_is_a_page_for_each_part_of_the_house():
    assert {path.stem for path in PAGES} >= {"loss", "representation", "method", "dataset", "table"}
