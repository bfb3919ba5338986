"""The index of tasks: thirty of them, links that lead somewhere, commands and lines that run."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import ordinalq as oq
from ordinalq.cli import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tasks.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_there_are_thirty_tasks_in_their_order():
    assert [int(number) for number in re.findall(r"^(\d+)\. ", TEXT, re.MULTILINE)] == list(range(1, 31))


def anchors(path):
    """Return what the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        path = (PAGE.parent / name).resolve()
        assert path.is_file(), target
        assert not anchor or anchor in anchors(path), target


def test_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, ROOT / "examples" / "make_reviews.py", "reviews"], check=True)
    commands = re.findall(r"^\$ ordinalq (.*)$", TEXT, re.MULTILINE)
    assert len(commands) == 10
    for command in commands:
        assert main(command.split()) == 0, command
        assert capsys.readouterr().out, command
    for name in ("quick.oq", "stars.xlsx", "stars.png", "lamp.png", "trend.png", "to_label.csv"):
        assert (tmp_path / name).stat().st_size > 100


def test_lines_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    numbers = [int(n) for code in blocks for found in re.findall(r"# ([\d, ]+)", code) for n in found.split(",")]
    assert sorted(numbers) == list(range(11, 31))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Short examples are fitted without groups.
        warnings.simplefilter("ignore", oq.inference.NoTrainingGroupsWarning)
        for code in blocks:
            exec(compile(code, str(PAGE), "exec"), given)
    assert given["p"].sum() == pytest.approx(1)
    assert given["error"] < 0.1
    assert "smallest error" in capsys.readouterr().out
