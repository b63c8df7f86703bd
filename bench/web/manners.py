"""The manners in which pages of the web are written: one row for each kind of web.

    pages      plain links in cards, lists and tables: the web of all other benchmarks
    articles   links with attributes of every kind, in every order, with any quotes
    forum      links of forums and of wikis: hundreds on a page, most of them marked nofollow, to
               places in pages that are linked elsewhere, too
    shop       cards with srcset, data attributes that hold JSON, JSON-LD in the head

What a crawler has to find is the same in all of them. The links that matter are never marked
nofollow, so crawlers that follow such links and crawlers that do not fetch the same pages.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

_UNQUOTABLE = frozenset(" \"'<>`")  # characters that an attribute without quotes cannot hold


class Manner(NamedTuple):
    """How one kind of web writes its links and its heads.

    `link` gets a generator, the href and the text of a link, and hrefs of the menu.
    """

    link: Callable[[Random, str, str, Sequence[str]], str]
    head: Callable[[Random, str], str]
    links: tuple[int, int]  # of a page, at least and at most
    sizes: tuple[int, int, int]  # bytes of a page: least, usual, most


def _plain(_rng: Random, href: str, text: str, _others: Sequence[str]) -> str:
    return f'<a class="link" href="{escape(href)}">{text}</a>'


_ARTICLE_LINKS = (
    '<a href="{href}" target="_blank" rel="noopener noreferrer">{text}</a>',
    '<a class="ref ext" title="{text} &amp; more" href="{href}">{text}</a>',
    "<a href='{href}' data-id='{number}'>{text}</a>",
    '<a data-id="{number}" data-track="{{&quot;at&quot;:{number}}}" href="{href}">{text}</a>',
    '<A HREF="{href}" TARGET="_top">{text}</A>',
    '<a href="{href}" hreflang="en" lang="en">{text}</a>',
    '<a ping="/seen?n={number}" href="{href}" class="x">{text}</a>',
    '<a data-action="click->note#open" href="{href}">{text}</a>',
    '<a rel="ugc" class="by" href="{href}"><span>{text}</span></a>',
    '<a\n    class="card-link"\n    href="{href}"\n  >{text}</a>',
)


def _of_article(rng: Random, href: str, text: str, _others: Sequence[str]) -> str:
    number = rng.randrange(1000)
    if number % 11 == 0 and _UNQUOTABLE.isdisjoint(href):
        return f"<a href={escape(href)} class=plain>{text}</a>"
    written = rng.choice(_ARTICLE_LINKS)
    return written.format(href=escape(href), text=text, number=number)


def _of_forum(rng: Random, href: str, text: str, others: Sequence[str]) -> str:
    number = rng.randrange(10_000)
    more = "".join(
        f' <a {attributes} href="{escape(rng.choice(others))}#p{number}">{word}</a>'
        for attributes, word in (
            ('class="reply" rel="nofollow"', "Reply"),
            ('rel="nofollow ugc" title="Quote &amp; answer"', "Quote"),
        )
    )
    member = escape(rng.choice(others))
    return (
        f'<a href="{escape(href)}" class="topictitle">{text}</a>{more}'
        f' <a href="{member}#u{number % 97}" rel="ugc nofollow" target="_blank">Member</a>'
    )


def _of_wiki(rng: Random, href: str, text: str, others: Sequence[str]) -> str:
    edited = escape(rng.choice(others))
    cited = escape(rng.choice(others))
    return (
        f'<a href="{escape(href)}" title="{text} &amp; more">{text}</a>'
        f'<span class="edit">[<a rel="nofollow" href="{edited}#edit" title="Edit">edit</a>]</span>'
        f'<sup><a rel="nofollow" class="external text" href="{cited}#note">[1]</a></sup>'
    )


def _of_forum_or_wiki(rng: Random, href: str, text: str, others: Sequence[str]) -> str:
    write = _of_wiki if rng.random() < 0.5 else _of_forum
    return write(rng, href, text, others)


def _of_shop(rng: Random, href: str, text: str, others: Sequence[str]) -> str:
    number = rng.randrange(1000)
    about = json.dumps({"id": number, "price": f"{number / 10:.2f}", "name": text})
    sizes = ", ".join(f"/static/{number}-{width}.webp {width}w" for width in (320, 640, 1280))
    return (
        f'<a class="product" data-sku="A-{number}" data-product="{escape(about)}" '
        f'href="{escape(href)}"><picture><source type="image/webp" srcset="{sizes}">'
        f'<img src="/static/{number}.jpg" srcset="{sizes}" sizes="(min-width: 40em) 50vw" '
        f'alt="{text}" loading="lazy"></picture>{text}</a>'
        f'<a rel="nofollow" data-action="click->cart#add" href="{escape(rng.choice(others))}#cart">'
        f"Buy</a>"
    )


def _no_head(_rng: Random, _title: str) -> str:
    return ""


def _shop_head(rng: Random, title: str) -> str:
    offers = [
        {"@type": "Offer", "sku": f"A-{rng.randrange(1000)}", "price": rng.randrange(100)}
        for _ in range(12)
    ]
    product = {"@context": "https://schema.org", "@type": "Product", "name": title}
    text = json.dumps({**product, "offers": offers})
    tags = "".join(f'<meta property="og:{name}" content="{title}">\n' for name in "abcdef")
    return f'<script type="application/ld+json">{text}</script>\n{tags}'


MANNERS: Mapping[str, Manner] = {
    "pages": Manner(_plain, _no_head, (60, 120), (20_000, 55_000, 60_000)),
    "articles": Manner(_of_article, _no_head, (60, 120), (40_000, 52_000, 64_000)),
    "forum": Manner(_of_forum_or_wiki, _no_head, (60, 120), (40_000, 55_000, 70_000)),
    "shop": Manner(_of_shop, _shop_head, (40, 80), (50_000, 70_000, 90_000)),
}
