"""Virtual time: the product's own core against a modelled server, with unlimited demand.

    ask the core ─ Grant ─► the server answers at once, the answer arrives `latency_s` later
         ▲        ─ Wait ──► sleep until the core's instant or the next arrival, whichever is first
         └────────── report ◄──────────────────────────────────┘

A heap of arrivals is all there is: no clock, no thread, no sleep, so fifteen minutes take a
fraction of a second and the same seed gives the same run. The core is asked as a crawler with a
full queue asks it; it cannot tell the difference. Anything with its `reserve` and `report` can
stand in its place.
"""

from __future__ import annotations

import random
from dataclasses import replace
from heapq import heappop, heappush
from math import inf, nan
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mannerly.politeness import Grant, Politeness, Reason, Response

from .audit import PromiseAudit
from .result import SentRequest, Violations, summarise
from .spec import parse_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mannerly.politeness import Decision, Permit, Settings
    from mannerly.politeness.events import Event

    from .result import Result
    from .servers import Server

HOST = "simulated.example"
PATIENCE_S = 5.0  # the client gives up on an answer that takes longer
WORKERS = 512  # the crawler's own bound; what ends a burst when the core is told to allow all
MIN_STEP_S = 1e-6  # a controller that asks to be asked again at once must not stop time


class Controller(Protocol):
    """The part of the core that the simulator needs; a rival's control law has it too."""

    def reserve(self, host: str, *, now: float) -> Decision: ...

    def report(self, permit: Permit, response: Response, *, now: float) -> object: ...


class Arrival(NamedTuple):
    """An answer on its way to the client. The serial number settles ties, so order is certain."""

    at: float
    serial: int
    permit: Permit
    status: int
    response: Response


def run(
    settings: Settings,
    server: Server | str,
    duration_s: float = 900.0,
    seed: int = 1,
    *,
    core: Controller | None = None,
) -> Result:
    """Drive one host for `duration_s` virtual seconds and return what came of it.

    Args:
        settings: the operator's word; its own seed is replaced by `seed`.
        server: a modelled server, one of your own, or a spec such as "bucket:5:10".
        duration_s: how long to run, in virtual seconds.
        seed: decides everything random, in the core and in the server.
        core: another controller in the place of `Politeness(settings)`.
    """
    server = parse_server(server) if isinstance(server, str) else server
    if reset := getattr(server, "reset", None):
        reset(random.Random(f"server {seed}"))
    events: list[Event] = []
    controller = core or Politeness(replace(settings, seed=seed), on_event=events.append)
    journey = _Run(settings, server, duration_s, controller)
    journey.drive()
    return journey.summary(events)


def run_many(
    settings: Settings,
    servers: Mapping[str, str],
    seeds: Iterable[int],
    *,
    duration_s: float = 900.0,
    make_core: Callable[[], Controller] | None = None,
) -> dict[str, list[Result]]:
    """Run every server with every seed, each time on a new server and a new core."""
    seeds = tuple(seeds)
    return {
        name: [
            run(
                settings,
                spec,
                duration_s,
                seed,
                core=make_core() if make_core else None,
            )
            for seed in seeds
        ]
        for name, spec in servers.items()
    }


class _Run:
    """One run's state, and the loop that moves it."""

    def __init__(
        self, settings: Settings, server: Server, duration_s: float, core: Controller
    ) -> None:
        self.server = server
        self.duration_s = duration_s
        self.core = core
        self.witness = PromiseAudit(settings)
        self.trace: list[SentRequest] = []
        self.wanted: list[float] = []
        self.arrivals: list[Arrival] = []
        self.wakeups = 0

    def summary(self, events: list[Event]) -> Result:
        """The figures of what happened."""
        witness = self.witness
        return summarise(
            self.trace,
            duration_s=self.duration_s,
            allowed=getattr(self.server, "allowed", lambda _start, _end: nan),
            wanted=self.wanted,
            violations=Violations(
                gap=witness.gap_violations,
                retry_after=witness.retry_after_violations,
                half_open=witness.half_open_violations,
                in_flight=witness.in_flight_violations,
            ),
            wakeups=self.wakeups,
            events=tuple(events),
        )

    def drive(self) -> None:
        """Ask, start, wait and report until the time is up or nothing can happen any more."""
        now = 0.0
        arrivals = self.arrivals
        reserve = self.core.reserve
        while True:
            until = inf
            if len(arrivals) < WORKERS:
                decision = reserve(HOST, now=now)
                if isinstance(decision, Grant):
                    self._start(decision.permit, now)
                    continue
                if decision.reason is Reason.BREAKER_OPEN:
                    self.witness.breaker_open(decision.until)
                if decision.until is not None:
                    until = max(decision.until, now + MIN_STEP_S)
            if arrivals and arrivals[0].at <= until:
                now = arrivals[0].at
            else:
                now = until
                self.wakeups += 1
            if now >= self.duration_s:
                return
            while arrivals and arrivals[0].at <= now:
                self._arrive(heappop(arrivals))

    def _start(self, permit: Permit, now: float) -> None:
        while len(self.wanted) <= now:
            delay_s = permit.host.delay_s
            self.wanted.append(1.0 / delay_s if delay_s else inf)
        in_flight = len(self.arrivals) + 1
        self.witness.started(now, permit, in_flight)
        status, latency_s, headers = self.server.request(now, in_flight)
        if latency_s > PATIENCE_S:
            status, latency_s = 0, PATIENCE_S
            response = Response(error="timeout", latency_s=latency_s)
        elif status == 0:
            response = Response(error="connect", latency_s=latency_s)
        else:
            response = Response(status, latency_s, headers)
        accepted = 0 < status < 500 and status not in (403, 429)
        self.trace.append(SentRequest(now, accepted, latency_s))
        arrival = Arrival(now + latency_s, len(self.trace), permit, status, response)
        heappush(self.arrivals, arrival)

    def _arrive(self, arrival: Arrival) -> None:
        self.witness.answered(arrival.at, arrival.permit, arrival.status, arrival.response.headers)
        self.core.report(arrival.permit, arrival.response, now=arrival.at)
