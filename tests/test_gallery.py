"""The gallery and the notebooks: examples run without warnings and show figures."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted((FOLDER / "gallery").glob("plot_*.py"))
NOTEBOOKS = sorted((FOLDER / "notebooks").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem.removeprefix("plot_"))
def test_example_ends_in_a_figure(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    (number,) = plt.get_fignums()
    axes = plt.figure(number).axes
    assert axes
    assert all(ax.has_data() for ax in axes)
    # It prints the numbers of the figure.
    assert any(character.isdigit() for character in capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem.removeprefix("plot_"))
def test_notebook_runs_and_shows_figures(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(ax.has_data() for figure in figures for ax in figure.axes)
    assert any(character.isdigit() for character in capsys.readouterr().out)


def test_every_example_has_a_title_and_a_first_sentence():
    for path in [*EXAMPLES, *NOTEBOOKS]:
        title, line, empty, *rest = path.read_text(encoding="utf-8").splitlines()[1:]
        assert line == "=" * len(title), path.name
        assert not empty, path.name
        assert rest[0].strip(), path.name
