"""The page for users of QuaPy is correct, if QuaPy is installed."""

import warnings
from pathlib import Path

import pytest
from test_docs import blocks

PAGE = Path(__file__).parents[1] / "docs" / "quapy.md"


def test_the_same_job_in_both():
    pytest.importorskip("quapy")
    given = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages
        for code, _ in blocks(PAGE):
            exec(compile(code, str(PAGE), "exec"), given)


def test_the_page_compares_what_it_shows():
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("assert_allclose") >= 4
    for code, _ in blocks(PAGE):
        compile(code, str(PAGE), "exec")
