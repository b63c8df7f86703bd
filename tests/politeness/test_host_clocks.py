"""One host's clocks: whose word sets the next start, and what it is called."""

from __future__ import annotations

from dataclasses import replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from tests.politeness.cases import case

from mannerly.politeness import (
    Grant,
    Politeness,
    Reason,
    Refuse,
    Response,
    Settings,
    Wait,
    events,
)
from mannerly.politeness.testing import retry_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.politeness import Permit

HOST = "example.com"
OK = Response(200, 0.0)


class Client:
    """One host, one request after the other."""

    def __init__(self, **options: Any) -> None:
        self.told: list[events.Event] = []
        self.core = Politeness(
            Settings(**{"strategy": "fixed", "seed": 1} | options), on_event=self.told.append
        )
        self.now = 0.0

    def start(self) -> Permit:
        self.now = self.core.ready_at(HOST, now=self.now)
        decision = self.core.reserve(HOST, now=self.now)
        assert isinstance(decision, Grant), decision
        return decision.permit

    def send(self, *responses: Response) -> None:
        for response in responses:
            self.core.report(self.start(), response, now=self.now)

    def blocked(self) -> tuple[float, Reason]:
        """Until when, from the last answer on, and why."""
        decision = self.core.reserve(HOST, now=self.now)
        assert isinstance(decision, Wait), decision
        assert decision.until is not None
        return decision.until - self.now, decision.reason


def crawl_delay(client: Client) -> None:
    client.core.robots(HOST, crawl_delay_s=3.0, now=0.0)
    client.send(OK)


def quota(client: Client) -> None:
    client.send(Response(200, 0.0, {"ratelimit": '"a";r=19;t=100'}))


def test_largest_wish_sets_the_clock_and_gives_its_name() -> None:
    """Every clock can be the one that is waited for, and says so."""
    cases: list[tuple[dict[str, Any], Callable[[Client], None], float, Reason]] = [
        ({"delay_s": 2.0}, lambda c: c.send(OK), 2.0, Reason.PACE),
        ({"strategy": "learned", "start_delay_s": 2.0}, lambda c: c.send(OK), 2.0, Reason.PACE),
        (
            {"min_delay_s": 0.5, "max_rate": 50.0},
            lambda c: c.send(OK),
            0.5,
            Reason.MIN_DELAY,
        ),
        ({"delay_s": 0.01}, lambda c: c.send(OK, OK), 0.125, Reason.MIN_DELAY),
        ({}, crawl_delay, 3.0, Reason.CRAWL_DELAY),
        ({}, quota, 100 / (0.95 * 19), Reason.RATE_LIMIT_HEADER),
        (
            {},
            lambda c: c.send(Response(200, 0.0, {"ratelimit": '"a";r=0;t=40'})),
            40.0,
            Reason.RATE_LIMIT_HEADER,
        ),
        ({}, lambda c: c.send(Response(429)), 1.0, Reason.BACKOFF),
        (
            {"delay_factor": 5.0},
            lambda c: c.send(OK, Response(200, 0.7)),
            3.5,
            Reason.DURATION_FACTOR,
        ),
        (
            {"max_bandwidth": 1000.0},
            lambda c: c.send(OK, Response(200, 0.0, bytes=4000)),
            4.0,
            Reason.BANDWIDTH,
        ),
    ]
    for options, act, wait_s, reason in cases:
        with case(options, act, wait_s, reason):
            client = Client(**options)

            act(client)

            waited_s, why = client.blocked()
            assert waited_s == pytest.approx(wait_s)
            assert why is reason


@pytest.mark.parametrize("form", ["seconds", "date", "odd case"])
def test_retry_after_is_honoured_in_every_form(form: str) -> None:
    """Seconds or date, however the name is written: nothing starts before, and little after."""
    client = Client()
    date = {
        "date": formatdate(1_000_000, usegmt=True),
        "retry-after": formatdate(1_000_030, usegmt=True),
    }
    headers = {"seconds": retry_after(30), "date": date, "odd case": {"RETRY-after": "30"}}[form]

    client.send(Response(503, 0.0, headers))
    waited_s, why = client.blocked()

    assert 30.0 <= waited_s <= 31.0
    assert why is Reason.RETRY_AFTER


def test_retry_after_on_a_page_means_something_else() -> None:
    """A 200 or 202 with that header delays nothing."""
    client = Client(delay_s=1.0)

    client.send(OK, Response(202, 0.0, retry_after(300)))

    assert client.blocked() == (1.0, Reason.PACE)


def test_retry_after_of_a_missing_page_is_honoured() -> None:
    """Retry-After is obeyed for every status that refuses a request."""
    client = Client(delay_s=1.0)

    client.send(Response(404, 0.0, retry_after(9)))

    assert client.core.ready_at(HOST, now=client.now) >= 9.0


def test_shorter_pause_does_not_shorten_a_longer_one() -> None:
    """`blocked_until` never decreases."""
    client = Client(delay_s=0.5)
    first, second = client.start(), client.start()

    client.core.report(first, Response(429, 0.0, retry_after(300)), now=client.now)
    until = client.core.ready_at(HOST, now=client.now)
    client.core.report(second, Response(429, 0.0, retry_after(1)), now=client.now)

    assert client.core.ready_at(HOST, now=client.now) == until


def test_long_retry_after_parks() -> None:
    """A pause of more than ten minutes is obeyed, and callers are refused instead of delayed."""
    client = Client()

    client.send(Response(429, 0.0, retry_after(601)))
    refusal = client.core.reserve(HOST, now=client.now)
    (parked,) = (event for event in client.told if isinstance(event, events.Parked))

    assert isinstance(refusal, Refuse)
    assert refusal == Refuse(parked.until, Reason.PARKED)
    assert 601.0 <= parked.until <= 602.0
    assert client.core.ready_at(HOST, now=client.now) == parked.until
    assert isinstance(client.core.reserve(HOST, now=parked.until), Grant)
    host = client.core.host(HOST)
    assert host is not None
    assert host.gate is None


def test_reviving_a_parked_host_breaks_no_promise() -> None:
    """The operator cannot take back the server's word: it is parked again at once."""
    client = Client()
    client.send(Response(429, 0.0, retry_after(700)))

    client.core.revive(HOST, now=1.0)

    refusal = client.core.reserve(HOST, now=1.0)
    assert isinstance(refusal, Refuse)
    assert refusal.reason is Reason.PARKED


def test_parked_host_whose_breaker_opened_probes_when_its_time_comes() -> None:
    """Both clocks hold, and the first request after them is a probe."""
    client = Client(delay_s=0.5)
    permits = [client.start() for _ in range(6)]

    client.core.report(permits[0], Response(429, 0.0, retry_after(700)), now=client.now)
    for permit in permits[1:]:
        client.core.report(permit, Response(500), now=client.now)

    assert client.core.ready_at(HOST, now=client.now) >= 700.0
    assert client.start().is_probe


# ---------------------------------------------------------------------- robots.txt


@pytest.mark.parametrize(
    ("policy", "delay_s", "wait_s"),
    [("respect", 60.0, 60.0), ("respect", 90.0, 90.0), ("cap", 90.0, 60.0), ("cap", 5.0, 5.0)],
)
def test_long_crawl_delay_is_respected_or_capped(
    policy: str, delay_s: float, wait_s: float
) -> None:
    """Up to a minute it is simply waited for; above, the operator has chosen."""
    client = Client(long_crawl_delay=policy)

    client.core.robots(HOST, crawl_delay_s=delay_s, now=0.0)
    client.send(OK)

    assert client.blocked() == (wait_s, Reason.CRAWL_DELAY)
    told = [events.LongCrawlDelay(HOST, 0.0, delay_s, wait_s)] if delay_s > 60.0 else []
    assert client.told == told


def test_long_crawl_delay_may_skip_the_host() -> None:
    """Whoever has no patience leaves the host alone altogether."""
    client = Client(long_crawl_delay="skip_host")

    client.core.robots(HOST, crawl_delay_s=90.0, now=0.0)

    assert client.core.reserve(HOST, now=0.0) == Refuse(None, Reason.RETIRED)
    assert client.told == [events.Retired(HOST, 0.0, "crawl-delay of 90 s")]


@pytest.mark.parametrize(("delay_s", "limit"), [(0.9, 8), (1.0, 1)])
def test_crawl_delay_of_a_second_means_one_at_a_time(delay_s: float, limit: int) -> None:
    """A site that counts seconds does not expect parallel requests."""
    client = Client(delay_s=0.5)

    client.core.robots(HOST, crawl_delay_s=delay_s, now=0.0)
    host = client.core.host(HOST)

    assert host is not None
    assert (host.concurrency, host.crawl_delay_s) == (limit, delay_s)


def test_learned_pace_never_undercuts_the_crawl_delay() -> None:
    """The delay in force is the larger of the two, in both directions."""
    client = Client(strategy="linear")
    client.core.robots(HOST, crawl_delay_s=2.0, now=0.0)
    delays = []

    for answer in (OK, Response(429), Response(429), Response(429)):
        client.send(answer)
        host = client.core.host(HOST)
        assert host is not None
        delays.append(host.delay_s)

    assert delays == [2.0, 2.0, 2.5, 3.5]


# ---------------------------------------------------------------------- RateLimit headers


def test_fresh_quota_replaces_the_estimate_both_ways() -> None:
    """Exact beats inferred: a generous quota speeds up, within the operator's ceiling."""
    client = Client(strategy="learned", start_delay_s=2.0)

    client.send(OK, Response(200, 0.0, {"ratelimit": '"a";r=1000;t=10'}))
    faster_s, _ = client.blocked()
    client.now += 20.0
    client.send(OK)

    assert faster_s == 0.125
    assert client.blocked() == (2.0, Reason.PACE)


def test_concurrent_quota_does_not_lift_other_limits() -> None:
    """A server that allows five at once gets one trial at a time after it refused."""
    client = Client(strategy="learned")
    policy = {"ratelimit-policy": '"c";q=5;qu="concurrent-requests"'}

    client.send(OK, OK, Response(200, 0.0, policy))
    allowed = client.core.host(HOST)
    client.send(Response(429, 0.0, policy))
    refused = client.core.host(HOST)

    assert allowed is not None
    assert refused is not None
    assert (allowed.concurrency, refused.concurrency) == (5, 1)


def test_concurrent_quota_is_a_cap() -> None:
    """`qu="concurrent-requests"` limits what is under way, to one at least."""
    client = Client()
    policy = {"ratelimit-policy": '"c";q=2;qu="concurrent-requests"'}

    client.send(OK, Response(200, 0.0, policy))
    host = client.core.host(HOST)

    assert host is not None
    assert host.concurrency == 2


def test_byte_quota_is_a_bandwidth() -> None:
    """`qu="content-bytes"` makes a large page earn a longer rest."""
    client = Client(delay_s=0.5)
    policy = {"ratelimit-policy": '"b";q=1000;w=10;qu="content-bytes"'}

    client.send(OK, Response(200, 0.0, policy, bytes=2000))
    waited_s, why = client.blocked()

    assert waited_s >= 20.0
    assert why is Reason.BANDWIDTH


def test_low_remaining_quota_without_a_date_halves_the_pace() -> None:
    """Nine of a hundred left and no reset time: half the rate."""
    client = Client(strategy="learned", start_delay_s=1.0)

    client.send(OK, Response(200, 0.0, {"x-ratelimit-limit": "100", "x-ratelimit-remaining": "9"}))

    assert client.blocked()[0] == 2.0


def test_headers_can_be_ignored() -> None:
    """The operator may know that they lie; Retry-After is obeyed all the same."""
    client = Client(rate_limit_headers=False, delay_s=1.0)

    client.send(OK, Response(200, 0.0, {"ratelimit": '"a";r=0;t=40'}))
    ignored = client.blocked()
    client.send(Response(429, 0.0, retry_after(30)))

    assert ignored == (1.0, Reason.PACE)
    assert client.blocked()[0] >= 30.0


# ---------------------------------------------------------------------- burst


def test_burst_counts_only_without_a_floor_and_crawl_delay() -> None:
    """A minimum delay or a Crawl-delay forces strict spacing, whatever the bucket holds."""
    options = {"strategy": "aimd", "aimd_burst": 4, "max_rate": 2.0, "start_delay_s": 0.5}
    free, floored, asked = (
        Client(**options, min_delay_s=0.0),
        Client(**options, min_delay_s=0.1),
        Client(**options, min_delay_s=0.0),
    )
    asked.core.robots(HOST, crawl_delay_s=0.7, now=0.0)

    starts = []
    for client in (free, floored, asked):
        starts.append([round(client.start().sent_at, 3) for _ in range(5)])

    assert starts == [
        [0.0, 0.0, 0.0, 0.0, 0.5],
        [0.0, 0.5, 1.0, 1.5, 2.0],
        [0.0, 0.7, 1.4, 2.1, 2.8],
    ]


def test_long_rest_earns_no_burst() -> None:
    """With a capacity of one, a day of silence is worth one request."""
    client = Client(delay_s=1.0)
    client.send(OK)
    client.now = 86_400.0

    client.start()

    assert client.blocked() == (1.0, Reason.PACE)


@pytest.mark.parametrize("strategy", ["learned", "fixed", "linear", "aimd", "gradient"])
def test_looking_at_a_host_changes_nothing_that_it_does(strategy: str) -> None:
    """A deferred sample is learned from in the end."""
    answers = [Response(200, 0.1), Response(200, 0.3), Response(429, 0.1), Response(200, 0.2)] * 4
    watched, unseen = Client(strategy=strategy), Client(strategy=strategy)

    for answer in answers:
        for client in (watched, unseen):
            client.send(answer)
        watched.core.host(HOST)

    assert watched.now == unseen.now
    assert watched.core.host(HOST) == unseen.core.host(HOST)


def test_second_success_can_be_seen_at_once() -> None:
    """A host that answered two requests has a latency and a phase in its snapshot."""
    client = Client(strategy="learned")

    client.send(Response(200, 0.1), Response(200, 0.3))

    seen = client.core.host(HOST)
    assert seen is not None
    assert (seen.phase, seen.latency_s) == ("climb", 0.3)


def test_gap_counts_from_when_a_request_has_left() -> None:
    """A connection that took two seconds to open does not shorten the gap before the next one."""
    client = Client(delay_s=1.0)
    permit = client.start()

    client.core.sent(permit, now=2.0)
    client.core.report(permit, OK, now=2.1)

    assert client.core.ready_at(HOST, now=2.1) == 3.0


# ---------------------------------------------------------------------- the moment of sending


def pause(client: Client) -> None:
    client.core.pause(HOST, now=client.now)


def retire(client: Client) -> None:
    client.core.retire(HOST, "by the operator", now=client.now)


def longer_crawl_delay(client: Client) -> None:
    client.core.robots(HOST, crawl_delay_s=60.0, now=client.now)


def slower(client: Client) -> None:
    settings = client.core.settings
    client.core.configure(replace(settings, delay_s=60.0))


@pytest.mark.parametrize("happens", [pause, retire, longer_crawl_delay, slower])
def test_request_does_not_leave_if_something_happened_while_it_connected(
    happens: Callable[[Client], None],
) -> None:
    """A permit is not the last word: what holds when the bytes leave, holds."""
    client = Client(delay_s=1.0)
    first = client.start()
    left = client.core.may_leave(first, now=client.now)
    connecting = client.start()

    happens(client)
    client.now += 5.0

    assert left
    assert not client.core.may_leave(connecting, now=client.now)


def test_request_does_not_leave_inside_a_retry_after() -> None:
    """One was answered with a pause while the other's connection was being opened."""
    client = Client(delay_s=1.0)
    first, connecting = client.start(), client.start()
    client.core.may_leave(first, now=client.now)

    client.core.report(first, Response(503, 0.5, retry_after(30)), now=client.now)
    inside = client.core.may_leave(connecting, now=client.now + 29.0)
    after = client.core.may_leave(connecting, now=client.now + 32.0)

    assert (inside, after) == (False, True)


def test_request_from_before_does_not_leave_when_the_breaker_has_opened() -> None:
    """Neither while it is open nor while it is half-open; only its own probe does."""
    client = Client(delay_s=1.0, breaker_consecutive=2)
    old, first, second = client.start(), client.start(), client.start()
    failed = Response(500, 0.5)
    client.core.report(first, failed, now=client.now)
    client.core.report(second, failed, now=client.now)
    while_open = client.core.may_leave(old, now=client.now + 1.0)
    probe = client.start()

    assert not while_open
    assert not client.core.may_leave(old, now=client.now + 1.0)
    assert client.core.may_leave(probe, now=client.now + 1.0)


def test_requests_that_connected_together_do_not_leave_together() -> None:
    """The gap counts from when the one before left, and a cancelled one costs nothing."""
    client = Client(delay_s=1.0)
    first, second = client.start(), client.start()

    leaves = [client.core.may_leave(first, now=5.0), client.core.may_leave(second, now=5.5)]
    client.core.sent(first, now=5.0)
    client.core.cancel(second, now=5.5)

    assert leaves == [True, False]
    assert client.core.ready_at(HOST, now=5.5) == 6.0


def test_request_leaves_at_once_where_nothing_is_asked_for() -> None:
    """A core that is switched off lets everything leave."""
    client = Client(enabled=False, delay_s=1.0)
    permits = [client.start() for _ in range(3)]
    client.core.pause(HOST, now=0.0)

    assert [client.core.may_leave(permit, now=0.0) for permit in permits] == [True] * 3
