"""A site with planted faults on loopback, and a log of every request that it got.

`FAULTY` has one of everything that a report or a check should find. Answers are made per path;
`{home}` stands for the site's own origin and `{other}` for that of a second server.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tests.harness.sites import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.sites import Request

PIXEL = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


class Planted(NamedTuple):
    """The answer of one path."""

    body: str = ""
    status: int = 200
    headers: Mapping[str, str] = {}
    delay_s: float = 0.0
    head: int | None = None  # the status of HEAD, if it is another one


class Asked(NamedTuple):
    """One request, as the server saw it."""

    method: str
    path: str
    at: float


def html(body: str, title: str = "A page", head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><title>{title}</title>{head}</head>'
        f"<body>{body}</body></html>"
    )


class Server:
    """A server of planted answers; paths that are not planted are 404."""

    def __init__(self, pages: Mapping[str, Planted], address: str) -> None:
        self.pages = dict(pages)
        self.log: list[Asked] = []
        self.names = {"other": ""}
        self._open = ExitStack()
        self.home = self._open.enter_context(serving(self.answer, (address, 0)))
        self.host = self.home.removeprefix("http://")

    def answer(self, request: Request) -> None:
        self.log.append(Asked(request.command, request.path, request.arrived_at))
        planted = self.pages.get(request.path, Planted(html("Not here", "Not found"), 404))
        if planted.delay_s:
            time.sleep(planted.delay_s)
        body = planted.body
        for name, value in {"home": self.home, **self.names}.items():
            body = body.replace("{" + name + "}", value)
        is_head = request.command == "HEAD"
        status = planted.head if is_head and planted.head else planted.status
        headers = {"Content-Type": "text/html; charset=utf-8", **planted.headers}
        named = {name: value.replace("{home}", self.home) for name, value in headers.items()}
        request.answer(status, body, named)

    def asked(self, *methods: str) -> list[str]:
        """The paths that were asked for, without robots.txt and the usual sitemap."""
        usual = ("/robots.txt", "/sitemap.xml")
        return [
            each.path
            for each in self.log
            if each.path not in usual and (not methods or each.method in methods)
        ]

    def gaps_s(self) -> list[float]:
        """The times between two requests."""
        moments = sorted(each.at for each in self.log)
        return [later - earlier for earlier, later in pairwise(moments)]

    def close(self) -> None:
        self._open.close()


@contextmanager
def served(pages: Mapping[str, Planted], address: str = "127.0.0.1") -> Iterator[Server]:
    server = Server(pages, address)
    try:
        yield server
    finally:
        server.close()


ROBOTS = Planted("User-agent: *\nDisallow: /private/\n", headers={"Content-Type": "text/plain"})

SITEMAP = Planted(
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    + "".join(
        f"<url><loc>{{home}}{path}</loc></url>"
        for path in ("/", "/docs/a", "/docs/b", "/orphan", "/docs/hidden", "/old")
    )
    + "</urlset>",
    headers={"Content-Type": "application/xml"},
)


def redirect(target: str, status: int = 301) -> Planted:
    return Planted(status=status, headers={"Location": target})


FAULTY: dict[str, Planted] = {
    "/robots.txt": ROBOTS,
    "/sitemap.xml": SITEMAP,
    "/": Planted(
        html(
            '<a href="/docs/a">A</a> <a href="/docs/b">B</a> <a href="/docs/c">C</a>'
            '<a href="/docs/hidden">hidden</a> <a href="/docs/copy">copy</a>'
            '<a href="/gone">first text</a> <a href="/v1">v1</a> <a href="/loop-1">loop</a>'
            '<a href="/old">old</a> <a href="/slow">slow</a> <a href="/large">large</a>'
            '<a href="/failing">failing</a> <a href="/private/x">private</a>',
            "Home",
        )
    ),
    "/docs/a": Planted(
        html('<a href="/gone">second text</a><a href="/docs/b#here">here</a>', "Twins")
    ),
    "/docs/b": Planted(
        html('<p id="here">x</p><a href="/gone">third text</a><a href="/was">moved</a>', "Twins")
    ),
    "/docs/c": Planted(html('<a href="/">up</a> the same words', "C")),
    "/docs/copy": Planted(
        html(
            '<a href="/">up</a> the same words', "C", '<link rel="canonical" href="{home}/docs/c">'
        )
    ),
    "/docs/hidden": Planted(html("hidden", "Hidden", '<meta name="robots" content="noindex">')),
    "/orphan": Planted(html("nobody links here", "Orphan")),
    "/v1": redirect("/v2"),
    "/v2": redirect("/v3", 302),
    "/v3": Planted(html("version 3", "V3")),
    "/loop-1": redirect("/loop-2", 302),
    "/loop-2": redirect("/loop-1", 302),
    "/old": redirect("/docs/a"),
    "/was": redirect("/gone"),
    "/slow": Planted(html("slow", "Slow"), delay_s=1.2),
    "/large": Planted(html("x" * 2_100_000, "Large")),
    "/failing": Planted(html("oh", "Failing"), 500),
}
