"""The content of a page as HTML, plain text or Markdown: the main part of it, without its frame.

    frame       removed first: menus, banners, comments, what is related (below)
    landmark    the author's own mark: <main>, role=main, or the only <article>
    name        without one, or if it is empty: what is called content, if it has many of the words
    article     without that: what reads like an article, by density of text, if it has most words
    body        without that, everything that is left

The landmark goes before density, because density alone loses half of many documentation pages:
tables, listings and short sections look like menus to it. For the same reason an article has to
have most of the words. A first heading outside of the main part belongs to it if it is in the title
of the page. Links are absolute, so that the text can be used elsewhere. Content that is text but
not HTML is returned as it is; anything else has none.

Markdown of a page takes some milliseconds: too long for the loop of a crawl, so exports do it
later, in processes of their own.

The frame of a page stands around the content on every page. It is removed from the tree:

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
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

from turbohtml import Element

from mannerly.crawler.web.charset import media_type
from mannerly.crawler.web.choices import Content
from mannerly.crawler.web.urls import LinkBase

from .blocks import is_box
from .html import is_html, page_text
from .markdown import markdown
from .tree import parse_text

if TYPE_CHECKING:
    from turbohtml import Document


_FEW_WORDS = 5  # a landmark with fewer is filled by a script
_MOST = 0.9  # of the words of a page without its frame: an article with fewer has lost some

_LANDMARKS = ("main", "[role=main]")
_CONTENT = (
    "[itemprop=articleBody]", "#main-content", "#content", ".markdown-body", ".entry-content",
    ".post-content", ".article-body", ".article-content", ".main-content", "#dokuwiki__content",
)  # fmt: skip
_MANY = 0.6  # of these words: enough for an element whose name says that it is the content
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript")


def content_of(body: bytes, content_type: str | None, url: str, form: Content) -> str | None:
    """Return the content of a page in a form; None if it has no text.

    `html` is the whole page, decoded. The others are its main part.
    """
    if not is_html(content_type, body):
        return page_text(body, content_type) if _is_text(content_type) else None
    text = page_text(body, content_type)
    if form is Content.HTML:
        return text
    document = parse_text(text)
    base = document_base(document, url)
    remove_frame(document)
    part = main_part(document)
    if isinstance(part, Element) and (heading := _heading_outside(document, part)) is not None:
        part.insert(0, heading)
    return part.to_text() if form is Content.TEXT else markdown(part, partial(_absolute, base))


def main_part(document: Document) -> Element | Document:
    """Return the element with the content of a page: see the top of this module."""
    for selector in _LANDMARKS:
        found = document.select_one(selector)
        if found is not None and _has_words(found):
            return found
    articles = document.select("article")
    if len(articles) == 1 and _has_words(articles[0]):
        return articles[0]
    body = document.find("body") or document
    words = len(body.text)
    for selector in _CONTENT:
        found = document.select_one(selector)
        if found is not None and len(found.text) >= _MANY * words:
            return found
    article = document.main_content()
    if article is not None and len(article.text) >= _MOST * words:
        return article
    return body


def _heading_outside(document: Document, part: Element) -> Element | None:
    """Return the first heading of a page, if it is not in the main part and names the page."""
    heading, title = document.find("h1"), document.find("title")
    if heading is None or title is None or part.find("h1") is not None:
        return None
    text = " ".join(heading.text.lower().split()).rstrip("¶# ")
    return heading if text and text in " ".join(title.text.lower().split()) else None


def document_base(document: Document, url: str) -> str:
    """Return the base of relative links."""
    base = document.find("base")
    href = None if base is None else base.attr("href")
    return LinkBase(url, href).text if href else url


def _absolute(base: str, href: str) -> str | None:
    """Return a link of a page as it can be used elsewhere; None if it leads nowhere."""
    href = href.strip()
    if href.lower().startswith(("mailto:", "tel:")):
        return href
    path, mark, fragment = href.partition("#")
    url = LinkBase(base).resolve(path)
    return url + mark + fragment if isinstance(url, str) else None


def _has_words(element: Element) -> bool:
    return len(element.text[:2000].split(maxsplit=_FEW_WORDS)) > _FEW_WORDS


def _is_text(content_type: str | None) -> bool:
    media = media_type(content_type)
    return media.startswith("text/") or media.endswith(("+json", "+xml")) or media in _TEXT_TYPES


# ---------------------------------------------------------------------- the frame


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
