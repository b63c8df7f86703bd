"""One page, one script, one call of an API: what a person sees is the page's record."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.crawler.render.render_world import SCRIPT, Site, data, page, rendered, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

APP = """fetch('/api/list').then(r => r.json()).then(list => {
  document.title = 'Shop ' + location.pathname;
  for (const name of list) {
    const link = document.createElement('a');
    link.href = '/p/' + name; link.textContent = 'Product ' + name;
    document.getElementById('app').append(link);
  }
})"""
SHELL = page("<script src=/app.js></script><img src=/big.png><noscript>Switch it on</noscript>")
SHOP = {
    "/": SHELL,
    "/p/tea": SHELL,
    "/p/milk": SHELL,
    "/app.js": (200, SCRIPT, APP),
    "/api/list": data(["tea", "milk"]),
}


def test_client_rendered_pages_are_crawled(tmp_path: Path) -> None:
    """Title, links and text are those of the final DOM, and its links are followed."""
    site = Site(SHOP)
    with serving(site) as origin:
        pages = rendered(origin, tmp_path)

    assert sorted(pages) == ["/", "/p/milk", "/p/tea"]
    home = pages["/"]
    assert home.title == "Shop /"
    assert [link.removeprefix(origin) for link in home.links] == ["/p/tea", "/p/milk"]
    assert "Product milk" in home.text
    assert "Switch it on" not in home.text
    record = home.record
    assert (record.rendered, record.render_error, record.requests) == (True, None, 2)
    assert record.render_s


def test_a_script_is_fetched_once_and_images_are_not(tmp_path: Path) -> None:
    """What pages share is asked for once in a run; the API is asked for by each."""
    site = Site(SHOP)
    with serving(site) as origin:
        rendered(origin, tmp_path)

    assert site.count("/app.js") == 1
    assert site.count("/api/list") == 3
    assert site.count("/big.png") == 0


def test_sub_requests_keep_the_gap_and_robots(tmp_path: Path) -> None:
    """The log of the server: no two requests closer than the delay, and nothing forbidden."""
    site = Site(
        SHOP
        | {
            "/": page("<script src=/app.js></script><script src=/private/x.js></script>"),
            "/robots.txt": (200, "text/plain", "User-agent: *\nDisallow: /private\n"),
        }
    )
    with serving(site) as origin:
        rendered(origin, tmp_path, pacing=True, delay=0.2)

    instants = sorted(instant for instant, _ in site.arrivals)
    gaps = [after - before for before, after in pairwise(instants)]
    assert len(instants) >= 8
    assert min(gaps) > 0.199
    assert not any(path.startswith("/private") for path in site.log)


def test_the_page_budget_counts_pages(tmp_path: Path) -> None:
    """A page is finished with all that it asks for, after the last page of the budget began."""
    site = Site(SHOP)
    with serving(site) as origin:
        pages = rendered(origin, tmp_path, max_urls=1)

    assert [page.title for page in pages.values()] == ["Shop /"]
