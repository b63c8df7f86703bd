"""robots.txt that leads to a host of another shard: its owner sends the request, nobody else."""

from __future__ import annotations

from tests.crawler.shard.shard_world import EPOCH_S, ShardWorld, flight_of

from mannerly.crawler.control import FetchRobots
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import RobotsRecord, RobotsRequest
from mannerly.crawler.shard.origins import PATIENCE_S

SHARD_OF = Sharding(2).shard_of
A = next(f"https://a{n}.example" for n in range(99) if SHARD_OF(f"a{n}.example") == 0)
B = next(f"https://b{n}.example" for n in range(99) if SHARD_OF(f"b{n}.example") == 1)
HOP = RobotsRequest(f"{B}/robots.txt", B.removeprefix("https://"), A, 1)
PRIVATE = b"User-agent: *\nDisallow: /private\n"


def redirected() -> ShardWorld:
    """A shard whose only origin has its robots.txt at a host of another shard."""
    world = ShardWorld(f"{A}/", f"{A}/private", shards=2)
    (request,) = world.start()
    world.answer(request, 301, location=f"{B}/robots.txt")
    return world


def urls_of(world: ShardWorld) -> list[str]:
    world.wait(1.0)
    world.shard.tick(world.now)
    return [request.url for request in world.start()]


def test_foreign_hop_is_not_sent_here() -> None:
    """The request is kept for its owner, once, and the pages wait."""
    world = redirected()

    sent = urls_of(world)
    requests = world.shard.origins.foreign.take_new()

    assert sent == []
    assert requests == [HOP]
    assert world.shard.origins.foreign.take_new() == []
    assert world.shard.origins.foreign.origins == {A}


def test_owner_sends_the_hop_and_keeps_the_answer_for_the_origin() -> None:
    """The order is acted on once, in a slot of the owner's host; other shards ignore it."""
    owner = ShardWorld(f"{B}/", number=1, shards=2)
    bystander = ShardWorld(f"{A}/", shards=2)
    bystander.pass_robots()
    (own,) = owner.start()
    owner.answer(own, 404)
    for world in (owner, bystander):
        world.shard.control(1, FetchRobots((HOP,)), world.now)
        world.shard.control(1, FetchRobots((HOP,)), world.now)

    owner.wait(1.0)
    sent = owner.start()
    while [request.url for request in sent] != [HOP.url]:
        for request in sent:
            owner.answer(request)
        owner.wait(1.0)
        sent = owner.start()
    owner.answer(sent[0], 200, PRIVATE)
    owner.shard.commit(owner.now)

    record = owner.store.robots(A)
    assert record is not None
    assert record.body == PRIVATE
    assert HOP.url not in urls_of(bystander)
    assert HOP.url not in urls_of(owner)


def test_owner_does_not_obey_rules_of_an_origin_that_is_not_its_own() -> None:
    """A Crawl-delay beyond all patience gives up no host of another shard."""
    owner = ShardWorld(f"{B}/", number=1, shards=2)
    owner.pass_robots()
    owner.shard.control(1, FetchRobots((HOP,)), owner.now)

    for _ in range(3):
        owner.wait(1.0)
        for request in owner.start():
            owner.answer(request, 200, b"User-agent: *\nCrawl-delay: 1000000\n")
        owner.shard.tick(owner.now)
        owner.shard.commit(owner.now)

    record = owner.store.robots(A)
    assert record is not None
    assert record.status == 200
    assert owner.stats.hosts_given_up == 0
    assert A.removeprefix("https://") not in owner.shard.politeness


def test_pages_go_when_the_owner_has_answered() -> None:
    """The rules hold as if they had been fetched here, and are kept in the store."""
    world = redirected()

    world.shard.robots_found(RobotsRecord(A, 200, PRIVATE, EPOCH_S, EPOCH_S + 999), world.now)
    sent = urls_of(world) + urls_of(world)
    world.shard.commit(world.now)

    assert sent == [f"{A}/"]
    assert world.stats.skipped == {"robots": 1}
    assert world.shard.origins.foreign.origins == frozenset()
    assert world.store.robots(A) is not None


def test_pages_do_not_wait_for_ever() -> None:
    """Without an answer in time the file is unreachable, and is asked for again a minute later."""
    world = redirected()

    world.wait(PATIENCE_S)
    overdue = urls_of(world)
    world.wait(60.0)
    (again,) = world.start()

    assert overdue == []
    assert again.url == f"{A}/robots.txt"
    assert isinstance(flight_of(again).item, RobotsRequest)
