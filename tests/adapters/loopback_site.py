"""A real server on loopback that notes when each request came; it knows some kinds of paths.

/moved/N     redirected to /page/N
/busy/N      429 with `Retry-After: 1` the first time, then a page
/full/N      503 without Retry-After
/long/N      a page of 200 kB
/robots.txt  with `has_rules` it leads to /rules, which forbid /private
/broken/N    the connection is closed instead of an answer
any other    a page
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.harness.sites import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.sites import Request


class Site:
    """The server; `log` has the instant and the path of every request, in order of arrival."""

    def __init__(self) -> None:
        self.origin = ""
        self.has_rules = False
        self.log: list[tuple[float, str]] = []

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
        request.read()
        kind, _, number = request.path[1:].partition("/")
        if kind == "broken":
            request.hang_up()
        elif kind == "moved":
            request.answer(302, headers={"Location": f"/page/{number}"})
        elif kind == "busy" and is_first:
            request.answer(429, headers={"Retry-After": "1"})
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


@contextmanager
def running_site() -> Iterator[Site]:
    """Run the server in a thread."""
    site = Site()
    with serving(site.respond) as site.origin:
        yield site
