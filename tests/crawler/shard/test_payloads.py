"""Requests with a payload on their way through a shard: made, repeated, redirected, replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.fetcher import FakeFetcher, VirtualClock
from virtual.fleet.members import MachineClocks
from virtual.store.memory import MemoryStore
from virtual.store.memory_reader import ShardData

from mannerly.crawler.events import UrlsDropped
from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import Candidate, Entry, Fetched, LocalError, PageRecord, Request
from mannerly.crawler.payload import payload
from mannerly.crawler.runtime.wire import Wire
from mannerly.crawler.shard.plugin import Plugin
from mannerly.crawler.store.base import StoreFull
from mannerly.crawler.web.urls import host_key_of
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from mannerly.crawler.page.record import Harvest

SITE = "https://a.example/"
POST = {"method": "POST", "body": b"q=tea"}


def request(path: str, **parts: Any) -> Candidate:
    made = payload(**parts)
    assert made is not None
    url = SITE + path
    return Candidate(url, host_key_of(url), 1, 5, SITE, 0, made.kind, made)


def link(path: str) -> Candidate:
    return Candidate(SITE + path, "a.example", 1, 5, SITE)


class Asks(Plugin):
    """A plug-in that adds requests to what was found on the home page, and keeps what it saw."""

    def __init__(self, *requests: Candidate) -> None:
        self.requests = requests
        self.seen: list[tuple[str, object]] = []

    def after_reading(self, entry: Entry, answer: Fetched, found: Harvest) -> Harvest:
        carried = answer.request.payload
        self.seen.append((entry.url, carried and (carried.label, carried.data)))
        if entry.url != SITE:
            return found
        return found._replace(requests=self.requests)


class World(ShardWorld):
    """A world whose shard can be claimed again."""

    data: ShardData


def world(*requests: Candidate, **options: Any) -> tuple[World, Asks]:
    """A crawl whose home page was read; what it asks for is due."""
    plugin = Asks(*requests)
    data = ShardData()
    store = MemoryStore(0, frontier_limit=1000, data=data)
    made = World(SITE, plugins=[plugin], settings=brisk(**options), store=store)
    made.data = data
    made.pass_robots()
    made.wait(1)
    (home,) = made.start()
    made.answer(home)
    made.shard.commit(made.now)
    made.wait(1)
    return made, plugin


def leave(made: ShardWorld, asked: Request) -> bool:
    """Let a request leave as a fetcher does."""
    flight = flight_of(asked)
    return made.shard.may_leave(flight, made.now.mono, "")


def due(made: ShardWorld) -> Request:
    (asked,) = made.shard.start_due(made.now, 9)
    assert leave(made, asked)
    made.shard.sent(flight_of(asked), made.now.mono)
    return asked


def next_owner(made: World) -> MemoryStore:
    """The shard's store as it would be claimed after a crash now."""
    return MemoryStore(0, frontier_limit=1000, data=made.data)


def record_of(made: ShardWorld, url: str) -> PageRecord:
    found = [record for _, record in made.store.pages() if record.url == url]
    assert len(found) == 1
    return found[0]


def test_a_request_is_made_of_its_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method, body and headers, with the secrets that it names; a plug-in gets label and data."""
    monkeypatch.setenv("TOKEN", "geheim")
    asked_for = request(
        "api",
        **POST,
        headers={"X-A": "1"},
        secrets=(("X-Token", "env:TOKEN"),),
        label="r",
        data=[1],
    )
    made, plugin = world(asked_for)

    asked = due(made)
    made.answer(asked)
    made.shard.commit(made.now)

    assert (asked.method, asked.body, asked.url) == ("POST", b"q=tea", SITE + "api")
    assert ("X-A", "1") in asked.headers
    assert ("X-Token", "geheim") in asked.headers
    assert asked.payload == asked_for.payload
    assert "geheim" not in repr(asked.payload)
    assert plugin.seen[-1] == (SITE + "api", ("r", [1]))
    assert made.store.counts().fetched == 2


def test_a_head_asks_without_a_body() -> None:
    """It is a request like any other."""
    made, _ = world(request("big.zip", method="HEAD", label="size"))

    assert due(made).is_head


def test_a_secret_that_is_not_there_costs_its_request_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is sent; the reason names the variable."""
    monkeypatch.delenv("TOKEN", raising=False)
    made, _ = world(request("api", label="x", secrets=(("X-Token", "env:TOKEN"),)), link("other"))

    started = made.start()
    made.wait(1)
    started += made.start()
    made.shard.commit(made.now)

    assert [each.url for each in started] == [SITE + "other"]
    (skipped,) = made.store.skipped()
    assert skipped.reason.startswith("secret_missing: env:TOKEN")


def test_a_label_replaces_a_link_that_waits() -> None:
    """In memory: the URL is asked for once, with what the request carries."""
    made, _ = world(link("a"), link("b"), link("product"))
    made.shard.routes.seeds([request("product", label="product")])
    made.shard.commit(made.now)

    asked = []
    for _ in range(9):
        for each in made.start():
            asked.append(each)
            made.answer(each)
        made.shard.commit(made.now)
        made.wait(1)

    products = [each for each in asked if each.url == SITE + "product"]
    assert [each.payload is not None for each in products] == [True]
    assert [(each.url, each.reason) for each in made.store.skipped()] == [
        (SITE + "product", "replaced")
    ]
    assert made.shard.is_idle


def test_a_label_replaces_a_link_that_is_not_in_memory() -> None:
    """A window of the queue is read without the links that have a label now."""
    made, _ = world(*(link(str(number)) for number in range(200)))
    made.shard.routes.seeds([request("199", label="product")])
    made.shard.commit(made.now)

    asked = []
    while not made.shard.is_idle:
        for each in made.start():
            asked.append(each)
            made.answer(each)
        made.shard.commit(made.now)
        made.wait(0.2)

    assert len(asked) == 200
    assert len({each.url for each in asked}) == 200
    assert [each.reason for each in made.store.skipped()] == ["replaced"]


def test_a_page_that_was_fetched_is_asked_once_more_for_its_label() -> None:
    """And no third time: what comes too late is counted."""
    again = request("", label="start")
    made, plugin = world(again)

    made.answer(due(made))
    made.shard.commit(made.now)
    made.wait(1)

    assert made.start() == []
    assert plugin.seen == [(SITE, None), (SITE, ("start", {}))]
    assert [each for each in made.told(UrlsDropped) if each.reason == "repeated"] == [
        UrlsDropped("repeated", 1)
    ]


def test_what_is_excluded_is_not_asked_for() -> None:
    """Scope is for links; --exclude holds for all."""
    made, _ = world(request("private/1", label="x"), exclude=("*/private/*",))

    assert made.start() == []
    assert UrlsDropped("excluded", 1) in made.told(UrlsDropped)


def test_label_and_data_go_with_a_redirect() -> None:
    """The form is sent once; its target is a GET."""
    made, plugin = world(request("login", **POST, label="in", data={"n": 1}, session="s"))

    made.answer(due(made), 303, location="/home")
    made.shard.commit(made.now)
    made.wait(1)
    target = due(made)
    made.answer(target)

    assert (target.url, target.method, target.body) == (SITE + "home", "GET", b"")
    assert target.payload is not None
    assert target.payload.session == "s"
    assert plugin.seen[-1] == (SITE + "home", ("in", {"n": 1}))


def test_a_form_with_a_secret_does_not_leave_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 307 would send it there; the record says why it is not followed."""
    monkeypatch.setenv("PASSWORD", "geheim")
    form = request("login", method="POST", form={}, secrets=(("p", "env:PASSWORD"),))
    made, _ = world(form)

    made.answer(due(made), 307, location="https://evil.example/")
    made.shard.commit(made.now)

    assert record_of(made, SITE + "login").error == "secret_redirect"
    assert made.store.counts().queued == 0


@pytest.mark.parametrize("status", [500, 502, 403, 408])
def test_an_answer_to_a_post_is_its_result(status: int) -> None:
    """A GET would be asked again."""
    made, _ = world(request("api", **POST))

    made.answer(due(made), status)
    made.shard.commit(made.now)
    made.wait(600)

    assert made.start() == []
    assert record_of(made, SITE + "api").status == status


@pytest.mark.parametrize(("status", "headers"), [(429, {}), (503, {"retry_after": "2"})])
def test_a_post_that_was_refused_is_sent_again(status: int, headers: dict[str, str]) -> None:
    """It did nothing, and the mark that it was sent is gone until it leaves again."""
    made, _ = world(request("api", **POST))

    made.answer(due(made), status, **headers)
    made.shard.commit(made.now)
    after_refusal = next_owner(made).unanswered
    made.wait(600)
    again = due(made)

    assert after_refusal == set()
    assert again.url == SITE + "api"
    assert len(next_owner(made).unanswered) == 1


@pytest.mark.parametrize("error", [ErrorKind.TIMEOUT, ErrorKind.RESET, LocalError.NO_MEMORY])
def test_a_post_without_an_answer_is_not_repeated(error: Any) -> None:
    """It is unanswered, whatever went wrong, and can be asked for on purpose."""
    made, _ = world(request("api", **POST))

    made.answer(due(made), error=error)
    made.shard.commit(made.now)
    made.wait(600)

    assert made.start() == []
    (skipped,) = made.store.skipped()
    assert skipped.reason == f"unanswered: {error.value}"


def test_a_post_that_was_held_back_was_not_sent() -> None:
    """It is asked for again at once."""
    made, _ = world(request("api", **POST))
    (asked,) = made.shard.start_due(made.now, 9)

    made.answer(asked, error=LocalError.HELD)
    made.wait(1)

    assert due(made).url == SITE + "api"


@pytest.mark.parametrize("parts", [{"label": "x"}, {**POST, "is_idempotent": True}])
def test_what_may_be_repeated_is(parts: dict[str, Any]) -> None:
    """A GET, and what says that it is idempotent; with the same payload."""
    made, _ = world(request("api", **parts))
    first = due(made)

    made.answer(first, error=ErrorKind.TIMEOUT)
    made.shard.commit(made.now)
    made.wait(600)
    again = due(made)

    assert (again.url, again.method, again.body) == (first.url, first.method, first.body)
    assert again.payload == first.payload


def test_a_post_in_flight_at_a_crash_is_unanswered_for_the_next_owner() -> None:
    """It is dropped with that reason, and not sent; a GET is asked for again."""
    made, _ = world(request("api", **POST), request("get", label="x"))
    first = due(made)
    made.wait(1)
    second = due(made)

    later = next_owner(made)
    resumed = ShardWorld(SITE, store=later, is_resumed=True, now=made.now)
    resumed.pass_robots()
    resumed.wait(1)
    asked = resumed.start()
    resumed.shard.commit(resumed.now)

    assert {first.url, second.url} == {SITE + "api", SITE + "get"}
    assert [each.url for each in asked] == [SITE + "get"]
    assert [each.reason for each in later.skipped()] == ["unanswered"]


def test_a_post_that_cannot_be_noted_waits_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every try takes a new connection; the engine is told why."""
    made, _ = world(request("api", **POST))
    full = StoreFull("the disk is full")

    def note_sent(_seq: int) -> None:
        raise full

    with monkeypatch.context() as patched:
        patched.setattr(made.store, "note_sent", note_sent)
        (asked,) = made.shard.start_due(made.now, 9)
        has_left = leave(made, asked)
        made.answer(asked, error=LocalError.HELD)
    made.wait(0.5)
    at_once = made.shard.start_due(made.now, 9)
    made.wait(1)

    assert not has_left
    assert made.shard.sent_once.take_failure() is full
    assert made.shard.sent_once.take_failure() is None
    assert at_once == []
    assert due(made).url == SITE + "api"


def test_a_post_that_was_refused_stays_in_the_queue_although_that_cannot_be_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host has its pause, and the engine is told why the note failed."""
    made, _ = world(request("api", **POST))
    asked = due(made)
    full = StoreFull("the disk is full")

    def note_sent(_seq: int, *, is_refused: bool = False) -> None:
        if is_refused:
            raise full

    monkeypatch.setattr(made.store, "note_sent", note_sent)
    made.answer(asked, 429, retry_after="30")
    made.wait(600)

    assert made.shard.sent_once.take_failure() is full
    assert due(made).url == SITE + "api"


def test_a_post_whose_answer_has_no_room_was_answered() -> None:
    """Its record says so: it is not unanswered, and not sent again."""
    made, _ = world(request("api", **POST))

    made.answer(due(made), error=LocalError.NO_ROOM)
    made.shard.commit(made.now)
    made.wait(600)

    assert made.start() == []
    assert record_of(made, SITE + "api").error == "no_room"
    assert list(made.store.skipped()) == []


def test_nothing_that_is_sent_once_leaves_while_the_store_works() -> None:
    """Its note would go over the connection that waits for an answer."""
    made, _ = world(request("api", **POST))
    (asked,) = made.shard.start_due(made.now, 9)
    clock = VirtualClock(made.now.mono)
    fetcher = FakeFetcher(clock, {}, connect_s=lambda _: 0.1)
    wire = Wire(fetcher, MachineClocks(clock, 0.0), {0: made.shard})
    wire.start(asked)
    clock.advance(0.2)

    wire.serve()

    (answer,) = wire.take_arrived()
    assert answer.error is LocalError.HELD
    assert next_owner(made).unanswered == set()
