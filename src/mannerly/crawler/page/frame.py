"""Removes the frame of a page from its tree: what stands around the content on every page.

    by element      nav, footers, forms, buttons, asides that are no boxes, hidden elements
    by role         navigation, banner, search, dialog …
    by name         classes and ids with words like cookie, breadcrumb, share, related, comments
    by label        links and lines that only say "Skip to content", "Copy", "Advertisement"

Names are only a hint: `<body class="has-sidebar">` is no sidebar. So an element with the first
heading, or with more than half of the words, stays whatever its name; so does `<main>`, `<article>`
and everything inside of code.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from .boxes import is_box

if TYPE_CHECKING:
    from turbohtml import Document, Element

NEVER_SHOWN = "script, style, noscript, template, svg, iframe, canvas, object, embed, dialog"
_MARKS = (
    "a.headerlink, a.anchorjs-link, a.anchor-link, a.hash-link, a.header-anchor, a.heading-anchor, "
    "a.heading-link, .mw-editsection, a.footnote-backref, a.footnote-back, "
    ".sr-only, .visually-hidden, .screen-reader-text, .visuallyhidden, .show-for-sr"
)
_JUDGED = ("nav", "footer", "form", "button", "aside", "header", "menu", "fieldset")
_BY_ROLE = ", ".join(
    f"[role={role}]"
    for role in (
        *("navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu"),
        *("menubar", "complementary", "toolbar", "button", "tooltip", "tablist"),
    )
)
_MARKED_SO = f"{', '.join(_JUDGED)}, {_BY_ROLE}, [style], [hidden], [aria-hidden]"
_LONG_NAME = 200  # characters
_WORDS = frozenset(
    (
        "ad", "adblock", "ads", "adsense", "announcement", "avatar", "backtotop", "basket",
        "cart", "catlinks", "cmp", "comments", "consent", "contributors", "copybtn", "cta",
        "didomi", "disqus", "editsection", "feedback", "footer", "helpful", "hideme", "intercom",
        "jumpbox", "langswitcher", "lightbox", "linkbar", "livechat", "login", "masthead", "menu",
        "minicart", "modal", "nav", "navbar", "navbox", "navfooter", "navheader", "navigation",
        "navlinks", "noprint", "onetrust", "outbrain", "pagenav", "pager", "paywall", "popup",
        "postprofile", "prevnext", "printfooter", "promo", "promotion", "regwall", "respond",
        "search", "searchbox", "share", "sharebar", "sharedaddy", "sharing", "sidebar", "sidenav",
        "signin", "signup", "similar", "skip", "skiplink", "social", "taboola", "tagcloud",
        "taglist", "tags", "teaser", "teasers", "toc", "toolbar", "topbar", "trending", "upsell",
        "upsells", "usercentrics", "viewed", "vote", "votecell", "votes", "voting", "wishlist",
    )
)  # fmt: skip
_BEGINNINGS = (
    *("advert", "breadcrumb", "cookie", "gdpr", "newsletter", "paginat", "recommend", "related"),
    *("sponsor", "subscri"),
)
_PAIRS = frozenset(
    (
        ("about", "author"), ("action", "bar"), ("also", "bought"), ("also", "like"),
        ("also", "viewed"), ("article", "actions"), ("article", "tools"), ("author", "bio"),
        ("author", "box"), ("author", "card"), ("author", "info"), ("back", "index"),
        ("back", "top"), ("cart", "form"), ("code", "copy"), ("comment", "form"),
        ("comment", "list"), ("copy", "button"), ("doc", "feedback"), ("edit", "link"),
        ("edit", "on"), ("edit", "page"), ("edit", "this"), ("entry", "tags"),
        ("feedback", "form"), ("follow", "us"), ("frequently", "bought"), ("go", "top"),
        ("header", "navigation"), ("improve", "page"), ("jump", "link"), ("jump", "nav"),
        ("jump", "to"), ("keep", "reading"), ("label", "list"), ("labels", "section"),
        ("lang", "switcher"), ("language", "selector"), ("language", "switcher"),
        ("last", "updated"), ("latest", "news"), ("latest", "posts"), ("more", "from"),
        ("more", "news"), ("more", "stories"), ("more", "topics"), ("most", "read"),
        ("next", "prev"), ("notification", "bar"), ("numbers", "wrapper"), ("of", "contents"),
        ("on", "page"), ("online", "list"), ("page", "actions"), ("page", "edit"),
        ("page", "feedback"), ("page", "footer"), ("page", "nav"), ("page", "tools"),
        ("popular", "posts"), ("post", "actions"), ("post", "buttons"), ("post", "controls"),
        ("post", "menu"), ("post", "tags"), ("prev", "next"), ("previous", "next"),
        ("privacy", "banner"), ("quick", "links"), ("read", "more"), ("read", "next"),
        ("recent", "posts"), ("recently", "viewed"), ("report", "issue"), ("scroll", "top"),
        ("share", "this"), ("site", "footer"), ("site", "header"), ("site", "nav"),
        ("skip", "link"), ("stat", "block"), ("sub", "nav"), ("suggested", "posts"),
        ("suggested", "topics"), ("tag", "list"), ("tags", "links"), ("to", "top"),
        ("top", "nav"), ("top", "stories"), ("topic", "actions"), ("version", "badge"),
        ("who", "online"), ("widget", "area"), ("you", "may"),
    )
)  # fmt: skip
# Labels of what is no content, in English as in the code of most sites.
_LABELS = frozenset(
    (
        "advertisement", "back to top", "copy", "copy code", "copy link", "edit", "edit this page",
        "jump to navigation", "jump to search", "permalink", "print this page", "select all",
        "share", "share this", "skip to content", "skip to main content", "skip to navigation",
        "view page source",
    )
)  # fmt: skip
_LABEL_TAGS = "a, p, span, small, label"
_SPLIT = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_KEPT = frozenset(
    (
        "html",
        "body",
        "main",
        "article",
        "pre",
        "code",
        "tbody",
        "tr",
        *(f"h{n}" for n in range(1, 7)),
    )
)
_OPENED_BY = frozenset(("dt", "summary", *(f"h{n}" for n in range(1, 7))))
_OPENED = frozenset(
    ("accordion", "answer", "collapse", "collapsible", "faq", "panel", "spoiler", "tab", "toggle")
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def remove_frame(document: Document) -> None:
    """Remove what is frame from the tree of a page."""
    for element in document.select(f"{NEVER_SHOWN}, {_MARKS}"):
        element.decompose()
    heading = document.find("h1")
    around = set() if heading is None else {hash(each) for each in heading.ancestors}
    body = document.find("body") or document
    most = len(body.text) // 2
    for selector, is_frame in ((_MARKED_SO, _is_frame), ("[class], [id]", _is_called_so)):
        for element in document.select(selector):
            is_kept = element.tag in _KEPT or hash(element) in around
            if not is_kept and is_frame(element, most) and element.parent is not None:
                element.decompose()
    for element in document.select(_LABEL_TAGS):
        if len(element.children) == 1 and element.text.strip().lower() in _LABELS:
            element.decompose()


def _is_frame(element: Element, most: int) -> bool:
    tag = element.tag
    if tag in ("nav", "menu"):
        return True
    if tag == "button":
        return not _is_question(element)
    if element.attr("role") in _ROLES:
        return tag != "section" or len(element.text) <= most
    if tag == "aside":
        return not is_box(element) and "quote" not in (element.attr("class") or "")
    if tag == "footer":
        return _parent_tag(element) != "blockquote"
    if tag == "header":
        return _parent_tag(element) == "body" and element.find("h1") is None
    if tag in ("form", "fieldset"):
        return len(element.text) <= most
    return _is_hidden(element) and not _is_opened(element) and len(element.text) <= most


def _is_called_so(element: Element, most: int) -> bool:
    names = f"{element.attr('class') or ''} {element.attr('id') or ''}"
    return (
        any(map(_is_name_of_frame, names.split()))
        and element.tag not in _JUDGED
        and not is_box(element)
        and len(element.text) <= most
    )


def _is_hidden(element: Element) -> bool:
    if element.attr("hidden") is not None or element.attr("aria-hidden") == "true":
        return True
    return _HIDDEN.search(element.attr("style") or "") is not None


def _is_opened(element: Element) -> bool:
    """Return whether readers open this: a tab, the answer to a question."""
    if element.attr("role") in ("region", "tabpanel"):
        return True
    return not _OPENED.isdisjoint(_SPLIT.split((element.attr("class") or "").lower()))


def _is_question(button: Element) -> bool:
    """Return whether a button is the whole heading of what it opens."""
    parent = button.parent
    return (
        parent is not None
        and _parent_tag(button) in _OPENED_BY
        and parent.text.strip() == button.text.strip()
    )


def _parent_tag(element: Element) -> str:
    return getattr(element.parent, "tag", "")


_ROLES = frozenset(re.findall(r"role=(\w+)", _BY_ROLE))


@lru_cache(4096)
def _is_name_of_frame(name: str) -> bool:
    words = _SPLIT.split(_CAMEL.sub("-", name[:_LONG_NAME]).lower())
    if not _WORDS.isdisjoint(words) or any(word.startswith(_BEGINNINGS) for word in words):
        return True
    return any(pair in _PAIRS for pair in pairwise(words))
