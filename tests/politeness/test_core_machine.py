"""The whole core against an independent model: any interleaving of any answers keeps the promises.

The model shares no code with the core. It knows the operator's settings, what was granted, what
was answered and what the core said in events, and it judges every grant by that alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate
from math import inf, isinf, nextafter
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, note
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mannerly.politeness import (
    Grant,
    Outcome,
    Permit,
    PermitError,
    Politeness,
    Refuse,
    Response,
    Settings,
    Wait,
    events,
)

HOSTS = ("a.example", "b.example")
TOLERANCE_S = 1e-6
SERVER_CLOCK = 1_700_000_000

PAGE = Response(200, 0.05)


class Answer(NamedTuple):
    """A response, and for how long it asks not to be disturbed."""

    response: Response
    asked_s: float = 0.0


host_names = st.sampled_from(HOSTS)
pauses_s = st.one_of(
    st.sampled_from([0.0, 1e-6, 0.01, 0.1, 0.5, 1.0, 5.0, 26.0, 400.0, 4000.0, 100_000.0]),
    st.floats(0.0, 30.0),
)


FAILURES = tuple(Response(error=kind, latency_s=6.0) for kind in ("timeout", "connect", "tls"))
WAITS_S = (1, 7, 30, 120, 601, 5000)
QUOTAS = (None, None, None, (0, 30), (5, 10), (100, 60))


def retry_after(form: str, wait_s: int) -> dict[str, str]:
    match form:
        case "seconds":
            return {"Retry-After": str(wait_s)}
        case "date":
            return {
                "date": formatdate(SERVER_CLOCK, usegmt=True),
                "retry-after": formatdate(SERVER_CLOCK + wait_s, usegmt=True),
            }
        case _:
            return {"retry-after": form}


@st.composite
def refusals(draw: st.DrawFn) -> Answer:
    """A status with all that servers add to it."""
    status = draw(st.sampled_from([200, 204, 304, 301, 404, 403, 429, 429, 500, 503, 503]))
    form = draw(st.sampled_from([None, "seconds", "date", "0", "soon"]))
    wait_s = draw(st.sampled_from(WAITS_S)) if form in ("seconds", "date") else 0
    headers = retry_after(form, wait_s) if form else {}
    quota = draw(st.sampled_from(QUOTAS))
    no_quota_s = 0
    if quota is not None:
        headers["ratelimit"] = f'"default";r={quota[0]};t={quota[1]}'
        no_quota_s = quota[1] if quota[0] == 0 and not wait_s else 0
    is_page = 200 <= status < 300
    asked_s = max(no_quota_s, 0 if is_page else wait_s)
    return Answer(Response(status, draw(st.sampled_from([0.0, 0.05, 0.4])), headers), asked_s)


answers = st.one_of(
    st.just(Answer(PAGE)),
    st.sampled_from([Answer(failure) for failure in (*FAILURES, Response(500, 0.05))]),
    refusals(),
)


@dataclass
class HostModel:
    """The expected state of one host, from what was asked and reported."""

    starts: dict[Permit, float] = field(default_factory=dict)
    under_way: set[Permit] = field(default_factory=set)
    probe: Permit | None = None
    crawl_delay_s: float = 0.0
    silent_until: float = -inf
    open_until: float = -inf
    breaker: str = "closed"
    is_refused: bool = False

    def last_start(self) -> float:
        return max(self.starts.values(), default=-inf)


class CoreMachine(RuleBasedStateMachine):
    """Two hosts, any strategy, any answers, any pauses."""

    @initialize(
        strategy=st.sampled_from(["learned", "linear", "aimd", "gradient", "fixed"]),
        min_delay_s=st.sampled_from([None, 0.0, 0.5]),
        max_rate=st.sampled_from([8.0, 2.0, "unlimited"]),
        max_concurrency=st.sampled_from([1, 2, 8]),
        burst=st.sampled_from([1, 4]),
        delay_factor=st.sampled_from([0.0, 2.0]),
        max_hosts=st.sampled_from([1, 1000]),
        now=st.sampled_from([0.0, 1234.5, 1_000_000.0]),
    )
    def begin(
        self,
        strategy: str,
        min_delay_s: float | None,
        max_rate: float,
        max_concurrency: int,
        burst: int,
        delay_factor: float,
        max_hosts: int,
        now: float,
    ) -> None:
        self.settings = Settings(
            strategy=strategy,
            min_delay_s=min_delay_s,
            max_rate=max_rate,
            max_concurrency=max_concurrency,
            aimd_burst=burst,
            delay_factor=delay_factor,
            max_hosts=max_hosts,
            idle_ttl_s=100.0,
            breaker_consecutive=2,
            breaker_probes=2,
            retire_after_opens=5,
            seed=1,
        )
        ceiling = inf if max_rate == "unlimited" else max_rate
        self.floor_s = min(0.1, 1.0 / ceiling) if min_delay_s is None else min_delay_s
        if burst == 1 or self.floor_s or strategy != "aimd":
            self.floor_s = max(self.floor_s, 1.0 / ceiling)
        self.told: list[events.Event] = []
        self.core = Politeness(self.settings, on_event=self.told.append)
        self.now = now
        self.hosts = {host: HostModel() for host in HOSTS}
        self.known: set[str] = set()
        self.granted = self.given_back = self.waits = self.denied = 0
        self.throttled = self.cancelled = 0

    # ------------------------------------------------------------------ what the core says

    def heed(self) -> list[events.Event]:
        """Follow the core's own words about breakers, retirements and evictions."""
        told, self.told[:] = list(self.told), []
        for event in told:
            model = self.hosts[event.host]
            match event:
                case events.Opened(until=until):
                    model.open_until, model.breaker = until, "open"
                    if model.probe is not None:  # it failed, or its lease ran out
                        model.under_way.discard(model.probe)
                    model.probe = None
                case events.HalfOpened():
                    model.breaker = "half_open"
                case events.Closed():
                    model.breaker = "closed"
                case events.Retired():
                    model.is_refused = True
                case events.Revived():
                    model.is_refused = False
                    model.open_until, model.breaker, model.probe = -inf, "closed", None
                case events.Evicted():
                    assert not model.under_way
                    assert self.now >= max(model.silent_until, model.open_until)
                    assert not model.is_refused
                    assert self.now - model.last_start() >= self.gap_s(model) - TOLERANCE_S
                    self.known.discard(event.host)
                    self.hosts[event.host] = HostModel()
                case _:
                    pass
        return told

    # ------------------------------------------------------------------ asking

    def ask(self, host: str) -> Grant | Wait | Refuse:
        decision = self.core.reserve(host, now=self.now)
        self.known.add(host)
        self.heed()
        model = self.hosts[host]
        note(f"{self.now}: {host} {decision}")
        if isinstance(decision, Grant):
            self.judge(model, decision.permit)
        elif isinstance(decision, Wait):
            self.waits += 1
        else:
            self.denied += 1
        return decision

    def gap_s(self, model: HostModel) -> float:
        return max(self.floor_s, model.crawl_delay_s)

    def judge(self, model: HostModel, permit: Permit) -> None:
        since_s = self.now - model.last_start()
        assert since_s >= self.gap_s(model) - TOLERANCE_S, "too close to the last start"
        assert self.now >= model.silent_until - TOLERANCE_S, "inside a Retry-After"
        assert self.now >= model.open_until, "while the breaker is open"
        assert not model.is_refused, "paused or retired"
        assert model.probe is None, "while a probe is under way"
        assert permit.is_probe == (model.breaker == "half_open")
        assert len(model.under_way) < self.settings.max_concurrency
        if model.crawl_delay_s >= 1.0:
            assert not model.under_way or permit.is_probe
        model.under_way.add(permit)
        model.starts[permit] = self.now
        if permit.is_probe:
            model.probe = permit
        self.granted += 1

    @rule(host=host_names)
    def reserve(self, host: str) -> None:
        before = self.core.ready_at(host, now=self.now)
        decision = self.ask(host)

        match decision:
            case Grant():
                assert before == self.now
            case Wait(until=None) | Refuse(until=None):
                assert isinf(self.core.ready_at(host, now=self.now))
            case Wait(until=until) | Refuse(until=until):
                assert until is not None
                assert until > self.now
                assert self.core.ready_at(host, now=self.now) >= until

    @rule(host=host_names)
    def reserve_around_ready_at(self, host: str) -> None:
        at = self.core.ready_at(host, now=self.now)
        assert at >= self.now
        if isinf(at):
            assert not isinstance(self.ask(host), Grant)
            return
        just_before = nextafter(at, -inf)
        if just_before >= self.now:
            self.now = just_before
            assert not isinstance(self.ask(host), Grant)
        self.now = at
        decision = self.ask(host)
        if not isinstance(decision, Grant):
            assert decision.until is None or decision.until > at

    @rule(host=host_names, times=st.integers(2, 8))
    def send_many(self, host: str, times: int) -> None:
        """As many as may go, none of them answered."""
        for _ in range(times):
            self.move_to(self.core.ready_at(host, now=self.now))
            self.ask(host)

    @rule(host=host_names, times=st.integers(2, 12), answer=answers)
    def send_and_report(self, host: str, times: int, answer: Answer) -> None:
        """One after the other, so that strategies and breakers get somewhere."""
        for number in range(times):
            self.move_to(self.core.ready_at(host, now=self.now))
            decision = self.ask(host)
            if isinstance(decision, Grant):
                self.now += answer.response.latency_s
                self.settle(decision.permit, answer if number < 3 else Answer(PAGE))

    def move_to(self, instant: float) -> None:
        self.now = min(instant, self.now + 400.0)

    # ------------------------------------------------------------------ settling

    def open_permits(self) -> list[Permit]:
        return [
            permit
            for model in self.hosts.values()
            for permit in model.starts
            if not permit.is_settled
        ]

    def settle(self, permit: Permit, answer: Answer) -> None:
        model = self.hosts[permit.host.key]
        outcome = self.core.report(permit, answer.response, now=self.now)
        note(f"{self.now}: {permit!r} {answer.response} -> {outcome}")
        model.under_way.discard(permit)
        if answer.asked_s:
            model.silent_until = max(model.silent_until, self.now + answer.asked_s)
        if outcome is Outcome.THROTTLE:
            self.throttled += 1
        if model.probe is permit:
            model.probe = None
        told = self.heed()
        if outcome is not Outcome.OVERLOAD:
            assert not any(isinstance(event, events.Opened) for event in told)

    @precondition(lambda self: self.open_permits())
    @rule(data=st.data(), answer=answers)
    def report(self, data: st.DataObject, answer: Answer) -> None:
        self.settle(data.draw(st.sampled_from(self.open_permits())), answer)

    @rule(host=host_names, answer=answers)
    def report_all(self, host: str, answer: Answer) -> None:
        for permit in self.open_permits():
            if permit.host.key == host:
                self.settle(permit, answer)

    @precondition(lambda self: self.open_permits())
    @rule(data=st.data(), was_sent=st.booleans())
    def cancel(self, data: st.DataObject, was_sent: bool) -> None:
        permit = data.draw(st.sampled_from(self.open_permits()))
        model = self.hosts[permit.host.key]
        is_live = permit in model.under_way

        self.core.cancel(permit, now=self.now, was_sent=was_sent)

        self.heed()
        self.cancelled += 1
        model.under_way.discard(permit)
        if model.probe is permit:
            model.probe = None
        if is_live and not was_sent:
            self.given_back += 1
            del model.starts[permit]

    @rule(host=host_names, answer=answers)
    def settle_twice(self, host: str, answer: Answer) -> None:
        settled = [permit for permit in self.hosts[host].starts if permit.is_settled]
        if not settled:
            return
        before = self.core.snapshot()

        with pytest.raises(PermitError):
            self.core.report(settled[-1], answer.response, now=self.now)
        with pytest.raises(PermitError):
            self.core.cancel(settled[-1], now=self.now)

        assert self.core.snapshot() == before

    # ------------------------------------------------------------------ the rest of the world

    @rule(host=host_names, delay_s=st.sampled_from([None, 0.0, 0.3, 1.0, 20.0]))
    def robots(self, host: str, delay_s: float | None) -> None:
        self.core.robots(host, crawl_delay_s=delay_s, now=self.now)
        self.heed()
        self.known.add(host)
        self.hosts[host].crawl_delay_s = delay_s or 0.0

    @precondition(lambda self: self.open_permits())
    @rule(data=st.data(), deed=st.sampled_from(["pause", "retire"]))
    def stop(self, data: st.DataObject, deed: str) -> None:
        host = data.draw(st.sampled_from(self.open_permits())).host.key
        if deed == "pause":
            self.core.pause(host, now=self.now)
        else:
            self.core.retire(host, "enough", now=self.now)
        self.heed()
        self.known.add(host)
        self.hosts[host].is_refused = True

    @rule()
    def revive(self) -> None:
        for host, model in self.hosts.items():
            if model.is_refused:
                self.core.revive(host, now=self.now)
        self.heed()

    @rule(pause_s=pauses_s)
    def pass_time(self, pause_s: float) -> None:
        self.now += pause_s

    @invariant()
    def totals_agree(self) -> None:
        if not hasattr(self, "core"):
            return
        snapshot = self.core.snapshot()
        models = [self.hosts[host] for host in self.known]
        assert snapshot.hosts == len(self.core) == len(self.known)
        assert snapshot.in_flight == sum(len(model.under_way) for model in self.hosts.values())
        assert snapshot.requests == self.granted - self.given_back
        assert snapshot.waits == self.waits
        assert snapshot.denied == self.denied
        assert snapshot.throttled == self.throttled
        assert snapshot.cancelled == self.cancelled
        assert snapshot.open == sum(model.breaker == "open" for model in models)
        assert snapshot.half_open == sum(model.breaker == "half_open" for model in models)
        for host in snapshot.top:
            assert host.in_flight == len(self.hosts[host.host].under_way)


CoreMachine.TestCase.settings = hypothesis_settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCoreKeepsItsPromises = CoreMachine.TestCase
