"""The content of a page as HTML, plain text or Markdown: the main part of it, without its frame.

    landmark    the author's own mark: <main>, role=main, or the only <article>
    article     without one, or if it is empty: what reads like an article, by density of text,
                if it has most of the words
    body        without that, everything but navigation, headers and footers that are marked so

The landmark goes first, because density alone loses half of many documentation pages: tables,
listings and short sections look like menus to it. For the same reason an article has to have most
of the words. Scripts, styles and the marks of anchors (¶) are left out, and links are absolute, so
that the text can be used elsewhere. Content that is text but not HTML is returned as it is;
anything else has none.

Markdown of a page takes a millisecond: too long for the loop of a crawl, so exports do it later, in
processes of their own.
"""

from __future__ import annotations

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
_LEFT_OUT = "script, style, noscript, template, a.headerlink, a.anchorjs-link, a.anchor-link"
_FRAME = (
    "nav, header, footer, aside, [role=navigation], [role=banner], [role=contentinfo], "
    ".navheader, .navfooter, .navbar, .sidebar, #navigation, #sidebar, #footer"
)
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
    from .tree import parse_text  # when it is first needed: see `scan`

    document = parse_text(text)
    return rendered(main_part(document), form, document_base(document, url))


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
    article = document.main_content()
    for element in body.select(f"{_FRAME}, {_LEFT_OUT}"):
        element.decompose()
    if article is not None and len(article.text) >= _MOST * len(body.text):
        return article
    return body


def document_base(document: Document, url: str) -> str:
    """Return the base of relative links."""
    base = document.find("base")
    href = None if base is None else base.attr("href")
    return LinkBase(url, href).text if href else url


def rendered(part: Element | Document, form: Content, base: str) -> str:
    """Return a part of a page as text or Markdown. Its tree is changed."""
    for element in part.select(_LEFT_OUT):
        element.decompose()
    if form is Content.TEXT:
        return part.to_text()
    resolve = LinkBase(base).resolve
    for name, attribute in (("a", "href"), ("img", "src")):
        for element in part.find_all(name):
            target = element.attr(attribute)
            if target:
                path, mark, fragment = target.partition("#")
                url = resolve(path)
                if isinstance(url, str):
                    element.attrs[attribute] = url + mark + fragment
    return part.to_markdown()


def _has_words(element: Element) -> bool:
    return len(element.text[:2000].split(maxsplit=_FEW_WORDS)) > _FEW_WORDS


def _is_text(content_type: str | None) -> bool:
    media = media_type(content_type)
    return media.startswith("text/") or media.endswith(("+json", "+xml")) or media in _TEXT_TYPES
