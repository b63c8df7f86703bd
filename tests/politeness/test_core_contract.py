"""The contract of the core, word for word: reserve, report, cancel, ready_at, robots, snapshot."""

from __future__ import annotations

from itertools import product
from math import inf, nan
from typing import TYPE_CHECKING

import pytest
from tests.politeness.cases import case

from mannerly.politeness import (
    Grant,
    Outcome,
    PermitError,
    Politeness,
    Reason,
    Refuse,
    Response,
    Settings,
    Wait,
    events,
)
from mannerly.politeness.testing import Transcript, retry_after

if TYPE_CHECKING:
    from mannerly.politeness import Permit

HOST = "example.com"
OK, REFUSED = Response(200, 0.05), Response(429, 0.05)
EVERY_SECOND = Settings(strategy="fixed", delay_s=1.0, seed=1)


def granted(core: Politeness, now: float, host: str = HOST) -> Permit:
    decision = core.reserve(host, now=now)
    assert isinstance(decision, Grant), decision
    return decision.permit


def test_decisions_match_as_the_document_shows() -> None:
    """A caller needs nothing but `match` to follow the core: Grant, Wait and Refuse."""
    core = Politeness(Settings(strategy="learned"))
    seen: list[object] = []

    for now in (12.5, 12.6):
        match core.reserve(HOST, now=now):
            case Grant(permit):
                seen.append(permit.sent_at)
            case Wait(until=t, reason=why):
                seen.append((t, why))
            case Refuse(until=t, reason=why):
                pytest.fail(f"refused until {t}: {why}")
    core.report(
        permit, Response(status=429, latency_s=0.03, headers={"retry-after": "700"}), now=13
    )
    match core.reserve(HOST, now=13.0):
        case Refuse(until=t, reason=why):
            seen.append(why)
        case other:
            pytest.fail(repr(other))

    assert seen == [12.5, (13.5, Reason.PACE), Reason.PARKED]
    assert t is not None
    assert 713.0 <= t <= 714.0


def test_wait_without_an_instant_ends_with_a_report() -> None:
    """When every place is taken only a report or a cancel can free one, and each of them does."""
    core = Politeness(Settings(strategy="fixed", delay_s=0.1, max_concurrency=2))
    first, second = granted(core, 0.0), granted(core, 1.0)

    full = core.reserve(HOST, now=2.0)
    core.report(first, OK, now=3.0)
    third = granted(core, 3.0)
    full_again = core.reserve(HOST, now=4.0)
    core.cancel(second, now=4.0)

    assert full == full_again == Wait(None, Reason.IN_FLIGHT)
    assert third.in_flight == 2
    assert isinstance(core.reserve(HOST, now=4.0), Grant)


def test_trial_is_alone() -> None:
    """After a refusal one request at a time shows whether the host takes any."""
    core = Politeness(Settings(seed=1))
    core.report(granted(core, 0.0), OK, now=0.1)
    core.report(granted(core, 1.0), REFUSED, now=1.1)
    trial_at = core.ready_at(HOST, now=1.1)

    trial = granted(core, trial_at)

    assert core.reserve(HOST, now=trial_at + 30.0) == Wait(None, Reason.TRIAL)
    core.report(trial, OK, now=trial_at + 30.0)
    assert isinstance(core.reserve(HOST, now=trial_at + 31.0), Grant)


def test_ready_at_of_an_unknown_host_is_now() -> None:
    """A host never heard of can be contacted at once, and asking makes no state."""
    core = Politeness(EVERY_SECOND)

    assert core.ready_at("unknown.example", now=7.0) == 7.0
    assert len(core) == 0
    assert core.host("unknown.example") is None


def test_ready_at_follows_every_clock() -> None:
    """It is the next slot, the end of a Retry-After, or infinite while only a report can help."""
    core = Politeness(Settings(strategy="fixed", delay_s=1.0, max_concurrency=1))

    permit = granted(core, 10.0)
    while_busy = core.ready_at(HOST, now=10.5)
    core.report(permit, OK, now=10.5)
    next_slot = core.ready_at(HOST, now=10.5)
    long_after = core.ready_at(HOST, now=99.0)
    core.report(granted(core, 99.0), Response(429, 0.0, retry_after(30)), now=99.0)
    blocked = core.ready_at(HOST, now=99.0)

    assert (while_busy, next_slot, long_after) == (inf, 11.0, 99.0)
    assert 129.0 <= blocked <= 130.0


# ---------------------------------------------------------------------- cancelling


def test_cancel_gives_the_slot_back() -> None:
    """A permit that was never sent leaves no trace: the next caller has its slot and its count."""
    core, log = Politeness(EVERY_SECOND), Transcript()

    permit = granted(core, 0.0)
    log.reserve(core, HOST, now=0.0)
    core.cancel(permit, now=0.0)
    log.reserve(core, HOST, now=0.0)

    assert str(log) == "W1.0 G0.0"
    assert core.snapshot().requests == 1
    assert core.snapshot().cancelled == 1


def test_chain_of_cancels_unwinds() -> None:
    """Cancelled from the latest to the first, all slots come back."""
    core = Politeness(EVERY_SECOND)
    permits = [granted(core, float(second)) for second in range(4)]

    ready = []
    for permit in reversed(permits):
        core.cancel(permit, now=3.0)
        ready.append(core.ready_at(HOST, now=0.0))

    assert ready == [3.0, 2.0, 1.0, 0.0]


def test_cancel_of_an_earlier_permit_moves_no_clock() -> None:
    """A later request did start, so the gap after it stands."""
    core = Politeness(EVERY_SECOND)
    first = granted(core, 0.0)
    granted(core, 1.0)

    core.cancel(first, now=1.0)

    assert core.ready_at(HOST, now=1.0) == 2.0
    assert core.snapshot().requests == 1


def test_cancel_of_a_sent_request_keeps_its_slot_taken() -> None:
    """The server has seen it, so it counts and the gap holds."""
    core = Politeness(EVERY_SECOND)
    permit = granted(core, 0.0)

    core.cancel(permit, now=0.2, was_sent=True)

    assert core.ready_at(HOST, now=0.2) == 1.0
    assert core.snapshot().requests == 1
    assert core.snapshot().in_flight == 0


def test_cancel_gives_a_token_of_a_burst_back() -> None:
    """In a bucket, too, the latest permit's token is there for the next caller."""
    core = Politeness(
        Settings(strategy="aimd", start_delay_s=0.5, min_delay_s=0.0, aimd_burst=4, max_rate=2.0)
    )
    log = Transcript()
    permits = [granted(core, 0.0) for _ in range(4)]

    log.reserve(core, HOST, now=0.0)
    core.cancel(permits[3], now=0.0)
    core.cancel(permits[2], now=0.0)
    for _ in range(3):
        log.reserve(core, HOST, now=0.0)

    assert str(log) == "W0.5 G0.0 G0.0 W0.5"


def test_cancel_among_starts_of_one_instant_is_not_taken_for_the_latest() -> None:
    """Where no gap was in force, a delay asked for later still counts from the last real start."""
    core = Politeness(Settings(strategy="fixed", max_rate="unlimited"))
    first = granted(core, 0.0)
    granted(core, 0.0)

    core.robots(HOST, crawl_delay_s=0.5, now=0.0)
    core.cancel(first, now=0.0)

    assert core.ready_at(HOST, now=0.1) == 0.5


def test_cancelled_event_is_told() -> None:
    """Cancelling a permit emits an event."""
    told: list[events.Event] = []
    core = Politeness(EVERY_SECOND, on_event=told.append)

    core.cancel(granted(core, 0.0), now=0.5)

    assert told == [events.Cancelled(HOST, 0.5)]


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("first", ["report", "cancel"])
@pytest.mark.parametrize("second", ["report", "cancel"])
def test_permit_is_settled_once(first: str, second: str) -> None:
    """A second report or cancel is the caller's mistake: it raises and changes nothing."""
    core = Politeness(EVERY_SECOND)
    permit = granted(core, 0.0)

    def settle(how: str) -> None:
        if how == "report":
            core.report(permit, REFUSED, now=0.5)
        else:
            core.cancel(permit, now=0.5)

    settle(first)
    before = core.snapshot()

    with pytest.raises(PermitError, match="already reported or cancelled"):
        settle(second)
    assert core.snapshot() == before


@pytest.mark.parametrize(
    "response",
    [
        Response(),
        Response(error="gremlins"),
        Response(-1),
        Response(1000),
        Response(200, latency_s=nan),
        Response(200, latency_s=inf),
        Response(200, latency_s=-0.1),
        Response(error="timeout", latency_s=nan),
    ],
    ids=repr,
)
def test_bad_response_leaves_the_permit_open(response: Response) -> None:
    """A response that makes no sense raises ValueError; the permit can still be settled."""
    core = Politeness(EVERY_SECOND)
    core.report(granted(core, 0.0), OK, now=0.1)
    permit = granted(core, 1.0)
    before = core.snapshot()

    with pytest.raises(ValueError, match=r"latency|status|error kind"):
        core.report(permit, response, now=1.1)

    assert core.snapshot() == before
    assert core.report(permit, OK, now=1.1) is Outcome.OK


@pytest.mark.parametrize("delay_s", [-1.0, inf, nan])
def test_nonsensical_crawl_delay_is_refused(delay_s: float) -> None:
    """A crawl delay is a finite number of seconds, at least 0."""
    with pytest.raises(ValueError, match="finite and at least 0"):
        Politeness().robots(HOST, crawl_delay_s=delay_s, now=0.0)


@pytest.mark.parametrize("host", ["", "no host", "exa mple.com"])
def test_what_is_no_host_is_refused(host: str) -> None:
    """A key that no server can have raises instead of getting a budget of its own."""
    with pytest.raises(ValueError, match="host"):
        Politeness().reserve(host, now=0.0)


# ---------------------------------------------------------------------- keys and groups


@pytest.mark.parametrize(
    "spelling", ["Example.COM:443", "https://example.com/page", "EXAMPLE.com.", "example.com:80"]
)
def test_spellings_share_one_budget(spelling: str) -> None:
    """However a host is written, it is one host with one pacing clock."""
    core = Politeness(EVERY_SECOND)
    granted(core, 0.0)

    assert core.reserve(spelling, now=0.5) == Wait(1.0, Reason.PACE)
    assert core.ready_at(spelling, now=0.5) == 1.0
    assert spelling in core
    assert len(core) == 1
    assert core.key(spelling) == HOST


def test_other_port_is_another_server() -> None:
    """Only the two web ports are the host itself."""
    core = Politeness(EVERY_SECOND)
    granted(core, 0.0)

    granted(core, 0.0, "example.com:8080")

    assert len(core) == 2


def test_site_shares_a_budget() -> None:
    """With group_by="site" the hosts of a registrable domain wait for each other."""
    core = Politeness(Settings(strategy="fixed", delay_s=1.0, group_by="site"))

    granted(core, 0.0, "www.example.co.uk")

    assert core.reserve("img.example.co.uk", now=0.5) == Wait(1.0, Reason.PACE)
    granted(core, 0.5, "other.co.uk")
    assert len(core) == 2


def test_sites_may_come_from_a_better_list() -> None:
    """A function of the caller's replaces the built-in rule."""
    core = Politeness(
        Settings(strategy="fixed", delay_s=1.0, group_by="site"), group_of=lambda host: host[-6:]
    )

    granted(core, 0.0, "one.github.io")
    granted(core, 0.0, "two.example")

    assert core.reserve("xyz-hub.io", now=0.5) == Wait(1.0, Reason.PACE)


def test_address_shares_a_budget() -> None:
    """With group_by="ip" hosts on one address wait for each other, and the caller resolves."""
    addresses = {"a.example": "192.0.2.1", "b.example": "192.0.2.1", "c.example": "192.0.2.2"}
    settings = Settings(strategy="fixed", delay_s=1.0, group_by="ip")
    core = Politeness(settings, group_of=addresses.__getitem__)

    granted(core, 0.0, "a.example")

    assert isinstance(core.reserve("b.example", now=0.5), Wait)
    granted(core, 0.5, "c.example")
    with pytest.raises(ValueError, match="needs group_of"):
        Politeness(settings)


def test_largest_crawl_delay_of_a_group_holds() -> None:
    """The longest Crawl-delay of a group holds, in whatever order they come."""
    core = Politeness(Settings(strategy="fixed", delay_s=0.5, group_by="site"))

    core.robots("a.example.com", crawl_delay_s=9.0, now=0.0)
    core.robots("b.example.com", crawl_delay_s=None, now=0.0)
    core.robots("c.example.com", crawl_delay_s=2.0, now=0.0)
    core.report(granted(core, 0.0, "b.example.com"), OK, now=0.1)

    assert core.ready_at("c.example.com", now=0.1) == 9.0


def test_newer_robots_file_of_a_host_replaces_the_older() -> None:
    """A single host's crawl delay can come down and go away."""
    core = Politeness(Settings(strategy="fixed", delay_s=0.5))
    ready = []

    core.report(granted(core, 0.0), OK, now=0.1)
    for delay_s in (9.0, 0.8, None):
        core.robots(HOST, crawl_delay_s=delay_s, now=0.1)
        ready.append(core.ready_at(HOST, now=0.1))

    assert ready == [9.0, 0.8, 0.5]


def test_forgotten_spellings_are_worked_out_anew() -> None:
    """The table of spellings is bounded; beyond it a spelling costs time, not correctness."""
    core = Politeness(EVERY_SECOND)
    granted(core, 0.0)

    for number in range(100_001):
        core.key(f"HOST{number}")

    assert core.reserve("Example.COM:443", now=0.5) == Wait(1.0, Reason.PACE)


# ---------------------------------------------------------------------- any time scale


def journey(settings: Settings, offset_s: float) -> list[tuple[float, str]]:
    """Eleven minutes of one host that grows slow, refuses and fails, seen from its own zero."""
    core = Politeness(settings)
    now = offset_s
    seen = []
    for number in range(600):
        now = max(now, core.ready_at(HOST, now=now))
        permit = granted(core, now)
        latency_s = 0.125 if number % 200 < 120 else 1.0
        now += latency_s
        status = 429 if number % 97 == 96 else 500 if number % 151 > 148 else 200
        core.report(permit, Response(status, latency_s), now=now)
        host = core.host(HOST)
        assert host is not None
        seen.append((permit.sent_at - offset_s, host.phase))
    return seen


def test_zero_of_the_clock_means_nothing() -> None:
    """Any monotonic scale will do: the same answers give the same starts, wherever it began."""
    for offset_s, strategy in product(
        [-(2.0**20) * 75, 2.0**20 * 75], ["learned", "linear", "aimd", "gradient", "fixed"]
    ):
        with case(offset_s, strategy):
            settings = Settings(strategy=strategy, max_rate=16.0, start_delay_s=0.5, seed=1)

            starts_s, phases = zip(*journey(settings, offset_s), strict=True)
            from_zero_s, phases_from_zero = zip(*journey(settings, 0.0), strict=True)

            assert phases == phases_from_zero
            assert starts_s == pytest.approx(from_zero_s, abs=0.001)


def test_gap_counts_from_a_contact_without_a_permit() -> None:
    """A request that was sent without a permit, or later than it, pushes the next one back."""
    core = Politeness(Settings(seed=1))

    core.contacted("example.com", now=5.0)

    assert core.not_before("EXAMPLE.com") == 6.0
    assert core.ready_at("example.com", now=5.5) == 6.0


def test_unknown_host_has_no_instant_to_wait_for() -> None:
    """Nothing is known of the host, so no clock forbids anything."""
    assert Politeness(Settings()).not_before("example.com") == float("-inf")
