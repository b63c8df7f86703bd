"""Formatting of large pages: kept for content and selectors, and never copied without end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from tests.crawler.page.test_parse import HOSTILE_PAGES
from turbohtml import parse

from mannerly.crawler.page.content import content_of
from mannerly.crawler.page.tree import MAX_COPIES, bounded, parse_text
from mannerly.crawler.web.choices import Content

SELECTORS = ("code", "em", "strong", "b", "i", "tt", "a", "p", "li", "span", "td", "pre", "dt")
MANUALS = {
    Path("/usr/share/doc/python3.11/html/library"): (
        "functions json re os asyncio-task argparse stdtypes typing logging sqlite3 itertools"
    ),
    Path("/usr/share/doc/postgresql-doc-15/html"): (
        "functions-json sql-select sql-createtable config-setting runtime-config-query app-psql "
        "datatype functions-string libpq-connect plpgsql-control-structures tutorial-sql"
    ),
}
# The manner of a manual: definitions, spans in code, formatting around blocks, and a lost end tag.
ENTRY = """<dl class="py"><dt id="f{n}"><code class="sig"><span class="pre">f{n}</span></code>(<em
class="a">x</em>, <i>y</i>)</dt><dd><p>Calls <code>f{n}()</code> as <b>often</b> as <i>it
<tt>can</tt></i>, see <a href="#f{n}"><strong>here</strong></a>.</p><b><p>A block in bold.</p></b>
<p><em>Misnested</p></em></dd></dl>
"""
LARGE = "<html><body><main><h1>Functions</h1>" + "".join(ENTRY.format(n=n) for n in range(200))


def counts(html: str) -> dict[str, int]:
    """Return how many elements each selector finds in our tree."""
    document = parse_text(html)
    return {selector: len(document.select(selector)) for selector in SELECTORS}


def counts_of_lexbor(html: str) -> dict[str, int]:
    """Return how many elements each selector finds in the tree of another parser."""
    document = LexborHTMLParser(html)
    return {selector: len(document.css(selector)) for selector in SELECTORS}


def test_large_page_keeps_its_formatting() -> None:
    """Selectors find in a page of 5,000 tags what they find in the tree that browsers build."""
    assert counts(LARGE) == counts_of_lexbor(LARGE)
    assert counts(LARGE)["code"] == 400


@pytest.mark.parametrize("folder", MANUALS, ids=lambda folder: folder.parts[4])
def test_selectors_find_all_elements_of_manuals(folder: Path) -> None:
    """Eleven pages each of two installed manuals, short and long."""
    if not folder.is_dir():
        pytest.skip(f"the manual is not installed: {folder}")
    pages = [folder / f"{name}.html" for name in MANUALS[folder].split()]

    for page in pages:
        html = page.read_text()
        assert counts(html) == counts_of_lexbor(html), page


def test_markdown_of_a_large_page_has_its_code() -> None:
    """Content is made from the tree that selectors see, without a trace of the bound."""
    text = content_of(LARGE.encode(), "text/html", "https://a.example/", Content.MARKDOWN)

    assert text is not None
    assert all(f"Calls `f{n}()`" in text for n in range(200))
    assert "<wbr" not in text


@pytest.mark.parametrize("name", HOSTILE_PAGES)
def test_formatting_of_hostile_pages_is_bounded(name: str) -> None:
    """A tree has no more elements than the page has tags, and the copies that are allowed."""
    html = HOSTILE_PAGES[name]

    elements = sum(1 for _ in parse_text(html).iter_elements())

    assert elements < 2 * html.count("<") + 2 * MAX_COPIES


PIECES = st.sampled_from(
    [
        "<b id={}>", "<i class={}>", "<font color={}>", "<code a={}>", "</b>", "</i>", "</font>",
        "</code>", "<p>", "</p>", "x", "<div>", "</div>", "<span>", "</span>", "<ul>", "</ul>",
        "<li>", "</li>", "<table>", "</table>", "<tr>", "<td>", "</td>", "<a href=x>", "</a>",
        "<object>", "</object>", "<!--", "-->", "<script>", "</script>", "<textarea>",
        "</textarea>", "<select>", "</select>", "<svg>", "</svg>", "<math>", "<desc>", "</desc>",
        "<template>", "</template>", "<x-y>", "</x-y>", "<hr>", "<br>", "<p title='", "'>",
        "<button>", "</button>", "<form>", "</form>", "<caption>", "<dd>", "<dt>", "<h1>",
        "</h1>", "<nobr>", "<b 'x>", "<title>",
    ]
)  # fmt: skip
RUNS = st.lists(
    st.tuples(st.lists(PIECES, min_size=1, max_size=6), st.sampled_from([1, 3, 40])), max_size=6
)


@given(RUNS)
def test_no_markup_makes_copies_beyond_the_bound(runs: list[tuple[list[str], int]]) -> None:
    """Whatever hides the end tags: with no copies allowed, elements are as many as tags."""
    pieces = [piece for some, times in runs for piece in some * times]
    html = "".join(piece.format(place) for place, piece in enumerate(pieces))

    elements = sum(1 for _ in parse(bounded(html, copies=0), positions=False).iter_elements())

    assert elements <= 2 * html.count("<") + 10


@given(RUNS)
def test_bounded_page_has_its_other_tags(runs: list[tuple[list[str], int]]) -> None:
    """Only start tags of formatting are changed, each into the same harmless one."""
    html = "".join(piece for some, times in runs for piece in some * times).replace("{}", "1")

    text = bounded(html, copies=0)

    assert text.count("<") == html.count("<")
    assert bounded(html, copies=10**9).count("<wbr") <= text.count("<wbr")


PARSE_HOSTILE = """
import sys
from pathlib import Path
from mannerly.crawler.page.tree import parse_text
from tests.crawler.page.test_parse import HOSTILE_PAGES
tag = "<b " + " ".join(f"a{n}=1" for n in range(20_000)) + ">"
for html in (*HOSTILE_PAGES.values(), tag + "<p>x" * 900):
    parse_text(html)
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hostile_pages_cost_little_memory() -> None:
    """Pages that would take gigabytes are parsed with their formatting in a hundred megabytes."""
    ran = subprocess.run(
        [sys.executable, "-c", PARSE_HOSTILE], capture_output=True, text=True, check=True
    )

    assert int(ran.stdout) < 200_000  # KB, Python and its imports included
