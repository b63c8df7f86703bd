"""How Sphinx builds the documents: `make docs`, where every warning is an error.

The root of the repository is the source, so that a link between any two Markdown files leads to the
same place here and where the repository is browsed. Built pages load nothing from other hosts; a
test crawls them.
"""

from __future__ import annotations

from importlib.metadata import version as installed
from itertools import pairwise
from typing import Any

project = "mannerly"
author = copyright = "the mannerly authors"  # noqa: A001 - Sphinx's name
version = release = installed("mannerly")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "bench/README.md"]
exclude_patterns = [".venv", ".cache", "build"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Decision records are listed by their README. That every page is reached is seen by a crawl.
suppress_warnings = ["toc.not_included"]

default_role = "code"  # docstrings write `names` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes that a docstring lists are not described twice
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"mannerly {release}"
html_copy_source = False
html_show_sphinx = False
templates_path = ["templates"]
html_additional_pages = {"index": "start.html"}  # the root leads to docs/index.html


def mark_examples(*event: Any) -> None:
    """Make an indented paragraph of a docstring what it is meant as: code, not a quotation."""
    lines: list[str] = event[-1]
    # A section such as "Args:" has its text on the next line; code comes after an empty one.
    starts = [
        number + 1
        for number, (before, line) in enumerate(pairwise(lines))
        if not before and line.startswith("    ") and _last(lines[:number])[:1].strip()
    ]
    for number in reversed(starts):
        lines[number:number] = ["::", ""]


def _last(lines: list[str]) -> str:
    """Return the last line that is not empty; its first character tells how it is indented."""
    return next((line for line in reversed(lines) if line), "")


def setup(app: Any) -> None:
    """Let Sphinx ask us before napoleon reads a docstring."""
    app.connect("autodoc-process-docstring", mark_examples, priority=100)
