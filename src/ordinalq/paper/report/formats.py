"""Tables of the report, which can be written as Markdown, LaTeX and CSV."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
}
MISSING = "-"


@dataclass(frozen=True)
class Cell:
    """Cell of a table: text, boldface, sort value and shade.

    `value` is for sorting. `shade` in [0, 1] is for the colour (0 is best).
    """

    text: str
    value: float | None = None
    bold: bool = False
    shade: float | None = None


@dataclass(frozen=True)
class Column:
    """A column; columns of one `group` stand together under that heading."""

    name: str
    group: str = ""
    numeric: bool = True

    @property
    def title(self) -> str:
        """Heading if there is only one line of them."""
        return f"{self.group} {self.name}".strip()


@dataclass(frozen=True)
class Row:
    """A row; its first cell is its heading, and rows of one `group` stand together."""

    cells: tuple[Cell, ...]
    group: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """Table: file name, caption title, cells, footnotes, position in the report.

    The position is a section, and the title of the fold that must be opened there to display it (`fold`).
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    data: pd.DataFrame  # the same content as numbers in full precision, one row per fact, for CSV
    notes: tuple[str, ...] = ()
    section: str = "results"
    fold: str = ""

    def files(self) -> dict[str, str]:
        """Return the text of each file: suffix -> content."""
        return {"md": self.markdown(), "tex": self.latex(), "csv": self.csv()}

    def markdown(self) -> str:
        """Return the table as Markdown (GitHub's dialect)."""
        lines = [f"**{markdown_text(self.title)}**", ""]
        lines.append(_pipes(markdown_text(column.title) for column in self.columns))
        lines.append(_pipes("---:" if column.numeric else "---" for column in self.columns))
        for row, begins in self._grouped():
            if begins:
                lines.append(_pipes([f"*{markdown_text(row.group)}*", *[""] * (len(self.columns) - 1)]))
            texts = ((markdown_text(cell.text), cell.bold) for cell in row.cells)
            lines.append(_pipes(f"**{text}**" if bold else text for text, bold in texts))
        lines += ["", *(f"- {markdown_text(note)}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def latex(self) -> str:
        """Return the table as LaTeX; it needs the package booktabs."""
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}",
            f"\\caption{{{latex_text(self.title)}}}",
            f"\\label{{tab:{self.name}}}",
            f"\\begin{{tabular}}{{{''.join('r' if column.numeric else 'l' for column in self.columns)}}}",
            "\\toprule",
        ]
        if any(column.group for column in self.columns):
            lines += self._latex_groups()
        lines += [_ampersands(latex_text(column.name) for column in self.columns), "\\midrule"]
        for number, (row, begins) in enumerate(self._grouped()):
            if begins:
                if number:
                    lines.append("\\midrule")
                lines.append(f"\\multicolumn{{{len(self.columns)}}}{{l}}{{\\textit{{{latex_text(row.group)}}}}} \\\\")
            texts = ((latex_text(cell.text), cell.bold) for cell in row.cells)
            lines.append(_ampersands(f"\\textbf{{{text}}}" if bold else text for text, bold in texts))
        lines += ["\\bottomrule", "\\end{tabular}"]
        if self.notes:
            lines += ["", "\\smallskip", "\\begin{minipage}{\\linewidth}\\raggedright\\footnotesize"]
            lines += [f"{latex_text(note)}\\par" for note in self.notes]
            lines.append("\\end{minipage}")
        return "\n".join([*lines, "\\end{table}"]) + "\n"

    def csv(self) -> str:
        """Return the numbers in full precision."""
        text: str = self.data.to_csv(index=False, lineterminator="\n")
        return text

    def spans(self) -> list[tuple[str, int]]:
        """Return the headings above the columns: text and number of columns."""
        spans: list[tuple[str, int]] = []
        for name, columns in groupby(column.group for column in self.columns):
            width = len(list(columns))
            spans += [(name, width)] if name else [("", 1)] * width
        return spans

    def _grouped(self) -> list[tuple[Row, bool]]:
        """Return each row with whether a named group begins there."""
        before = [""] + [row.group for row in self.rows]
        return [(row, bool(row.group) and row.group != old) for row, old in zip(self.rows, before, strict=False)]

    def _latex_groups(self) -> list[str]:
        first, titles, rules = 1, [], []
        for text, width in self.spans():
            titles.append(f"\\multicolumn{{{width}}}{{c}}{{{latex_text(text)}}}" if text else "")
            if text:
                rules.append(f"\\cmidrule(lr){{{first}-{first + width - 1}}}")
            first += width
        return [_ampersands(titles), "".join(rules)]


def short(value: float, decimals: int = 4) -> str:
    """Write a number without its leading zero, as the paper does.

    >>> short(0.0194), short(-0.5, 2), short(1.25, 2)
    ('.0194', '-.50', '1.25')
    """
    text = f"{value:.{decimals}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text)


def settings_text(settings: dict[str, Any]) -> str:
    """Write parameters on one line.

    >>> settings_text({"tau": 0.001, "n_bins": 4, "class_weight": None})
    'tau=0.001, n_bins=4, class_weight=none'
    """
    return ", ".join(f"{name}={value_text(value)}" for name, value in settings.items()) or MISSING


def value_text(value: Any) -> str:
    """Write the value of a parameter."""
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def latex_text(text: str) -> str:
    r"""Escape what means something to LaTeX.

    >>> print(latex_text("5% of n_bins"))
    5\% of n\_bins
    """
    return "".join(LATEX.get(character, character) for character in " ".join(text.split()))


def markdown_text(text: str) -> str:
    r"""Escape what means something to Markdown, and the HTML that it may hold.

    >>> print(markdown_text("<b> & n*"))
    &lt;b&gt; &amp; n\*
    """
    return re.sub(r"([\\|*_`\[])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _pipes(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _ampersands(cells: Any) -> str:
    return f"{' & '.join(cells)} \\\\"


# Layout: from facts, one row each, to columns and cells

Fact = Mapping[str, Any]


def number(decimals: int, *, signed: bool = False) -> Callable[[float], str]:
    """Return a function that formats a number.

    With many decimals the leading zero is omitted, as in the paper.

    >>> number(4)(0.0194), number(2)(0.5), number(1, signed=True)(3.14)
    ('.0194', '0.50', '+3.1')
    """
    if signed:
        return lambda value: f"{value:+.{decimals}f}" if value else f"{value:.{decimals}f}"
    return lambda value: short(value, decimals) if decimals > 2 else f"{value:.{decimals}f}"


@dataclass(frozen=True)
class Show:
    """A column of a table: its heading, the fact that it shows, and how.

    What is not known (None, NaN, "") is a dash. The fact ``std`` stands after ±, ``bold`` says if the cell is bold. A
    ``shade`` "linear" or "log" colours cells by where they lie between the best and the worst of the column. The column
    is left out where the fact that it ``needs`` is not known in any row. ``above`` is a heading of several columns.
    """

    title: str
    fact: str
    text: Callable[[Any], str] = str
    numeric: bool = True
    std: str = ""
    bold: str = ""
    shade: str = ""
    needs: str = ""
    above: str = ""

    def cell(self, fact: Fact, shade: float | None = None) -> Cell:
        """Return the cell of a fact."""
        value = fact[self.fact]
        if not known(value):
            return Cell(MISSING)
        text = self.text(value)
        if self.std and known(fact[self.std]):
            text += f" ± {self.text(fact[self.std])}"
        return Cell(text, value if self.numeric else None, bool(self.bold and fact[self.bold]), shade)


def mean_and_std(title: str = "mean ± std", prefix: str = "", **more: Any) -> Show:
    """Return the column of the facts mean, std and bold.

    Their names may have a prefix.
    """
    return Show(title, f"{prefix}mean", short, std=f"{prefix}std", bold=f"{prefix}bold", **more)


def words(title: str, fact: str, text: Callable[[Any], str] = str) -> Show:
    """Return a column of text."""
    return Show(title, fact, text, numeric=False)


def lay_out(
    facts: pd.DataFrame,
    rows: Sequence[str],
    heads: Sequence[Show],
    cells: Sequence[Show],
    *,
    across: Sequence[str] = (),
    above: Callable[[Fact], str] = lambda fact: "",
    group: Callable[[Fact], str] = lambda fact: "",
    shaded_within: Sequence[str] = (),
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return the columns and rows of a table in the order of the facts.

    Facts that agree in `rows` are a row of the table. It has the columns `heads`, which are the same for all of its
    facts, and the columns `cells` once for each block: facts that agree in `across`. A heading `above` a block and the
    `group` of a row are made from one of their facts. Shades compare cells that agree in `shaded_within`.
    """
    records: list[Any] = facts.to_dict("records")
    of_row: dict[tuple[Any, ...], Fact] = {}
    blocks: dict[tuple[Any, ...], dict[tuple[Any, ...], Fact]] = {}
    for fact in records:
        key = tuple(fact[name] for name in rows)
        of_row.setdefault(key, fact)
        blocks.setdefault(tuple(fact[name] for name in across), {})[key] = fact
    columns = [Column(show.title, show.above, show.numeric) for show in heads]
    made = {key: [show.cell(fact) for show in heads] for key, fact in of_row.items()}
    for block in blocks.values():
        heading = above(next(iter(block.values())))
        for show in cells:
            if show.needs and not any(known(fact[show.needs]) for fact in block.values()):
                continue
            columns.append(Column(show.title, heading or show.above, show.numeric))
            shades = _shades(block, show, shaded_within)
            for key, row in made.items():
                row.append(show.cell(block[key], shades.get(key)) if key in block else Cell(MISSING))
    return tuple(columns), tuple(Row(tuple(made[key]), group(fact)) for key, fact in of_row.items())


def known(value: Any) -> bool:
    """Whether there is something to show."""
    return value is not None and value != "" and not (isinstance(value, float) and not np.isfinite(value))


def _shades(block: Mapping[Any, Fact], show: Show, within: Sequence[str]) -> dict[Any, float]:
    """Return where the values of a column lie between the best (0) and the worst (1)."""
    shades: dict[Any, float] = {}
    scopes: dict[tuple[Any, ...], dict[Any, float]] = {}
    for key, fact in block.items() if show.shade else ():
        value = fact[show.fact]
        if known(value) and (value > 0 or show.shade == "linear"):
            scopes.setdefault(tuple(fact[name] for name in within), {})[key] = value
    for found in scopes.values():
        values = np.log(list(found.values())) if show.shade == "log" else np.array(list(found.values()))
        width = values.max() - values.min()
        if len(found) > 1:
            scaled = (values - values.min()) / width if width > 0 else np.zeros(len(values))
            shades |= dict(zip(found, scaled.tolist(), strict=True))
    return shades
