"""A small web whose servers name absurd numbers, always at the same addresses.

One host is plain; each of the others asks for a wait that no crawl will see the end of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crawler.store.fixture_web import serving_at

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tests.harness.sites import Request

PORT = 47773
PLAIN = f"127.77.8.1:{PORT}"
CRAWL_DELAYS = {f"127.77.8.2:{PORT}": "1000000000000"}
RETRY_AFTERS = {
    f"127.77.8.3:{PORT}": "Fri, 31 Dec 9999 23:59:59 GMT",
    f"127.77.8.4:{PORT}": "100000000000000000000",
}
HOSTS = [PLAIN, *CRAWL_DELAYS, *RETRY_AFTERS]
SEEDS = [f"http://{host}/" for host in HOSTS]
PAGES = 12


def every_page() -> set[str]:
    """Every URL of the plain host."""
    return {f"http://{PLAIN}/{number or ''}" for number in range(PAGES)}


def _respond(request: Request) -> None:
    host, name = request.headers["Host"], request.path.strip("/")
    status, headers, text = 200, {"Content-Type": "text/html"}, ""
    if name == "robots.txt":
        headers["Content-Type"] = "text/plain"
        text = f"User-agent: *\nCrawl-delay: {CRAWL_DELAYS.get(host, '0')}\n"
    elif host in RETRY_AFTERS:
        status, headers["Retry-After"] = 429, RETRY_AFTERS[host]
    elif name and not name.isdigit():
        status = 404
    else:
        number = int(name or "0")
        links = [f'<a href="/{each}">x</a>' for each in range(number + 1, PAGES)]
        text = f"<title>Page {number}</title>{''.join(links)}"
    request.answer(status, text, headers)


def served() -> AbstractContextManager[None]:
    """Serve all hosts. A system without such loopback addresses skips the test."""
    return serving_at([(host.partition(":")[0], PORT) for host in HOSTS], _respond)
