"""Sitemaps in a shard: scope first, then limits; pages get their turn beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crawler.shard.shard_world import ShardWorld, brisk, flight_of
from virtual.store.memory import MemoryStore

from mannerly.crawler import events as crawl_events
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate, Entry, RobotsRequest
from mannerly.crawler.shard.sitemaps import MAX_LISTED, SLICE, SitemapQuota
from mannerly.crawler.web.choices import ScopeMode
from mannerly.crawler.web.priority import is_held_back, placed, priority, sitemap_turn
from mannerly.crawler.web.seeds import sitemap, usual_sitemaps

if TYPE_CHECKING:
    from mannerly.crawler.model import Request

A = "https://a.example"


def index(*urls: str) -> bytes:
    places = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex>{places}</sitemapindex>".encode()


def kind_of(request: Request) -> Kind:
    return flight_of(request).item.kind


def endless_index(world: ShardWorld, request: Request) -> None:
    """Answer as a site does whose sitemaps are indexes of 200 more, and whose pages link."""
    kind, path = kind_of(request), request.url.removeprefix(A)
    if kind == Kind.ROBOTS:
        world.answer(request, 404)
    elif kind == Kind.SITEMAP:
        world.answer(request, 200, index(*(f"{A}{path}/{number}" for number in range(200))))
    else:
        links = "".join(f'<a href="{path}{number}">' for number in range(3))
        world.answer(
            request, 200, links.encode() if len(path) < 5 else b"", content_type="text/html"
        )


def crawl(world: ShardWorld, requests: int) -> list[Request]:
    """Run the shard until it has nothing to do, or has sent this many requests."""
    made: list[Request] = []
    while len(made) < requests:
        started = world.start()
        for request in started:
            endless_index(world, request)
        world.shard.commit(world.now)
        world.wait(0.1)
        made += started
        if not started and world.shard.is_idle:
            break
    return made


def test_pages_get_their_turn_beside_an_endless_index() -> None:
    """From the eleventh on, sitemaps are one of two requests at most: all 121 pages are fetched."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap"))
    world.shard.offer(usual_sitemaps([f"{A}/"]))
    world.shard.commit(world.now)

    made = crawl(world, 260)

    pages = [request.url for request in made if kind_of(request) == Kind.PAGE]
    assert len(pages) == len({*pages}) == 121


def test_an_endless_index_ends_at_the_limit() -> None:
    """No more than --max-sitemaps are fetched or queued; that is told once, and counted."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap", max_sitemaps=20))
    world.shard.offer(usual_sitemaps([f"{A}/"]))
    world.shard.commit(world.now)

    made = crawl(world, 1000)

    fetched = [request for request in made if kind_of(request) == Kind.SITEMAP]
    assert world.shard.is_idle
    assert len(fetched) == 20
    (limited,) = world.told(crawl_events.SitemapsLimited)
    assert (limited.host, limited.sitemaps) == ("a.example", 20)
    assert world.stats.skipped["sitemap_limit"] >= 3_700


def test_the_bytes_of_sitemaps_are_limited() -> None:
    """A host whose sitemaps are large gets fewer of them, and queued ones are not fetched."""
    hosts = Hosts()
    host, other = hosts.meet("a.example"), hosts.meet("b.example")
    quota = SitemapQuota(hosts, 500, max_bytes=1000)
    first = quota.take(sitemap(f"{A}/1.xml", None))

    quota.fetched(host, 1000)

    assert first is not None
    assert quota.take(sitemap(f"{A}/2.xml", None)) is None
    assert quota.is_spent(host)
    assert not quota.is_spent(other)


def test_sitemaps_come_later_the_more_there_are() -> None:
    """Ten go with the seeds, then one after each band of pages."""
    turns = [sitemap_turn(number) for number in range(14)]

    assert turns[:10] == [priority(0)] * 10
    for depth in (1, 2, 3, 4):
        assert priority(depth, sitemap_priority=0.0) < turns[9 + depth] < priority(depth + 1)
        assert placed(1 + depth, is_held_back=False) < turns[9 + depth]
        assert not is_held_back(turns[9 + depth])


def robots_answer(world: ShardWorld, body: bytes) -> list[Candidate]:
    """Answer robots.txt with this; return the sitemaps that are queued because of it."""
    (request,) = world.start()
    assert isinstance(flight_of(request).item, RobotsRequest)
    world.answer(request, 200, body)
    return [each for each in world.shard.pending.batch.found if each.kind == Kind.SITEMAP]


def test_robots_cannot_aim_the_crawl_at_other_hosts() -> None:
    """Of 10,000 sitemaps at a host out of scope none is queued, before or after its own."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap", scope=ScopeMode.HOST))
    foreign = "".join(f"Sitemap: https://b.example/{number}.xml\n" for number in range(10_000))

    found = robots_answer(world, f"Sitemap: {A}/own.xml\n{foreign}".encode())

    assert [each.url for each in found] == [f"{A}/own.xml"]
    assert world.stats.skipped["off_host"] >= 900


def test_robots_may_name_sitemaps_of_hosts_in_scope() -> None:
    """A sitemap of the same site is taken where the scope is the site."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap", scope=ScopeMode.SITE))

    found = robots_answer(world, b"Sitemap: https://cdn.a.example/s.xml\n")

    assert [each.url for each in found] == ["https://cdn.a.example/s.xml"]


def test_robots_may_name_a_hundred_sitemaps() -> None:
    """The first hundred are taken, in their order; the others are counted."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap"))

    found = robots_answer(world, "".join(f"Sitemap: {A}/{n}\n" for n in range(500)).encode())

    assert [each.url for each in found] == [f"{A}/{number}" for number in range(MAX_LISTED)]
    assert world.stats.skipped["sitemap_limit"] == 400


def test_long_list_is_committed_in_slices_and_its_record_comes_last() -> None:
    """A crash in between leaves the list queued, so that no URL is lost; no commit is long."""
    store = MemoryStore(frontier_limit=20_000)
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap"), store=store)
    place = f"{A}/sitemap.xml"
    world.shard.offer(usual_sitemaps([f"{A}/"]))
    world.shard.commit(world.now)
    world.pass_robots()
    body = "".join(f"<url><loc>/p/{number}</loc></url>" for number in range(12_000))
    while not (requests := [each for each in world.start() if each.url == place]):
        world.wait(1.0)
    world.answer(requests[0], 200, f"<urlset>{body}</urlset>".encode())

    steps = []
    for _ in range(4):
        before = store.counts().queued
        world.shard.commit(world.now)
        grown = store.counts().queued - before
        steps.append((grown, isinstance(store.find(place), Entry)))

    assert steps == [(SLICE, True), (SLICE, True), (12_000 - 2 * SLICE - 1, False), (0, False)]
    assert world.flights.pending == 1  # the page that was sent before it
    assert [event.record.links for event in world.told(crawl_events.ListSettled)] == [12_000]


def test_long_list_of_known_urls_is_settled_without_another_page() -> None:
    """Slices that bring nothing new do not keep the list, and so the crawl, from ending."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap"))
    place = f"{A}/sitemap.xml"
    world.shard.offer(usual_sitemaps([f"{A}/"]))
    world.shard.commit(world.now)
    world.pass_robots()
    places = "".join(f"<url><loc>/p/{number % 3}</loc></url>" for number in range(12_000))
    while not (requests := [each for each in world.start() if each.url == place]):
        world.wait(1.0)

    world.answer(requests[0], 200, f"<urlset>{places}</urlset>".encode())

    assert len(world.told(crawl_events.ListSettled)) == 1


def test_a_sitemap_is_held_back_while_the_last_one_of_the_limit_is_under_way() -> None:
    """It goes if that one has to be asked for again later, and is dropped if that one was read."""
    world = ShardWorld(f"{A}/", settings=brisk(seeding="sitemap", max_sitemaps=2))
    world.shard.offer([sitemap(f"{A}/{number}.xml", None) for number in range(4)])
    world.shard.commit(world.now)
    world.pass_robots()

    started = []
    for _ in range(4):
        world.wait(1.0)
        started += [each for each in world.start() if kind_of(each) == Kind.SITEMAP]
    world.answer(started[0], 200, index())
    world.answer(started[1], 500)
    world.wait(1.0)
    instead = world.start()
    world.answer(instead[0], 200, index())
    world.wait(600.0)
    beyond = world.start()

    assert [len(started), len(instead), len(beyond)] == [2, 1, 0]
    assert world.stats.skipped["sitemap_limit"] == 2
