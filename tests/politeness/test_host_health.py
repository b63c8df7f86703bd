"""One host in trouble: 403s, stalls, retries, the operator's hand, and what snapshots tell."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from mannerly.politeness import (
    GiveUp,
    Grant,
    Outcome,
    Politeness,
    Reason,
    Refuse,
    Response,
    Retry,
    Settings,
    events,
)
from mannerly.politeness.bounds import LONGEST_WAIT_S
from mannerly.politeness.breaker import BreakerState
from mannerly.politeness.testing import retry_after

if TYPE_CHECKING:
    from mannerly.politeness import HostSnapshot, Permit

HOST = "example.com"
OK, FORBIDDEN = Response(200, 0.05), Response(403, 0.05)
REFUSED, FAILED = Response(429, 0.05), Response(500, 0.05)


class Client:
    """One host, one request after the other."""

    def __init__(self, **options: Any) -> None:
        self.told: list[events.Event] = []
        self.core = Politeness(
            Settings(**{"strategy": "fixed", "seed": 1} | options), on_event=self.told.append
        )
        self.now = 0.0
        self.permit: Permit

    def send(self, *responses: Response) -> list[Outcome]:
        outcomes = []
        for response in responses:
            self.now = self.core.ready_at(HOST, now=self.now)
            decision = self.core.reserve(HOST, now=self.now)
            assert isinstance(decision, Grant), decision
            self.permit = decision.permit
            self.now += response.latency_s
            outcomes.append(self.core.report(self.permit, response, now=self.now))
        return outcomes

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    @property
    def host(self) -> HostSnapshot:
        host = self.core.host(HOST)
        assert host is not None
        return host


# ---------------------------------------------------------------------- 403


@pytest.mark.parametrize(
    ("pause_s", "outcome"),
    [(None, Outcome.NEUTRAL), (59.0, Outcome.UNDECIDED), (61.0, Outcome.NEUTRAL)],
)
def test_forbidden_without_a_recent_page_is_a_forbidden_page(
    pause_s: float | None, outcome: Outcome
) -> None:
    """Only a host that served us within the last minute can have changed its mind."""
    client = Client()
    if pause_s is not None:
        client.send(OK)
        client.now += pause_s

    assert client.send(FORBIDDEN) == [outcome]


def test_forbidden_with_retry_after_is_always_a_throttle() -> None:
    """The server says so itself, and that is not counted as a guess."""
    client = Client()

    outcomes = client.send(*[Response(403, 0.0, retry_after(1))] * 5)

    assert outcomes == [Outcome.THROTTLE] * 5
    assert client.send(OK, FORBIDDEN)[1] is Outcome.UNDECIDED


# ---------------------------------------------------------------------- stalls


def test_host_that_refuses_from_the_start_is_stalled() -> None:
    """Ten minutes of refusals and never a page: told once, under every strategy."""
    for strategy in ("learned", "linear", "aimd", "gradient", "fixed"):
        client = Client(strategy=strategy)

        while client.now < 900.0:
            client.send(REFUSED)
        (stalled,) = client.of(events.Stalled)

        assert stalled.at < 730.0


def test_page_ends_the_stall() -> None:
    """After a success the count starts anew, and a second stall is told again."""
    client = Client(stall_after_s=100.0)

    for _ in range(2):
        client.send(OK)
        until = client.now + 250.0
        while client.now < until:
            client.send(REFUSED)

    assert len(client.of(events.Stalled)) == 2


def test_rest_is_no_stall() -> None:
    """A host that was left alone for an hour and then refuses once is not stalled."""
    client = Client()
    client.send(OK)
    client.now += 3600.0

    client.send(REFUSED)

    assert client.of(events.Stalled) == []


def test_twenty_refusals_at_the_longest_delay_are_a_stall() -> None:
    """The other way to go nowhere: as slow as can be, and still refused."""
    client = Client(strategy="linear", max_delay_s=2.0)

    client.send(*[REFUSED] * 19)
    before = client.of(events.Stalled)
    client.send(REFUSED)

    assert before == []
    assert [event.throttles for event in client.of(events.Stalled)] == [20]


def test_missing_pages_are_no_stall() -> None:
    """A host that answers 404 for an hour is dull, not stalled."""
    client = Client(delay_s=60.0)

    client.send(*[Response(404)] * 60)

    assert client.of(events.Stalled) == []


# ---------------------------------------------------------------------- giving up


@pytest.mark.parametrize(
    ("bad", "latest"),
    [(REFUSED, "429"), (FAILED, "500"), (Response(error="timeout", latency_s=20.0), "timeout")],
)
def test_host_without_a_success_is_given_up_in_the_end(bad: Response, latest: str) -> None:
    """The time counts from the first refusal, and the reason says what came last."""
    client = Client(give_up_after_s=900.0, retire_after_opens=1000)
    client.send(OK)
    client.now += 5000.0

    while client.core.ready_at(HOST, now=client.now) < inf:
        client.send(bad)

    (retired,) = client.of(events.Retired)
    assert 5900.0 <= retired.at < 7500.0
    assert retired.reason.startswith("no success for ")
    assert retired.reason.endswith(f" s, latest: {latest}")
    assert client.host.gate is Reason.RETIRED


@pytest.mark.parametrize("good", [OK, Response(404, 0.05)])
def test_answer_in_between_makes_the_time_count_anew(good: Response) -> None:
    """A host that refuses a lot and serves a little is slow, not down."""
    client = Client(give_up_after_s=900.0)

    while client.now < 5000.0:
        client.send(REFUSED, REFUSED, good)

    assert client.of(events.Retired) == []


def test_revived_host_has_all_its_time_again() -> None:
    """What it refused before the operator took it back does not count."""
    client = Client(give_up_after_s=900.0)
    while client.core.ready_at(HOST, now=client.now) < inf:
        client.send(REFUSED)

    client.core.revive(HOST, now=client.now)
    client.send(REFUSED, REFUSED)

    assert len(client.of(events.Retired)) == 1


@pytest.mark.parametrize("status", [429, 503, 404, 301])
@pytest.mark.parametrize("value", ["9" * 5000, "3153600000", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_unreadably_long_retry_after_gives_the_host_up(status: int, value: str) -> None:
    """A hundred years are never waited, and nothing is sent meanwhile, whatever the status."""
    client = Client()
    headers = {"Retry-After": value, "Date": "Wed, 18 Nov 2026 12:00:00 GMT"}

    client.send(Response(status, 0.05, headers))

    (retired,) = client.of(events.Retired)
    assert retired.reason == "its Retry-After is 100 years or longer"
    assert client.core.ready_at(HOST, now=client.now + 1e9) == inf
    client.core.revive(HOST, now=client.now)
    assert client.core.ready_at(HOST, now=client.now) >= client.now + LONGEST_WAIT_S


@pytest.mark.parametrize("value", ["172800", "999999999", "3153599999"])
def test_long_retry_after_is_kept_in_full(value: str) -> None:
    """Two days are two days, and almost a hundred years are almost a hundred years."""
    client = Client()

    client.send(Response(503, 0.0, {"Retry-After": value}))

    assert client.core.ready_at(HOST, now=client.now) >= client.now + float(value)
    assert isinstance(client.core.reserve(HOST, now=0.999 * float(value)), Refuse)


def test_host_that_asks_for_a_pause_beyond_all_patience_waits_too_long() -> None:
    """So does the last one of a crawl, and the reason names the pause."""
    client = Client(give_up_after_s=900.0)
    client.send(OK, Response(503, 0.0, retry_after(800)))
    is_long_before = client.core.waits_too_long(HOST, now=client.now)
    client.send(Response(503, 0.0, retry_after(800)))

    is_long = client.core.waits_too_long(HOST, now=client.now)
    client.core.give_up_waiting(HOST, now=client.now)

    assert (is_long_before, is_long) == (False, True)
    (retired,) = client.of(events.Retired)
    assert retired.reason.startswith("no request allowed for 80")
    assert not client.core.waits_too_long(HOST, now=client.now)
    assert not client.core.waits_too_long("never.met", now=client.now)


# ---------------------------------------------------------------------- retries


def test_retry_waits_for_the_host() -> None:
    """Due when the host is ready, not before; counted and told."""
    client = Client()
    answer = Response(429, 0.0, retry_after(50))

    (outcome,) = client.send(answer)
    retry = client.core.retry(client.permit, answer, outcome, attempt=1, now=client.now)

    assert isinstance(retry, Retry)
    assert retry.due >= 50.0
    assert not retry.costs_attempt
    assert client.core.snapshot().retries == 1
    assert client.of(events.Retried) == [events.Retried(HOST, client.now, retry.due, 1)]


def test_retry_after_an_open_breaker_is_due_when_it_reopens() -> None:
    """A refusal of the breaker's costs no attempt and no early request."""
    client = Client()
    client.send(*[FAILED] * 5)

    retry = client.core.retry(client.permit, FAILED, Outcome.OVERLOAD, attempt=1, now=client.now)

    assert isinstance(retry, Retry)
    assert retry.due >= client.of(events.Opened)[0].until


def test_retry_of_what_stands_is_given_up() -> None:
    """A missing page is not asked for again, and nothing is counted."""
    client = Client()
    missing = Response(404, 0.05)

    (outcome,) = client.send(missing)
    verdict = client.core.retry(client.permit, missing, outcome, attempt=1, now=client.now)

    assert isinstance(verdict, GiveUp)
    assert client.core.snapshot().retries == 0


def test_retries_of_a_host_are_budgeted() -> None:
    """An outage costs ten retries, and later a tenth of the requests, not three each."""
    client = Client(retire_after_opens=1000, give_up_after_s=1e6)
    client.send(OK)
    verdicts = []

    for _ in range(40):
        (outcome,) = client.send(FAILED)
        verdicts.append(
            client.core.retry(client.permit, FAILED, outcome, attempt=1, now=client.now)
        )

    granted = sum(isinstance(verdict, Retry) for verdict in verdicts)
    assert 10 <= granted <= 14


# ---------------------------------------------------------------------- the operator


@pytest.mark.parametrize(("deed", "reason"), [("pause", Reason.PAUSED), ("retire", Reason.RETIRED)])
def test_stopped_host_refuses_until_it_is_revived(deed: str, reason: Reason) -> None:
    """No instant is named, because only the operator can change it."""
    client = Client()

    if deed == "pause":
        client.core.pause("EXAMPLE.com", now=0.0)
    else:
        client.core.retire("EXAMPLE.com", "enough", now=0.0)
    refusal = client.core.reserve(HOST, now=99.0)
    ready_at = client.core.ready_at(HOST, now=99.0)
    client.core.revive("EXAMPLE.com", now=100.0)

    assert refusal == Refuse(None, reason)
    assert ready_at == inf
    assert isinstance(client.core.reserve(HOST, now=100.0), Grant)


def test_host_that_is_no_longer_paused_has_its_open_breaker() -> None:
    """A pause does not forgive failures: only `revive` does."""
    client = Client()
    client.send(*[FAILED] * 5)
    before = client.core.reserve(HOST, now=client.now)
    client.core.pause(HOST, now=client.now)

    client.core.unpause(HOST, now=client.now)

    assert before.reason is Reason.BREAKER_OPEN
    assert client.core.reserve(HOST, now=client.now) == before


def test_host_that_was_not_paused_stays_retired() -> None:
    """The end of a pause takes back nothing else."""
    client = Client()
    client.core.retire(HOST, "enough", now=0.0)

    client.core.unpause(HOST, now=1.0)
    client.core.unpause("unknown.example", now=1.0)

    assert client.core.reserve(HOST, now=1.0) == Refuse(None, Reason.RETIRED)


def test_reviving_an_unknown_host_is_harmless() -> None:
    """There is nothing to revive, and no state is made for it."""
    core = Politeness()

    core.revive("unknown.example", now=0.0)

    assert len(core) == 0


def test_switched_off_core_grants_everything_and_keeps_the_books() -> None:
    """Off means no waiting at all; counting goes on."""
    client = Client(enabled=False)

    permits = []
    for _ in range(20):
        decision = client.core.reserve(HOST, now=1.0)
        assert isinstance(decision, Grant)
        permits.append(decision.permit)
    for permit in permits:
        client.core.report(permit, REFUSED, now=1.0)

    assert client.core.ready_at(HOST, now=1.0) == 1.0
    snapshot = client.core.snapshot()
    assert (snapshot.requests, snapshot.throttled, snapshot.in_flight) == (20, 20, 0)


# ---------------------------------------------------------------------- snapshots


def test_snapshot_of_an_unknown_and_of_a_busy_host() -> None:
    """The fields of both source documents are there, before and after there is anything in them."""
    client = Client(strategy="linear")
    client.core.robots(HOST, crawl_delay_s=None, now=0.0)
    fresh = client.host

    client.send(OK, Response(200, 0.4), REFUSED, FAILED, REFUSED)
    busy = client.host

    assert (fresh.phase, fresh.requests, fresh.latency_s, fresh.error_rate) == ("new", 0, 0.0, 0.0)
    assert fresh.breaker is BreakerState.CLOSED
    assert (busy.requests, busy.throttles, busy.failures, busy.error_streak) == (5, 2, 1, 2)
    assert busy.latency_s == 0.4
    assert busy.p95_latency_s == pytest.approx(0.4, rel=0.023)
    assert busy.error_rate == 0.25
    assert busy.adaptive_delay_s == busy.delay_s == 2.5
    assert busy.rate == 0.4
    assert busy.not_before >= client.now


def test_snapshot_shows_the_busiest_first() -> None:
    """First those with something under way or waiting, then by the number of requests."""
    core = Politeness(Settings())
    for host, visits in (("one.example", 1), ("three.example", 3)):
        for number in range(visits):
            decision = core.reserve(host, now=10.0 * number)
            assert isinstance(decision, Grant)
            core.report(decision.permit, OK, now=10.0 * number)
    core.reserve("open.example", now=0.0)
    core.waiting("awaited.example", 2, now=0.0)

    order = [host.host for host in core.snapshot().top]

    assert order == ["awaited.example", "open.example", "three.example", "one.example"]
    assert [host.host for host in core.snapshot(top=1).top] == order[:1]


def test_reprs_say_what_matters() -> None:
    """Permits, hosts, grants and the core can be read in a log or a failing test."""
    client = Client(delay_s=0.5)
    client.send(OK)

    decision = client.core.reserve(HOST, now=1.0)
    assert isinstance(decision, Grant)

    assert repr(decision) == "Grant(<Permit example.com sent_at=1.000 open>)"
    assert repr(client.permit) == "<Permit example.com sent_at=0.000 settled>"
    host = decision.permit.host
    assert repr(host) == "<HostState example.com 1/8 in flight, gap 0.500 s, not before 1.500>"
    client.core.pause(HOST, now=1.0)
    assert repr(host).endswith("1.500 paused>")
    assert repr(client.core) == "<Politeness fixed, 1 hosts>"
