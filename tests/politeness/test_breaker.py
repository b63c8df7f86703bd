"""The breaker: its table, its clocks, and what may and may not move it."""

from __future__ import annotations

import random
from itertools import product

import pytest
from tests.politeness.cases import case

from mannerly.politeness import (
    Grant,
    Outcome,
    Permit,
    Politeness,
    Reason,
    Refuse,
    Response,
    Settings,
    Wait,
    events,
)
from mannerly.politeness.breaker import TRANSITIONS, Breaker, BreakerEvent, BreakerState
from mannerly.politeness.testing import retry_after

HOST = "example.com"
OK, NOT_FOUND = Response(200, 0.05), Response(404, 0.05)
REFUSED, FAILED = Response(429, 0.05), Response(503, 0.05)
CLOSED, OPEN, HALF_OPEN = BreakerState
TRIPPED, OPEN_TIME_OVER, PROBE_FAILED, PROBES_PASSED = BreakerEvent


# ---------------------------------------------------------------------- the table


def in_state(state: BreakerState) -> Breaker:
    """A breaker that was led there by legal events."""
    breaker = Breaker()
    if state is not CLOSED:
        breaker.move(TRIPPED)
    if state is HALF_OPEN:
        breaker.move(OPEN_TIME_OVER)
    return breaker


def fields(breaker: Breaker) -> dict[str, object]:
    return {name: getattr(breaker, name) for name in Breaker.__slots__}


def test_table_is_followed() -> None:
    """Four of twelve moves are legal; the others raise and change nothing."""
    for event, state in product(BreakerEvent, BreakerState):
        with case(event, state):
            breaker = in_state(state)
            before = fields(breaker)
            following = {
                (CLOSED, TRIPPED): OPEN,
                (OPEN, OPEN_TIME_OVER): HALF_OPEN,
                (HALF_OPEN, PROBE_FAILED): OPEN,
                (HALF_OPEN, PROBES_PASSED): CLOSED,
            }.get((state, event))

            if following is None:
                with pytest.raises(
                    ValueError, match=f"'{event.value}' is not possible while {state.value}"
                ):
                    breaker.move(event)
                assert fields(breaker) == before
            else:
                breaker.move(event)
                assert breaker.state is following
                assert breaker.generation == before["generation"] + 1  # type: ignore[operator]
                assert (breaker.probe, breaker.passed, breaker.consecutive) == (None, 0, 0)


def test_every_state_can_be_left() -> None:
    """No state is a trap: the table has a way out of each."""
    assert {state for state, _ in TRANSITIONS} == set(BreakerState)


def test_open_time_doubles_up_to_its_longest() -> None:
    """5, 10, 20 … 300 s, each a fifth more or less, and closing starts the count anew."""
    breaker, rng, settings = Breaker(), random.Random(3), Settings()
    rests_s = []

    breaker.open(TRIPPED, 0.0, settings, rng)
    for _ in range(9):
        rests_s.append(breaker.reopen_at)
        breaker.move(OPEN_TIME_OVER)
        breaker.open(PROBE_FAILED, 0.0, settings, rng)
    breaker.move(OPEN_TIME_OVER)
    breaker.close()
    breaker.open(TRIPPED, 0.0, settings, rng)

    for rest_s, base_s in zip(rests_s, [5, 10, 20, 40, 80, 160, 300, 300, 300], strict=True):
        assert 0.8 * base_s <= rest_s <= 1.2 * base_s
    assert breaker.reopen_at <= 6.0
    assert breaker.opens == 1


@pytest.mark.parametrize(
    ("consecutive", "failures", "answers", "trips"),
    [
        (4, 4, 9, False),
        (5, 5, 5, True),
        (0, 4, 9, False),
        (0, 5, 10, True),
        (0, 4, 10, False),
        (0, 9, 9, False),
        (0, 50, 100, True),
        (0, 49, 100, False),
    ],
)
def test_trips_on_share_or_on_a_run(
    consecutive: int, failures: int, answers: int, trips: bool
) -> None:
    """Half of at least ten answers, or five failures in a row."""
    breaker = Breaker()
    breaker.consecutive = consecutive

    assert breaker.should_trip(failures, answers, Settings()) is trips


# ---------------------------------------------------------------------- through the core


class Client:
    """One host of a real core, and every event it told."""

    def __init__(self, **options: object) -> None:
        settings = Settings(strategy="fixed", delay_s=0.1, seed=1, **options)  # type: ignore[arg-type]
        self.told: list[events.Event] = []
        self.core = Politeness(settings, on_event=self.told.append)
        self.now = 0.0

    def start(self) -> Permit:
        self.now = self.core.ready_at(HOST, now=self.now)
        decision = self.core.reserve(HOST, now=self.now)
        assert isinstance(decision, Grant), decision
        return decision.permit

    def send(self, *responses: Response) -> Outcome:
        for response in responses:
            permit = self.start()
            self.now += response.latency_s
            outcome = self.core.report(permit, response, now=self.now)
        return outcome

    @property
    def state(self) -> BreakerState:
        host = self.core.host(HOST)
        assert host is not None
        return host.breaker

    def times(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self.told)


def test_failed_probe_starts_the_count_of_probes_anew() -> None:
    """Two good probes, then a bad one: after the next open time it takes three good ones again."""
    client = Client()
    client.send(*[FAILED] * 5)
    client.send(OK, OK, FAILED)

    client.send(OK)
    after_one = client.state
    client.send(OK, OK)

    assert (after_one, client.state) == (BreakerState.HALF_OPEN, CLOSED)


def test_only_server_faults_trip() -> None:
    """5xx and network errors count; a page or a 404 ends a run; a throttle does neither."""
    cases: list[tuple[list[Response], BreakerState]] = [
        ([FAILED] * 4, CLOSED),
        ([FAILED] * 5, OPEN),
        ([FAILED] * 4 + [OK, OK] + [FAILED] * 4, OPEN),
        ([FAILED] * 4 + [OK] + [FAILED] * 3, CLOSED),
        ([FAILED] * 3 + [NOT_FOUND] + [FAILED] * 3 + [NOT_FOUND], CLOSED),
        ([FAILED] * 4 + [REFUSED] + [FAILED], OPEN),
        ([REFUSED] * 50, CLOSED),
        ([Response(503, 0.0, retry_after(1))] * 50, CLOSED),
        ([FAILED, REFUSED] * 4, CLOSED),
        ([FAILED, OK] * 5, CLOSED),
        ([OK, FAILED] * 5, OPEN),
        ([OK, OK, FAILED] * 20, CLOSED),
        ([Response(error="protocol"), Response(error="too_large")] * 20, CLOSED),
    ]
    for answers, state in cases:
        with case(answers, state):
            client = Client()
            client.send(OK)

            client.send(*answers)

            assert client.state is state


@pytest.mark.parametrize("kind", ["timeout", "connect", "dns", "tls", "reset"])
def test_network_errors_trip(kind: str) -> None:
    """A server that cannot be reached is in trouble as much as one that answers 500."""
    client = Client()

    client.send(*[Response(error=kind, latency_s=0.1)] * 5)

    assert client.state is OPEN


def test_open_breaker_refuses_until_its_rest_is_over() -> None:
    """While open every caller is told when to come back, and nothing starts before."""
    client = Client()
    client.send(*[FAILED] * 5)
    (opened,) = (event for event in client.told if isinstance(event, events.Opened))

    refusal = client.core.reserve(HOST, now=opened.until - 0.001)

    assert refusal == Refuse(opened.until, Reason.BREAKER_OPEN)
    assert client.core.ready_at(HOST, now=client.now) == opened.until
    assert client.core.snapshot().open == 1
    assert client.core.snapshot().denied == 1


def test_half_open_lets_one_probe_through() -> None:
    """While a probe is under way all others wait for its lease to end."""
    client = Client()
    client.send(*[FAILED] * 5)

    probe = client.start()
    other = client.core.reserve(HOST, now=client.now + 1.0)

    assert probe.is_probe
    assert other == Wait(client.now + 25.0, Reason.HALF_OPEN)
    assert client.core.ready_at(HOST, now=client.now) == client.now + 25.0
    assert client.core.snapshot().half_open == 1


def test_three_probes_in_turn_close() -> None:
    """The third success closes; the strategy is told to begin again at half its rate."""
    client = Client()
    client.core = Politeness(
        Settings(strategy="aimd", start_delay_s=0.5, seed=1), on_event=client.told.append
    )
    client.send(OK, *[Response(500, 0.05)] * 5)

    client.send(OK, OK)
    before = client.state
    client.send(OK)
    host = client.core.host(HOST)

    assert (before, client.state) == (HALF_OPEN, CLOSED)
    assert client.times(events.Closed) == 1
    assert host is not None
    assert host.rate == pytest.approx(0.5 * 2.1)
    assert host.error_rate == 0.0


def test_neutral_answers_prove_health() -> None:
    """A server that finds out that a page is missing is well."""
    client = Client()
    client.send(*[FAILED] * 5)

    client.send(*[NOT_FOUND] * 3)

    assert client.state is CLOSED


def test_throttled_probe_proves_nothing() -> None:
    """It neither closes nor opens, and gives its place to the next probe."""
    client = Client()
    client.send(*[FAILED] * 5)

    client.send(OK, OK, REFUSED)
    after_refusal = client.state
    client.send(OK)

    assert (after_refusal, client.state) == (HALF_OPEN, CLOSED)
    assert client.times(events.Opened) == 1


def test_first_failed_probe_opens_again_for_longer() -> None:
    """Two successes before it do not help."""
    client = Client()
    client.send(*[FAILED] * 5)

    client.send(OK, OK, FAILED)
    first, second = (event for event in client.told if isinstance(event, events.Opened))

    assert (first.times, second.times) == (1, 2)
    assert 8.0 <= second.until - second.at <= 12.0


def test_probe_that_vanished_counts_as_failed() -> None:
    """When its lease (request timeout and 5 s) is over, the breaker opens again."""
    client = Client(request_timeout_s=20.0)
    client.send(*[FAILED] * 5)
    probe = client.start()

    refusal = client.core.reserve(HOST, now=client.now + 25.0)

    assert isinstance(refusal, Refuse)
    assert refusal.until is not None
    assert 8.0 <= refusal.until - client.now - 25.0 <= 12.0
    assert client.core.snapshot().in_flight == 0
    assert client.core.report(probe, OK, now=client.now + 26.0) is Outcome.OK
    assert client.state is OPEN


def test_lease_runs_out_where_the_probe_holds_the_only_place() -> None:
    """With one place per host, too, `ready_at` names the end of the lease, not never."""
    client = Client(max_concurrency=1)
    client.send(*[FAILED] * 5)
    client.start()

    ready_at = client.core.ready_at(HOST, now=client.now)

    assert ready_at == client.now + 25.0
    assert isinstance(client.core.reserve(HOST, now=ready_at), Refuse)
    assert client.core.ready_at(HOST, now=ready_at) < ready_at + 12.1


def test_late_answer_of_a_vanished_probe_is_still_heeded() -> None:
    """It teaches nothing any more, but a Retry-After in it binds like any other."""
    client = Client()
    client.send(*[FAILED] * 5)
    probe = client.start()
    late = client.now + 26.0
    client.core.reserve(HOST, now=late)

    client.core.report(probe, Response(503, 26.0, retry_after(300)), now=late)

    assert client.core.ready_at(HOST, now=late) >= late + 300.0


def test_late_cancel_of_a_vanished_probe_is_void() -> None:
    """Its place was freed when the lease ran out; it is not freed twice."""
    client = Client()
    client.send(*[FAILED] * 5)
    probe = client.start()
    client.core.reserve(HOST, now=client.now + 25.0)
    before = client.core.host(HOST)

    client.core.cancel(probe, now=client.now + 26.0)

    assert client.core.host(HOST) == before


@pytest.mark.parametrize("was_sent", [False, True])
def test_cancelled_probe_returns_its_lease(was_sent: bool) -> None:
    """Another caller may probe at once (or a gap later, if the server saw the first)."""
    client = Client()
    client.send(*[FAILED] * 5)
    probe = client.start()

    client.core.cancel(probe, now=client.now, was_sent=was_sent)

    assert client.state is HALF_OPEN
    assert client.core.ready_at(HOST, now=client.now) == client.now + (0.125 if was_sent else 0.0)
    assert client.start().is_probe


def test_answer_from_before_the_opening_says_nothing() -> None:
    """Requests sent before the breaker opened neither close nor re-open it."""
    client = Client()
    old = [client.start() for _ in range(3)]
    client.send(*[FAILED] * 5)
    client.send(OK)

    for permit, response in zip(old, (OK, FAILED, FAILED), strict=True):
        client.core.report(permit, response, now=client.now)

    assert client.state is HALF_OPEN
    assert client.times(events.Opened) == 1
    client.send(OK, OK)
    assert client.state is CLOSED


def test_probe_waits_for_a_place() -> None:
    """While requests from before take every place no probe goes; a report makes room."""
    client = Client(max_concurrency=2, breaker_consecutive=1)
    old = client.start()
    client.send(FAILED)
    client.core.cancel(client.start(), now=client.now)
    client.core.revive(HOST, now=client.now)
    other = client.start()
    client.core.report(old, OK, now=client.now)
    client.send(FAILED)
    client.now = client.core.ready_at(HOST, now=client.now)

    probe = client.start()

    assert probe.is_probe
    assert client.core.snapshot().in_flight == 2
    client.core.report(other, OK, now=client.now)


def test_probe_keeps_the_gap_and_the_retry_after() -> None:
    """Half-open is no licence: the pacing clock and the server's word hold for probes."""
    client = Client()
    client.send(*[FAILED] * 5)
    client.send(Response(429, 0.0, retry_after(60)))

    wait = client.core.reserve(HOST, now=client.now + 1.0)

    assert isinstance(wait, Wait)
    assert wait.reason is Reason.RETRY_AFTER
    assert wait.until is not None
    assert wait.until >= client.now + 60.0


def test_tenth_opening_retires() -> None:
    """A host that opens ten times in a row is contacted no more, and the reason is told."""
    client = Client()
    client.send(*[FAILED] * 5)

    client.send(*[FAILED] * 9)
    (retired,) = (event for event in client.told if isinstance(event, events.Retired))

    assert client.core.reserve(HOST, now=1e9) == Refuse(None, Reason.RETIRED)
    assert client.core.ready_at(HOST, now=1e9) == float("inf")
    assert retired.reason == "breaker opened 10 times in a row"


def test_expired_lease_may_retire_too() -> None:
    """The last straw may be a probe that vanished."""
    client = Client(retire_after_opens=2)
    client.send(*[FAILED] * 5)
    client.start()

    decision = client.core.reserve(HOST, now=client.now + 25.0)

    assert decision == Refuse(None, Reason.RETIRED)


def test_revived_host_starts_with_a_closed_breaker() -> None:
    """Its openings are forgiven, and what is still under way belongs to the old breaker."""
    client = Client(retire_after_opens=1)
    old = [client.start() for _ in range(5)]
    client.send(*[FAILED] * 5)

    client.core.revive(HOST, now=client.now)
    for permit in old:
        client.core.report(permit, FAILED, now=client.now)

    assert client.state is CLOSED
    assert client.times(events.Revived) == 1
    assert client.send(OK) is Outcome.OK


@pytest.mark.parametrize("deed", ["pause", "retire"])
def test_operators_word_outlives_a_trip(deed: str) -> None:
    """Answers that come after the host was stopped open the breaker, but never the gate."""
    client = Client()
    permits = [client.start() for _ in range(6)]

    if deed == "pause":
        client.core.pause(HOST, now=client.now)
    else:
        client.core.retire(HOST, "enough", now=client.now)
    for permit in permits:
        client.core.report(permit, FAILED, now=client.now)

    assert client.state is OPEN
    decision = client.core.reserve(HOST, now=client.now + 1000.0)
    assert isinstance(decision, Refuse)
    assert decision.until is None


def test_operators_word_outlives_a_closing() -> None:
    """The last probe's success closes the breaker of a paused host, and it stays paused."""
    client = Client()
    client.send(*[FAILED] * 5)
    client.send(OK, OK)
    last = client.start()

    client.core.pause(HOST, now=client.now)
    client.core.report(last, OK, now=client.now)

    assert client.state is CLOSED
    assert client.core.reserve(HOST, now=client.now + 1.0) == Refuse(None, Reason.PAUSED)
    client.core.revive(HOST, now=client.now + 2.0)
    assert isinstance(client.core.reserve(HOST, now=client.now + 2.0), Grant)


def test_one_bad_host_leaves_others_alone() -> None:
    """The breaker of one host does not affect other hosts."""
    client = Client()

    client.send(*[FAILED] * 5)

    assert isinstance(client.core.reserve("other.example", now=client.now), Grant)


@pytest.mark.parametrize("strategy", ["learned", "linear", "aimd", "gradient", "fixed"])
@pytest.mark.parametrize("crawl_delay_s", [None, 1.0, 2.0, 5.0])
def test_breaker_opens_within_five_seconds_of_overload(
    strategy: str, crawl_delay_s: float | None
) -> None:
    """From the first failure on, at the start pace and with a Crawl-delay of up to five seconds."""
    seconds, failures = until_open(Settings(strategy=strategy, seed=1), crawl_delay_s)

    assert seconds <= 5.0 + 1e-9
    assert 2 <= failures <= 5


@pytest.mark.parametrize(("within_s", "needed"), [(5.0, 2), (25.0, 3), (1000.0, 5)])
def test_rare_requests_open_the_breaker_with_fewer_failures(within_s: float, needed: int) -> None:
    """At one request in ten seconds the second failure is enough, never the first."""
    settings = Settings(strategy="fixed", delay_s=10.0, breaker_within_s=within_s)

    seconds, failures = until_open(settings, None)

    assert failures == needed
    assert seconds == pytest.approx(10.0 * (needed - 1))


def until_open(settings: Settings, crawl_delay_s: float | None) -> tuple[float, int]:
    """Return the seconds from the first failure until the breaker opens, and the failures."""
    core = Politeness(settings)
    core.robots(HOST, crawl_delay_s=crawl_delay_s, now=0.0)
    now, first, failures = 0.0, 0.0, 0
    for response in (OK, OK, OK, *[Response(500, 0.05)] * 20):
        now = core.ready_at(HOST, now=now)
        decision = core.reserve(HOST, now=now)
        assert isinstance(decision, Grant)
        now += response.latency_s
        core.report(decision.permit, response, now=now)
        if response is not OK:
            failures += 1
            first = first or now
        host = core.host(HOST)
        if host is not None and host.breaker is OPEN:
            break
    return now - first, failures
