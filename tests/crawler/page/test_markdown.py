"""Markdown of pages: what a person would keep, in CommonMark with pipe tables, without HTML."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import mean

import pytest
from bench._markdown_facts import facts_of
from bench.markdown import Page, judged, ours, pages, share
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.page.content import content_of
from mannerly.crawler.web.choices import Content

URL = "https://a.example/docs/page.html"
MANUALS = (
    Path("/usr/share/doc/python3.11/html/library"),
    Path("/usr/share/doc/postgresql-doc-15/html"),
    Path("/usr/share/doc/git/html"),
)


def markdown(html: str) -> str:
    """Return the Markdown of a page whose main part is given."""
    found = content_of(f"<main>{html}</main>".encode(), "text/html", URL, Content.MARKDOWN)
    assert found is not None
    return found.strip()


def test_known_pages_keep_their_facts() -> None:
    """Of the facts that a person would keep 97 % are there, and nearly all words."""
    scores = list(judged("known", ours).values())

    assert len(scores) >= 30
    assert share(scores) >= 0.97
    assert mean(each.f1 for each in scores) >= 0.97
    assert mean(each.recall for each in scores) >= 0.98


@pytest.mark.parametrize("page", list(pages("known")), ids=lambda page: page.name)
def test_known_pages_have_no_left_overs(page: Page) -> None:
    """No tag, no character reference and no mark of an anchor is in the Markdown of a page."""
    assert ("clean",) in facts_of(ours(page)).facts


@pytest.mark.parametrize("folder", MANUALS, ids=lambda folder: folder.parts[4])
def test_manuals_have_no_left_overs(folder: Path) -> None:
    """Eight pages of each installed manual are clean, and keep their code."""
    if not folder.is_dir():
        pytest.skip(f"the manual is not installed: {folder}")
    files = random.Random(27).sample(sorted(folder.glob("*.html")), 8)

    for file in files:
        html = file.read_text()
        text = content_of(html.encode(), "text/html", URL, Content.MARKDOWN) or ""
        facts = facts_of(text).facts
        assert ("clean",) in facts, file
        if html.count("<code") > 20:
            assert sum(fact[0] == "code" for fact in facts), file
        if "highlight-python3" in html:
            assert any(fact[:2] == ("fence", "python") for fact in facts), file


CASES = {
    "nested lists": (
        "<ul><li>a<ol start=3><li>b<li>c<ul><li>d</ul></ol><li><p>e</p><p>f</p></ul>",
        "- a\n\n  3. b\n  4. c\n     - d\n- e\n\n  f",
    ),
    "table": (
        """<table><tr><th>A<th>B<tr><td><p>1</p><p>2</p><td><code>x|y</code>
        <tr><td rowspan=2>r<td>s<tr><td>t</table>""",
        "| A | B |\n| --- | --- |\n| 1 2 | `x\\|y` |\n| r | s |\n| r | t |",
    ),
    "box": (
        '<div class="admonition note"><p class="admonition-title">Note</p>x<ul><li>y</ul></div>',
        "> **Note**\n>\n> x\n>\n> - y",
    ),
    "box without a title": ('<div class="alert alert-danger">x</div>', "> **Danger**\n>\n> x"),
    "code": (
        '<div class="highlight-python3"><pre>a\n<span>b</span></pre></div>',
        "```python\na\nb\n```",
    ),
    "brush": ('<pre class="brush: php; html-script: true">x</pre>', "```php\nx\n```"),
    "code with ticks": ("<p><code>a`b</code></p><pre>```</pre>", "``a`b``\n\n````\n```\n````"),
    "link without its title": (
        '<p><a href="x" title="x again"><code>x</code></a></p>',
        "[`x`](https://a.example/docs/x)",
    ),
    "references": ("<p>a&#160;b &lt;em&gt; &amp;lt;</p>", "a b \\<em> \\&lt;"),
    "emphasis": ("<p>a<b> b </b>c <i><i>d</i></i> e*f g_h</p>", "a **b** c *d* e\\*f g_h"),
    "line block": (
        '<div class="line-block"><div class="line">a</div><div class="line">b</div></div>',
        "a\n\nb",
    ),
    "block start": ("<p># a</p><p>- b</p><p>1. c</p>", "\\# a\n\n\\- b\n\n1\\. c"),
    "terms": ("<dl><dt>t<dd>d</dl>", "**t**\n\nd"),
    "link around blocks": (
        '<a href="/p"><img src="i.png" alt="p"><h3>Name</h3><p>9 €</p></a>',
        "![p](https://a.example/docs/i.png)\n\n### [Name](https://a.example/p)\n\n9 €",
    ),
    "answers that are opened": (
        '<h3><button aria-expanded="false">Why?</button></h3><div class="answer" hidden>So.</div>',
        "### Why?\n\nSo.",
    ),
    "marks of headings": ('<h2>x<a href="#x">¶</a></h2>', "## x"),
}


@pytest.mark.parametrize("name", CASES)
def test_element_becomes_markdown(name: str) -> None:
    """Each kind of element is written as a person would write it."""
    html, expected = CASES[name]

    assert markdown(html) == expected


MARKUP = st.lists(
    st.sampled_from([
        "<p>", "</p>", "<b>", "</b>", "<ul>", "<li>", "</ul>", "<table>", "<tr>",
        "<td colspan=9>", "<td rowspan=99>", "</table>", "<pre>", "</pre>", "<code>", "</code>",
        "<a href=x>", "</a>", "<div class=note>", "<div class='admonition tip'>", "</div>",
        "<h2>", "</h2>", "<dl>", "<dt>", "<blockquote>", "</blockquote>",
        "<img src=i alt='a]b'>", "<br>", "x", " ", "*", "`", "&lt;b>",
        "<details class=info><summary>", "</details>", "<math>", "<svg>", "|", "\n", "&nbsp;",
        "é",
    ]),
    max_size=60,
)  # fmt: skip


@given(MARKUP)
def test_any_markup_becomes_clean_markdown(pieces: list[str]) -> None:
    """Whatever a page is made of, its Markdown has no tag and no character reference."""
    text = markdown("".join(pieces))

    assert ("clean",) in facts_of(text).facts


@pytest.mark.parametrize(
    "tag", ["div", "ul><li", "blockquote", "b", "table><tr><td", "span", "dl><dd"]
)
def test_deep_pages_are_written(tag: str) -> None:
    """Hundreds of levels neither end the process nor lose the text."""
    assert "deep" in markdown(f"<{tag}>" * 2000 + "deep")


COOKIES = '<div class="cookie-consent"><p>We use cookies.</p></div>'
FRAMES = (
    '<nav><a href="/">Menu</a></nav>',
    '<div class="breadcrumbs"><a href="/">Menu</a></div>',
    '<aside class="sidebar">Menu</aside>',
    '<section id="related-posts"><h2>Menu</h2></section>',
    '<ul class="share-buttons"><li>Menu</li></ul>',
    '<div id="comments"><p>Menu</p></div>',
    '<div style="display: none">Menu</div>',
)


@pytest.mark.parametrize("frame", FRAMES)
def test_frame_is_left_out(frame: str) -> None:
    """Inside of the main part, too."""
    words = "<p>The page itself has some words to say about its subject.</p>" * 3

    text = markdown(f"{COOKIES}<h1>Head</h1>{frame}{words}")

    assert "cookies" not in text
    assert "Menu" not in text
    assert text.count("its subject") == 3


@pytest.mark.parametrize(
    "body",
    [
        "<div class='nav-content'><h1>Head</h1></div><p>Words that count, and more of them.</p>",
        "<h1>Head</h1><div class='with-sidebar'><p>Words that count, and more of them.</p></div>",
    ],
)
def test_names_are_only_a_hint(body: str) -> None:
    """An element with the first heading or with most of the words is no frame."""
    page = f"<body class='has-sidebar'>{body}".encode()

    text = content_of(page, "text/html", URL, Content.MARKDOWN)

    assert text == "# Head\n\nWords that count, and more of them.\n"
