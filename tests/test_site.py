"""The site: every public name has a page, every page can be reached, nothing waits for the network."""

import importlib.util
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import ordinalq as oq

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAMESPACES = {name for name in oq.__all__ if inspect.ismodule(getattr(oq, name))}
NAMES = set(oq.__all__) - NAMESPACES


def test_every_public_name_has_a_page():
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for name in listed if "." not in name) == sorted(NAMES)
    assert {name.partition(".")[0] for name in listed if "." in name} >= NAMESPACES - {"plot"}
    for name in listed:
        assert attrgetter(name)(oq) is not None


def pages_of(path):
    """Yield the pages that the tables of contents of a page name."""
    for block in re.findall(r"```\{toctree\}(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                found = re.search(r"<(.+)>", line)
                page = found[1] if found else line
                # The pages of the gallery are made from the examples.
                if page not in ("gallery/index", "notebooks/index"):
                    yield (path.parent / f"{page}.md").resolve()


def test_every_page_can_be_reached_from_the_first():
    reached, waiting = set(), [(DOCS / "index.md").resolve()]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += pages_of(page)
    assert reached == {
        path.resolve() for path in DOCS.rglob("*.md") if not {"_build", "api", "gallery", "notebooks"} & set(path.parts)
    }


def test_no_part_of_the_site_comes_from_elsewhere():
    sources = [DOCS / "conf.py", *(DOCS / "_ext").glob("*.py"), *(DOCS / "_static").iterdir()]
    for path in sources:
        assert "http" not in path.read_text(encoding="utf-8"), path.name


def test_texts_are_free_of_the_old_idioms():
    idioms = [r"Raise a clear error", r"It goes for", r"\bso many (items|rows|samples|bytes)\b"]
    in_code = [*idioms, r"^ +Of [a-z]", r'"""(Say|Of) ', r"^ +Whether .*, or whether"]
    code = [path for part in ("src", "examples") for path in (ROOT / part).rglob("*.py")]
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *(DOCS / "extend").glob("*.md")]
    found = [
        (path.name, idiom)
        for paths, wanted in ((code, in_code), (pages, idioms))
        for path in paths
        for idiom in wanted
        if re.search(idiom, path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert not found


def methods_of_the_site():
    """Return the module that gives every method an example."""
    made = importlib.util.spec_from_file_location("method_examples", DOCS / "_ext" / "method_examples.py")
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def test_every_public_name_has_an_example():
    made = methods_of_the_site()
    known = {*made.METHODS, *made.OTHERS}
    assert [name for name in NAMES if name not in known and ">>>" not in (getattr(oq, name).__doc__ or "")] == []
    for name in made.OTHERS:
        assert not made.example(name)[-1].startswith(">>>")


@pytest.mark.parametrize("name", ["CC", "OHDx", "ARC", "AdjustedML"])
def test_the_example_of_a_method_prints_what_it_finds(name):
    lines = methods_of_the_site().example(name)
    assert lines[-2].startswith(">>> q.predict")
    shares = [float(number) for number in re.findall(r"\d\.\d*", lines[-1])]
    assert len(shares) == 5
    assert sum(shares) == pytest.approx(1, abs=0.03)


def test_no_page_has_the_name_of_one_that_the_site_makes_itself():
    pages = {path.stem for path in DOCS.glob("*.md")}
    assert not pages & {"search", "genindex", "modindex", "py-modindex"}


def test_no_sentence_turns_into_a_list():
    begins = re.compile(r"(?:[-+*]|\d+[.)]) ")
    for path in [*DOCS.glob("*.md"), *(DOCS / "extend").glob("*.md"), ROOT / "README.md"]:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for paragraph in re.split(r"\n\s*\n", text):
            first, *rest = paragraph.splitlines() or [""]
            if not first.startswith((" ", ":", "|", "<")) and not begins.match(first):
                assert not any(begins.match(line) for line in rest), (path.name, first)
