"""Generate a page like a content system does: long head, menus, nested boxes, text, tables.

Prose is put together from a pool of sentences that is made once: words of invented syllables, the
short ones often, some with marks of emphasis, entities or letters beyond ASCII. A parser meets what
it meets outside (a tag every 36 bytes); a compressor would not, so pages are served plain.

`render` fills a page until it has the size that was asked for; links are spread over its blocks.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from .manners import Manner

SENTENCES = 3000
WORDS = 4000
CONSONANTS, VOWELS = "bcdfghklmnprstvwz", "aeiou"
SYLLABLES = [f"{first}{then}" for first in CONSONANTS for then in VOWELS]
UNUSUAL = (
    "caf\u00e9",
    "na\u00efve",
    "Z\u00fcrich",
    "&mdash;",
    "R&amp;D",
    "&nbsp;",
    "\u201cso\u201d",
)

HEAD = """<!DOCTYPE html>
<html lang="en" class="no-js">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="{description}">
<meta property="og:title" content="{title}">
<meta property="og:type" content="article">
<link rel="canonical" href="{url}">
<link rel="stylesheet" href="/static/site.css?v=3">
<link rel="icon" href="/static/icon.png">
<style>
body{{font:16px/1.5 Georgia,serif;margin:0;color:#222}} .wrap{{max-width:64rem;margin:auto}}
.card{{border:1px solid #ddd;padding:1rem}} @media(max-width:40rem){{.side{{display:none}}}}
</style>
<script>
(function(w){{w.page={{"id":{number},"tags":["a","b"]}};if(1<2&&w.top!==w){{w.top.location=w.location}}
var e=document.documentElement;e.className=e.className.replace("no-js","js")}})(window);
</script>
"""


class Prose:
    """Sentences to draw from, the same ones for a whole web."""

    def __init__(self, rng: Random) -> None:
        lengths = rng.choices((1, 2, 3, 4, 5), (10, 30, 30, 20, 10), k=WORDS)
        words = ["".join(rng.choices(SYLLABLES, k=length)) for length in lengths]
        weights = [1 / rank for rank in range(3, WORDS + 3)]
        self.sentences = [self._sentence(rng, words, weights) for _ in range(SENTENCES)]
        self._words = words

    @staticmethod
    def _sentence(rng: Random, words: list[str], weights: list[float]) -> str:
        chosen = rng.choices(words, weights, k=rng.randint(6, 22))
        chosen[0] = chosen[0].capitalize()
        if rng.random() < 0.25:
            chosen[rng.randrange(len(chosen))] = rng.choice(UNUSUAL)
        if rng.random() < 0.6:
            tag = rng.choice(("em", "strong", "code", "span", "b", "i"))
            place = rng.randrange(len(chosen))
            chosen[place] = f"<{tag}>{chosen[place]}</{tag}>"
        return " ".join(chosen) + "."

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words of titles and links, each as often as it is among those to choose from."""
        return tuple(self._words)

    def paragraph(self, rng: Random) -> str:
        return " ".join(rng.choices(self.sentences, k=rng.randint(2, 5)))

    def words(self, rng: Random, count: int) -> str:
        return " ".join(rng.choices(self._words, k=count)).capitalize()


def menu_link(href: str, text: str) -> str:
    return f'<a class="nav" href="{escape(href)}">{text}</a>'


def card(rng: Random, prose: Prose, link: str) -> str:
    number = rng.randrange(1000)
    return (
        f'<div class="card"><div class="card-body" data-id="{number}">\n'
        f'<h3 id="c{number}">{prose.words(rng, 4)}</h3>\n<p>{prose.paragraph(rng)} {link}</p>\n'
        f'<img src="/static/{number}.png" alt="" width="320" height="180" loading="lazy">\n'
        f"</div></div>\n"
    )


def listing(rng: Random, prose: Prose, link: str) -> str:
    items = "".join(f"<li>{prose.words(rng, 6)}</li>\n" for _ in range(rng.randint(2, 5)))
    return f'<ul class="list">\n<li>{link}</li>\n{items}</ul>\n'


def table(rng: Random, prose: Prose, link: str) -> str:
    rows = "".join(
        f"<tr><td>{prose.words(rng, 2)}</td><td>{rng.randrange(9999)}</td></tr>\n" for _ in range(4)
    )
    return f"<table><tr><th>{link}</th><th>n</th></tr>\n{rows}</table>\n"


def text(rng: Random, prose: Prose, link: str) -> str:
    return f"<p>{rng.choice(prose.sentences)} {link} {rng.choice(prose.sentences)}</p>\n"


BLOCKS = (card, listing, table, text)
SHARES = (20, 15, 8, 57)


def render(
    rng: Random,
    prose: Prose,
    manner: Manner,
    *,
    url: str,
    number: int,
    menu: list[str],
    links: list[str],
    size: int,
) -> bytes:
    """A page of about `size` bytes of UTF-8 around these links."""
    title = prose.words(rng, rng.randint(3, 7))
    parts = [
        HEAD.format(title=title, description=prose.words(rng, 20), url=escape(url), number=number),
        manner.head(rng, title),
        '</head>\n<body id="top"><div class="wrap"><header><nav><ul>\n',
        *(f"<li>{menu_link(href, f'Section {n}')}</li>\n" for n, href in enumerate(menu)),
        f"</ul></nav><h1>{title}</h1></header>\n<main id=content><div class=row><div class=col>\n",
    ]
    blocks = [
        block(rng, prose, manner.link(rng, href, prose.words(rng, rng.randint(1, 4)), menu))
        for block, href in zip(rng.choices(BLOCKS, SHARES, k=len(links)), links, strict=True)
    ]
    end = (
        f"</div></div></main>\n<footer id=notes><!-- page {number} --><p>{prose.words(rng, 12)}"
        "<p>&copy; 2025<br>All rights reserved.</footer></div></body></html>\n"
    )
    missing = size - sum(map(len, parts)) - sum(map(len, blocks)) - len(end)
    while missing > 0:
        blocks.append(f"<p>{prose.paragraph(rng)}</p>\n")
        missing -= len(blocks[-1])
    rng.shuffle(blocks)
    return "".join((*parts, *blocks, end)).encode()
