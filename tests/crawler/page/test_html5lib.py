"""html5lib's tests as the oracle: the scanner finds what the tree has, on all of their inputs."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from tests.crawler.page import fragments, html5lib_suite

from mannerly.crawler.page import ParsedPage, parse_page, scan
from mannerly.crawler.page import tree as turbo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.page.parsed import Elements

URL = "https://example.com/a/b"
SEED = 20_190_707

# Everything that is read of a page. Where it stands after an input, it tells how the input ended.
PROBE = (
    '<base href="/base/"><title>T</title><meta name="robots" content="noindex">'
    '<meta http-equiv="refresh" content="0; url=r"><link rel="canonical" href="c">'
    '<a href="one">1</a><a href="two" rel="nofollow">2</a><iframe src="three"></iframe>'
)
PIECES = (
    *"<>\"'=/ a!-A\n&;\0?][",
    *('<a href="m">', "<a href=n>", "<a href='o' rel=nofollow>", "</a>", "<title>", "</title>"),
    *("<base href=/b/>", "<meta name=robots content=noindex>", "<link rel=next href=k>"),
    *("<iframe src=q>", "<area href=o>", "<template>", "<col>", "&#xfdd0;", "<!--", "-->"),
    *("<script>", "</script>", "<svg>", "</svg>", "<select>", "</select>", "<textarea>"),
)


@pytest.fixture(scope="module")
def suite() -> list[tuple[str, str]]:
    try:
        path = html5lib_suite.archive()
    except OSError as error:
        message = f"html5lib's tests cannot be downloaded from the package index: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return list(html5lib_suite.inputs(path))


class Comparison:
    """Both readings of many pages: how often they differ, and how often no tree was built."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compared = 0
        self.trees = 0
        self.differences: list[str] = []
        self._tree = turbo.read
        monkeypatch.setattr(turbo, "read", self._counted)

    def compare(self, inputs: Iterable[tuple[str, str]]) -> None:
        for name, markup in inputs:
            self.compared += 1
            # Lone surrogates cannot be sent: their bytes are no UTF-8, as a server may send them.
            body = markup.encode("utf-8", "surrogatepass")
            scanned = parse_page(body, "text/html", URL, reader=scan.read)
            built = parse_page(body, "text/html", URL, reader=self._tree)
            if told(scanned) != told(built):
                self.differences.append(f"{name}: {body!r}\n  scan {scanned}\n  tree {built}")

    def _counted(self, body: bytes, codec: str, limit: int) -> Elements:
        self.trees += 1
        return self._tree(body, codec, limit)


def told(page: object) -> tuple[object, ...]:
    """Everything that is read of a page. A tree may repeat links and move them out of tables."""
    if not isinstance(page, ParsedPage):
        return (page,)
    # Of broken markup a tree may give an <h1> other text, and <html> attributes of later tags.
    others = page._replace(links=(), h1=None, lang=None)
    return (*others, fragments.told(page.links))


def damaged(rng: random.Random, markup: str) -> str:
    """Remove, replace or insert something at one to three places."""
    text = list(markup)
    for _ in range(rng.randint(1, 3)):
        place = rng.randint(0, len(text))
        text[place : place + rng.choice((0, 0, 1, 2))] = rng.choice(PIECES)
    return "".join(text)


@pytest.mark.parametrize("probe", ["", PROBE], ids=["as they are", "followed by a probe"])
def test_scan_and_tree_agree_on_every_input(
    suite: list[tuple[str, str]], probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links, title, base, canonical, robots and refresh are the same, and most are scanned."""
    comparison = Comparison(monkeypatch)

    comparison.compare((name, markup + probe) for name, markup in suite)

    assert not comparison.differences, "\n".join(comparison.differences[:10])
    assert comparison.compared > 8000
    assert comparison.trees < comparison.compared / 4


def test_scan_and_tree_agree_on_damaged_inputs(
    suite: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every input with one to three errors more, and the probe after it."""
    comparison = Comparison(monkeypatch)
    rng = random.Random(SEED)

    comparison.compare((name, damaged(rng, markup) + PROBE) for name, markup in suite)

    assert not comparison.differences, "\n".join(comparison.differences[:10])
    assert comparison.trees < comparison.compared / 2
