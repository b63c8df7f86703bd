"""Not run: mypy reads it, so that the public API keeps the types that users rely on."""

from __future__ import annotations

from dataclasses import replace

from mannerly.politeness import (
    Decision,
    GiveUp,
    Grant,
    Outcome,
    Politeness,
    Refuse,
    Response,
    Retry,
    Settings,
    Snapshot,
    Wait,
)
from mannerly.politeness.robots import Robots


def contract(core: Politeness) -> float | None:
    decision: Decision = core.reserve("example.com", now=12.5)
    match decision:
        case Grant(permit):
            outcome: Outcome = core.report(permit, Response(status=200, latency_s=0.03), now=12.6)
            again: Retry | GiveUp = core.retry(permit, Response(503), outcome, attempt=1, now=12.6)
            del again
            core.cancel(permit, now=13.0)
        case Wait(until=instant) | Refuse(until=instant):
            return instant
    core.robots("example.com", crawl_delay_s=5.0, now=13.0)
    snapshot: Snapshot = core.snapshot(top=50)
    del snapshot
    return core.ready_at("example.com", now=13.0)


def settings() -> Settings:
    Settings(max_rats=1)  # type: ignore[call-arg]
    Settings(max_hosts="all")  # type: ignore[arg-type]
    Settings().max_hosts = 5  # type: ignore[misc]
    return replace(Settings(strategy="learned", max_rate="unlimited"), seed=1)


def rules(body: bytes) -> tuple[bool, float | None, tuple[str, ...]]:
    robots = Robots.parse(body)
    agent = "mannerly"
    allowed = robots.allowed("https://example.com/", agent)
    return allowed, robots.crawl_delay_s(agent), robots.sitemaps
