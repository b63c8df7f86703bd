"""Hosts of a program with a client of its own, shared with crawls and with other programs.

    a slot is asked for ─► `use` ─► a thread claims the host ─► the callers that wait are served

The drivers of `politeness` stand in front of this and know it as `HostSharing`. A thread does all
that needs the memory, so neither an event loop nor a caller waits for a disk or a server:

    while hosts are used     a sign of life for all of them; turns, lessons and pauses (`turns`)
    unused for REST_S        all hosts are given back, and the thread ends until the next use
    the memory is away       after `silent_s` nothing is sent, and `trouble` says why; then again

The thread holds the driver's lock, but not while the memory works. `may_leave` is asked when bytes
are about to leave: a process that was stopped for long sends nothing when it wakes. In a forked
child every call is an error, because its parent has the leases.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from mannerly.database.errors import StoreError
from mannerly.politeness.errors import PolitenessError
from mannerly.politeness.model import NEVER, Now

from . import host_memory_location, open_host_memory
from .base import PROGRAM, said_of
from .leases import Leases
from .robots import KeptRobots, open_robots
from .turns import Away, HostTurns, Turn, is_awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    from mannerly.politeness import Politeness
    from mannerly.politeness.clock import TimeSource
    from mannerly.politeness.model import Instant

    from .base import HostMemory
    from .robots import RobotsMemory

USER = "user"  # the file of the user, which crawls use by default
LINGER_S = 2.0  # after its last request a host is still wanted: the program may be thinking
REST_S = 30.0  # without any use: then everything is given back
UNUSED_S = 60.0  # a host that is away and is not asked for so long is forgotten
TICK_S, BUSY_TICK_S = 1.0, 0.25  # between two ticks; while hosts are asked for or handed over
TRY_AGAIN_S = 1.0  # after an error of the memory


def share_hosts(place: str | PathLike[str], clock: TimeSource) -> ProgramLeases:
    """Open a memory of hosts for a program: `user`, a path, or the URL of a server.

    Raises:
        StoreError: it is damaged, of another version, cannot be written, or cannot be reached.
    """
    location: str | None = os.fspath(place)
    if location == "none":
        raise StoreError(
            '"none" is no place of a memory of hosts: leave memory= out to share nothing, or name '
            '"user", a path or the URL of a server'
        )
    if location == USER:
        location = host_memory_location(None, os.environ)
    if location is None:
        is_off = os.environ.get("MANNERLY_MEMORY") == "none"
        why = "MANNERLY_MEMORY is none" if is_off else "no directory in which this user can write"
        raise StoreError(
            f'memory="user" names no file ({why}): name a path or the URL of a server, or leave '
            "memory= out to share nothing"
        )
    memory = open_host_memory(location)
    try:
        memory.budgets((), Now(clock.now(), clock.wall()))
    except BaseException:
        memory.close()
        raise
    return ProgramLeases(memory, clock, open_robots(location))


class ProgramHost:
    """A host that a program has asked for."""

    __slots__ = ("key", "lease")

    def __init__(self, key: str) -> None:
        self.key = key
        self.lease: Turn | Away | None = None


class _ProgramTurns(HostTurns[ProgramHost]):
    """The hosts of a program, from its first use of any host until it rests."""

    def __init__(self, leases: Leases, politeness: Politeness, used: dict[str, Instant]) -> None:
        super().__init__(leases, politeness)
        self.hosts: dict[str, ProgramHost] = {}
        self.back: list[str] = []  # may be asked again; their callers are to be served
        self._used = used
        self._now = NEVER

    @property
    def is_busy(self) -> bool:
        """Return whether hosts are asked for or handed over."""
        return bool(self._away or self._ending or self._forgotten or self.is_urgent)

    def step(self, now: Now) -> None:
        """Do what is due, with the hosts that were met since."""
        self._now = now.mono
        for record in self._politeness.drain(now=now.mono, wall=now.wall):
            self.learned(record)
        for key in [key for key in self._used if key not in self.hosts]:
            host = self.hosts[key] = ProgramHost(key)
            self._politeness.suspend(key, now=now.mono)
            self._send_away(host, Away(now.mono))
        self._leases.tick(now)
        self._forget_unused()

    def is_in_use(self, now: Instant) -> bool:
        """Return whether a request is under way, or a caller waits for a host."""
        self._now = now
        return any(self._has_work(each) for each in self.hosts.values())

    def _forget_unused(self) -> None:
        for host in list(self._away):
            key = host.key
            if is_awaited(host) or self._now < self._used.get(key, NEVER) + UNUSED_S:
                continue
            self._politeness.forget(key)
            if self._politeness.state(key) is None:
                del self._away[host], self.hosts[key]
                self._used.pop(key, None)

    def _find(self, key: str) -> ProgramHost | None:
        return self.hosts.get(key)

    def _all(self) -> Iterable[ProgramHost]:
        return self.hosts.values()

    def _is_wanted(self, host: ProgramHost) -> bool:
        used_at = self._used.get(host.key, NEVER)
        return self._now < used_at + LINGER_S or self._politeness.has_waiters(host.key)

    def _changed(self, host: ProgramHost) -> None:
        pass  # callers look again by themselves

    def _is_back(self, host: ProgramHost, now: Now) -> None:  # noqa: ARG002
        self.back.append(host.key)

    def _drop(self, host: ProgramHost) -> None:
        del self.hosts[host.key]


class ProgramLeases:
    """The `HostSharing` of a driver: see `mannerly.politeness.drivers.sharing`."""

    def __init__(self, memory: HostMemory, clock: TimeSource, robots: RobotsMemory) -> None:
        self.lock = threading.RLock()
        self.memory = memory
        self.trouble: str | None = None  # why nothing is sent
        self._clock = clock
        self._robots = robots
        self._wake = threading.Condition(self.lock)
        self._used: dict[str, Instant] = {}  # when each host was last asked for
        self._last_use = NEVER
        self._turns: _ProgramTurns | None = None
        self._leases: Leases | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = self._is_urgent = False
        self._pid = os.getpid()
        self._calls = threading.Lock()  # one call of the memory at a time
        atexit.register(self.close)

    def serve(self, politeness: Politeness, serve: Callable[[list[str]], None]) -> None:
        """Keep the hosts of this core; `serve` is called when callers of hosts may go on."""
        self._politeness = politeness
        self._serve = serve

    # ------------------------------------------------------------------ for a driver, with its lock

    @property
    def sure_until(self) -> Instant:
        """Nothing may be sent from this instant on."""
        return NEVER if self._leases is None else self._leases.sure_until

    def use(self, key: str, now: Instant) -> None:
        """A caller asks for a host: until its lease is there, the core waits for it."""
        self._require_own_process()
        is_new = key not in self._used
        self._used[key] = self._last_use = now
        if is_new:
            self._politeness.suspend(key, now=now)
            self._wake.notify()
        if self._thread is None and not self._is_closing:
            self._thread = threading.Thread(target=self._run, name="mannerly-hosts", daemon=True)
            self._thread.start()

    def may_leave(self, key: str, now: Instant) -> bool:
        """Return whether a granted request may still be sent: its host is still ours."""
        self._require_own_process()
        host = None if self._turns is None else self._turns.hosts.get(key)
        return host is not None and isinstance(host.lease, Turn) and now < self.sure_until

    def write_soon(self) -> None:
        """A host has asked for a pause: others must know it before this process is gone."""
        self._is_urgent = True
        self._wake.notify()

    def evicted(self, key: str) -> None:
        """The core has dropped a host: the next use of it claims it anew."""
        if self._used.pop(key, None) is not None and self._turns is not None:
            self._turns.evicted(key)

    def holder_of(self, key: str) -> str | None:
        """Return the holder that is waited for, in words; None: none is known."""
        host = None if self._turns is None else self._turns.hosts.get(key)
        lease = None if host is None else host.lease
        return said_of(lease.by.name) if isinstance(lease, Away) and lease.by else None

    # ------------------------------------------------------------------ for a driver, without lock

    def close(self) -> None:
        """Give all hosts back and close the memory; closing twice is harmless."""
        atexit.unregister(self.close)
        if os.getpid() != self._pid:
            return  # it is the parent's
        with self.lock:
            self._is_closing = True
            thread = self._thread
            self._wake.notify()
        if thread is not None:
            thread.join()
        self.memory.close()
        self._robots.close()

    def kept_robots(self, origin: str) -> KeptRobots | None:
        """Return what another program was told of an origin's rules, if it still holds."""
        try:
            return self._robots.load(origin, self._clock.wall())
        except StoreError:
            return None  # then it is fetched once more

    def keep_robots(self, origin: str, body: bytes | None, expires_in_s: float) -> None:
        """Keep an origin's rules for other programs; None: it has none."""
        with suppress(StoreError):
            self._robots.save(origin, KeptRobots(body, expires_in_s), self._clock.wall())

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        with self.lock:
            try:
                while self._used and not self._is_closing:
                    try:
                        self._hold()
                    except StoreError as error:  # it could not be joined
                        self.trouble = str(error)
                        self._wake.wait(TRY_AGAIN_S)
            finally:
                self._thread = self._turns = self._leases = None

    def _hold(self) -> None:
        """Join the memory, and share hosts until they are not used any more."""
        self._leases = leases = Leases(
            cast("HostMemory", _Unlocked(self)),
            crawl=uuid4().hex,
            name=_program(),
            worker=f"{socket.gethostname()}:{self._pid}",
            now=self._now(),
            clock=self._clock.now,
        )
        turns = self._turns = _ProgramTurns(leases, self._politeness, self._used)
        while not self._is_closing and not self._is_at_rest(turns):
            problem = None
            if self._is_urgent:
                turns.hurry()
            self._is_urgent = False
            try:
                turns.step(self._now())
            except StoreError as error:  # a server that is away: tried again until it is back
                problem = str(error)
            is_silent = self._clock.now() >= leases.sure_until
            self.trouble = (problem or leases.trouble) if is_silent else None
            if turns.back:
                back, turns.back = turns.back, []
                self._serve(back)
            if problem is not None:
                self._wake.wait(TRY_AGAIN_S)
            elif not self._is_urgent and turns.hosts.keys() >= self._used.keys():
                self._wake.wait(BUSY_TICK_S if turns.is_busy else TICK_S)
        self._rest(turns, leases)

    def _is_at_rest(self, turns: _ProgramTurns) -> bool:
        now = self._clock.now()
        return now - self._last_use > REST_S and not turns.is_in_use(now)

    def _rest(self, turns: _ProgramTurns, leases: Leases) -> None:
        """Give everything back: the next use of a host claims it anew."""
        now = self._now()
        for record in self._politeness.drain(now=now.mono, wall=now.wall):
            turns.learned(record)
        for key in self._used:
            self._politeness.suspend(key, now=now.mono)
        self._used.clear()
        self._turns = self._leases = None
        with suppress(StoreError):  # else the leases end by themselves
            leases.leave(now)

    def _now(self) -> Now:
        return Now(self._clock.now(), self._clock.wall())

    def _require_own_process(self) -> None:
        if os.getpid() != self._pid:
            raise PolitenessError(
                "this process was forked from one that shares hosts: make a politeness of its own "
                "after the fork"
            )


class _Unlocked:
    """A memory whose calls are made without the driver's lock: callers go on meanwhile."""

    def __init__(self, program: ProgramLeases) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._program.memory, name)
        return self._called(value) if callable(value) else value

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self._program.lock.release()
            try:
                with self._program._calls:
                    return method(*args)
            finally:
                self._program.lock.acquire()

        return call


def _program() -> str:
    """Return the name of this program, as it is shown to people."""
    return PROGRAM + (Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python")
