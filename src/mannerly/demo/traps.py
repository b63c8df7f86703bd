"""Traps for crawlers: paths that lead on without end, answers that do not end, odd redirects.

    /calendar/Y/M  a month links to its neighbours       /maze/x/y/  every path links to longer ones
    /slow/page     answers after three seconds           /slow/drip  a byte a second
    /endless       a body without an end                 /bomb       64 kB that unpack to 64 MB
    /r/…           redirects: to a page, in a chain, in a loop, to another host, to no valid URL

A trap exists only on sites with its feature; elsewhere its path is 404 like any unknown path.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING

from .pages import document, path_of
from .sites import PRIVATE_AREA, Feature
from .wire import HTML, TEXT, SiteReply, Stream, redirect

if TYPE_CHECKING:
    from collections.abc import Callable

    from .pages import WebMap
    from .sites import Site

    _Make = Callable[[Site, WebMap, str], SiteReply | None]

SLOW_S = 3.0
DRIP_S = 1.0
DRIP_BYTES = 600  # ten minutes, longer than any sensible timeout
CHUNK = b"<p>and so on, and so on, and so on</p>\n" * 400
BOMB_BYTES = 64_000_000

_CALENDAR = re.compile(r"/calendar/(\d{1,6})/(1[0-2]|[1-9])")
_NUMBERED = re.compile(r"/([a-z-]+)/([0-9-]{1,20})")
_REDIRECT = re.compile(r"/r/([a-z]+)(?:/([a-z0-9]{1,9}))?")


def trap_reply(site: Site, web: WebMap, path: str) -> SiteReply | None:
    """Return the answer of the site's feature at `path`; None if no feature has this path."""
    first = path[1:].partition("/")[0]
    feature, make = _PLACES.get(first, (None, None))
    if make is None or feature not in site.features:
        return None
    return make(site, web, path)


def _calendar(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
    match = _CALENDAR.fullmatch(path)
    if match is None:
        return None
    year, month = int(match[1]), int(match[2])
    after = (year + month // 12, month % 12 + 1)
    before = (year - (month == 1), (month - 2) % 12 + 1)
    links = [f'<a href="/calendar/{y}/{m}">{y}-{m:02}</a>' for y, m in (before, after)]
    return SiteReply(200, document(f"{year}-{month:02}", links))


def _maze(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
    if not path.endswith("/"):
        return None
    links = ['<a href="x/">left</a>', '<a href="y/">right</a>', '<a href="?sort=up">sorted</a>']
    return SiteReply(200, document(path, links))


def _slow(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
    if path == "/slow/page":
        return SiteReply(200, document("slow", ['<a href="/">home</a>']), delay_s=SLOW_S)
    if path == "/slow/drip":
        return SiteReply(200, stream=Stream(lambda: repeat(b".", DRIP_BYTES), DRIP_S))
    return None


def _endless(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
    return SiteReply(200, stream=Stream(lambda: repeat(CHUNK))) if path == "/endless" else None


def _bomb(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
    if path != "/bomb":
        return None
    return SiteReply(200, bomb(), HTML, (("Content-Encoding", "gzip"),))


@cache
def bomb() -> bytes:
    """Return 64 MB of zeros as one gzip member; built once, because it takes a while."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1_000_000)
    return b"".join(packer.compress(zeros) for _ in range(BOMB_BYTES // len(zeros))) + (
        packer.flush()
    )


def _redirect(site: Site, web: WebMap, path: str) -> SiteReply | None:
    match = _REDIRECT.fullmatch(path)
    if match is None:
        return None
    kind, argument = match[1], match[2] or ""
    count = int(argument) if argument.isdigit() else 0
    match kind:
        case "to":
            return redirect(path_of(count % site.pages))
        case "chain":
            return redirect(f"/r/chain/{count - 1}" if count > 1 else path_of(site.pages - 1), 302)
        case "loop":
            return redirect("/r/loop/b" if argument == "a" else "/r/loop/a", 307)
        case "away":
            return redirect(web.other(count) + "/", 308)
        case "file":
            return redirect("file:///etc/hostname")
        case "empty":
            return redirect("")
        case "canary":
            return redirect(f"http://{web.canary}/canary")
        case _:
            return None


def _numbered(status: int, text: str, *, header: str = "", meta: str = "") -> _Make:
    def make(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
        match = _NUMBERED.fullmatch(path)
        if match is None:
            return None
        head = f'<meta name="robots" content="{meta}">' if meta else ""
        links = [f'<a href="/hidden/{match[2]}">on</a>'] if "nofollow" in meta else []
        body = document(f"{text} {match[2]}", links, head=head)
        return SiteReply(status, body, HTML, (("X-Robots-Tag", header),) if header else ())

    return make


def _private(_site: Site, _web: WebMap, path: str) -> SiteReply | None:
    return SiteReply(200, document("private", [f'<a href="{PRIVATE_AREA}{len(path)}">on</a>']))


def _plain_error(status: int) -> _Make:
    return lambda _site, _web, _path: SiteReply(status, b"no such page", TEXT)


_PLACES: dict[str, tuple[Feature, _Make]] = {
    "calendar": (Feature.CALENDAR, _calendar),
    "maze": (Feature.MAZE, _maze),
    "slow": (Feature.SLOW, _slow),
    "endless": (Feature.ENDLESS, _endless),
    "bomb": (Feature.BOMB, _bomb),
    "r": (Feature.REDIRECTS, _redirect),
    "private": (Feature.PRIVATE, _private),
    "nofollow": (Feature.NOFOLLOW, _numbered(200, "nofollow")),
    "noindex": (Feature.NOFOLLOW, _numbered(200, "noindex", header="noindex")),
    "dead-end": (Feature.NOFOLLOW, _numbered(200, "dead end", meta="noindex, nofollow")),
    "hidden": (Feature.NOFOLLOW, _numbered(200, "hidden")),
    "gone": (Feature.BROKEN, _plain_error(410)),
    "error": (Feature.FAILING, _plain_error(500)),
}
