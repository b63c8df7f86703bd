"""Two servers: a site with broken images, styles, anchors and links, and one that it links to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from .site import ROBOTS, Planted, Server, html, redirect, served

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = {"Content-Type": "text/css"}
IMAGE = {"Content-Type": "image/gif"}

HOME: dict[str, Planted] = {
    "/robots.txt": ROBOTS,
    "/": Planted(
        html(
            '<h1 id="top-of-page">Home</h1><a href="/a">a</a>'
            '<a href="/missing">no page</a> <a href="/moved">moved</a>'
            '<img src="/ok.gif"><img src="/missing.gif" srcset="/missing-2x.gif 2x">'
            '<a href="#top-of-page">up</a> <a href="#nowhere">nowhere</a> <a href="#">top</a>'
            '<a href="{other}/fine">fine</a> <a href="{other}/gone">gone</a>'
            '<a href="{other}/no-head">no HEAD</a> <a href="{other}/login">login</a>'
            '<a href="{other}/broken-no-head">neither</a> <a href="{other}/hop">hop</a>'
            '<a href="{other}/private/x">private</a> <a href="/private/y">ours</a>'
            '<a rel="nofollow" href="/unfollowed">unfollowed</a>'
            '<a href="mailto:x@example.org">mail</a> <a href="{down}/x">down</a>',
            "Home",
            '<link rel="stylesheet" href="/style.css"><link rel="stylesheet" href="/missing.css">'
            '<script src="/missing.js"></script>',
        )
    ),
    "/a": Planted(
        html(
            '<p id="here">x</p><a name="old">y</a><a href="/#nowhere">again</a>'
            '<a href="/a#here">1</a><a href="/a#old">2</a><a href="/was-a#absent">3</a>'
            '<a href="/missing">again</a> <a href="{other}/gone">gone too</a>'
            '<a href="/a#%C3%BC">umlaut</a><i id="ü"></i><a href="#/route">app</a>',
            "A",
        )
    ),
    "/was-a": redirect("/a"),
    "/moved": redirect("/missing"),
    "/ok.gif": Planted("GIF89a", headers=IMAGE),
    "/style.css": Planted("p {}", headers=TEXT),
}
OTHER: dict[str, Planted] = {
    "/robots.txt": ROBOTS,
    "/fine": Planted(html("fine")),
    "/no-head": Planted(html("fine"), head=405),
    "/broken-no-head": Planted(html("gone"), 410, head=501),
    "/login": Planted(html("who are you"), 403),
    "/hop": redirect("{home}/gone-after-hop", 302),
}


@contextmanager
def two_servers() -> Iterator[tuple[Server, Server]]:
    with served(OTHER, "127.0.0.2") as other, served(HOME) as home:
        home.names |= {"other": other.home, "down": "http://127.0.0.3:9"}
        yield home, other
