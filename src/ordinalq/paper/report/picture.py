"""A figure as files, the sheet that it is drawn on, and how methods look; no global state of matplotlib is used."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ordinalq.paper.report.facts import group_of
from ordinalq.plot.style import FILE_STYLE, GRID, INK, LOOKS, SOFT, Figure, Look

DPI = 150
# On a page that may be light or dark, colours of lines and text are those of the page.
PAGE_COLORS = {INK: "currentColor", SOFT: "var(--soft)", GRID: "var(--line)"}
# Groups of the paper; each looks the same in every report, whatever other groups were run.
PAPER_GROUPS = ("non-ordinal", "ordinal", "new ordinal")


@dataclass(frozen=True)
class Picture:
    """A figure: name of its files, title, how to read it, its content as SVG and PNG, and its place on the page.

    It stands in a ``section`` of the page, after the table that it is ``beside`` if there is one, and pictures of the
    same ``fold`` are shown when that is opened.
    """

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    section: str = "figures"
    fold: str = ""
    beside: str = ""

    def file(self) -> str:
        """Return the SVG with a white ground."""
        return re.sub(r"(<svg [^>]*>)", r'\1<rect width="100%" height="100%" fill="#ffffff"/>', self.svg, count=1)

    def inline(self) -> str:
        """Return the SVG for a page: in the colours of the page, and with ids that are unique on it."""
        text = self.svg[self.svg.index("<svg") :]
        for color, of_page in PAGE_COLORS.items():
            text = text.replace(color.lower(), of_page)
        text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
        text = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}.\1"', text)
        text = re.sub(r'href="#([^"]+)"', rf'href="#{self.name}.\1"', text)
        text = re.sub(r"url\(#([^)]+)\)", rf"url(#{self.name}.\1)", text)
        # As wide as the column, but no wider than drawn.
        text = re.sub(r'<svg ([^>]*?)height="[^"]+"', r"<svg \1", text, count=1)
        return re.sub(r'<svg ([^>]*?)width="([^"]+)"', r'<svg \1style="max-width:\2"', text, count=1)


@contextmanager
def sheet(
    width: float, height: float, *, constrained: bool = True
) -> Iterator[tuple["Figure", Callable[..., Picture]]]:
    """Give an empty figure, width and height in inches, and the function that makes a Picture of it."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def save(name: str, title: str, caption: str, **place: str) -> Picture:
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Title": title})
        figure.savefig(png, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
        return Picture(file_name(name), title, caption, svg.getvalue(), png.getvalue(), **place)

    with mpl.rc_context(FILE_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
        FigureCanvasAgg(figure)
        yield figure, save


def file_name(text: str) -> str:
    """Return a name of a file without special characters.

    >>> file_name("ranks_nmd_APP-OQ")
    'ranks_nmd_app_oq'
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def looks_of(methods: Sequence[str]) -> dict[str, Look]:
    """Return colour, marker and dashes of each method, those of its group."""
    groups = list(dict.fromkeys(map(group_of, methods)))
    if set(groups) & set(PAPER_GROUPS):
        groups = [*PAPER_GROUPS, *(group for group in groups if group not in PAPER_GROUPS)]
    return {method: LOOKS[groups.index(group_of(method)) % len(LOOKS)] for method in methods}
