"""robots.txt in ten forms, and the sitemaps that it names.

Files are generated on request. Only the 10 MB of comments are generated once, because that takes
long enough to delay all other hosts of the same process. All functions are pure.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from math import ceil, inf
from typing import TYPE_CHECKING

from .pages import document, path_of
from .sites import RobotsFile, SitemapKind
from .wire import HTML, TEXT, XML, SiteReply, redirect

if TYPE_CHECKING:
    from .pages import WebMap
    from .sites import Site

ROBOTS_PATH = "/robots.txt"
MOVED_ROBOTS_PATH = "/moved/robots.txt"
SITEMAP_PATH = "/sitemap.xml"
SITEMAP_PART_URLS = 1_000
SITEMAP_FILE_URLS = 50_000  # sitemaps.org: no file may hold more
HUGE_BYTES = 10_000_000

_PART = re.compile(r"/sitemap-(\d{1,7})\.xml(\.gz)?")
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_PROLOGUE = '<?xml version="1.0" encoding="UTF-8"?>\n'


def robots_reply(site: Site, web: WebMap) -> SiteReply:
    """Return the answer to a request for /robots.txt."""
    match site.robots:
        case RobotsFile.RULES:
            return SiteReply(200, rules(site, web), TEXT)
        case RobotsFile.MISSING:
            return SiteReply(404, document("not found", []), HTML)
        case RobotsFile.FORBIDDEN:
            return SiteReply(403, b"forbidden", TEXT)
        case RobotsFile.FAILING:
            return SiteReply(503, b"try later", TEXT)
        case RobotsFile.HUGE:
            return SiteReply(200, rules(site, web) + _comments(), TEXT)
        case RobotsFile.HTML:
            return SiteReply(200, document("not found", ['<a href="/">home</a>']), HTML)
        case RobotsFile.CLOSED:
            return SiteReply(0)
        case RobotsFile.HANGING:
            return SiteReply(0, delay_s=inf)
        case RobotsFile.REDIRECTED:
            return redirect(MOVED_ROBOTS_PATH)
        case RobotsFile.REDIRECTED_AWAY:
            return redirect(web.other(0) + ROBOTS_PATH)


def rules(site: Site, web: WebMap) -> bytes:
    """Return the site's rules as a robots.txt."""
    lines = [f"# {site.name}: {site.about}", "User-agent: *"]
    lines += [f"Disallow: {prefix}" for prefix in site.disallow] or ["Disallow:"]
    if site.crawl_delay_s is not None:
        lines.append(f"Crawl-delay: {site.crawl_delay_s:g}")
    if site.sitemap is not SitemapKind.ABSENT:
        lines.append(f"Sitemap: {web.origin}{SITEMAP_PATH}")
    return "\n".join([*lines, ""]).encode()


def sitemap_reply(site: Site, web: WebMap, path: str) -> SiteReply | None:
    """Return the sitemap or a part of it; None if this site has none at that path."""
    if site.sitemap is SitemapKind.ABSENT:
        return None
    if path == SITEMAP_PATH:
        whole = site.sitemap is SitemapKind.PLAIN
        text = _urls(site, web, 0, SITEMAP_FILE_URLS) if whole else _index(site, web)
        return SiteReply(200, text.encode(), XML)
    match = _PART.fullmatch(path)
    zipped = site.sitemap is SitemapKind.GZIP
    if match is None or site.sitemap is SitemapKind.PLAIN or bool(match[2]) is not zipped:
        return None
    first = int(match[1]) * SITEMAP_PART_URLS
    if first >= site.pages:
        return None
    text = _urls(site, web, first, SITEMAP_PART_URLS)
    if zipped:
        # A gzipped file and not a gzipped transfer, so there is no Content-Encoding.
        return SiteReply(200, gzip.compress(text.encode(), 1, mtime=0), "application/gzip")
    return SiteReply(200, text.encode(), XML)


def _urls(site: Site, web: WebMap, first: int, count: int) -> str:
    rows = "".join(
        f"<url><loc>{web.origin}{path_of(number)}</loc></url>\n"
        for number in range(first, min(first + count, site.pages))
    )
    return f"{_PROLOGUE}<urlset {_NAMESPACE}>\n{rows}</urlset>\n"


def _index(site: Site, web: WebMap) -> str:
    suffix = ".xml.gz" if site.sitemap is SitemapKind.GZIP else ".xml"
    rows = "".join(
        f"<sitemap><loc>{web.origin}/sitemap-{part}{suffix}</loc></sitemap>\n"
        for part in range(ceil(site.pages / SITEMAP_PART_URLS))
    )
    return f"{_PROLOGUE}<sitemapindex {_NAMESPACE}>\n{rows}</sitemapindex>\n"


@cache
def _comments() -> bytes:
    line = b"# " + b"all work and no play " * 4 + b"\n"
    return line * (HUGE_BYTES // len(line))
