"""The small web that the stored fixtures were crawled from, always at the same addresses.

Two hosts, each with ten pages that link to the next two and to the same page of the other host; one
page is forbidden by robots.txt, one is missing, and a sitemap names a page that nothing links to.
"""

from __future__ import annotations

import errno
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.harness.sites import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.harness.sites import Request

# Addresses of the loopback net that no program uses by default, so that the ports are free.
ADDRESSES = [("127.77.7.1", 47771), ("127.77.7.2", 47771)]
HOSTS = [f"{name}:{port}" for name, port in ADDRESSES]
SEEDS = [f"http://{host}/" for host in HOSTS]
PAGES = 10


def every_page(host: str) -> set[str]:
    """Every URL of a host that a crawl of it fetches, but for its sitemap."""
    paths = ["", "missing", "late", "in-sitemap-only", *(str(n) for n in range(1, PAGES))]
    return {f"http://{host}/{path}" for path in paths}


def _respond(request: Request) -> None:
    me = request.headers["Host"]
    other = HOSTS[1 - HOSTS.index(me)]
    name = request.path.strip("/")
    status, kind, text = 200, "text/html", ""
    if name == "robots.txt":
        text = f"User-agent: *\nDisallow: /private/\nSitemap: http://{me}/sitemap.xml\n"
        kind = "text/plain"
    elif name == "sitemap.xml":
        locations = "".join(
            f"<url><loc>http://{me}/{each}</loc></url>" for each in ("1", "in-sitemap-only")
        )
        text = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
        kind = "application/xml"
    elif name in ("", "late", "in-sitemap-only") or name.isdigit():
        number = int(name) if name.isdigit() else 0
        links = [f"/{(number + step) % PAGES or ''}" for step in (1, 2)]
        links += ["/private/x", "/missing", f"http://{other}/{number or ''}"]
        anchors = "".join(f'<a href="{link}">x</a>' for link in links)
        text = f"<title>Page {name}</title>{anchors}"
    else:
        status = 404
    request.answer(status, text, {"Content-Type": kind})


def served() -> AbstractContextManager[None]:
    """Serve both hosts. A system without such loopback addresses skips the test."""
    return serving_at(ADDRESSES, _respond)


@contextmanager
def serving_at(
    addresses: list[tuple[str, int]], respond: Callable[[Request], None]
) -> Iterator[None]:
    """Serve a site at each of these addresses."""
    with ExitStack() as stack:
        for address in addresses:
            try:
                stack.enter_context(serving(respond, address))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
                pytest.skip(f"there is no address {address[0]} here")
        yield
