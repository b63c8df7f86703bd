"""Run the real politeness core against one modelled server in virtual time.

    ask the core ─ Grant ─► the server decides at once; its answer arrives `latency_s` later
         ▲        ─ Wait ──► skip to the core's instant or the next arrival, whichever is first
         └────────── report ◄──────────────────────────────────┘

The only state is a heap of arrivals: no clock, no thread, no sleep. So fifteen minutes take a
fraction of a second, and the same seed gives the same run. The core is asked like by a crawler
whose queue is never empty. Any object with `reserve` and `report` can replace the core.
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
from .servers import ModelAnswer
from .spec import parse_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mannerly.politeness import Decision, Permit, Settings
    from mannerly.politeness.events import Event

    from .result import Result
    from .servers import Server

HOST = "simulated.example"
TIMEOUT_S = 5.0  # of the client
WORKERS = 512  # most requests in flight, whatever the core allows
MIN_STEP_S = 1e-6  # time advances at least this much, also if the core says "ask again now"


class Controller(Protocol):
    """The methods of the core that the simulator calls; implement them to test another one."""

    def reserve(self, host: str, *, now: float) -> Decision: ...

    def report(self, permit: Permit, response: Response, *, now: float) -> object: ...


class Arrival(NamedTuple):
    """An answer on its way to the client; `serial` orders answers of the same instant."""

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
    """Send requests to one host for `duration_s` virtual seconds and return the figures.

    Args:
        settings: of the core; their seed is replaced by `seed`.
        server: a modelled server, one of your own, or a spec such as "bucket:5:10".
        duration_s: virtual seconds.
        seed: of all random numbers, in the core and in the server.
        core: a controller to use instead of `Politeness(settings)`.
    """
    server = parse_server(server) if isinstance(server, str) else server
    if reset := getattr(server, "reset", None):
        reset(random.Random(f"server {seed}"))
    events: list[Event] = []
    if core is None:
        core = Politeness(replace(settings, seed=seed), on_event=events.append)
    simulation = _Run(settings, server, duration_s, core)
    simulation.drive()
    return simulation.summary(events)


def run_many(
    settings: Settings,
    servers: Mapping[str, str],
    seeds: Iterable[int],
    *,
    duration_s: float = 900.0,
    make_core: Callable[[], Controller] | None = None,
) -> dict[str, list[Result]]:
    """Run every server with every seed, each time with a new server and a new core."""
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
    """The state of one run, and its loop."""

    def __init__(
        self, settings: Settings, server: Server, duration_s: float, core: Controller
    ) -> None:
        self.server = server
        self.duration_s = duration_s
        self.core = core
        self.audit = PromiseAudit(settings)
        self.trace: list[SentRequest] = []
        self.wanted: list[float] = []
        self.arrivals: list[Arrival] = []
        self.wakeups = 0

    def summary(self, events: list[Event]) -> Result:
        """Return the figures of the run so far."""
        audit = self.audit
        return summarise(
            self.trace,
            duration_s=self.duration_s,
            allowed=getattr(self.server, "allowed", lambda _start, _end: nan),
            wanted=self.wanted,
            violations=Violations(
                gap=audit.gap_violations,
                retry_after=audit.retry_after_violations,
                half_open=audit.half_open_violations,
                in_flight=audit.in_flight_violations,
            ),
            wakeups=self.wakeups,
            events=tuple(events),
        )

    def drive(self) -> None:
        """Ask, send, wait and report until `duration_s` is over or nothing can happen any more."""
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
                    self.audit.breaker_open(decision.until)
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
        self.audit.started(now, permit, in_flight)
        status, latency_s, headers, same_body = ModelAnswer(*self.server.request(now, in_flight))
        if latency_s > TIMEOUT_S:
            status, latency_s = 0, TIMEOUT_S
            response = Response(error="timeout", latency_s=latency_s)
        elif status == 0:
            response = Response(error="connect", latency_s=latency_s)
        else:
            body = same_body or len(self.trace)
            response = Response(status, latency_s, headers, body_digest=body)
        accepted = 0 < status < 500 and status not in (403, 429) and not same_body
        self.trace.append(SentRequest(now, accepted, latency_s))
        arrival = Arrival(now + latency_s, len(self.trace), permit, status, response)
        heappush(self.arrivals, arrival)

    def _arrive(self, arrival: Arrival) -> None:
        self.audit.answered(arrival.at, arrival.permit, arrival.status, arrival.response.headers)
        self.core.report(arrival.permit, arrival.response, now=arrival.at)
