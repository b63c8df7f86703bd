"""The politeness core: all hosts in one dict, without locks and without a clock.

    reserve ─► Grant ─► the caller sends ─► report      (or cancel, if it was not sent)
            ─► Wait(until)      ask again then
            ─► Refuse(until)    breaker open, parked, paused, retired

The state of a host is created when the host is first named and dropped after an hour without use
(`idle_ttl_s`). There is no background task: each new host makes the core check two old ones, in
turn, so the work is spread evenly and needs no timer. State that still delays requests is never
dropped: a pending Retry-After, an open breaker, the next slot, a request in flight, a waiter.
What was learned about a dropped host is still returned by the next `drain`.

This module is long because it has all methods of the API; most of them are a few lines.
"""

from __future__ import annotations

import random
from collections import deque
from heapq import nlargest
from math import inf
from typing import TYPE_CHECKING

from . import events
from .breaker import Breaker, BreakerState
from .health import BadKind, bad_kind
from .host import HostState
from .keys import host_key, site_key
from .memory.base import Remembered
from .model import NEVER, OK, OVERLOAD, THROTTLE, Grant, Reason, Wait
from .pace import STRATEGY_CLASSES, Lesson
from .retry import Retry, RetryPolicy, decide
from .settings import Settings
from .snapshot import (
    THROTTLED_WAIT_S,
    HostFigures,
    HostSnapshot,
    Snapshot,
    describe,
    figures,
)
from .stats import StatsShape

if TYPE_CHECKING:
    from collections.abc import Callable

    from .events import Event
    from .model import Decision, Instant, Outcome, Permit, Response
    from .retry import GiveUp
    from .schedule import HostSchedule

_SWEPT_PER_NEW_HOST = 2  # more than one, or the sweep could not keep up with new hosts
_SWEPT_WHEN_FULL = 64
_MAX_ALIASES = 100_000  # cached spellings and group members; the cache is cleared beyond it
_REMEMBER_BLOCK_S = 60.0  # a shorter Retry-After need not survive a restart
_EMPTY_LESSON = Lesson()


class SharedContext:
    """State that all hosts share: values derived from the settings, the RNG, the event callback."""

    __slots__ = (
        "burst",
        "can_defer",
        "dirty",
        "emit",
        "has_size_or_duration_limits",
        "least_gap_s",
        "make_strategy",
        "max_concurrency",
        "pace_gap_s",
        "remember",
        "retry_policy",
        "rng",
        "settings",
        "start_gap_s",
        "start_limit",
        "stats_shape",
    )

    def __init__(
        self,
        settings: Settings,
        emit: Callable[[Event], None],
        *,
        remember: bool,
        beside: SharedContext | None = None,
    ) -> None:
        self.settings = settings
        self.emit = emit
        # Contexts of one core differ in their settings only.
        self.rng: random.Random = random.Random(settings.seed) if beside is None else beside.rng
        self.dirty: set[HostSchedule] = set() if beside is None else beside.dirty
        self.remember = remember
        self.make_strategy = STRATEGY_CLASSES[settings.strategy]
        self.least_gap_s = max(settings.floor_s, 1.0 / settings.rate_ceiling)
        self.max_concurrency = settings.max_concurrency
        start = self.make_strategy(settings)
        self.pace_gap_s = 1.0 / start.rate
        self.start_gap_s = max(self.pace_gap_s, self.least_gap_s)
        self.start_limit = min(start.concurrency, settings.max_concurrency)
        self.burst = start.burst if settings.floor_s == 0.0 else 1
        self.has_size_or_duration_limits = bool(settings.delay_factor or settings.max_bandwidth)
        self.can_defer = start.may_defer_first and not self.has_size_or_duration_limits
        self.stats_shape = StatsShape.of(settings)
        self.retry_policy = RetryPolicy(
            max_attempts=settings.max_attempts,
            refusal_retries=settings.refusal_retries,
            base_s=settings.retry_base_s,
            max_s=settings.retry_max_s,
            retry_statuses=settings.retry_statuses,
            budget_ratio=settings.retry_budget,
        )

    def with_settings(self, settings: Settings) -> SharedContext:
        """Return a context with other settings and everything else in common."""
        return SharedContext(settings, self.emit, remember=self.remember, beside=self)

    def mark_dirty(self, host: HostSchedule) -> None:
        """Mark a host as changed, for the next `drain`; does nothing without a memory."""
        if self.remember:
            self.dirty.add(host)


class Politeness:
    """Decides, for every host, when it may next be contacted. Not thread-safe: see the drivers.

    Args:
        settings: how polite to be; default `Settings()`.
        on_event: called with every event; it must be quick and must not call back into the core.
        group_of: returns the group that a host shares its request rate with, for `group_by`.
            Required for "ip"; for "site" it replaces the built-in rule, for example by the public
            suffix list.
        remember: collect changed hosts for `drain`. Set it only if `drain` is called regularly.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        on_event: Callable[[Event], None] = events.ignore,
        group_of: Callable[[str], str] | None = None,
        remember: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        self._shared = SharedContext(self.settings, on_event, remember=remember)
        self._own: dict[str, SharedContext] = {}  # of hosts with settings of their own
        self._hosts: dict[str, HostState] = {}
        self._sweep_order: deque[HostState] = deque()
        self._aliases: dict[str, str] = {}
        self._evicted: list[HostSchedule] = []
        self._waiters: dict[str, int] = {}
        self._group_of = _grouping(self.settings, group_of)
        self._all_enabled = self.settings.enabled  # for every host
        self._waits = self._denied = self._past_requests = 0
        self._throttled = self._retries = self._cancelled = 0
        self._bad = dict.fromkeys(BadKind, 0)
        self._throttled_waits, self._blocked_s = 0, 0.0

    def __repr__(self) -> str:
        strategy = self.settings.strategy
        return f"<Politeness {strategy}, {len(self._hosts)} hosts>"

    def __len__(self) -> int:
        return len(self._hosts)

    def __contains__(self, host: str) -> bool:
        return self._find(host) is not None

    # ------------------------------------------------------------------ the contract

    def reserve(self, host: str, *, now: Instant) -> Decision:
        """Return `Grant(permit)` if a request may start now, else `Wait` or `Refuse`."""
        state = self._hosts.get(host)
        if state is None:
            state = self._find_or_create(host, now)
        if not (self._all_enabled or state.is_enabled):
            return Grant(state.grant(now))
        decision = state.reserve(now)
        if decision.__class__ is not Grant:
            if decision.__class__ is Wait:
                self._waits += 1
            else:
                self._denied += 1
        return decision

    def report(self, permit: Permit, response: Response, *, now: Instant) -> Outcome:
        """Report the response to a granted request; returns how it was classified."""
        outcome = permit.host.report(permit, response, now)
        if outcome is not OK:
            self._throttled += outcome is THROTTLE
            if outcome is THROTTLE or outcome is OVERLOAD:
                self._bad[bad_kind(response)] += 1
        return outcome

    def waited(self, seconds: float) -> None:
        """Count the time that a caller has waited for a permit, for the snapshot."""
        self._blocked_s += seconds
        self._throttled_waits += seconds > THROTTLED_WAIT_S

    def cancel(self, permit: Permit, *, now: Instant, was_sent: bool = False) -> None:
        """Give a permit back; `was_sent` says that the server may have seen the request."""
        permit.host.cancel(permit, now, was_sent=was_sent)
        self._cancelled += 1

    def ready_at(self, host: str, *, now: Instant) -> Instant:
        """Return the earliest instant at which `reserve` may grant; `inf` if not known yet."""
        state = self._hosts.get(host) or self._find(host)
        if state is None:
            return now
        return state.ready_at(now) if self._all_enabled or state.is_enabled else now

    def robots(self, host: str, *, crawl_delay_s: float | None, now: Instant) -> None:
        """Set the Crawl-delay of the host's robots.txt; None: it has none."""
        state = self._hosts.get(host) or self._find_or_create(host, now)
        if crawl_delay_s is not None and not 0.0 <= crawl_delay_s < inf:
            raise ValueError(f"crawl_delay_s must be finite and at least 0, not {crawl_delay_s!r}")
        state.set_crawl_delay(crawl_delay_s or 0.0, now)

    def snapshot(self, *, top: int = 50, now: Instant | None = None) -> Snapshot:
        """Return totals over all hosts, and details of the `top` busiest ones, tokens at `now`."""
        hosts = self._hosts.values()
        states = [host.health.breaker.state for host in hosts if host.health is not None]
        return Snapshot(
            hosts=len(hosts),
            in_flight=sum(host.in_flight for host in hosts),
            requests=self._past_requests + sum(host.requests for host in hosts),
            throttled=self._throttled,
            waits=self._waits,
            denied=self._denied,
            retries=self._retries,
            cancelled=self._cancelled,
            open=states.count(BreakerState.OPEN),
            half_open=states.count(BreakerState.HALF_OPEN),
            server_errors=self._bad[BadKind.SERVER],
            refusals=self._bad[BadKind.REFUSAL],
            network_errors=self._bad[BadKind.NETWORK],
            throttled_waits=self._throttled_waits,
            blocked_s=self._blocked_s,
            top=tuple(
                self._describe(host, now) for host in nlargest(top, hosts, key=self._activity)
            ),
        )

    # ------------------------------------------------------------------ around the contract

    def host(self, host: str, *, now: Instant | None = None) -> HostSnapshot | None:
        """Return the details of one host, its tokens at `now`; None if it has no state."""
        state = self._find(host)
        return None if state is None else self._describe(state, now)

    def retry(
        self,
        permit: Permit,
        response: Response,
        outcome: Outcome,
        *,
        attempt: int,
        now: Instant,
        refusals: int = 1,
    ) -> Retry | GiveUp:
        """Return whether and when to repeat the request of a reported permit. Never sleeps.

        `attempt` and `refusals` count the attempts and the throttles of its URL, this one included.
        """
        state = permit.host
        decision = decide(
            state.retry_policy,
            outcome=outcome,
            response=response,
            attempt=attempt,
            refusals=refusals,
            ready_at=state.free_at(now),
            gap_s=state.delay_s,
            now=now,
            budget=state.retry_budget(),
            rng=self._shared.rng,
        )
        if isinstance(decision, Retry):
            self._retries += 1
            self._shared.emit(events.Retried(state.key, now, decision.due, decision.attempt))
        return decision

    def retire(self, host: str, reason: str, *, now: Instant) -> None:
        """Refuse all requests to the host until `revive`; `reason` is reported in the event."""
        (self._find(host) or self._find_or_create(host, now)).retire(reason, now)

    def give_up(self, host: str, reason: str, *, now: Instant) -> bool:
        """Retire a host that is not paused; return whether it is retired now."""
        return (self._find(host) or self._find_or_create(host, now)).give_up(reason, now)

    def waits_too_long(self, host: str, *, now: Instant) -> bool:
        """Return whether the host would be given up before its next request may start."""
        state = self._find(host)
        return state is not None and state.waits_too_long(now)

    def give_up_waiting(self, host: str, *, now: Instant) -> None:
        """Retire a host that waits too long, when there is nothing else to do."""
        state = self._find(host)
        if state is not None and state.waits_too_long(now):
            state.give_up_waiting(now)

    def pause(self, host: str, *, now: Instant) -> None:
        """Refuse all requests to the host until `revive`."""
        (self._find(host) or self._find_or_create(host, now)).pause()

    def revive(self, host: str, *, now: Instant) -> None:
        """Allow requests to a retired or paused host again."""
        state = self._find(host)
        if state is not None:
            state.revive(now)

    def unpause(self, host: str, *, now: Instant) -> None:
        """Allow requests to a paused host again; an open breaker holds."""
        state = self._find(host)
        if state is not None:
            state.unpause(now)

    def configure(self, settings: Settings, *, host: str | None = None) -> None:
        """Change the settings while running: of one host, or of all hosts without their own.

        What was learned about a host is kept as far as the new settings allow, and what servers
        asked for still holds. Requests under way are not affected.

        Raises:
            ValueError: `group_by` cannot change.
        """
        if settings.group_by != self.settings.group_by:
            raise ValueError("group_by cannot change while running")
        if host is not None:
            key = self.key(host)
            self._own[key] = own = self._shared.with_settings(settings)
            self._all_enabled &= settings.enabled
            state = self._hosts.get(key)
            if state is not None:
                state.use(own)
            return
        self.settings = settings
        self._all_enabled = settings.enabled and all(
            own.settings.enabled for own in self._own.values()
        )
        self._shared = shared = self._shared.with_settings(settings)
        for key, state in self._hosts.items():
            if key not in self._own:
                state.use(shared)

    def unlearn(self, host: str) -> None:
        """Forget what was learned about a host; waits that it asked for stay."""
        state = self._find(host)
        if state is not None:
            state.unlearn()
            self._shared.dirty.discard(state)

    def settings_of(self, host: str) -> Settings:
        """Return the settings in force for a host."""
        return self._own.get(self.key(host), self._shared).settings

    @property
    def start_delay_s(self) -> float:
        """The delay between the first requests to a host without settings of its own."""
        return self._shared.start_gap_s

    def delay_s(self, host: str) -> float:
        """Return the delay in force between two requests to a host, in seconds."""
        state = self._find(host)
        return self._shared.start_gap_s if state is None else state.delay_s

    def not_before(self, host: str) -> Instant:
        """Return the instant before which no request may start, ignoring requests in flight."""
        state = self._hosts.get(host) or self._find(host)
        return NEVER if state is None else state.allowed_at

    def figures(self, host: str, *, now: Instant) -> HostFigures | None:
        """Return the figures of one host that change with every answer; None without a state."""
        state = self._hosts.get(host) or self._find(host)
        return None if state is None else figures(state, now)

    def wait_reason(self, host: str) -> Reason:
        """Return the limit that sets `not_before`."""
        state = self._find(host)
        return Reason.PACE if state is None else state.wait_reason()

    def may_leave(self, permit: Permit, *, now: Instant) -> bool:
        """Return whether a granted request may be sent now, after its connection was opened.

        Ask immediately before the request is written. If it may, call `sent` when it has left; if
        not, cancel the permit and ask for another one.
        """
        state = permit.host
        return not (self._all_enabled or state.is_enabled) or state.may_leave(permit, now)

    def sent(self, permit: Permit, *, now: Instant) -> None:
        """Count the delay to the next request from `now`, when a granted request really left."""
        permit.host.contacted(now)

    def contacted(self, host: str, *, now: Instant) -> None:
        """Count the delay to the next request from `now`, as if a request had just started.

        Use it when a crawl is resumed: requests in flight when it was killed were not recorded.
        """
        (self._hosts.get(host) or self._find_or_create(host, now)).contacted(now)

    def suspend(self, host: str, *, now: Instant) -> None:
        """Start no request to a host until `resume`, because another crawl may be sending to it."""
        (self._find(host) or self._find_or_create(host, now)).suspend()

    def resume(self, host: str) -> None:
        """Let requests to a host start again after `suspend`; all other limits still hold."""
        state = self._find(host)
        if state is not None:
            state.resume()

    def block(self, host: str, until: Instant, why: Reason, *, now: Instant) -> None:
        """Start no request to a host before `until`; `why` is the reason that is given."""
        (self._find(host) or self._find_or_create(host, now)).block_until(until, now, why)

    def state(self, host: str) -> HostState | None:
        """Return the state of a host, to be read only; None if it has none."""
        return self._hosts.get(host) or self._find(host)

    def waiting(self, host: str, change: int, *, now: Instant) -> None:
        """Add `change` to the number of callers that wait for this host (used by the drivers)."""
        key = (self._hosts.get(host) or self._find_or_create(host, now)).key
        count = self._waiters.get(key, 0) + change
        if count > 0:
            self._waiters[key] = count
        else:
            self._waiters.pop(key, None)

    def has_waiters(self, host: str) -> bool:
        """Return whether callers wait for this host (used by the drivers)."""
        return self.key(host) in self._waiters

    # ------------------------------------------------------------------ memory

    def recall(self, record: Remembered, *, now: Instant, wall: float) -> None:
        """Start a host from the record of an earlier run; `wall` is the wall time at `now`."""
        record = record.within_bounds()
        state = self._hosts.get(record.host) or self._create(record.host, now)
        age_s = max(0.0, wall - record.updated_at)
        shared = self._own.get(record.host, self._shared)
        trust = 0.5 ** (age_s / shared.settings.memory_half_life_s)
        if record.lesson != _EMPTY_LESSON:
            strategy = shared.make_strategy(shared.settings)
            strategy.recall(record.lesson, trust)
            state.use_strategy(strategy)
        if record.crawl_delay_s:
            state.set_crawl_delay(record.crawl_delay_s, now)
        if record.blocked_until > wall:
            state.block_until(now + record.blocked_until - wall, now)
        if record.failing_since or record.failures_in_a_row or record.breaker_until:
            # The time between two runs does not count as a failure.
            failing_s = max(0.0, record.updated_at - record.failing_since)
            longest_s = 1.2 * shared.settings.breaker_open_max_s
            state.restore_health(
                failing_s=failing_s if record.failing_since else None,
                failures=record.failures_in_a_row,
                opens=record.breaker_opens,
                open_s=min(longest_s, max(0.0, record.breaker_until - wall))
                if record.breaker_until
                else None,
                now=now,
            )
        self._shared.dirty.discard(state)

    def drain(self, *, now: Instant, wall: float) -> list[Remembered]:
        """Return the records that changed since the last call, for the caller to save."""
        changed = [*self._evicted, *self._shared.dirty]
        self._evicted.clear()
        self._shared.dirty.clear()
        return [_record(host, now, wall) for host in changed]

    def remembered(self, host: str, *, now: Instant, wall: float) -> Remembered | None:
        """Return the record of one host as `drain` would; None if it has no state."""
        state = self._find(host)
        return None if state is None else _record(state, now, wall)

    # ------------------------------------------------------------------ the registry

    def forget(self, host: str) -> None:
        """Drop the state of a host, unless it has requests in flight or waiters."""
        state = self._find(host)
        if state is not None and state.in_flight == 0 and state.key not in self._waiters:
            self._shared.dirty.discard(state)
            self._sweep_order.remove(state)
            self._past_requests += state.requests
            del self._hosts[state.key]

    def _find(self, host: str) -> HostState | None:
        return self._hosts.get(host) or self._hosts.get(self.key(host))

    def key(self, host: str) -> str:
        """Return the key of a host's state: its normalised name, or its group's with `group_by`."""
        if host in self._hosts:
            return host
        key = self._aliases.get(host) if self._aliases else None
        if key is None:
            key = host_key(host)
            if self._group_of is not None:
                key = self._group_of(key)
            if key != host:
                if len(self._aliases) >= _MAX_ALIASES:
                    self._aliases.clear()
                self._aliases[host] = key
        return key

    def _find_or_create(self, host: str, now: Instant) -> HostState:
        """Return the state of a host given in any spelling; create it if it is new."""
        key = self.key(host)
        return self._hosts.get(key) or self._create(key, now)

    def _create(self, key: str, now: Instant) -> HostState:
        self._sweep(now)
        state = self._hosts[key] = HostState(key, self._own.get(key, self._shared))
        self._sweep_order.append(state)
        return state

    def _sweep(self, now: Instant) -> None:
        """Check the next few hosts in turn and drop the idle ones."""
        is_full = len(self._hosts) >= self.settings.max_hosts
        idle_since = now if is_full else now - self.settings.idle_ttl_s
        order = self._sweep_order
        for _ in range(min(_SWEPT_WHEN_FULL if is_full else _SWEPT_PER_NEW_HOST, len(order))):
            state = order[0]
            if state.base_at > idle_since or self._must_keep(state, now, is_full=is_full):
                order.rotate(-1)
                continue
            order.popleft()
            self._evict(state, now)
            if is_full:
                return

    def _must_keep(self, state: HostState, now: Instant, *, is_full: bool) -> bool:
        """Return whether a caller waits for the host, or its state still delays requests."""
        # A host that was never contacted is about to be: keep what was recalled or requested.
        is_awaited = state.key in self._waiters or (state.base_at == NEVER and not is_full)
        return is_awaited or not state.is_idle(now)

    def _describe(self, state: HostState, now: Instant | None) -> HostSnapshot:
        return describe(state, waiters=self._waiters.get(state.key, 0), now=now)

    def _activity(self, host: HostState) -> tuple[int, int]:
        return (host.in_flight + self._waiters.get(host.key, 0), host.requests)

    def _evict(self, state: HostState, now: Instant) -> None:
        if state in self._shared.dirty:
            self._shared.dirty.discard(state)
            self._evicted.append(state)
        self._past_requests += state.requests
        del self._hosts[state.key]
        self._shared.emit(events.Evicted(state.key, now))


def _grouping(
    settings: Settings, group_of: Callable[[str], str] | None
) -> Callable[[str], str] | None:
    """Return the function from a host's key to its group's key; None: hosts are not grouped."""
    if settings.group_by == "host":
        return None
    if group_of is not None:
        return group_of
    if settings.group_by == "site":
        return site_key
    raise ValueError('group_by="ip" needs group_of: a function from a host to its IP address')


def _record(host: HostSchedule, now: Instant, wall: float) -> Remembered:
    host.learn_deferred()
    blocked_s = host.requested.blocked_until - now
    health = host.health
    breaker = Breaker() if health is None else health.breaker
    is_failing = health is not None and health.bad_since < inf
    return Remembered(
        host=host.key,
        lesson=host.strategy.lesson() if host.strategy is not None else _EMPTY_LESSON,
        crawl_delay_s=host.requested.crawl_delay_s,
        blocked_until=wall + blocked_s if blocked_s > _REMEMBER_BLOCK_S else 0.0,
        updated_at=wall,
        failing_since=wall - (now - health.bad_since) if health and is_failing else 0.0,
        failures_in_a_row=breaker.consecutive,
        breaker_opens=breaker.opens,
        breaker_until=0.0
        if breaker.state is BreakerState.CLOSED
        else wall + max(0.0, breaker.next_probe_at - now),
    )
