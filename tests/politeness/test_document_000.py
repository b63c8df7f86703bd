"""The seven unit tests that document 000 names, by its names, on our core and thread driver."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.drivers.waiters import Waiting
from mannerly.politeness.testing import FakeClock, Transcript

SHOP = "everlane.com"
MINIMUM = Settings(strategy="fixed", delay_s=1.0)
OK = Response(200, 0.05)
HOUR_S = 3600.0
PATIENCE_S = 30.0


def ask(core: Politeness, log: Transcript, now: float, host: str = SHOP) -> None:
    """One request: ask, and if granted report a page."""
    decision = log.reserve(core, host, now=now)
    if isinstance(decision, Grant):
        core.report(decision.permit, OK, now=now)


def test_domain_rate_limiter_first_request() -> None:
    """The first request to a domain is not delayed."""
    core, log = Politeness(MINIMUM), Transcript()

    ask(core, log, now=0.0)

    assert str(log) == "G0.0"


def test_domain_rate_limiter_second_request_within_interval() -> None:
    """A second request within the interval waits for the rest of it, from any caller."""
    core, log = Politeness(MINIMUM), Transcript()

    ask(core, log, now=0.0)
    ask(core, log, now=0.5)
    ask(core, log, now=1.0)
    ask(core, log, now=1.2)
    ask(core, log, now=2.0)

    assert str(log) == "G0.0 W1.0 G1.0 W2.0 G2.0"


def test_domain_rate_limiter_second_request_after_interval() -> None:
    """After the interval there is no delay, and a long rest earns no burst."""
    core, log = Politeness(MINIMUM), Transcript()

    ask(core, log, now=0.0)
    ask(core, log, now=100.0)
    ask(core, log, now=100.0)

    assert str(log) == "G0.0 G100.0 W101.0"


class Crew:
    """Workers in real threads, of which we know when each begins to wait and when it goes."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.waits = threading.Semaphore(0)
        self.starts_counted = threading.Semaphore(0)
        self.starts: list[float] = []
        self.politeness = ThreadedPoliteness(
            MINIMUM,
            clock=self.clock,
            on_event=lambda event: self.waits.release() if isinstance(event, Waiting) else None,
        )

    def fetch(self, host: str) -> None:
        with self.politeness.slot(host) as slot:
            self.starts.append(self.clock.now())
            slot.report(OK)
        self.starts_counted.release()


def test_domain_rate_limiter_concurrent_same_domain() -> None:
    """Ten workers on one domain, asking at once, start one interval apart."""
    crew = Crew()

    with ThreadPoolExecutor(10) as pool:
        tasks = [pool.submit(crew.fetch, SHOP) for _ in range(10)]
        for _ in range(9):
            assert crew.waits.acquire(timeout=PATIENCE_S)
        for _ in range(9):
            assert crew.starts_counted.acquire(timeout=PATIENCE_S)
            crew.clock.advance(1.0)
        for task in tasks:
            task.result(PATIENCE_S)

    assert crew.starts == [float(second) for second in range(10)]


def test_domain_rate_limiter_concurrent_different_domains() -> None:
    """A hundred domains are contacted at the same instant: no domain waits for another."""
    crew = Crew()

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(crew.fetch, [f"shop-{number}.example" for number in range(100)]))

    assert crew.starts == [0.0] * 100
    assert crew.politeness.snapshot().waits == 0


def test_domain_rate_limiter_cleanup() -> None:
    """A domain untouched for an hour is forgotten as others come."""
    core, log = Politeness(MINIMUM), Transcript()
    ask(core, log, now=0.0, host="old.example")

    for number in range(3):
        ask(core, log, now=HOUR_S + 1.0, host=f"new-{number}.example")

    assert "old.example" not in core
    assert len(core) == 3


def test_domain_rate_limiter_cleanup_preserves_recent() -> None:
    """A domain used within the hour is kept, and with it the interval."""
    core, log = Politeness(MINIMUM), Transcript()
    ask(core, log, now=0.0, host="old.example")
    ask(core, log, now=HOUR_S, host="recent.example")

    for number in range(3):
        ask(core, log, now=HOUR_S + 0.5, host=f"new-{number}.example")
    log.take()
    ask(core, log, now=HOUR_S + 0.5, host="recent.example")

    assert "old.example" not in core
    assert "recent.example" in core
    assert str(log) == "W3601.0"
