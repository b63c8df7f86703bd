from __future__ import annotations

import json
import re
from math import inf
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.demo import Feature, RobotsFile, Site, SitemapKind, demo_sites, paths, plain_sites
from mannerly.demo.host import DemoHost
from mannerly.demo.pages import WebMap, fan_out, number_of, path_of, render
from mannerly.politeness import Settings
from mannerly.simulation import SpecError, run

ORIGINS = ("http://127.0.0.2:8000", "http://127.0.0.3:8000", "http://127.0.0.4:8000")
WEB = WebMap(ORIGINS, own=0, canary="127.0.0.1:9999")
HREF = re.compile(rb'href="([^"]*)"')

sites = st.builds(
    Site,
    name=st.just("any"),
    pages=st.integers(1, 80),
    links=st.integers(1, 9),
    neighbours=st.integers(0, 3),
    seed=st.integers(0, 1000),
    robots=st.sampled_from(RobotsFile),
    sitemap=st.sampled_from(SitemapKind),
    crawl_delay_s=st.none() | st.floats(0.1, 10),
    features=st.frozensets(st.sampled_from([Feature.VARIANTS, Feature.CANONICAL, Feature.BROKEN])),
)


def hrefs(body: bytes, base: str) -> list[str]:
    """Absolute links of a page, without fragments and tracking parameters."""
    found = []
    for href in HREF.findall(body):
        url = urljoin(base, href.decode().strip().replace("&amp;", "&"))
        found.append(url.partition("#")[0].partition("?utm_")[0])
    return found


@given(sites)
def test_every_page_can_be_reached_from_the_root(site: Site) -> None:
    """Following links through every spelling finds all pages that the site claims, and no more."""
    seen, todo = {"/"}, ["/"]
    while todo:
        number = number_of(todo.pop())
        assert number is not None
        for url in hrefs(render(site, number, WEB), ORIGINS[0] + path_of(number)):
            parts = urlsplit(url)
            is_page = f"http://{parts.netloc}" == ORIGINS[0] and number_of(parts.path) is not None
            if is_page and parts.path not in seen:
                seen.add(parts.path)
                todo.append(parts.path)

    assert seen == set(paths(site))


@given(sites)
def test_site_survives_its_way_to_another_process(site: Site) -> None:
    """JSON and back gives an equal site."""
    assert Site.from_json(json.loads(json.dumps(site.to_json()))) == site


def test_page_is_the_same_whenever_it_is_made() -> None:
    """Only another seed gives other links."""
    site, other = Site(name="a", seed=1), Site(name="a", seed=2)

    assert render(site, 7, WEB) == render(site, 7, WEB)
    assert render(site, 7, WEB) != render(other, 7, WEB)


def depth_of(site: Site, number: int) -> int:
    """Return the number of tree links from the root to a page."""
    depth = 0
    while number:
        number = (number - 1) // fan_out(site)
        depth += 1
    return depth


def test_site_of_200_000_pages_makes_its_last_page_at_once() -> None:
    """Nothing is made or kept but the page that is asked for."""
    site = Site(name="large", pages=200_000, links=20)
    host = DemoHost(site, WEB, netloc="large")

    assert b"page 199999" in host.content(path_of(199_999)).body
    assert host.content(path_of(200_000)).status == 404
    assert depth_of(site, 199_999) == 6


def test_page_is_filled_up_to_the_size_asked_for() -> None:
    """A large page is large, a small one as small as it can be."""
    assert len(render(Site(name="a", size=50_000), 0, WEB)) > 50_000
    assert len(render(Site(name="a"), 0, WEB)) < 2_000


def test_features_lead_where_they_say() -> None:
    """Every kind of oddity is linked from the root, the canary in several spellings."""
    site = Site(name="odd", features=frozenset(Feature))

    found = hrefs(render(site, 0, WEB), f"{ORIGINS[0]}/")

    places = {urlsplit(url).path.split("/")[1] for url in found if url.startswith(ORIGINS[0])}
    assert places >= {
        *("nofollow", "noindex", "dead-end", "missing", "gone", "error", "r", "private"),
        *("calendar", "maze", "slow", "endless", "bomb"),
    }
    assert "http://127.0.0.1:9999/canary" in found
    assert "http://169.254.169.254/latest/meta-data/" in found


def test_neighbours_are_other_hosts() -> None:
    """A link to a neighbour never leads home, unless there is no other host."""
    site = Site(name="a", neighbours=3, pages=1)

    found = hrefs(render(site, 0, WEB), f"{ORIGINS[0]}/")

    assert {url for url in found if not url.startswith(ORIGINS[0])} <= {
        f"{o}/" for o in ORIGINS[1:]
    }
    assert sum(not url.startswith(ORIGINS[0]) for url in found) == 3
    assert WebMap(ORIGINS[:1], own=0).other(5) == ORIGINS[0]


def test_true_rate_is_what_the_host_bears_in_the_long_run() -> None:
    """The smaller of limit and Crawl-delay; bursts and outages pass."""
    cases = (
        (Site(name="a"), inf),
        (Site(name="a", limit="bucket:2:40"), 2.0),
        (Site(name="a", limit="fixed:10:5+outage=10-20"), 2.0),
        (Site(name="a", limit="knee:2:0.5"), 4.0),
        (Site(name="a", crawl_delay_s=2.0), 0.5),
        (Site(name="a", crawl_delay_s=2.0, robots=RobotsFile.MISSING), inf),
        (Site(name="a", crawl_delay_s=0.1, limit="bucket:3:3"), 3.0),
    )
    for site, rate in cases:
        assert site.true_rate == pytest.approx(rate), site


def test_bad_limit_is_named_where_the_site_is_made() -> None:
    """Not in the server process, whose errors are harder to find."""
    with pytest.raises(SpecError, match="bukket"):
        Site(name="a", limit="bukket:1:2:3")


def test_demo_has_a_dozen_hosts_of_which_no_two_are_alike() -> None:
    """Each has a name and a line for people."""
    demo = demo_sites()

    assert len(demo) >= 12
    assert len({site.name for site in demo}) == len({site.about for site in demo}) == len(demo)
    assert all(site.about for site in demo)


def test_demo_limit_can_be_found_in_forty_seconds() -> None:
    """In virtual time the default settings serve 80 % of the limit in the last ten seconds."""
    limited = [site for site in demo_sites() if site.limit]

    assert len(limited) == 11
    for site in limited:
        result = run(Settings(), site.limit or "", duration_s=40.0)
        accepted = sum(second.accepted for second in result.timeline[-10:]) / 10

        assert accepted >= 0.8 * site.true_rate, site.name


def test_plain_sites_have_no_surprises() -> None:
    """No limit, nothing forbidden, a name each."""
    plain = plain_sites(3, pages=7)

    assert [site.name for site in plain] == ["plain-0", "plain-1", "plain-2"]
    assert all(site.true_rate == inf and not site.forbidden for site in plain)
    assert all(site.pages == 7 for site in plain)
