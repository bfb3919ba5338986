"""Tables in the terminal, and the words in them."""

import re

import numpy as np
import pytest

import ordinalq as oq
from ordinalq._utils import text as terminal
from ordinalq._utils.text import nearest, plain, shortened
from ordinalq.cli import display
from ordinalq.inference.predict import estimate
from ordinalq.samples.keys import Keys


def printed(capsys, *arguments, width=60, **options):
    screen = terminal.screen(width)
    screen.width = width
    terminal.table(*arguments, console=screen, **options)
    return capsys.readouterr().out.splitlines()


def test_first_columns_are_flush_left_and_numbers_flush_right(capsys):
    lines = printed(capsys, ["name", "items"], [["a", "1"], ["a longer one", "1,234"]], total=2)
    assert [line.rstrip() for line in lines if line.strip("─ ")] == [
        "name           items",
        "a                  1",
        "a longer one   1,234",
    ]


def test_a_narrow_terminal_shortens_one_column_and_keeps_names_apart(capsys):
    names = ["a very long name of a group, black", "a very long name of a group, white"]
    lines = printed(capsys, ["name", "items"], [[name, "123"] for name in names], width=24)
    assert all(len(line) <= 24 for line in lines)
    assert len(set(lines[-2:])) == 2
    assert all(line.rstrip().endswith("123") for line in lines[-2:])


@pytest.mark.parametrize(("n", "total", "last"), [(41, None, "... and 1 more; see elsewhere."), (3, 9, "and 6 more")])
def test_rows_that_are_not_shown_are_counted(capsys, n, total, last):
    lines = printed(capsys, ["name"], [[str(i)] for i in range(n)], total=total, hint="; see elsewhere")
    assert last in lines[-1]


def test_headings_have_lines_tables_a_title_and_groups_an_end(capsys):
    rows = [["a", terminal.Bold("1")], ["b", "2"], ["c", "3"]]
    lines = [line.rstrip() for line in printed(capsys, ["m", "APP\nmean"], rows, title="NMD", ends=[1])]
    assert lines[0] == "NMD"
    assert [line.split() for line in lines[1:3]] == [["APP"], ["m", "mean"]]
    assert lines[-2].strip("─ ") == ""


def test_names_from_files_cannot_move_the_cursor_or_be_markup(capsys):
    lines = printed(capsys, ["name"], [["a\x1b[2Jb"], ["[bold]c[/]"]])
    assert "\x1b" not in "".join(lines)
    assert lines[-1].rstrip() == "[bold]c[/]"
    assert plain("a\tb\x00") == "a b "


def test_names_are_cut_in_the_middle_only_if_they_would_be_the_same():
    assert shortened(["abcdefghij", "klmnopqrst"], 5) == ["abcd…", "klmn…"]
    assert len(set(shortened(["abcdefghij", "abcdefghik"], 5))) == 2
    assert nearest("xyz", ["PACC"]) == ""


@pytest.mark.parametrize(("fit", "told"), [("doubtful", True), ("good", False)])
def test_no_number_of_small_groups_is_cut(capsys, monkeypatch, fit, told):
    monkeypatch.setenv("COLUMNS", "80")
    keys, _ = Keys.of({"product": np.array(["p0000", "p0001"])})
    known = {"fit": np.array(["too few items", fit])}
    display.prevalences(oq.Estimates(np.arange(1, 6), np.eye(5)[:2], np.array([4, 4]), keys, **known))
    text = capsys.readouterr().out
    assert "…" not in text
    # What is not in doubt takes no room.
    assert "too few items" not in text
    assert ("doubtful" in text) == told


FEW = oq.inference.IntervalOptions(n_replicates=40)
SCALES = {
    "stars": [1, 2, 3, 4, 5],
    "moods": ["VeryUnhappy", "Unhappy", "Neutral", "Happy", "VeryHappy"],
    "NPS": list(range(11)),
    "energies": [500, 800, 1250, 2000, 3200, 5000, 8000, 12500, 20000, 32000],
    "sentences": [f"a rather long answer, number {i}" for i in range(30)],
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("scale", SCALES)
def test_tables_of_estimates_fit_the_terminal_and_show_every_class_and_bound(scale, width, rng, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    classes = SCALES[scale]
    n = len(classes)
    S = rng.dirichlet(np.ones(n), size=30 * n) + 0.2 * np.repeat(np.eye(n), 30, axis=0)
    q = oq.PACC().fit_scores(S / S.sum(axis=1, keepdims=True), np.repeat(classes, 30), classes=classes)
    groups = np.repeat([f"Amazon Fire HD 8 Tablet, {i}" for i in range(3)], 100)
    samples = oq.Samples.from_groups(groups)
    found = estimate(q, q.summarize(rng.dirichlet(np.ones(n), size=300), samples), 0.95, FEW)
    display.prevalences(found)
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(out.split())
    assert all(str(label) in text for label in classes)
    digits = 0 if scale == "energies" else 2
    for b in range(3):
        ends = (found.bounds.mean_lower[b], found.bounds.mean_upper[b])
        assert f"({ends[0]:.{digits}f} to {ends[1]:.{digits}f})" in text
    if scale != "sentences":  # its classes are in several tables
        shares = [f"{100 * p:.0f}" for p in found.prevalences[0]]
        assert re.search(r"%? ".join([f" {shares[0]}", *shares[1:]]), text)
