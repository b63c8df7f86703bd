"""The content of a page as HTML, plain text or Markdown: the main part of it, without its frame.

    frame       removed first: menus, banners, comments, what is related (`frame`)
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
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mannerly.crawler.web.charset import decoded, encoding
from mannerly.crawler.web.content_form import Content
from mannerly.crawler.web.media_types import media_type
from mannerly.crawler.web.urls import LinkBase

from .html import is_html

if TYPE_CHECKING:
    from turbohtml import Document, Element

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
    from turbohtml import Element

    from .frame import remove_frame
    from .markdown import markdown  # when it is first needed: see `scan`
    from .tree import parse_text

    document = parse_text(text)
    base = document_base(document, url)
    remove_frame(document)
    part = main_part(document)
    if isinstance(part, Element) and (heading := _heading_outside(document, part)) is not None:
        part.insert(0, heading)
    return part.to_text() if form is Content.TEXT else markdown(part, partial(_absolute, base))


def page_text(body: bytes, content_type: str | None) -> str:
    """Return a body as text, by its charset; undecodable bytes are replaced."""
    charset, mark = encoding(body, content_type)
    return decoded(body[mark:], charset)


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
