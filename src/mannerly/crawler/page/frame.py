"""Removes the frame of a page from its tree: what stands around the content on every page.

    by element      nav, footers, forms, buttons, asides that are no boxes, hidden elements
    by role         navigation, banner, search, dialog …
    by name         classes and ids with words like cookie, breadcrumb, share, related, comments

Names are only a hint: `<body class="has-sidebar">` is no sidebar. So an element with the first
heading, or with more than half of the words, stays whatever its name; so does `<main>`, `<article>`
and everything inside of code.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from .boxes import is_box

if TYPE_CHECKING:
    from turbohtml import Document, Element

NEVER_SHOWN = "script, style, noscript, template, svg, iframe, canvas, object, embed, dialog"
_MARKS = (
    "a.headerlink, a.anchorjs-link, a.anchor-link, a.hash-link, a.header-anchor, a.heading-anchor, "
    "a.heading-link, .mw-editsection, a.footnote-backref, a.footnote-back, [hidden], "
    ".sr-only, .visually-hidden, .screen-reader-text, .visuallyhidden, .show-for-sr"
)
_BY_ELEMENT = "nav, footer, form, button, aside, header, menu, fieldset"
_BY_ROLE = ", ".join(
    f"[role={role}]"
    for role in (
        *("navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu"),
        *("menubar", "complementary", "toolbar", "button", "tooltip", "tablist"),
    )
)
_WORDS = frozenset(
    (
        "ad", "ads", "adsense", "advert", "advertisement", "breadcrumb", "breadcrumbs",
        "catlinks", "comments", "consent", "cookie", "cookies", "copybtn", "cta", "disqus",
        "editsection", "footer", "gdpr", "hideme", "jumpbox", "linkbar", "masthead", "menu",
        "modal", "nav", "navbar", "navbox", "navfooter", "navheader", "navigation", "navlinks",
        "newsletter", "noprint", "outbrain", "pager", "pagination", "popup", "postprofile",
        "printfooter", "promo", "promotion", "recommendations", "recommended", "related",
        "relatedposts", "respond", "share", "sharebar", "sharedaddy", "sharing", "sidebar",
        "sidenav", "signup", "skip", "skiplink", "social", "sponsor", "sponsored", "subscribe",
        "subscription", "taboola", "teaser", "teasers", "toc", "toolbar", "topbar", "trending",
        "upsell", "upsells",
    )
)  # fmt: skip
_PAIRS = frozenset(
    (
        ("action", "bar"), ("also", "like"), ("author", "bio"), ("author", "box"),
        ("back", "index"), ("back", "top"), ("cart", "form"), ("code", "copy"),
        ("comment", "form"), ("comment", "list"), ("copy", "button"), ("doc", "feedback"),
        ("edit", "link"), ("edit", "page"), ("edit", "this"), ("entry", "tags"),
        ("feedback", "form"), ("header", "navigation"), ("jump", "link"), ("jump", "nav"),
        ("jump", "to"), ("label", "list"), ("labels", "section"), ("last", "updated"),
        ("more", "topics"), ("most", "read"), ("numbers", "wrapper"), ("of", "contents"),
        ("on", "page"), ("online", "list"), ("page", "edit"), ("page", "feedback"),
        ("page", "footer"), ("page", "nav"), ("post", "buttons"), ("post", "controls"),
        ("post", "menu"), ("post", "tags"), ("prev", "next"), ("read", "next"),
        ("recently", "viewed"), ("site", "footer"), ("site", "header"), ("site", "nav"),
        ("skip", "link"), ("stat", "block"), ("sub", "nav"), ("suggested", "topics"),
        ("tag", "list"), ("tags", "links"), ("to", "top"), ("top", "nav"), ("version", "badge"),
        ("who", "online"), ("widget", "area"), ("you", "may"),
    )
)  # fmt: skip
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
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def remove_frame(document: Document) -> None:
    """Remove what is frame from the tree of a page."""
    for element in document.select(f"{NEVER_SHOWN}, {_MARKS}"):
        element.decompose()
    heading = document.find("h1")
    around = set() if heading is None else {id_of(each) for each in heading.ancestors}
    body = document.find("body") or document
    most = len(body.text) // 2
    for element in document.select(
        f"{_BY_ELEMENT}, {_BY_ROLE}, [class], [id], [style], [aria-hidden]"
    ):
        if element.parent is None or element.tag in _KEPT or id_of(element) in around:
            continue
        if _is_frame(element, most):
            element.decompose()


def id_of(element: object) -> int:
    """Return what tells two nodes of a tree apart."""
    return hash(element)


def _is_frame(element: Element, most: int) -> bool:
    tag = element.tag
    if tag in ("nav", "button", "menu"):
        return True
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
    if _HIDDEN.search(element.attr("style") or "") is not None:
        return True
    return _is_named(element) and not is_box(element) and len(element.text) <= most


def _parent_tag(element: Element) -> str:
    return getattr(element.parent, "tag", "")


_ROLES = frozenset(re.findall(r"role=(\w+)", _BY_ROLE))


def _is_named(element: Element) -> bool:
    names = f"{element.attr('class') or ''} {element.attr('id') or ''}"
    for name in names.split():
        words = _SPLIT.split(_CAMEL.sub("-", name).lower())
        if not _WORDS.isdisjoint(words):
            return True
        if any(pair in _PAIRS for pair in pairwise(words)):
            return True
    return False
