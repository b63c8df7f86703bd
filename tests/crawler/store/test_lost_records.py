"""Records that are lost with the disk of a member: they are counted, and fetched again."""

from __future__ import annotations

from contextlib import ExitStack
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.store.valkey_server import new_location

import mannerly
from mannerly.crawler import store
from mannerly.crawler.control import Recrawl, RetryUrls
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import START, candidate, enter, new_manifest, page
from mannerly.crawler.store.valkey import fetched
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.fetched import BLOCK, recorded_portions
from mannerly.crawler.store.valkey.leases import NoRecords
from mannerly.crawler.store.valkey.packing import Poisoned
from mannerly.database.address import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mannerly.crawler.store.base import Counts
    from mannerly.crawler.store.valkey.shard import ValkeyShard
    from mannerly.database.client import Payload

OPTIONS = ShardOptions(10_000)
LOST = RetryUrls(failed=False, given_up=False, lost=True)
HOST = "a.example"


class World:
    """A crawl of one shard, and members with directories of their own."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self.location = new_location()
        stack.enter_context(_closing(ValkeyCrawl.create(self.location, new_manifest())))

    def member(self, name: str, *, segments: Path | None = None) -> ValkeyShard:
        """Return the shard, claimed by a member."""
        crawl = self._open()
        crawl.fleet.join(self._folder / name, segments)
        return crawl.claim(0, OPTIONS)

    def look(self, *names: str, server: ValkeyServer | None = None) -> ValkeyCrawl:
        """Return the crawl for a command that is given the directories of these members."""
        crawl = self._open(server)
        crawl.read_from([self._folder / name for name in names])
        return crawl

    def granted(self) -> int:
        """Return how many pages of --max-urls are taken."""
        crawl = self.look()
        return int(crawl.server.ask("HGET", crawl.keys.meta, "pages"))

    def lose(self, name: str) -> None:
        rmtree(self._folder / name)

    def missing(self, *names: str) -> int:
        with self.look(*names).read(0) as reader:
            return reader.missing

    def records(self, *names: str) -> list[str]:
        with self.look(*names).read(0) as reader:
            return sorted(record.url for _, record in reader.pages())

    def counts(self) -> Counts:
        with self.look().read(0) as reader:
            return reader.counts()

    def _open(self, server: ValkeyServer | None = None) -> ValkeyCrawl:
        return self._stack.enter_context(_closing(ValkeyCrawl.open(self.location, server)))


class WatchedServer(ValkeyServer):
    """A connection that calls `before` with the number of each `recall` before it is sent."""

    def __init__(self, location: str, before: Callable[[int], object]) -> None:
        super().__init__(parse(location))
        self.portions: list[int] = []  # URLs in each
        self._before = before

    def call(self, name: str, keys: Sequence[str], payload: Payload) -> Any:
        if name == "recall":
            self.portions.append(len(payload["seqs"]))
            self._before(len(self.portions))
        return super().call(name, keys, payload)


class _closing:  # noqa: N801
    def __init__(self, crawl: ValkeyCrawl) -> None:
        self._crawl = crawl

    def __enter__(self) -> ValkeyCrawl:
        return self._crawl

    def __exit__(self, *_: object) -> None:
        self._crawl.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack, tmp_path)


def fetch(shard: ValkeyShard, paths: range, *, a_commit: int = 50, host: str = HOST) -> None:
    """Record pages, some of them in one commit."""
    entries = enter(shard, *(candidate(f"/{n}", host) for n in paths))
    for start in range(0, len(entries), a_commit):
        part = entries[start : start + a_commit]
        shard.commit(Batch(pages=[(entry, page(entry)) for entry in part]))


def again(shard: ValkeyShard) -> list[str]:
    """Act on the order to fetch lost pages again; return their URLs in the order of the queue."""
    shard.commit(Batch(retries=[LOST]))
    urls = []
    while shard.counts().retries:
        back = shard.bring_back(100)
        urls += [entry.url for entry in back.new]
        shard.commit(Batch(pages=[(entry, page(entry)) for entry in back.new]))
    return urls


def test_records_of_a_lost_disk_are_fetched_again_and_nothing_else(world: World) -> None:
    """However many blocks their URLs are in; then an export has every record once."""
    first = world.member("one")
    fetch(first, range(2 * BLOCK + 90))
    first.close()
    second = world.member("two")
    fetch(second, range(1000, 1150))
    everything = world.records("one", "two")
    world.lose("one")

    assert world.missing("two") == 2 * BLOCK + 90
    recalled = world.look("two").fleet.recall(None)
    urls = again(second)

    assert recalled == 2 * BLOCK + 90
    assert sorted(urls) == sorted(f"https://{HOST}/{n}" for n in range(2 * BLOCK + 90))
    assert world.missing("two") == 0
    assert world.records("two") == everything
    assert world.counts().fetched == len(everything)
    assert world.counts().rechecks == world.counts().queued == 0


def test_urls_are_packed_once_whoever_owns_the_shard(world: World) -> None:
    """Those that an earlier owner left, those of a recheck and a page that did not count."""
    for at in range(4):
        shard = world.member(f"w{at}")
        fetch(shard, range(at * BLOCK, (at + 1) * BLOCK - 60), a_commit=100)
        gone = shard.commit(Batch(found=[candidate(f"/gone-{at}")])).new
        shard.commit(Batch(pages=[(entry, page(entry)) for entry in gone]))
        shard.commit(Batch(pages=[(entry, page(entry)) for entry in gone]))
        shard.close()
    recorded = [
        f"https://{HOST}/{n}" for at in range(4) for n in range(at * BLOCK, at * BLOCK + 196)
    ]
    recorded += [f"https://{HOST}/gone-{at}" for at in range(4)]

    crawl = world.look("empty")
    portions = recorded_portions(crawl.server, crawl.keys.of_shard(0, ""))
    kept = [entry.url for portion in portions for entry in portion]

    assert sorted(kept) == sorted(recorded)
    assert crawl.server.ask("LLEN", crawl.keys.of_shard(0, "ut")) < 2 * BLOCK


def test_lost_pages_are_as_they_were_queued(world: World) -> None:
    """With their number, depth and parent."""
    first = world.member("one")
    (entry,) = enter(first, candidate("/p?q=ü", depth=3, priority=7))
    first.commit(Batch(pages=[(entry, page(entry))]))
    first.close()
    world.lose("one")
    world.look("two").fleet.recall(None)
    second = world.member("two")
    second.commit(Batch(retries=[LOST]))

    back = second.bring_back(10)

    assert back.new == [entry]
    assert back.lost == {HOST: 1}
    assert second.queued(HOST, after=START, limit=9) == [entry]


def test_a_failed_page_whose_record_is_lost_is_tried_again(world: World) -> None:
    """Its entry is that of a failed URL."""
    first = world.member("one")
    (entry,) = enter(first, candidate())
    first.commit(Batch(pages=[(entry, page(entry, status=None, error="timeout"))]))
    first.close()
    world.lose("one")
    second = world.member("two")

    assert world.missing("two") == 1
    assert world.look("two").fleet.recall(None) == 1
    assert again(second) == [entry.url]
    assert (world.counts().fetched, world.counts().failed) == (1, 0)
    assert world.missing("two") == 0


def test_a_lost_page_that_is_skipped_now_is_not_fetched_any_more(world: World) -> None:
    """It is counted as skipped, and is not missing."""
    first = world.member("one")
    fetch(first, range(2))
    first.close()
    world.lose("one")
    world.look("two").fleet.recall(None)
    second = world.member("two")
    second.commit(Batch(retries=[LOST]))

    back = second.bring_back(10)
    second.commit(Batch(dropped=[(entry, "robots") for entry in back.new]))

    assert (world.counts().fetched, world.counts().skipped) == (0, 2)
    assert world.missing("two") == 0


def test_a_second_command_asks_for_nothing_twice(world: World) -> None:
    """Neither before the owner has acted on the first one, nor while the pages are queued."""
    first = world.member("one")
    fetch(first, range(30))
    first.close()
    world.lose("one")
    second = world.member("two")
    command = world.look("two").fleet

    recalled = [command.recall(None), command.recall(None)]
    second.commit(Batch(retries=[LOST, LOST]))
    back = second.bring_back(100)
    recalled.append(command.recall(None))
    while second.counts().retries:
        assert not second.bring_back(100).new

    assert recalled == [30, 0, 0]
    assert len(back.new) == second.counts().queued == 30


def test_of_two_commands_at_once_one_leaves_each_page(world: World) -> None:
    """Both have found all of them; they are left, counted and given back to the limit once."""
    first = world.member("one")
    fetch(first, range(30))
    first.close()
    world.lose("one")
    other = world.look("two").fleet
    other.take_pages(30)
    recalled: list[int] = []

    def meanwhile(call: int) -> None:
        if call == 1:
            recalled.append(other.recall(None))

    server = WatchedServer(world.location, meanwhile)
    recalled.append(world.look("two", server=server).fleet.recall(None))
    urls = again(world.member("two"))

    assert sorted(recalled) == [0, 30]
    assert len(urls) == len(set(urls)) == 30
    assert world.granted() == 0


def test_pages_that_came_back_while_a_command_looked_are_not_asked_for_twice(world: World) -> None:
    """It has read the logs before they were fetched: it reads them again."""
    first = world.member("one")
    fetch(first, range(30))
    first.close()
    world.lose("one")
    second = world.member("two")
    other = world.look("two").fleet
    other.take_pages(30)
    urls: list[str] = []

    def meanwhile(call: int) -> None:
        if call == 1:
            other.recall(None)
            urls.extend(again(second))

    server = WatchedServer(world.location, meanwhile)
    recalled = world.look("two", server=server).fleet.recall(None)

    assert recalled == 0
    assert len(urls) == 30
    assert again(second) == []
    assert world.granted() == 0


def test_a_command_that_was_killed_is_continued_by_the_next_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds a portion of the URLs at a time; each is left and given back once."""
    monkeypatch.setattr(fetched, "PORTION_BLOCKS", 1)
    first = world.member("one")
    fetch(first, range(6 * BLOCK))
    first.close()
    world.lose("one")
    second = world.member("two")
    world.look("two").fleet.take_pages(6 * BLOCK)

    def killed(call: int) -> None:
        if call == 3:
            raise KeyboardInterrupt

    server = WatchedServer(world.location, killed)
    with pytest.raises(KeyboardInterrupt):
        world.look("two", server=server).fleet.recall(None)
    recalled = world.look("two").fleet.recall(None)
    urls = again(second)

    assert max(server.portions) <= BLOCK + 50
    assert recalled == 6 * BLOCK - sum(server.portions[:2])
    assert sorted(urls) == sorted(f"https://{HOST}/{n}" for n in range(6 * BLOCK))
    assert world.granted() == 0


def test_a_page_that_failed_when_it_was_asked_for_again_comes_back_once(world: World) -> None:
    """Its URL is among those with a status, too."""
    first = world.member("one")
    fetch(first, range(1))
    first.commit(Batch(retries=[Recrawl(1)]))
    while first.counts().retries:
        back = first.bring_back(10).new
        failed = [(entry, page(entry, status=None, error="timeout")) for entry in back]
        first.commit(Batch(pages=failed))
    first.close()
    world.lose("one")
    second = world.member("two")

    assert world.missing("two") == 1
    assert world.look("two").fleet.recall(None) == 1
    assert len(again(second)) == 1
    assert (world.counts().queued, world.counts().fetched, world.counts().failed) == (0, 1, 0)


def test_a_recrawl_asks_for_each_page_once_whoever_has_its_record(world: World) -> None:
    """Two members have a part of the records each, and the shard changes hands meanwhile."""
    first = world.member("one")
    fetch(first, range(300))
    (failed,) = enter(first, candidate("/failed"))
    first.commit(Batch(pages=[(failed, page(failed, status=None, error="timeout"))]))
    first.close()
    second = world.member("two")
    fetch(second, range(1000, 1100))
    second.commit(Batch(retries=[Recrawl(1)]))

    urls = []
    while second.counts().rechecks < 200:
        urls += _asked_again(second, 100)
    second.close()
    third = world.member("three")
    while third.counts().retries:
        urls += _asked_again(third, 100)

    everything = [*range(300), *range(1000, 1100), "failed"]
    assert sorted(urls) == sorted(f"https://{HOST}/{n}" for n in everything)
    rest = list(third.queued(HOST, after=START, limit=1000))
    third.commit(Batch(pages=[(entry, page(entry)) for entry in rest]))
    assert (world.counts().fetched, world.counts().failed) == (401, 0)
    assert world.counts().queued == world.counts().rechecks == 0


def _asked_again(shard: ValkeyShard, limit: int) -> list[str]:
    """Bring a slice back; return the URLs that are new in the queue."""
    return [entry.url for entry in shard.bring_back(limit).new]


def test_a_command_that_follows_one_without_its_order_gives_the_order(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command was killed when the URLs were with the shard and the order was not yet given."""
    first = world.member("one")
    fetch(first, range(30))
    first.close()
    world.lose("one")
    second = world.member("two")
    assert world.look("two").fleet.recall(None) == 30
    monkeypatch.setattr(store, "_folders", [tmp_path / "two"])

    with mannerly.open(world.location) as crawl:
        assert crawl.retry(missing=True) == 0

    orders = [order for _, order in world.look().orders()]
    assert orders == [LOST]
    assert len(again(second)) == 30


def test_pages_of_one_host(world: World) -> None:
    """Those of others stay missing."""
    first = world.member("one")
    fetch(first, range(5))
    fetch(first, range(3), host="b.example")
    first.close()
    world.lose("one")
    second = world.member("two")

    world.look("two").fleet.recall("b.example")

    assert again(second) == [f"https://b.example/{n}" for n in range(3)]
    assert world.missing("two") == 5


def test_a_disk_that_comes_back_doubles_nothing(world: World) -> None:
    """The records of both directories are one history."""
    first = world.member("one")
    fetch(first, range(20))
    first.close()
    world.look("two").fleet.recall(None)
    second = world.member("two")

    again(second)

    assert world.records("two") == world.records("one", "two") == world.records("one")
    assert world.counts().fetched == 20


def test_pages_that_are_fetched_again_count_once_for_a_limit(world: World) -> None:
    """They were granted before: the crawl's limit is given back what is fetched again."""
    first = world.member("one")
    fetch(first, range(10))
    first.close()
    world.lose("one")
    command = world.look("two").fleet
    command.take_pages(10)

    command.recall(None)

    assert world.granted() == 0


def test_urls_are_not_kept_beside_shared_storage(world: World, tmp_path: Path) -> None:
    """Records are counted if its directory is not given, and nothing is fetched again."""
    (tmp_path / "shared").mkdir()
    first = world.member("one", segments=tmp_path / "shared")
    fetch(first, range(3 * BLOCK))
    first.close()
    crawl = world.look("one")

    assert world.missing("one") == 3 * BLOCK
    assert world.missing("shared") == 0
    assert crawl.fleet.recall(None) == 0
    keys = [crawl.keys.of_shard(0, suffix) for suffix in ("u", "ut", "m")]
    assert crawl.server.ask("EXISTS", *keys) == 0


def test_a_command_without_directories_is_refused(world: World) -> None:
    """Else it would fetch everything again."""
    fetch(world.member("one"), range(3))

    with pytest.raises(NoRecords, match="--data-dir"):
        world.look().fleet.recall(None)


@pytest.mark.parametrize(("suffix", "poison"), [("u", b"x\x9c"), ("ut", b"a.example"), ("u", b"!")])
def test_poisoned_urls_are_refused_with_their_key(suffix: str, poison: bytes, world: World) -> None:
    """The message names it."""
    first = world.member("one")
    fetch(first, range(BLOCK + 50))
    first.close()
    world.lose("one")
    crawl = world.look("two")
    key = crawl.keys.of_shard(0, suffix)
    crawl.server.change("RPUSH", key, poison)

    with pytest.raises(Poisoned) as caught:
        world.missing("two")

    assert key in str(caught.value)


def test_a_wipe_leaves_nothing(world: World) -> None:
    """Not even the URLs."""
    shard = world.member("one")
    fetch(shard, range(2 * BLOCK))
    shard.close()
    crawl = world.look("two")
    crawl.fleet.recall(None)
    for each in (crawl, shard):
        each.close()

    ValkeyCrawl.wipe(world.location)

    name = world.location.partition("#")[2]
    assert crawl.server.ask("KEYS", f"mannerly:{{{name}*") == []
