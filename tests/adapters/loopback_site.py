"""A real server on loopback that notes when each request came; it knows some kinds of paths.

/moved/N     redirected to /page/N
/busy/N      429 with `Retry-After: 1` the first time, then a page
/full/N      503 without Retry-After
/cut/N       429 with `Retry-After: 1` the first time, and half of its body; then a page
/stuck/N     the same with `Retry-After: 30`, but the connection stays open
/half/N      a page the first time of which half comes; then all of it
/long/N      a page of 200 kB
/robots.txt  with `has_rules` it leads to /rules, which forbid /private
/broken/N    the connection is closed instead of an answer
any other    a page
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.harness.sites import serving
from tests.harness.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.sites import Request


class Site:
    """The server; `log` has the instant and the path of every request, in order of arrival."""

    def __init__(self) -> None:
        self.origin = ""
        self.has_rules = False
        self.log: list[tuple[float, str]] = []
        self.agents: dict[str, str] = {}  # of the last request for a path
        self.unstuck = threading.Event()

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"{self.origin}{path}"

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [path for _, path in self.log]

    @property
    def gaps_s(self) -> list[float]:
        """The times between the starts of requests."""
        return [later - sooner for (sooner, _), (later, _) in pairwise(sorted(self.log))]

    def respond(self, request: Request) -> None:
        is_first = request.path not in self.paths
        self.log.append((request.arrived_at, request.path))
        self.agents[request.path] = request.headers["User-Agent"]
        request.read()
        kind, _, number = request.path[1:].partition("/")
        if kind == "broken":
            request.hang_up()
        elif kind == "moved":
            request.answer(302, headers={"Location": f"/page/{number}"})
        elif kind == "busy" and is_first:
            request.answer(429, headers={"Retry-After": "1"})
        elif kind == "cut" and is_first:
            self._answer_half(request, 429, {"Retry-After": "1"})
        elif kind == "stuck" and is_first:
            self._answer_half(request, 429, {"Retry-After": "30"})
            self.unstuck.wait(PATIENCE_S)
        elif kind == "half" and is_first:
            self._answer_half(request, 200, {"Content-Type": "text/html"})
        elif kind == "robots.txt" and self.has_rules:
            request.answer(301, headers={"Location": "/rules"})
        elif kind == "rules":
            request.answer(
                200, "User-agent: *\nDisallow: /private\n", {"Content-Type": "text/plain"}
            )
        elif kind == "full":
            request.answer(503, "no room")
        elif kind == "long":
            request.answer(200, 200_000 * "x")
        else:
            request.answer(200, "<title>A page</title>")

    def _answer_half(self, request: Request, status: int, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": "14"}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(b"half of")
        request.hang_up()


@contextmanager
def running_site() -> Iterator[Site]:
    """Run the server in a thread."""
    site = Site()
    with serving(site.respond) as site.origin:
        try:
            yield site
        finally:
            site.unstuck.set()
