"""The site: `make site` builds it from these pages, the docstrings and the examples."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from ordinalq.version import __version__

project = "ordinalq"
author = "The ordinalq developers"
copyright = author  # noqa: A001 - Sphinx wants this name
release = version = __version__

extensions = [
    "mathml",
    "method_examples",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext", "make_*.py"]
templates_path = ["_templates"]
nitpicky = False

# Pages are plain Markdown, which also reads well where nothing renders it.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# One page for each public name, with its methods; numpydoc reads the docstrings.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Every example is run when the site is made; an error, or one without a figure, stops it.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery", "../examples/notebooks"],
    "gallery_dirs": ["gallery", "notebooks"],
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "min_reported_time": 60,
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": "",
    # Show output and figures, not the axes that a last line returns.
    "capture_repr": (),
}

html_math_renderer = "mathml"
smartquotes_action = "qe"  # not "D": it turns the dashes of options such as --by into one
html_theme = "pydata_sphinx_theme"
html_title = f"ordinalq {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    # Short, so that it fits next to the buttons on a phone.
    "logo": {"text": "ordinalq"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages without siblings and children.
html_sidebars = {"index": [], "methods": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Links to files outside docs/, and the pages of the site that have their content.
OUTSIDE = {
    "../CONTRIBUTING.md": "contributing.md",
    "../../CONTRIBUTING.md": "../contributing.md",
    "../benchmarks/results.md": "speed.md",
    "../README.md": "index.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
    "docs/": "",
}


def inside(app: object, docname: str, source: list[str]) -> None:
    """Replace links that leave docs/ by links to pages of the site."""
    for place, page in OUTSIDE.items():
        source[0] = source[0].replace(f"]({place}", f"]({page}")


def plain_bars(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Escape |x| in a docstring, so that it is not a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def is_foreign(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Skip members inherited from scikit-learn, whose links are not on this site."""
    return True if str(getattr(thing, "__module__", "")).startswith("sklearn.") else None


def setup(app: object) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("autodoc-process-docstring", plain_bars)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", is_foreign)  # type: ignore[attr-defined]
    app.connect("source-read", inside)  # type: ignore[attr-defined]
    app.connect("include-read", lambda app, path, parent, source: inside(app, parent, source))  # type: ignore[attr-defined]
