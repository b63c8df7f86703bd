"""The beginning of a control law of your own: a delay between requests, a limit of those in flight.

    class Halving(Law):
        def learn(self, permit, response, now):
            self.delay_s *= 2.0 if response.status == 429 else 0.99

`mannerly simulate --suite usual --law FILE.py:Halving` shows where it stands. A law may be any
other object with `reserve` and `report`; its permits need what a `Ticket` has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.politeness import Grant, Reason, Settings, Wait

if TYPE_CHECKING:
    from mannerly.politeness import Response


class Ticket:
    """The permit of a law. There is no breaker, hence no probes."""

    is_probe = False

    def __init__(self, host: Law, in_flight: int) -> None:
        self.host = host
        self.in_flight = in_flight  # this request included


class Law:
    """A law for one host, which changes `delay_s` and `limit` in `learn`."""

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.delay_s = settings.start_delay_s
        self.limit: float = settings.max_concurrency
        self.least_delay_s = 1.0 / settings.rate_ceiling
        self.in_flight = 0
        self.next_at = 0.0

    def reserve(self, host: str, *, now: float) -> Grant | Wait:  # noqa: ARG002 - one host
        """Return a permit, or until when to wait."""
        if self.in_flight >= int(self.limit):
            return Wait(None, Reason.IN_FLIGHT)
        ready_at = self.ready_at(now)
        if now < ready_at:
            return Wait(ready_at, Reason.PACE)
        self.in_flight += 1
        self.next_at = now + max(self.least_delay_s, self.delay_s)
        return Grant(Ticket(self, self.in_flight))  # type: ignore[arg-type]

    def report(self, permit: Ticket, response: Response, *, now: float) -> None:
        """Learn from the answer to a request."""
        self.learn(permit, response, now)
        self.in_flight -= 1

    def ready_at(self, now: float) -> float:  # noqa: ARG002 - a law may refill by it
        """Return the earliest instant for the next request."""
        return self.next_at

    def learn(self, permit: Ticket, response: Response, now: float) -> None:
        """Change the delay or the limit after an answer."""
        raise NotImplementedError
