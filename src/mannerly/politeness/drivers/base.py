"""The common part of the asyncio driver and the thread driver: everything except waiting.

    _try_or_join ─► a slot at once
                 ─► a Waiter ─► the driver waits for its signal ─► _admit ─► a slot, or raises
                          ▲     or the caller is cancelled      ─► _leave  │
                          └─────────── a Retry-After came meanwhile ───────┘

Every method that uses the core holds the lock, for microseconds. Every change of a host (a report,
a cancelled permit, robots.txt, an operator's command) serves that host's queue at once.

This module knows neither driver, nor the types of its lock, signals and alarms. It is long because
it has every public method that the drivers share; most of them are a few lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Generic, cast

from ..clock import Alarms, MonotonicClock
from ..core import Politeness
from ..errors import CircuitOpen, HostUnavailable, PolitenessError
from ..keys import host_key, site_key
from ..model import Grant, Reason, Refuse, Wait
from .buffer import MemoryBuffer
from .holders import Holders
from .listener import LATE_S, guarded, ignore
from .sharing import SharedPoliteness, is_place, open_sharing
from .slots import Slot, page_of
from .waiters import Signal, StartedLate, Waiter, Waiting, WaitQueues

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from os import PathLike

    from ..clock import Alarm, TimeSource
    from ..memory.base import Memory, Remembered
    from ..model import Instant, Outcome, Permit, Response
    from ..retry import GiveUp, Retry
    from ..settings import Settings
    from ..snapshot import HostSnapshot, Snapshot
    from .sharing import HostSharing
    from .waiters import DriverEvent, Served

# `group_of` results that are cached: a call may need a DNS lookup.
_MAX_CACHED_GROUPS = 100_000


class DriverBase(ABC, Generic[Signal]):
    """The core with a lock, queues of waiting callers, alarms and a memory.

    Args:
        settings: how polite to be; default `Settings()`.
        memory: `"user"`, the path of a file, or the URL of a Redis or Valkey server: hosts are
            shared with all crawls and programs that name the same place, and what was learned is
            kept there. Or a `Memory` of your own, for this driver alone; it is closed with the
            driver. None: alone, and nothing is kept.
        on_event: called with every event, waits included, while the lock is held: it must be quick.
        group_of: returns the group that a host shares its request rate with: see `Politeness`.
        clock: a time source, for tests. If it has `call_at`, it replaces the driver's alarms, too.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        memory: Memory | str | PathLike[str] | None = None,
        on_event: Callable[[DriverEvent], None] | None = None,
        group_of: Callable[[str], str] | None = None,
        clock: TimeSource | None = None,
    ) -> None:
        self._clock = clock or MonotonicClock()
        self._emit = guarded(on_event, self._clock) if on_event else ignore
        alarms, self._lock = self._make_alarms_and_lock(self._clock)
        self._sharing: HostSharing | None = None
        self._buffer: MemoryBuffer | None = None
        is_paced = settings is None or settings.enabled
        if is_place(memory):
            self._sharing = open_sharing(memory, self._clock) if is_paced else None
        elif memory is not None:
            self._buffer = MemoryBuffer(cast("Memory", memory))
        if self._sharing is None:
            self._core = Politeness(
                settings, on_event=self._emit, group_of=group_of, remember=memory is not None
            )
        else:
            self._lock = self._sharing.lock
            self._core = SharedPoliteness(
                self._sharing, settings, on_event=self._emit, group_of=group_of
            )
            self._sharing.serve(self._core, self._serve_soon)
        self._queues: WaitQueues[Signal] = WaitQueues(self._core)
        self._holders = Holders()
        self._last_name = ""  # of the task or thread that entered a slot's block last
        self._alarms = self._clock if isinstance(self._clock, Alarms) else alarms
        self._alarms_set: dict[str, tuple[Instant, Alarm]] = {}
        self._is_closed = False
        self._group_of: Callable[[str], str] | None = None
        if self._core.settings.group_by != "host":
            self._group_of = lru_cache(_MAX_CACHED_GROUPS)(group_of or site_key)

    def __repr__(self) -> str:
        with self._lock:
            return f"<{type(self).__name__} {self._core!r}, {len(self._queues)} waiting>"

    # ------------------------------------------------------------------ implemented by drivers

    @abstractmethod
    def _make_alarms_and_lock(
        self, clock: TimeSource
    ) -> tuple[Alarms, AbstractContextManager[object]]:
        """Return the driver's alarms and the lock that guards the core."""

    @abstractmethod
    def _make_signal(self) -> Signal:
        """Return a new object for a caller to wait on."""

    @abstractmethod
    def _wake(self, signal: Signal) -> None:
        """Wake the caller that waits on this signal."""

    @abstractmethod
    def _caller(self) -> tuple[object, str]:
        """Return the task or thread that calls, and its name."""

    @abstractmethod
    def _serve_soon(self, keys: list[str]) -> None:
        """Serve the queues of these hosts; called by the thread that shares hosts."""

    @abstractmethod
    def _write(self, buffer: MemoryBuffer, records: list[Remembered]) -> None:
        """Save the records, if possible without blocking a caller, then call `buffer.saved`."""

    # ------------------------------------------------------------------ public

    def try_slot(self, url: str) -> Slot | Wait | Refuse:
        """Return a slot at once, or the reason why not. Never waits, never overtakes waiters.

        Use the slot as a context manager. With a memory, the first call for a host reads from it.
        """
        host, key = self._host_and_key(url)
        self._recall(host, key)
        with self._lock:
            self._check_open()
            now = self._clock.now()
            decision = self._queues.ask(key, host, now)
        if not isinstance(decision, Grant):
            return decision
        return Slot(self, decision.permit, now, 0.0, page_of(url))

    def ready_at(self, url: str) -> Instant:
        """Return the earliest instant for a request to the host; `inf` if it is not known yet."""
        host, key = self._host_and_key(url)
        self._recall(host, key)
        with self._lock:
            return self._core.ready_at(host, now=self._clock.now())

    def robots(self, url: str, crawl_delay_s: float | None) -> None:
        """Set the Crawl-delay of the host's robots.txt; None: it has none."""
        self._change(url, partial(self._core.robots, crawl_delay_s=crawl_delay_s))

    def retire(self, url: str, reason: str) -> None:
        """Refuse all requests to the host until `revive`; waiting callers get `HostUnavailable`."""
        self._change(url, partial(self._core.retire, reason=reason))

    def pause(self, url: str) -> None:
        """Refuse all requests to the host until `revive`."""
        self._change(url, self._core.pause)

    def revive(self, url: str) -> None:
        """Allow requests to a retired or paused host again."""
        self._change(url, self._core.revive)

    def snapshot(self, top: int = 50) -> Snapshot:
        """Return totals over all hosts, and details of the `top` busiest ones."""
        with self._lock:
            return self._core.snapshot(top=top, now=self._clock.now())

    def host(self, url: str) -> HostSnapshot | None:
        """Return the details of one host; None if it has no state."""
        host, _ = self._host_and_key(url)
        with self._lock:
            return self._core.host(host, now=self._clock.now())

    @property
    def sharing(self) -> HostSharing | None:
        """The place that is shared with other processes, for `policies`; None: there is none."""
        return self._sharing

    @property
    def memory_error(self) -> Exception | None:
        """The error of the latest write to the memory, which will be repeated; None: no error.

        While hosts are shared and the memory cannot be used, nothing is sent.
        """
        if self._sharing is not None and self._sharing.trouble is not None:
            return PolitenessError(self._sharing.trouble)
        return None if self._buffer is None else self._buffer.error

    # ------------------------------------------------------------------ for slots

    def now(self) -> Instant:
        """Return the time of the driver's clock."""
        return self._clock.now()

    def sent(self, permit: Permit) -> Instant:
        """Count the delay to the next request from now, and return the time.

        Raises:
            HostUnavailable: another process may have taken the host over: send nothing.
        """
        with self._lock:
            now, key = self._clock.now(), permit.host.key
            if self._sharing is not None and not self._sharing.may_leave(key, now):
                raise HostUnavailable(key, None, Reason.SHARED)
            self._core.sent(permit, now=now)
        return now

    def enter(self, permit: Permit) -> object:
        """Note, and return, the task or thread that enters the block of this permit's slot."""
        caller, name = self._caller()
        with self._lock:
            self._holders.add(caller, permit)
            self._last_name = name
        return caller

    def exit(self, holder: object, permit: Permit) -> None:
        """Note that the block of this permit's slot ends."""
        with self._lock:
            self._holders.remove(holder, permit)

    def report(self, permit: Permit, response: Response) -> Outcome:
        """Report the response to a permit, and wake the callers that may go now."""
        if response.received_at is None and response.headers:
            response = response._replace(received_at=self._clock.wall())
        with self._lock:
            now = self._clock.now()
            outcome = self._core.report(permit, response, now=now)
            self._serve(permit.host.key, now)
        self._save_if_due()
        return outcome

    def cancel(self, permit: Permit, *, was_sent: bool) -> None:
        """Give a permit back, and wake the callers that may go now."""
        with self._lock:
            now = self._clock.now()
            self._core.cancel(permit, now=now, was_sent=was_sent)
            self._serve(permit.host.key, now)

    def retry(
        self, permit: Permit, response: Response, outcome: Outcome, *, attempt: int, refusals: int
    ) -> Retry | GiveUp:
        """Return whether and when to repeat the request of a reported permit."""
        with self._lock:
            counts = {"attempt": attempt, "refusals": refusals}
            return self._core.retry(permit, response, outcome, now=self._clock.now(), **counts)

    # ------------------------------------------------------------------ waiting

    def _try_or_join(
        self, host_and_key: tuple[str, str], deadline_s: float | None, *, wait_when_open: bool
    ) -> Slot | Waiter[Signal]:
        """Return a slot if there is one now, else join the host's queue."""
        if deadline_s is not None and not deadline_s >= 0.0:
            raise ValueError(f"deadline_s must be at least 0, not {deadline_s!r}")
        host, key = host_and_key
        with self._lock:
            self._check_open()
            now = self._clock.now()
            decision = self._queues.ask(key, host, now)
            if isinstance(decision, Grant):
                return Slot(self, decision.permit, now, 0.0)
            deadline = None if deadline_s is None else now + deadline_s
            waiter = Waiter(
                key, self._make_signal(), now, deadline=deadline, waits_when_open=wait_when_open
            )
            if isinstance(decision, Refuse) and not waiter.accepts(decision):
                raise _unavailable(key, decision)
            caller, name = self._caller()
            if self._holders.holds(caller, key):
                waiter.owner = caller
                if self._is_deadlock(key, [caller, *self._queues.owners(key)]):
                    raise _waits_for_itself(name, key)
            ahead = self._queues.length(key)
            self._set_alarm(key, self._queues.join(waiter, host, decision, now))
            self._emit(_waiting(key, now, decision, ahead))
            return waiter

    def _admit(self, waiter: Waiter[Signal]) -> Slot | None:
        """Return the slot of a caller that was woken and goes on; None: it has to wait again.

        Raises the reason why the caller gets no slot, if there is one.
        """
        key = waiter.key
        with self._lock:
            now = self._clock.now()
            self._follow(key, self._queues.enter(waiter, now))
            decision = waiter.decision
            if waiter.is_stuck:
                raise _waits_for_itself(self._caller()[1], key)
            if decision is None and not self._is_closed:
                waiter.signal = self._make_signal()
                self._emit(_waiting(key, now, self._queues.last_decision(key), 0))
                return None
            if isinstance(decision, Grant):
                if now - waiter.due_at > LATE_S:
                    self._emit(StartedLate(key, now, now - waiter.due_at, self._last_name))
                self._core.waited(now - waiter.joined_at)
                return Slot(self, decision.permit, now, now - waiter.joined_at)
        if isinstance(decision, Refuse):
            raise _unavailable(key, decision)
        if isinstance(decision, Wait):
            assert waiter.deadline is not None
            waited_s = waiter.deadline - waiter.joined_at
            why = self._why_shared(key) if decision.reason is Reason.SHARED else decision.reason
            raise TimeoutError(f"no slot for {key} in {waited_s:g} s: {why}")
        raise PolitenessError(f"closed while waiting for a slot for {key}")

    def _leave(self, waiter: Waiter[Signal]) -> None:
        """Remove a cancelled caller from its queue; if it was called, call the next one."""
        with self._lock:
            self._follow(waiter.key, self._queues.leave(waiter, self._clock.now()))

    def _serve(self, key: str, now: Instant) -> None:
        self._follow(key, self._queues.serve(key, now))

    def _follow(self, key: str, served: Served[Signal]) -> None:
        """Wake callers and set the alarm, as the queue says."""
        for waiter in served.woken:
            self._wake(waiter.signal)
        self._set_alarm(key, served.alarm_at)
        if served.alarm_at is None and self._is_deadlock(key, self._queues.owners(key)):
            # The limit fell while they waited: one of them has to give up its slot.
            self._wake(self._queues.remove_last_owner(key, self._clock.now()).signal)

    def _is_deadlock(self, key: str, waiting: list[object]) -> bool:
        """Return whether the host is full with requests of callers that wait for it themselves."""
        state = self._core.host(key) if waiting else None
        if state is None or state.in_flight < state.concurrency:
            return False
        return self._holders.is_deadlock(key, waiting, state.in_flight)

    def _set_alarm(self, key: str, when: Instant | None) -> None:
        """Set the only alarm of a host to `when`; None: cancel it."""
        current = self._alarms_set.get(key)
        if current is not None:
            if current[0] == when:
                return
            current[1].cancel()
            del self._alarms_set[key]
        if when is not None and when < inf:
            alarm = self._alarms.call_at(when, partial(self._on_alarm, key))
            self._alarms_set[key] = (when, alarm)

    def _on_alarm(self, key: str) -> None:
        with self._lock:
            # Another thread may have set a new alarm meanwhile. Removing it here leads to one
            # superfluous call, which is harmless; a missing call would block waiters forever.
            self._alarms_set.pop(key, None)
            self._serve(key, self._clock.now())

    def _why_shared(self, key: str) -> str:
        """Return why the lease of a host is not held."""
        sharing = self._sharing
        if sharing is None or sharing.trouble is not None:
            return "shared" if sharing is None else str(sharing.trouble)
        holder = sharing.holder_of(key)
        return "in use by another process" if holder is None else f"in use by {holder}"

    # ------------------------------------------------------------------ keys, memory, closing

    def _host_and_key(self, url: str) -> tuple[str, str]:
        """Return the host, and the key of its queue (the group with `group_by`)."""
        host = host_key(url)
        return host, host if self._group_of is None else self._group_of(host)

    def _change(self, url: str, change: Callable[..., None]) -> None:
        host, key = self._host_and_key(url)
        self._recall(host, key)
        with self._lock:
            now = self._clock.now()
            change(host, now=now)
            self._serve(key, now)

    def _is_unknown(self, host: str) -> bool:
        """Return whether the host should be looked up in the memory."""
        with self._lock:
            return self._buffer is not None and host not in self._core

    def _recall(self, host: str, key: str) -> None:
        if self._buffer is not None and self._is_unknown(host):
            self._use_record(host, self._buffer.load(key))

    def _use_record(self, host: str, record: Remembered | None) -> None:
        """Start a host from its record, unless another caller has started it meanwhile."""
        with self._lock:
            if record is not None and host not in self._core:
                self._core.recall(record, now=self._clock.now(), wall=self._clock.wall())

    def _save_if_due(self) -> None:
        buffer = self._buffer
        if buffer is None or self._is_closed:
            return
        records = self._collect(buffer)
        if records:
            self._write(buffer, records)

    def _collect(self, buffer: MemoryBuffer, *, is_last: bool = False) -> list[Remembered]:
        with self._lock:
            now, wall = self._clock.now(), self._clock.wall()
            return buffer.collect(self._core, now=now, wall=wall, is_last=is_last)

    def _check_open(self) -> None:
        if self._is_closed:
            raise PolitenessError(f"this {type(self).__name__} is closed")

    def _close_queues(self) -> None:
        """Refuse new callers, and wake all waiting ones with a `PolitenessError`."""
        with self._lock:
            self._is_closed = True
            for waiter in self._queues.clear(self._clock.now()):
                self._wake(waiter.signal)
            for _, alarm in self._alarms_set.values():
                alarm.cancel()
            self._alarms_set.clear()


def _unavailable(host: str, refusal: Refuse) -> HostUnavailable:
    kind = CircuitOpen if refusal.reason is Reason.BREAKER_OPEN else HostUnavailable
    return kind(host, refusal.until, refusal.reason)


def _waiting(key: str, now: Instant, decision: Wait | Refuse, ahead: int) -> Waiting:
    wait_s = None if decision.until is None else max(0.0, decision.until - now)
    return Waiting(key, now, wait_s, ahead, decision.reason)


def _waits_for_itself(name: str, key: str) -> PolitenessError:
    return PolitenessError(
        f"{name} holds a slot of {key} and asks for another one: with max_concurrency reached, it "
        "would wait for itself forever. Report and leave a slot before you ask for the next one: "
        "every request, also a redirect, needs a slot of its own"
    )
