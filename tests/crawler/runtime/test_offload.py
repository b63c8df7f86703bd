"""Long work is done in other processes, and comes back with its tag."""

from __future__ import annotations

import select
from functools import partial

from mannerly.crawler.page.html import parse_page
from mannerly.crawler.page.parsed import ParsedPage, ParseFailed
from mannerly.crawler.runtime.offload import Offload


def collected(offload: Offload[str], count: int) -> dict[str, object]:
    """Wait for the bell until so many results are there."""
    results: dict[str, object] = {}
    while len(results) < count:
        assert select.select([offload.descriptor], [], [], 30.0)[0], "nobody rang"
        results.update(offload.collect())
    return results


def test_results_come_back_with_their_tags() -> None:
    """Whatever order the processes finish in, each page is found under its own tag."""
    offload: Offload[str] = Offload(1)

    for name in ("a", "b", "c"):
        body = f"<title>{name}</title><a href=/{name}>".encode()
        offload.give(name, partial(parse_page, body, "text/html", "http://e/"))
    results = collected(offload, 3)
    offload.close()

    assert offload.pending == 0
    assert {
        name: (page.title, page.links)
        for name, page in results.items()
        if isinstance(page, ParsedPage)
    } == {name: (name, [f"/{name}"]) for name in ("a", "b", "c")}


def test_work_that_fails_comes_back_as_a_failure() -> None:
    """An exception over there costs that piece of work, and no other."""
    offload: Offload[str] = Offload(1)

    offload.give("bad", partial(int, "no number"))
    offload.give("good", partial(int, "7"))
    results = collected(offload, 2)
    offload.close()

    assert results == {"bad": ParseFailed("ValueError"), "good": 7}
