"""Check our own spacing, independently of the politeness core that is checked.

Each request is judged at the moment when it leaves, against everything that was in force then:

    gap to the one before  ≥  the operator's minimum delay and maximum rate
                              Crawl-delay and Request-rate, as robots.txt was parsed
                              the pace that the strategy published, or the server's RateLimit quota
    the moment itself      ≥  the end of a Retry-After, as it was received
                              the end of the breaker's open time, as it was announced

The audit keeps its own instants and its own record of what servers asked for. Of the politeness
core it reads only what the strategy and the quota say, never the host's schedule, so a limit that
`politeness.host` forgets is seen here. A request that is too early must never happen. The servers'
logs have the last word (`mannerly.demo.log`).
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.events import RequestSent
from mannerly.politeness import events as polite
from mannerly.politeness.model import NEVER
from mannerly.politeness.pace import STRATEGY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.model import HostRecord
    from mannerly.politeness import Settings
    from mannerly.politeness.model import Instant, Permit

TOLERANCE = 0.98  # the promise allows 2 %
ROUNDING_S = 1e-6

_DATE = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT")


class SpacingRule:
    """The operator's part of the gap, from the settings."""

    __slots__ = ("bursts", "is_on", "least_gap_s", "longest_crawl_delay_s", "start_gap_s")

    def __init__(self, settings: Settings) -> None:
        self.is_on = settings.enabled
        self.least_gap_s = max(settings.floor_s, 1.0 / settings.rate_ceiling)
        start = STRATEGY_CLASSES[settings.strategy](settings)
        self.start_gap_s = 1.0 / start.rate
        self.bursts = start.burst > 1 and settings.floor_s == 0.0
        is_capped = settings.long_crawl_delay == "cap"
        self.longest_crawl_delay_s = settings.max_crawl_delay_s if is_capped else inf


class Spacing(NamedTuple):
    """The notes of the audit about one budget so far."""

    smallest_gap_s: float = 0.0  # 0: there were no two requests
    required_gap_s: float = 0.0  # in force then
    smallest_at: Instant = NEVER  # NEVER: in an earlier run
    early: int = 0
    retry_afters: int = 0
    retry_afters_broken: int = 0


class SpacingAudit:
    """Judges the requests that use one budget: when it was last used, and what was asked for."""

    __slots__ = (
        "_crawl_delay_s",
        "_early",
        "_last_sent",
        "_open_until",
        "_required_gap_s",
        "_retry_afters",
        "_retry_afters_broken",
        "_rule",
        "_silent_until",
        "_smallest_at",
        "_smallest_gap_s",
    )

    def __init__(self, rule: SpacingRule) -> None:
        self._rule = rule
        self.forget()

    def forget(self) -> None:
        """Forget everything: the next request of an idle budget comes later than any gap."""
        self._last_sent: Instant = NEVER
        self._crawl_delay_s = 0.0
        self._silent_until: Instant = NEVER
        self._open_until: Instant = NEVER
        self._smallest_gap_s = inf
        self._required_gap_s = 0.0  # when the gap was smallest
        self._smallest_at: Instant = NEVER
        self._early = 0
        self._retry_afters = self._retry_afters_broken = 0

    def configure(self, rule: SpacingRule) -> None:
        """Change the operator's part; gaps count from the next request.

        The gap from a request before the change to one after it belongs to neither delay.
        """
        self._rule = rule
        self._last_sent = NEVER

    # ------------------------------------------------------------------ what was asked for

    def robots(self, delay_s: float | None, *, is_grouped: bool = False) -> None:
        """Note the delay that robots.txt asks for; of several hosts in a group the longest."""
        delay_s = min(delay_s or 0.0, self._rule.longest_crawl_delay_s)
        if not is_grouped or delay_s > self._crawl_delay_s:
            self._crawl_delay_s = delay_s

    def refused(self, headers: Mapping[str, str], now: Instant, wall: float) -> None:
        """Note the Retry-After of an answer that was no success; header names in lower case."""
        wait_s = announced_wait_s(headers, wall)
        if wait_s > 0.0:
            self._retry_afters += 1
        self.blocked(now + wait_s)

    def blocked(self, until: Instant) -> None:
        """Note that nothing may be sent before `until`."""
        self._silent_until = max(self._silent_until, until)

    def heard(self, event: polite.Event) -> None:
        """Note when the breaker is open."""
        if isinstance(event, polite.Opened):
            self._open_until = event.until
        elif isinstance(event, (polite.HalfOpened, polite.Closed, polite.Revived)):
            self._open_until = NEVER
            if self._silent_until == inf:  # the operator knows better than an unreadable header
                self._silent_until = NEVER

    def unlearned(self) -> None:
        """Note that the operator had the rules of robots.txt forgotten."""
        self._crawl_delay_s = 0.0

    # ------------------------------------------------------------------ what was done

    def sent(self, host: str, permit: Permit, instant: Instant) -> RequestSent:
        """Judge a request that has left; return the event with its gap and the gap in force."""
        last, self._last_sent = self._last_sent, instant
        if not self._rule.is_on:
            return RequestSent(host, None if last == NEVER else instant - last, 0.0, False)
        required_s = self._required_s(permit)
        after = instant + ROUNDING_S
        is_early = after < self._silent_until
        self._retry_afters_broken += is_early
        is_early = is_early or after < self._open_until
        if last == NEVER:
            self._early += is_early
            return RequestSent(host, None, required_s, is_early)
        gap_s = instant - last
        is_early = is_early or gap_s < TOLERANCE * required_s
        if gap_s < self._smallest_gap_s:
            self._smallest_gap_s, self._required_gap_s = gap_s, required_s
            self._smallest_at = instant
        self._early += is_early
        return RequestSent(host, gap_s, required_s, is_early)

    @property
    def noted(self) -> Spacing:
        """Return what was noted."""
        return Spacing(
            0.0 if self._smallest_gap_s == inf else self._smallest_gap_s,
            self._required_gap_s,
            self._smallest_at,
            self._early,
            self._retry_afters,
            self._retry_afters_broken,
        )

    def recall(self, record: HostRecord) -> None:
        """Go on with what earlier runs noted."""
        self._crawl_delay_s = record.crawl_delay_s
        self._smallest_gap_s = record.smallest_gap_s or inf
        self._required_gap_s = record.required_gap_s
        self._early = record.early
        self._retry_afters = record.retry_afters
        self._retry_afters_broken = record.retry_afters_broken

    def _required_s(self, permit: Permit) -> float:
        rule = self._rule
        if rule.bursts and not self._crawl_delay_s:
            return 0.0
        # Comparisons instead of max(): this runs for every request.
        gap_s = published_gap_s(permit, rule.start_gap_s)
        if gap_s < rule.least_gap_s:
            gap_s = rule.least_gap_s
        if gap_s < self._crawl_delay_s:
            gap_s = self._crawl_delay_s
        return gap_s


def published_gap_s(permit: Permit, start_gap_s: float) -> float:
    """Return the gap that the strategy, or the server's RateLimit quota in its place, asks for."""
    strategy, quota = permit.host.strategy, permit.host.requested.quota
    if quota is not None and quota.rate is not None:
        return 1.0 / quota.rate  # the server's number replaces the estimate
    return start_gap_s if strategy is None else 1.0 / strategy.rate


def announced_wait_s(headers: Mapping[str, str], wall: float) -> float:
    """Return the seconds that a Retry-After asks for; 0 without a readable one.

    `wall` is the wall time of the answer, for a date in an answer without a `Date`.
    """
    text = headers.get("retry-after", "").strip(" \t")
    parts = [part.strip(" \t") for part in text.split(",")]
    if all(part.isascii() and part.isdigit() for part in parts):
        return max(map(float, parts))
    if not _DATE.fullmatch(text):
        return 0.0
    try:
        return max(0.0, _seconds(text) - _seconds(headers.get("date", ""), wall))
    except ValueError:
        return 0.0


def _seconds(date: str, otherwise: float | None = None) -> float:
    if otherwise is not None and not _DATE.fullmatch(date.strip(" \t")):
        return otherwise
    from email.utils import parsedate_to_datetime  # 4 ms, for a rare form of a header

    return parsedate_to_datetime(date).timestamp()
