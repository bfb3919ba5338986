"""The site: every public name has a page, every page can be reached, nothing waits for the network."""

import ast
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


# Phrases that the documentation avoids: names of things, "if" and plain verbs are clearer.
IDIOMS = (
    r"\bsays (what|which|so|how|that|whether|it)\b",
    r"\b(is|are|was) said\b|\bsaid (so|as)\b",
    r"\bknows? (of|that|how|no|nothing|what|its|the group)\b",
    r"\b(whoever|whatever|nobody|somebody|those who)\b",
    r"\bof (its|their|one's) own\b",
    r"\b(is|are) no (?!more\b|longer\b|fewer\b|less\b|larger\b|wider\b|worse\b|better\b)\w+",
    r"\bwhere (there (is|are)|that is|it is|they are)\b",
    r"\bhow far\b",
    r"\b(told|tell|telling) apart\b",
    r"\bbeside\b",
    r"\balike\b",
    r"\blooks of\b",
    r"\b(worth|stands? for) \w+ items\b|\bworth as many\b",
    r"\bpictures?\b",
    r"\bportions?\b",
    r"(?<!duality )\bgaps?\b",
    r"\bholds? the truth\b|\bholds? (in )?\d",
    r"\b(these|this|that|the) very\b",
    r"\banew\b|\b(is|are) gone\b|\bno more\b",
    r"\bmade[- ]up\b",
    r"\bto the letter\b|\b(take|go)(s|es)? home\b",
    r"\b(floor|wings?|walk) (of|through|from|that)\b|\bmiddle floor\b|\bthe house\b",
    r"\d %",
    r"Raise a clear error|It goes for|\bso many (items|rows|samples|bytes)\b",
)
SUMMARY_IDIOMS = (r"^(Refuse|Say|Tell|Of)\b", r"^(Return )?(What|How|Which|Who|Where)\b")


def docstrings():
    """Yield (place, docstring) of all modules, classes and functions of the package."""
    source = ROOT / "src" / "ordinalq"
    for path in source.rglob("*.py"):
        place = path.relative_to(source)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = getattr(node, "name", "")
                yield f"{place} {name}", ast.get_docstring(node) or ""


def test_documentation_is_free_of_idioms():
    pages = (*DOCS.glob("*.md"), *(DOCS / "extend").glob("*.md"), ROOT / "README.md")
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages}
    texts |= {str(path.name): path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.py")}
    found = [
        (place, match[0])
        for place, text in (*texts.items(), *docstrings())
        for idiom in IDIOMS
        if (match := re.search(idiom, text))
    ]
    found += [(place, text) for place, text in docstrings() for idiom in SUMMARY_IDIOMS if re.match(idiom, text)]
    assert not found


def test_summaries_of_docstrings_are_one_line_of_at_most_79_characters():
    summaries = [(place, text.partition("\n\n")[0]) for place, text in docstrings()]
    assert [(place, text) for place, text in summaries if len(text) > 79 or "\n" in text] == []


def test_pages_of_the_guide_have_at_most_200_lines_and_two_tables_of_measurements():
    references = {"api.md", "cli.md", "departures.md", "experiments.md"}
    number = re.compile(r"[-+±]?[\d.,]+( ?(s|%|MB|ms))?")
    for path in (*DOCS.glob("*.md"), *(DOCS / "extend").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert path.name in references or text.count("\n") <= 200, path.name
        tables = [table.splitlines()[2:] for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
        cells = [[cell.strip() for row in table for cell in row.strip("|").split("|")] for table in tables]
        measured = [
            table for table in cells if 2 * sum(bool(number.fullmatch(cell)) for cell in table) > len(table) > 0
        ]
        assert len(measured) <= 2, path.name


def section(doc, name):
    """Return the text of a section of a docstring in the format of numpydoc."""
    found = re.search(rf"^{name}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def documented_arguments(doc):
    """Return the names in the sections Parameters and Attributes."""
    lines = (section(doc, "Parameters") + section(doc, "Attributes")).splitlines()
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def public_callables():
    """Yield (name, thing) of all public names, and of the public methods of public classes.

    A method that replaces one of a base class has its arguments, which are documented there.
    """
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    for name in listed:
        thing = attrgetter(name)(oq)
        yield name, thing
        classes = [cls for cls in getattr(thing, "__mro__", ()) if cls.__module__.startswith("ordinalq")]
        for i, cls in enumerate(classes):
            for method, value in vars(cls).items():
                function = getattr(value, "__func__", value)
                is_new = not any(method in vars(base) for base in classes[i + 1 :])
                if inspect.isfunction(function) and is_new and not method.startswith("_"):
                    yield f"{cls.__name__}.{method}", function


def test_public_docstrings_have_all_arguments_and_the_result():
    missing = []
    for name, thing in public_callables():
        doc, signature = inspect.getdoc(thing) or "", inspect.signature(thing)
        arguments = set(signature.parameters) - {"self", "cls"}
        missing += [(name, argument) for argument in sorted(arguments - documented_arguments(doc))]
        returns = not inspect.isclass(thing) and signature.return_annotation not in (None, "None")
        if arguments and returns and not section(doc, "Returns") + section(doc, "Yields"):
            missing.append((name, "Returns"))
    assert missing == []


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
def test_the_example_of_a_method_prints_a_distribution(name):
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
