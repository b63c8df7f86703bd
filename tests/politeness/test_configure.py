"""Settings that change while hosts are being contacted: no limit is broken, nothing is forgotten.

The property test judges every grant by the settings that were in force at that instant. It shares
no code with the core: the model knows what was configured, granted and asked for by servers.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mannerly.politeness import GiveUp, Grant, Politeness, Response, Retry, Settings, Wait
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.pace import Lesson

STRATEGIES = ("learned", "linear", "aimd", "gradient", "fixed")
ALL = pytest.mark.parametrize("strategy", STRATEGIES)
OK, REFUSED = Response(200, 0.05), Response(429, 0.05)
HOST, OTHER = "a.example", "b.example"


def unhurried(**options: Any) -> Settings:
    usual: dict[str, Any] = {"seed": 1, "max_rate": 20.0}
    return Settings(**usual | options)


def run(core: Politeness, requests: int, now: float, response: Response = OK) -> float:
    """Send requests one after the other, each as early as it may go; return the instant."""
    for _ in range(requests):
        now = max(now, core.ready_at(HOST, now=now))
        decision = core.reserve(HOST, now=now)
        assert isinstance(decision, Grant)
        now += response.latency_s
        core.report(decision.permit, response, now=now)
    return now


def gap_s(core: Politeness, host: str = HOST) -> float:
    seen = core.host(host)
    assert seen is not None
    return seen.delay_s


def learned_limit(core: Politeness) -> tuple[float, int]:
    """Return the rate and the concurrency that the strategy of the host has arrived at."""
    strategy = core._hosts[HOST].strategy
    assert strategy is not None
    return strategy.rate, strategy.concurrency


# ---------------------------------------------------------------------- all hosts


@ALL
def test_same_settings_change_nothing(strategy: str) -> None:
    """Neither once nor ten times: what was learned does not fade with every change elsewhere."""
    settings = unhurried(strategy=strategy)
    core = Politeness(settings)
    now = run(core, 60, 0.0)
    now = run(core, 1, now, REFUSED)
    now = run(core, 10, now)
    before = core.host(HOST), learned_limit(core)

    for _ in range(10):
        core.configure(replace(settings))

    assert (core.host(HOST), learned_limit(core)) == before


@ALL
def test_lower_rate_holds_from_the_next_request_on(strategy: str) -> None:
    """The gap counts from the last start, also from one before the change."""
    core = Politeness(unhurried(strategy=strategy, min_delay_s=0.0))
    now = run(core, 20, 0.0)
    last = core._hosts[HOST].base_at

    core.configure(unhurried(strategy=strategy, min_delay_s=0.0, max_rate=0.5))

    assert core.ready_at(HOST, now=now) >= last + 2.0
    assert isinstance(core.reserve(HOST, now=last + 1.99), Wait)
    assert isinstance(core.reserve(HOST, now=max(now, core.ready_at(HOST, now=now))), Grant)


@ALL
def test_higher_rate_is_used_again(strategy: str) -> None:
    """A rate that was lowered by the operator only is not taken for the limit of the host."""
    fast = unhurried(strategy=strategy, max_rate=4.0)
    core = Politeness(fast)
    now = run(core, 200, 0.0)
    before = gap_s(core)

    core.configure(replace(fast, max_rate=0.5))
    slow = gap_s(core)
    now = run(core, 5, now)
    core.configure(fast)
    run(core, 200, now)

    assert slow >= 2.0
    assert gap_s(core) == pytest.approx(before, rel=0.1)


def test_limit_that_was_found_by_refusals_is_kept_above_a_lower_rate() -> None:
    """`learned` goes back to the host's own limit at once when the operator allows it again."""
    settings = unhurried(max_rate=8.0)
    core = Politeness(settings)
    now = run(core, 60, 0.0)
    now = run(core, 1, now, REFUSED)
    now = run(core, 20, now)
    before = learned_limit(core)

    core.configure(replace(settings, max_rate=0.2))
    lowered = learned_limit(core)
    core.configure(settings)

    assert lowered[0] == pytest.approx(0.2)
    assert learned_limit(core) == before
    assert before[0] < 8.0


def test_climb_that_the_operator_had_ended_goes_on() -> None:
    """A host that never refused anything is not held at the old maximum until the next probe."""
    core = Politeness(unhurried(max_rate=2.0))
    now = run(core, 100, 0.0)
    assert gap_s(core) == pytest.approx(0.5)

    core.configure(unhurried(max_rate=8.0))
    now = run(core, 40, now)

    assert gap_s(core) < 0.3


@ALL
def test_fewer_requests_in_flight_are_allowed_at_once_and_more_again(strategy: str) -> None:
    """Requests under way are not affected; the next one waits until there is room."""
    core = Politeness(unhurried(strategy=strategy))
    now = run(core, 30, 0.0)
    first, second = core.reserve(HOST, now=now + 100), core.reserve(HOST, now=now + 200)
    assert isinstance(first, Grant)
    assert isinstance(second, Grant)

    core.configure(replace(core.settings, max_concurrency=1))

    assert isinstance(core.reserve(HOST, now=now + 300), Wait)
    core.report(first.permit, OK, now=now + 300)
    assert isinstance(core.reserve(HOST, now=now + 400), Wait)
    core.report(second.permit, OK, now=now + 400)
    assert isinstance(core.reserve(HOST, now=now + 500), Grant)
    assert isinstance(core.reserve(HOST, now=now + 600), Wait)
    core.configure(replace(core.settings, max_concurrency=8))
    assert isinstance(core.reserve(HOST, now=now + 600), Grant)


@ALL
def test_retry_after_and_crawl_delay_outlive_every_change(strategy: str) -> None:
    """They are the server's words, not the operator's."""
    core = Politeness(unhurried(strategy=strategy))
    core.robots(HOST, crawl_delay_s=7.0, now=0.0)
    now = run(core, 2, 0.0)
    permit = core.reserve(HOST, now=(now := core.ready_at(HOST, now=now)))
    assert isinstance(permit, Grant)
    core.report(permit.permit, Response(429, 0.0, {"Retry-After": "100"}), now=now)

    for rate in (0.1, "unlimited", 20.0):
        core.configure(unhurried(strategy=strategy, max_rate=rate, min_delay_s=0.0))
        assert core.ready_at(HOST, now=now) >= now + 100.0
    then = core.ready_at(HOST, now=now)
    assert isinstance(core.reserve(HOST, now=then), Grant)
    assert core.not_before(HOST) >= then + 7.0


def test_another_strategy_starts_from_what_was_learned() -> None:
    """The lesson is handed over, as between two runs."""
    core = Politeness(unhurried(strategy="aimd"))
    run(core, 100, 0.0)
    rate, _ = learned_limit(core)

    core.configure(unhurried(strategy="learned"))

    assert learned_limit(core)[0] == pytest.approx(0.9 * 0.98 * rate)


def test_groups_cannot_change() -> None:
    """Hosts would have to be counted together that were counted apart."""
    core = Politeness(unhurried())
    with pytest.raises(ValueError, match="group_by cannot change while running"):
        core.configure(unhurried(group_by="site"))


# ---------------------------------------------------------------------- one host


@pytest.mark.parametrize("rate", [0.5, 40.0])
def test_own_settings_win_over_those_of_all_hosts_in_both_directions(rate: float) -> None:
    """Whichever was configured last."""
    settings = unhurried(strategy="gradient", max_rate=4.0, min_delay_s=0.0)
    core = Politeness(settings)
    for host in (HOST, OTHER):
        core.reserve(host, now=0.0)

    core.configure(replace(settings, max_rate=rate), host=f"HTTPS://{HOST}/".split("/")[2])
    core.configure(replace(settings, max_rate=2.0))

    assert gap_s(core) == 1.0 / rate
    assert gap_s(core, OTHER) == 0.5
    assert core.settings_of(HOST).max_rate == rate
    assert core.settings_of(OTHER).max_rate == 2.0


def test_own_settings_survive_eviction_and_recall() -> None:
    """The state of an idle host is dropped, what the operator set for it is not."""
    settings = unhurried(strategy="learned", max_rate=4.0, idle_ttl_s=10.0)
    core = Politeness(settings)
    core.configure(replace(settings, max_rate=12.0, max_concurrency=3), host=HOST)
    run(core, 1, 0.0)
    for second in range(100, 110):
        core.reserve(f"{second}.example", now=float(second))
    was_evicted = HOST not in core

    record = Remembered(
        host=HOST, lesson=Lesson(delay_s=0.1), crawl_delay_s=0.0, blocked_until=0.0, updated_at=0.0
    )
    core.recall(record, now=200.0, wall=0.0)

    assert was_evicted
    # 0.9: see `recall`; a strategy with the settings of the crawl would stop at 4 requests/s.
    assert learned_limit(core) == (pytest.approx(0.98 * 0.9 * 10.0), 3)


def test_host_can_be_configured_before_it_is_met() -> None:
    """A control record is read before the first turn of its host."""
    core = Politeness(unhurried())
    core.configure(unhurried(delay_s=3.0), host=HOST)

    core.reserve(HOST, now=0.0)

    assert core.not_before(HOST) == 3.0


def test_unlearned_host_starts_anew_but_waits_as_long_as_it_was_asked_to() -> None:
    """The pace and the Crawl-delay are gone, a Retry-After is not."""
    settings = unhurried(max_rate=8.0)
    core = Politeness(settings, remember=True)
    now = run(core, 100, 0.0)
    core.robots(HOST, crawl_delay_s=5.0, now=now)
    start = Politeness(settings)
    start.reserve(HOST, now=0.0)
    grant = core.reserve(HOST, now=(now := core.ready_at(HOST, now=now)))
    assert isinstance(grant, Grant)
    core.report(grant.permit, Response(503, 0.0, {"Retry-After": "50"}), now=now)

    core.unlearn(HOST)

    assert gap_s(core) == gap_s(start)
    assert core.ready_at(HOST, now=now) >= now + 50.0
    assert core.drain(now=now, wall=0.0) == []


def test_unlearning_an_unknown_host_does_nothing() -> None:
    """It has learned nothing."""
    core = Politeness(unhurried())
    core.unlearn("never.met.example")
    assert len(core) == 0


# ---------------------------------------------------------------------- whatever comes in between

rates = st.sampled_from([0.25, 1.0, 4.0, 20.0, "unlimited"])
delays_s = st.sampled_from([None, 0.2, 1.5])
limits = st.integers(1, 5)
changes = st.tuples(
    st.just("configure"), st.sampled_from([None, HOST, OTHER]), rates, delays_s, limits
)
answers = st.tuples(
    st.just("answer"), st.sampled_from([200, 200, 200, 404, 429, 503]), st.sampled_from([0, 0, 9])
)
starts = st.tuples(st.just("start"), st.sampled_from([HOST, OTHER]))
waits = st.tuples(st.just("wait"), st.sampled_from([0.0, 0.01, 0.3, 2.0, 40.0]))
unlearns = st.tuples(st.just("unlearn"), st.sampled_from([HOST, OTHER]))
steps = st.lists(
    st.one_of(starts, starts, starts, answers, answers, waits, waits, changes, unlearns),
    min_size=20,
    max_size=150,
)


@hypothesis_settings(max_examples=300, deadline=None)
@given(strategy=st.sampled_from(STRATEGIES), steps=steps)
def test_every_grant_obeys_the_settings_of_its_instant(
    strategy: str, steps: list[tuple[Any, ...]]
) -> None:
    """Gap, requests in flight and Retry-After; own settings of a host instead of the crawl's."""
    common = Settings(strategy=strategy, seed=1, breaker_consecutive=3)
    core = Politeness(common)
    own: dict[str, Settings] = {}
    last = {HOST: -inf, OTHER: -inf}
    blocked = {HOST: -inf, OTHER: -inf}
    under_way: dict[str, list[Any]] = {HOST: [], OTHER: []}
    now = 0.0
    for step in steps:
        match step:
            case ("wait", pause_s):
                now += pause_s
            case ("configure", host, rate, delay_s, limit):
                changed = replace(common, max_rate=rate, delay_s=delay_s, max_concurrency=limit)
                core.configure(changed, host=host)
                if host is None:
                    common = changed
                else:
                    own[host] = changed
            case ("unlearn", host):
                core.unlearn(host)
            case ("answer", status, retry_s):
                headers = {"Retry-After": str(retry_s)} if retry_s else {}
                asked_s = retry_s if status >= 400 else -inf
                for host in [host for host, permits in under_way.items() if permits]:
                    permit = under_way[host].pop(0)
                    core.report(permit, Response(status, 0.05, headers), now=now)
                    blocked[host] = max(blocked[host], now + asked_s)
            case ("start", host):
                decision = core.reserve(host, now=now)
                if not isinstance(decision, Grant):
                    continue
                settings = own.get(host, common)
                least_s = max(settings.floor_s, 1.0 / settings.rate_ceiling)
                assert now - last[host] >= least_s - 1e-9
                assert now >= blocked[host]
                assert len(under_way[host]) < settings.max_concurrency
                last[host] = now
                under_way[host].append(decision.permit)
    for host, settings in own.items():
        assert core.settings_of(host) == settings


# ---------------------------------------------------------------------- one host


def test_host_can_be_excepted_from_pacing() -> None:
    """Its requests are granted at once, those of others wait; it can be paced again."""
    core = Politeness(unhurried())
    core.configure(unhurried(enabled=False), host=HOST)
    for host in (HOST, OTHER):
        assert isinstance(core.reserve(host, now=0.0), Grant)

    at_once = [core.reserve(host, now=0.0) for host in (HOST, OTHER)]
    ready = [core.ready_at(host, now=0.0) for host in (HOST, OTHER)]
    core.configure(unhurried(), host=HOST)

    assert [type(each) for each in at_once] == [Grant, Wait]
    assert (ready[0], ready[1] > 0.0) == (0.0, True)
    assert isinstance(core.reserve(HOST, now=0.0), Wait)


def test_host_has_its_own_retries() -> None:
    """How often and for which statuses a request is repeated is a matter of each host."""
    core = Politeness(unhurried(retry_budget=1.0))
    core.configure(unhurried(retry_budget=1.0, max_attempts=1), host=HOST)
    answer, decided = Response(502, 0.05), []

    for host in (HOST, OTHER):
        decision = core.reserve(host, now=0.0)
        assert isinstance(decision, Grant)
        outcome = core.report(decision.permit, answer, now=0.05)
        decided.append(core.retry(decision.permit, answer, outcome, attempt=1, now=0.05))

    assert [type(each) for each in decided] == [GiveUp, Retry]
