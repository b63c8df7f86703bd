"""What the asyncio and the thread driver share: everything except sleeping.

    enter ─► a slot at once
          ─► a place in the queue, with a signal ─► the driver sleeps on it ─► admit ─► a slot,
                                                 or leaves                  CircuitOpen, …

Every method that touches the core holds the lock, for microseconds; whatever changed a host
(a report, a permit given back, robots.txt, an operator) serves that host's line right away.

This file may not know either driver, nor what its lock, its bells and its alarms are made of.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Generic

from ..clock import Alarms, MonotonicClock
from ..core import Politeness
from ..errors import CircuitOpen, HostUnavailable, PolitenessError
from ..keys import host_key, site_key
from ..model import Grant, Reason, Refuse, Wait
from .buffer import MemoryBuffer
from .slots import Slot
from .waiters import Signal, Waiter, Waiting, WaitQueues

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..clock import Alarm, TimeSource
    from ..memory.base import Memory, Remembered
    from ..model import Instant, Outcome, Permit, Response
    from ..retry import GiveUp, Retry
    from ..settings import Settings
    from ..snapshot import HostSnapshot, Snapshot
    from .waiters import Notice

_MAX_CACHED_GROUPS = (
    100_000  # hosts whose group is remembered: looking one up may cost a name resolution
)


class DriverBase(ABC, Generic[Signal]):
    """The core behind a lock, its lines, its alarms and its memory.

    Args:
        settings: how polite to be.
        memory: where learned state is kept between runs; it is closed with the driver.
        on_event: told about every change and every wait, with the lock held: it must be quick.
        group_of: what a host's budget is shared under: see `Politeness`.
        clock: for tests; one that has alarms of its own replaces the driver's, too.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        memory: Memory | None = None,
        on_event: Callable[[Notice], None] | None = None,
        group_of: Callable[[str], str] | None = None,
        clock: TimeSource | None = None,
    ) -> None:
        self._emit: Callable[[Notice], None] = _guarded(on_event) if on_event else _ignore
        self._core = Politeness(
            settings, on_event=self._emit, group_of=group_of, remember=memory is not None
        )
        self._queues: WaitQueues[Signal] = WaitQueues(self._core)
        self._buffer = None if memory is None else MemoryBuffer(memory)
        self._clock = clock or MonotonicClock()
        alarms, self._lock = self._make_alarms_and_lock(self._clock)
        self._alarms = self._clock if isinstance(self._clock, Alarms) else alarms
        self._alarms_set: dict[str, tuple[Instant, Alarm]] = {}
        self._is_closed = False
        self._group_of: Callable[[str], str] | None = None
        if self._core.settings.group_by != "host":
            self._group_of = lru_cache(_MAX_CACHED_GROUPS)(group_of or site_key)

    def __repr__(self) -> str:
        with self._lock:
            return f"<{type(self).__name__} {self._core!r}, {len(self._queues)} waiting>"

    # ------------------------------------------------------------------ what a driver adds

    @abstractmethod
    def _make_alarms_and_lock(
        self, clock: TimeSource
    ) -> tuple[Alarms, AbstractContextManager[object]]:
        """The driver's own state; returns its alarms and the lock that guards the core."""

    @abstractmethod
    def _make_signal(self) -> Signal:
        """What a waiting caller sleeps on."""

    @abstractmethod
    def _wake(self, signal: Signal) -> None:
        """Wake the caller who sleeps on it."""

    @abstractmethod
    def _write(self, buffer: MemoryBuffer, records: list[Remembered]) -> None:
        """Save the records off the callers' path, then tell the buffer."""

    # ------------------------------------------------------------------ for people

    def try_slot(self, url: str) -> Slot | Wait | Refuse:
        """A slot at once, or the reason why not. Never waits, never overtakes those who do.

        Use the slot as a context manager. With a memory, the first call for a host reads from it.
        """
        host, key = self._host_and_key(url)
        self._recall(host, key)
        with self._lock:
            self._check_open()
            now = self._clock.now()
            decision = self._queues.ask(key, host, now)
        return Slot(self, decision.permit, now, 0.0) if isinstance(decision, Grant) else decision

    def ready_at(self, url: str) -> Instant:
        """The earliest instant at which the host could be contacted; infinite if none is known."""
        host, key = self._host_and_key(url)
        self._recall(host, key)
        with self._lock:
            return self._core.ready_at(host, now=self._clock.now())

    def robots(self, url: str, crawl_delay_s: float | None) -> None:
        """What the host's robots.txt asked for; None: nothing."""
        self._change(url, partial(self._core.robots, crawl_delay_s=crawl_delay_s))

    def retire(self, url: str, reason: str) -> None:
        """Contact the host no more; those who wait for it are told."""
        self._change(url, partial(self._core.retire, reason=reason))

    def pause(self, url: str) -> None:
        """Refuse every request to the host until `revive`."""
        self._change(url, self._core.pause)

    def revive(self, url: str) -> None:
        """Take a retired or paused host up again."""
        self._change(url, self._core.revive)

    def snapshot(self, top: int = 50) -> Snapshot:
        """Totals over all hosts, and the `top` busiest in detail."""
        with self._lock:
            return self._core.snapshot(top=top)

    def host(self, url: str) -> HostSnapshot | None:
        """One host in detail; None if nothing is known of it."""
        host, _ = self._host_and_key(url)
        with self._lock:
            return self._core.host(host)

    @property
    def memory_error(self) -> Exception | None:
        """Why the latest write to the memory failed; it is tried again. None: all is well."""
        return None if self._buffer is None else self._buffer.error

    # ------------------------------------------------------------------ for slots

    def now(self) -> Instant:
        """The clock of this desk."""
        return self._clock.now()

    def report(self, permit: Permit, response: Response) -> Outcome:
        """What came of a permit; whoever may go now is woken."""
        if response.received_at is None and response.headers:
            response = response._replace(received_at=self._clock.wall())
        with self._lock:
            now = self._clock.now()
            outcome = self._core.report(permit, response, now=now)
            self._serve(permit.host.key, now)
        self._save_if_due()
        return outcome

    def cancel(self, permit: Permit, *, was_sent: bool) -> None:
        """Give a permit back; whoever may go now is woken."""
        with self._lock:
            now = self._clock.now()
            self._core.cancel(permit, now=now, was_sent=was_sent)
            self._serve(permit.host.key, now)

    def retry(
        self, permit: Permit, response: Response, outcome: Outcome, *, attempt: int
    ) -> Retry | GiveUp:
        """Whether to send the request of a reported permit again."""
        with self._lock:
            return self._core.retry(
                permit, response, outcome, attempt=attempt, now=self._clock.now()
            )

    # ------------------------------------------------------------------ waiting

    def _try_or_join(
        self, host_and_key: tuple[str, str], deadline_s: float | None, *, wait_when_open: bool
    ) -> Slot | Waiter[Signal]:
        """A slot if there is one, else a place in the queue."""
        if deadline_s is not None and not deadline_s >= 0.0:
            raise ValueError(f"a deadline is at least 0 s away, not {deadline_s!r}")
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
            wait_s = None if decision.until is None else max(0.0, decision.until - now)
            ahead = self._queues.length(key)
            self._set_alarm(key, self._queues.join(waiter, host, decision, now))
            self._emit(Waiting(key, now, wait_s, ahead, decision.reason))
            return waiter

    def _admit(self, waiter: Waiter[Signal]) -> Slot:
        """What a woken caller gets."""
        decision = waiter.decision
        if isinstance(decision, Grant):
            permit = decision.permit
            return Slot(self, permit, self._clock.now(), permit.sent_at - waiter.joined_at)
        if isinstance(decision, Refuse):
            raise _unavailable(waiter.key, decision)
        if isinstance(decision, Wait):
            assert waiter.deadline is not None
            waited_s = waiter.deadline - waiter.joined_at
            raise TimeoutError(f"no slot for {waiter.key} in {waited_s:g} s: {decision.reason}")
        raise PolitenessError(f"closed while {waiter.key} was waited for")

    def _leave(self, waiter: Waiter[Signal]) -> None:
        """A caller was cancelled in the queue, or just when its turn had come."""
        with self._lock:
            if isinstance(waiter.decision, Grant):
                self.cancel(waiter.decision.permit, was_sent=False)
                return
            self._queues.leave(waiter, self._clock.now())
            if not self._queues.length(waiter.key):
                self._set_alarm(waiter.key, None)

    def _serve(self, key: str, now: Instant) -> None:
        served = self._queues.serve(key, now)
        for waiter in served.settled:
            self._wake(waiter.signal)
        self._set_alarm(key, served.alarm_at)

    def _set_alarm(self, key: str, when: Instant | None) -> None:
        """Keep exactly one alarm for a host with a queue, and none for the others."""
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
            # Another thread may have set a new one while this rang: then one ring is superfluous,
            # which is harmless, where a ring too few would be for ever.
            self._alarms_set.pop(key, None)
            self._serve(key, self._clock.now())

    # ------------------------------------------------------------------ host_and_key, memory, the end

    def _host_and_key(self, url: str) -> tuple[str, str]:
        """The host, and the key of the line in which callers wait for it."""
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
        """Whether the memory should be asked about this host."""
        with self._lock:
            return self._buffer is not None and host not in self._core

    def _recall(self, host: str, key: str) -> None:
        if self._buffer is not None and self._is_unknown(host):
            self._use_record(host, self._buffer.load(key))

    def _use_record(self, host: str, record: Remembered | None) -> None:
        """Start a host from its record, unless another caller was quicker."""
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
            raise PolitenessError(f"this {type(self).__name__} was closed")

    def _close_queues(self) -> None:
        """Let nobody in any more, and send home who waits."""
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


def _ignore(notice: Notice) -> None:
    """Drop the notice: nobody listens."""


def _guarded(listener: Callable[[Notice], None]) -> Callable[[Notice], None]:
    """A listener whose errors become warnings: a broken log must not leave callers asleep."""

    def told(notice: Notice) -> None:
        try:
            listener(notice)
        except Exception as error:  # noqa: BLE001 - anyone's listener, so any error
            warnings.warn(f"on_event raised {error!r}", RuntimeWarning, stacklevel=2)

    return told
