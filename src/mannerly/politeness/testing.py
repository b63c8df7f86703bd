"""Fakes and a contract test suite for your own tests: no sleeping, no sockets, no mocks.

- `FakeClock` is a clock for both drivers; time passes only when you `advance` it.
- `ScriptedServer` answers from a list: 200, a slow 200, a 429, a timeout, then always 200.
- `Transcript` records the core's decisions as a short text to assert on: "G0.0 W0.5 G0.5".
- `MemoryContract` tests a memory: subclass it, add a fixture for your memory, run pytest.

Only the standard library is imported, pytest is not.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count, pairwise
from math import inf
from typing import TYPE_CHECKING, Protocol

from . import events
from .memory.base import Memory, Remembered
from .model import Grant, Refuse, Response
from .pace.base import Lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from .clock import Alarm
    from .core import Politeness
    from .drivers.waiters import DriverEvent
    from .model import Decision, Instant

_TURNS = 25  # event loop cycles: enough for a woken task to report and wake the next one


class _FakeAlarm:
    """A callback in the heap of a fake clock."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class _Future(Protocol):
    """The part of a task's interface that the clock needs."""

    def done(self) -> bool: ...


class _LoopTurn:
    """Await it to let every other task run once (event loops accept a bare yield)."""

    def __await__(self) -> Generator[None]:
        yield


class FakeClock:
    """A clock with alarms, for both drivers, whose time passes only when the test says so.

    Times are exact: an alarm is called exactly at the instant it was set for, so tests may compare
    floats with `==`.
    """

    def __init__(self, now: Instant = 0.0, wall: float = 1_700_000_000.0) -> None:
        self._now = now
        self._wall_offset_s = wall - now
        self._heap: list[tuple[Instant, int, _FakeAlarm]] = []
        self._arrivals = count()

    def __repr__(self) -> str:
        return f"<FakeClock {self._now:.3f}, {self.sleepers} alarms>"

    def now(self) -> Instant:
        """Return the time, which changes only by `advance`, `block` and what calls them."""
        return self._now

    def wall(self) -> float:
        """Return seconds since 1970; it advances with `now`."""
        return self._now + self._wall_offset_s

    @property
    def sleepers(self) -> int:
        """The number of alarms that are set."""
        return sum(entry[2].callback is not None for entry in self._heap)

    @property
    def next_at(self) -> Instant:
        """The time of the next alarm; infinite if none is set."""
        while self._heap and self._heap[0][2].callback is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else inf

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Set an alarm. One in the past is called by the next `advance`, even by 0 seconds."""
        alarm = _FakeAlarm(callback)
        heappush(self._heap, (when, next(self._arrivals), alarm))
        return alarm

    def advance(self, seconds: float = 0.0) -> None:
        """Let time pass, and call every alarm on the way at its instant."""
        if seconds < 0.0:
            raise ValueError(f"seconds must not be negative: {seconds}")
        end = self._now + seconds
        while (when := self.next_at) <= end:
            self._now = max(self._now, when)
            callback = heappop(self._heap)[2].callback
            if callback is not None:
                callback()
        self._now = max(self._now, end)  # a callback may have blocked

    def block(self, seconds: float) -> None:
        """Let time pass as a blocking call does: alarms that became due are called afterwards."""
        self._now += seconds

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as a time server does; `now` does not change."""
        self._wall_offset_s += seconds

    def advance_to_next(self) -> None:
        """Advance to the next alarm and call it, with all others of that instant."""
        when = self.next_at
        if when == inf:
            raise RuntimeError("no alarm is set: waiting callers would wait forever")
        self._now = max(self._now, when)
        self.advance()

    # ------------------------------------------------------------------ for asyncio

    async def sleep(self, seconds: float) -> None:
        """Sleep in the time of this clock, for example in a fake server."""
        when = self._now + seconds
        alarm = self.call_at(when, _nothing)
        try:
            while self._now < when:
                await _LoopTurn()
        finally:
            alarm.cancel()

    async def settle(self) -> None:
        """Let all tasks run until each of them waits for this clock."""
        for _ in range(_TURNS):
            await _LoopTurn()

    async def run(self, *tasks: _Future) -> None:
        """Advance from alarm to alarm until these tasks are done."""
        await self.settle()
        while not all(task.done() for task in tasks):
            self.advance_to_next()
            await self.settle()


def _nothing() -> None:
    """Do nothing: `sleep` only needs the time to pass."""


class ScriptedServer:
    """A fake server that answers from a script, then repeats its last entry.

    An entry is a status, or a `Response` where latency, headers or an error matter:

        ScriptedServer(200, Response(200, 0.8), Response(429, 0.05, retry_after(7)), 200)

    `starts` and `gaps_s` show the times of all requests. `answer` returns what `report` takes;
    `request` is the interface that the simulator needs.
    """

    def __init__(self, *script: int | Response, latency_s: float = 0.05) -> None:
        if not script:
            raise ValueError("the script is empty: pass at least one status or Response")
        self._script = [
            Response(entry, latency_s) if isinstance(entry, int) else entry for entry in script
        ]
        self.starts: list[Instant] = []

    @property
    def gaps_s(self) -> list[float]:
        """The times between consecutive requests, in seconds."""
        return [later - earlier for earlier, later in pairwise(self.starts)]

    def answer(self, now: Instant) -> Response:
        """Return the next response of the script."""
        place = min(len(self.starts), len(self._script) - 1)
        self.starts.append(now)
        return self._script[place]

    def request(self, now: Instant, in_flight: int) -> tuple[int, float, Mapping[str, str]]:  # noqa: ARG002
        """Return the next response as status (0: none), latency and headers."""
        response = self.answer(now)
        return response.status or 0, response.latency_s, response.headers


def retry_after(seconds: float) -> dict[str, str]:
    """Return headers with a Retry-After."""
    return {"retry-after": f"{seconds:g}"}


class Transcript:
    """A record of decisions and events, as one line of short words.

    G0.5    granted at 0.5          B30     blocked: the server asked for 30 s
    W1.5    wait until 1.5          S2      slowed: one request every 2 s
    W-      wait for a report       F1.5    faster: one every 1.5 s
    X6.0    refused until 6.0       P1      probing: one every 1 s
    X-      refused until revived   C3      concurrency 3
    O6.0    breaker open until 6.0  H, K    breaker half-open, closed (OK again)
    """

    def __init__(self) -> None:
        self.words: list[str] = []

    def __str__(self) -> str:
        return " ".join(self.words)

    def __call__(self, event: DriverEvent) -> None:
        """Record an event: pass the transcript to the core as `on_event`."""
        match event:
            case events.Throttled(retry_after_s=pause_s) if pause_s is not None:
                self.words.append(f"B{pause_s:g}")
            case events.Slowed(delay_s=delay_s):
                self.words.append(f"S{delay_s:g}")
            case events.SpedUp(delay_s=delay_s):
                self.words.append(f"F{delay_s:g}")
            case events.Probing(delay_s=delay_s):
                self.words.append(f"P{delay_s:g}")
            case events.ConcurrencyChanged(concurrency=concurrency):
                self.words.append(f"C{concurrency}")
            case events.Opened(until=until):
                self.words.append(f"O{until:.1f}")
            case events.HalfOpened():
                self.words.append("H")
            case events.Closed():
                self.words.append("K")
            case _:
                pass

    def reserve(self, core: Politeness, host: str, *, now: Instant) -> Decision:
        """Call `core.reserve`, and record its decision."""
        decision = core.reserve(host, now=now)
        if isinstance(decision, Grant):
            self.words.append(f"G{now:.1f}")
        else:
            letter = "X" if isinstance(decision, Refuse) else "W"
            until = "-" if decision.until is None else f"{decision.until:.1f}"
            self.words.append(letter + until)
        return decision

    def take(self) -> str:
        """Return the line so far, and start an empty one."""
        line, self.words = str(self), []
        return line


class MemoryContract:
    """Tests that every memory must pass. Subclass it in a test module and add a fixture:

    class TestMyMemory(MemoryContract):
        @pytest.fixture
        def memory(self): ...        # open and empty
        def reopen(self, memory): ...  # the same storage, as the next process finds it
    """

    def reopen(self, memory: Memory) -> Memory:
        """Return the memory after a restart; a memory without storage returns itself."""
        return memory

    def test_unknown_host_has_no_record(self, memory: Memory) -> None:
        """A host that was never saved is unknown."""
        assert memory.load("example.com") is None

    def test_record_comes_back_whole(self, memory: Memory) -> None:
        """Every field survives, fractions of a second included."""
        record = _full_record("example.com")

        memory.save([record])

        assert memory.load("example.com") == record

    def test_record_survives_reopening(self, memory: Memory) -> None:
        """A saved record is still there after a restart."""
        record = _full_record("example.com")
        memory.save([record])

        again = self.reopen(memory)

        assert again.load("example.com") == record
        again.close()

    def test_later_record_replaces_earlier(self, memory: Memory) -> None:
        """There is one record per host: the latest."""
        memory.save([_full_record("example.com")])
        later = Remembered(host="example.com", lesson=Lesson(delay_s=2.5), updated_at=9.0)

        memory.save([later])

        assert memory.load("example.com") == later

    def test_hosts_do_not_mix(self, memory: Memory) -> None:
        """A record is found under its own host only, whatever characters the name has."""
        hosts = ["a.example", "b.example:8080", "[::1]", "xn--bcher-kva.example", "o'hara.example"]
        records = {host: Remembered(host=host, lesson=Lesson(delay_s=0.25)) for host in hosts}

        memory.save(records.values())

        assert {host: memory.load(host) for host in hosts} == records

    def test_save_is_all_or_none(self, memory: Memory) -> None:
        """An error halfway through a save leaves the memory as it was."""

        def halfway() -> Iterator[Remembered]:
            yield _full_record("first.example")
            raise RuntimeError("the caller failed")

        try:
            memory.save(halfway())
        except RuntimeError:
            pass
        else:
            raise AssertionError("the failure was swallowed")

        assert memory.load("first.example") is None

    def test_nothing_to_save_is_fine(self, memory: Memory) -> None:
        """An empty batch changes nothing."""
        memory.save([])

        assert memory.load("example.com") is None

    def test_forgotten_host_is_unknown(self, memory: Memory) -> None:
        """Forgetting removes one host and no other; forgetting it again is harmless."""
        memory.save([_full_record("gone.example"), _full_record("kept.example")])

        memory.forget("gone.example")
        memory.forget("gone.example")

        assert memory.load("gone.example") is None
        assert memory.load("kept.example") is not None

    def test_closing_twice_is_harmless(self, memory: Memory) -> None:
        """A second `close` does nothing."""
        memory.close()
        memory.close()


def _full_record(host: str) -> Remembered:
    return Remembered(
        host=host,
        lesson=Lesson(
            delay_s=0.123456789,
            floor_s=0.1,
            allowance=10.5,
            block_s=7.25,
            concurrency=3,
            is_proven=True,
        ),
        crawl_delay_s=1.5,
        blocked_until=1_700_000_600.5,
        updated_at=1_700_000_000.25,
        failing_since=1_699_999_000.5,
        failures_in_a_row=4,
        breaker_opens=2,
        breaker_until=1_700_000_040.5,
    )
