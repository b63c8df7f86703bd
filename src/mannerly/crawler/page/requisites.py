"""Requisites: what a page needs to be shown, as requests of a kind of their own (`kinds`).

    HTML       styles, scripts, images (srcset, <picture>), icons, media, fonts and what else is
               preloaded, manifests, images of SVG; <style> and style attributes
    CSS        @import, url(…), image-set(…)
    manifest   icons

They may be on any host. A page leads to requisites; of these only stylesheets, manifests and
redirects lead further, to requisites again. `Entry.depth` of a requisite counts from its page, not
from the seed: 1 what a page asks for itself, 2 what its stylesheets ask for. `MOST` and `DEEPEST`
bound what one answer can bring.

Tags are read one after the other, without a tree: what is in <noscript> is for browsers without
scripts, and is text here. What scripts ask for is not known.

A URL keeps its tracking parameters: an archive must have what a browser asks for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.kinds import KINDS, Kind
from mannerly.crawler.model import Candidate
from mannerly.crawler.payload import REQUISITE
from mannerly.crawler.web.charset import decoded, encoding, media_type
from mannerly.crawler.web.urls import LinkBase, UrlRules, canonical, host_key_of

from .links import REDIRECTS, dead_end
from .parsed import ParseFailed, clean_line
from .record import Harvest, page_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turbohtml import Token

    from mannerly.crawler.model import Entry, Fetched
    from mannerly.crawler.payload import Payload

    from .links import LinkRules

MOST = 1000  # requisites that one answer leads to; some pages show a thousand thumbnails
DEEPEST = 6  # five stylesheets that import one another, and an image
CAPPED = "requisites_capped"  # the reason why more were not taken
PRIORITY = 0  # before the pages of their host: a page is complete soon

REQUISITE_RULES = UrlRules(drop_params=frozenset(), drop_prefixes=())  # of their spelling
_NOT_FETCHED = ("data:", "about:", "blob:", "javascript:", "#")
_CSS = "text/css"
_MANIFEST = "application/manifest+json"

# By tag: attributes that name a file, and those that name several.
_FILES = {
    "script": ("src",),
    "img": ("src",),
    "input": ("src",),
    "source": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "feimage": ("href", "xlink:href"),
    "body": ("background",),
    "table": ("background",),
    "td": ("background",),
    "th": ("background",),
}
_SETS = {"img": "srcset", "source": "srcset", "link": "imagesrcset"}
_RELATIONS = frozenset(
    {
        *("stylesheet", "icon", "mask-icon", "apple-touch-icon", "apple-touch-icon-precomposed"),
        *("manifest", "preload", "modulepreload", "apple-touch-startup-image"),
    }
)
_CANDIDATE = re.compile(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)")
_DESCRIPTORS = re.compile(r"(?:[^(,]++|\([^)]*+\)?+)*+")


def requisite(url: str, parent: Entry, payload: Payload = REQUISITE) -> Candidate:
    """Return a canonical URL as a requisite of a page, or of a stylesheet of one."""
    depth = parent.depth + 1 if KINDS[parent.kind].is_requisite else 1
    return Candidate(url, host_key_of(url), depth, PRIORITY, parent.url, 0, Kind.REQUISITE, payload)


class Needed(NamedTuple):
    """The URLs that one answer needs: canonical, each once, in its order."""

    urls: list[str]
    is_capped: bool = False


def harvest_requisite(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a requisite, and the requisites that it leads to."""
    record, status = page_record(entry, answer, wall), answer.status
    if status in REDIRECTS:
        location = answer.headers.get("location")
        target = canonical(location, entry.url, REQUISITE_RULES) if location else None
        record = record._replace(redirect_to=target)
        error = dead_end(entry, target, rules)
        if target is None or error is not None:
            return Harvest(record._replace(error=error), [], {})
        hop = requisite(target, entry)._replace(depth=entry.depth, hops=entry.hops + 1)
        return Harvest(record, [], {}, requests=[hop])
    if status is None or not 200 <= status < 300 or entry.depth >= DEEPEST:
        return Harvest(record, [], {})
    needed = needed_by_file(answer.body, answer.headers.get("content-type"), entry.url)
    passed_over = {CAPPED: 1} if needed.is_capped else {}
    return Harvest(record, [], passed_over, requests=[requisite(url, entry) for url in needed.urls])


def read_file(body: bytes, content_type: str | None, url: str) -> Needed:
    """Return what `needed_by_file` does, whatever the file is, without an error."""
    try:
        return needed_by_file(body, content_type, url)
    except MemoryError:  # says nothing about the file
        raise
    except Exception:  # noqa: BLE001 - an error of a parser costs this file only
        return Needed([])


def needed_by_file(body: bytes, content_type: str | None, url: str) -> Needed:
    """Return what a stylesheet or a manifest needs; other files need nothing."""
    media = media_type(content_type)
    path = url.partition("?")[0]
    if media == _CSS or (not media and path.endswith(".css")):
        from .stylesheets import style_references  # when it is first needed: see `scan`

        charset, mark = encoding(body, content_type)
        text = decoded(body[mark:], charset)
        return _resolved(
            (each.href for each in style_references(text)), LinkBase(url, rules=REQUISITE_RULES)
        )
    if media == _MANIFEST or path.endswith((".webmanifest", "/manifest.json")):
        return _resolved(_icons(body), LinkBase(url, rules=REQUISITE_RULES))
    return Needed([])


def read_page(body: bytes, content_type: str | None, url: str) -> Needed | ParseFailed:
    """Return what an HTML page needs, whose answer came from this URL; no page is an error."""
    try:
        return _needed_by_page(body, content_type, url)
    except MemoryError:  # says nothing about the page
        raise
    except Exception as error:  # noqa: BLE001 - an error of a parser costs this page only
        return ParseFailed(clean_line(f"{type(error).__name__}: {error}"))


def _needed_by_page(body: bytes, content_type: str | None, url: str) -> Needed:
    from turbohtml import tokenize  # when it is first needed: see `scan`

    from .stylesheets import style_references

    charset, mark = encoding(body, content_type)
    base: str | None = None
    hrefs: list[str] = []
    is_style = False
    for token in tokenize(decoded(body[mark:], charset)):
        tag = token.tag
        if tag is None:
            if is_style and token.data:
                hrefs += [each.href for each in style_references(token.data)]
            continue
        is_style = tag == "style"
        if not token.attrs:
            continue
        if tag == "base":
            base = token.attr("href") if base is None else base
        elif tag in _FILES or tag == "link":
            hrefs += _of_tag(token, tag)
        if style := token.attr("style"):
            hrefs += [each.href for each in style_references(style)]
    own = LinkBase(url, rules=REQUISITE_RULES)
    return _resolved(
        hrefs, own if base is None else LinkBase(own.text, base, rules=REQUISITE_RULES)
    )


def _of_tag(token: Token, tag: str) -> Iterator[str]:
    if tag == "link":
        if not _RELATIONS.isdisjoint((token.attr("rel") or "").lower().split()):
            yield token.attr("href") or ""
            yield from _of_set(token.attr("imagesrcset") or "")
        return
    if tag == "input" and (token.attr("type") or "").lower() != "image":
        return
    for name in _FILES[tag]:
        yield token.attr(name) or ""
    if tag in _SETS:
        yield from _of_set(token.attr(_SETS[tag]) or "")


def _of_set(text: str) -> Iterator[str]:
    """Yield the URLs of a srcset; commas may be part of a URL, or of what is in parentheses."""
    at = 0
    while found := _CANDIDATE.match(text, at):
        href = found[1]
        at = found.end()
        if href.endswith(","):
            href = href.rstrip(",")
        elif rest := _DESCRIPTORS.match(text, at):
            at = rest.end()
        yield href


def _icons(body: bytes) -> Iterator[str]:
    """Yield the images that a manifest names."""
    try:
        manifest = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return
    for name in ("icons", "screenshots"):
        named = manifest.get(name) if isinstance(manifest, dict) else None
        for each in named if isinstance(named, list) else ():
            source = each.get("src") if isinstance(each, dict) else None
            if isinstance(source, str):
                yield source


def _resolved(hrefs: Iterable[str], base: LinkBase) -> Needed:
    urls: dict[str, None] = {}
    for href in dict.fromkeys(hrefs):
        href = href.strip()
        if not href or href[:11].lower().startswith(_NOT_FETCHED):
            continue
        url = base.resolve(href)
        if isinstance(url, str):
            if len(urls) == MOST and url not in urls:
                return Needed(list(urls), is_capped=True)
            urls[url] = None
    return Needed(list(urls))
