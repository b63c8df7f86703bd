"""Fetch over the network with curl, on a loop of its own without asyncio.

curl tells through two callbacks which sockets it wants watched and when it wants to be called;
this module keeps a poller (`poller.py`) and one alarm, and passes each event to curl
(`socket_action`). `CurlMulti.select` is not used: it is select(2) and ends at 1,024 descriptors.
asyncio is not used either: the same work there costs half as much CPU again, and a shard's loop
could not run in virtual time.

Only `wait` blocks: curl resolves names in threads of its own, 20 at most (its default, which
pycurl cannot change), and queues further lookups. `close` may have to wait for lookups.

No request is queued inside curl: curl would queue transfers above its connection limits, after
their politeness permit was taken and counted, so `start` refuses what would be queued. There is no
per-host limit here (the politeness core is that limit). Kept-alive connections are closed, oldest
first, to make room for new ones. Over TLS each takes 0.12 MB, and those of hosts that have nothing
more are never used again; so few are kept at first, and one more whenever a host that answered
lately needs a new one.

Whenever a request ends, curl looks through all names that it remembers, unless that request's
handle never lets names expire: with 20,000 hosts that takes nine times as long as the request. So
most handles never do, and now and then one carries the real limit and removes expired names.

Transfers that are paused for lack of memory (`body_memory`) go on one by one in `wait`, with room.

A server that closed a connection while a request was on its way to it may do so each time, if its
requests come as far apart as it keeps connections for. From then on it gets new ones after a pause,
so that a request it drops is told from one that came too late (`transfer`).

A process can be stopped anywhere, and an answer that came meanwhile may forbid what it was about
to send. So after a stop or any other stall (`FRESH_S`) `wait` reads first and returns what it read;
and nothing leaves, wherever the stop was, while another request to its host is under way whose
answer may have been waiting for longer than that. Python's poll returns nothing, without having
looked again, if a stop outlasts its timeout.

One fetcher belongs to one thread of one process; do not carry it through a fork.

This module is long because the rules about stops and names are explained where they are kept.
"""

from __future__ import annotations

import errno
import math
import mmap
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from mannerly.crawler.model import Fetched, LocalError

from .base import always, every
from .body_memory import BodyMemory
from .cookies import CookieJar
from .credentials import OwnHeaders
from .failures import FAILED_INIT, NO_CONNECTION, NO_MEMORY, NO_NAME, OUT_OF_DESCRIPTORS
from .guard import AddressVerdict, split_origin
from .libcurl import pycurl
from .poller import new_poller
from .settings import FetchSettings
from .transfer import FOREVER, PROMPT_S, Transfer
from .trust import find_trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Request
    from mannerly.politeness.model import Instant

    from .guard import NetworkGuard

V = TypeVar("V")

_ALLOWED = AddressVerdict.ALLOWED  # found faster than by its full name

# An answer that came longer ago has been returned before anything is sent. A busy loop may need as
# long for a turn: with 0.05 s, 6 to 27 % of all requests of a busy machine were held.
FRESH_S = 0.25

_NO_HOSTS: frozenset[str] = frozenset()
_REFUSALS = 400  # statuses from here on may forbid what would be sent next

_KEPT_AT_FIRST = 128  # connections, busy ones included

# Waiting for as long is having nothing to do: a ready socket is found within microseconds.
_IDLE_S = 0.001

# A name may be cached for longer than `dns_cache_s` by this fraction of it.
_SWEEP_SHARE = 0.1

# Codes that curl returns for a lack of descriptors, depending on which part needed one.
_MAYBE_STARVED = frozenset({NO_CONNECTION, NO_NAME, NO_MEMORY, FAILED_INIT})


# A thread's stack and some buffers. It is only reserved, not used, so trying takes no time.
_SOME_MEMORY = 16 * 1024 * 1024


class CurlFetcher:
    """Fetches over the network, many requests at once, on one thread."""

    def __init__(
        self,
        guard: NetworkGuard,
        settings: FetchSettings | None = None,
        memory: BodyMemory | None = None,
    ) -> None:
        self._guard = guard
        self._memory = memory or BodyMemory()
        self._paused: dict[Transfer, Instant] = {}  # since when, the longest first
        self._to_pause: list[Transfer] = []
        self._favoured: Transfer | None = None
        self._settings = settings or FetchSettings()
        self._trust = find_trust(self._settings.ca_file)
        cookies = CookieJar() if self._settings.keeps_cookies else None
        self._own = OwnHeaders(self._settings.credentials, cookies)
        self._poller = new_poller()
        self._watched: set[int] = set()
        self._alarm_at = math.inf
        self._sweep_at = -math.inf
        self._busy: dict[object, Transfer] = {}  # by curl handle
        self._idle: list[Transfer] = []
        self._done: list[Fetched] = []
        # By host and port, for no more of them than there may be connections.
        self._answered_at: dict[tuple[str, int], Instant] = {}
        self._closes_early: dict[tuple[str, int], None] = {}
        self._leaving: list[Request] = []  # in the call of curl that is under way
        self._sent: list[tuple[Request, Instant]] = []
        self._may_leave: Callable[[Request, Instant, str], bool] = always
        self._read_until = -math.inf  # what came before this instant was returned by `wait`
        self._has_read_first = False
        self._refusing = _NO_HOSTS  # in answers that were read and not returned yet
        self._is_closed = False
        self.was_idle = False
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._poller.update)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        # Both, because they count alike but act at different moments: the first when a transfer
        # ends and its connection could stay open, the second when a new one is opened.
        self._kept = _KEPT_AT_FIRST
        self.set_max_connections(self._settings.max_connections)

    def set_max_connections(self, most: int) -> None:
        """Change how many connections may be open, and how many requests in flight."""
        self._max_connections = most
        self._multi.setopt(pycurl.M_MAXCONNECTS, min(most, self._kept))
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, most)

    def _keep_one_more(self) -> None:
        """Keep one connection more: one that was closed to make room was missed."""
        if self._kept < self._max_connections:
            self._kept += 1
            self._multi.setopt(pycurl.M_MAXCONNECTS, self._kept)

    @property
    def in_flight(self) -> int:
        return len(self._busy) + len(self._done)

    @property
    def oldest(self) -> Request | None:
        return next((transfer.request for transfer in self._busy.values()), None)

    def start(self, request: Request) -> None:
        """Begin a request. Raises RuntimeError above `max_connections`, ValueError for headers
        that cannot be sent: both are the caller's mistakes.
        """
        origin = split_origin(request.url)
        if origin is None:
            self._refuse(request, LocalError.BAD_URL, "bad_url")
            return
        scheme, host, port = origin
        if host != request.host.strip("[]"):
            self._refuse(request, LocalError.BAD_URL, "host_mismatch")
            return
        verdict = self._guard.judge_host(host, port)
        if verdict is not _ALLOWED:
            self._refuse(request, LocalError(verdict.value), verdict.value)
            return
        if len(self._busy) >= self._max_connections:
            raise RuntimeError(f"more than {self._max_connections} requests in flight")
        headers = request.headers
        if self._own.exist or request.cookies is not None:
            headers = self._own.added_to(request, origin, time.time())
        transfer = (
            self._idle.pop()
            if self._idle
            else Transfer(
                self._settings,
                self._guard,
                self._trust,
                self._leaves,
                self._memory,
                self._to_pause.append,
                self._keep_cookies,
            )
        )
        server, now = (host, port), time.monotonic()
        idle_s = now - self._answered_at.get(server, -math.inf)
        is_fresh = request.is_fresh or (idle_s >= PROMPT_S and server in self._closes_early)
        age_s = self._name_age_s(now)
        transfer.load(request, headers, scheme, host, port, age_s, idle_s, is_fresh=is_fresh)
        self._busy[transfer.handle] = transfer
        self._multi.add_handle(transfer.handle)

    def wait(self, timeout_s: float) -> list[Fetched]:
        now = time.monotonic()
        deadline = now + timeout_s
        is_woken = self.was_idle = False
        if self._paused:
            self._go_on()
        # Otherwise requests were held that may go. Once in a row: a late loop must send, too, but
        # not to hosts that have just refused.
        reads_first, self._has_read_first = not self._has_read_first, False
        if now - self._read_until > FRESH_S and self._reads_something():
            if reads_first:
                return self._finished(has_read_first=True)
            refusals = (each.request.host for each in self._done if not _is_fine(each))
            self._refusing = frozenset(refusals)
        while True:
            now = time.monotonic()
            if self._alarm_at <= now:
                self._alarm_at = math.inf
                self._act(pycurl.SOCKET_TIMEOUT, 0)
                self._collect()
            pause_s = 0.0 if self._done else max(0.0, min(deadline, self._alarm_at) - now)
            ready = self._poller.wait(pause_s)
            polled = time.monotonic()
            self.was_idle |= polled - now > _IDLE_S
            is_stale = polled - self._read_until > FRESH_S
            if is_stale and (reads_first or pause_s > FRESH_S):
                if self._reads_something():
                    return self._finished(has_read_first=True)
                now, ready = self._read_until, self._poller.wait(0.0)
            for descriptor, flags in ready:
                if descriptor in self._watched:
                    is_woken = True
                else:
                    self._act(descriptor, flags)
            if ready:
                self._collect()
            self._read_until = now
            if self._done or is_woken or time.monotonic() >= deadline:
                return self._finished()

    def _reads_something(self) -> bool:
        """Read what has come in, and send nothing that waits; return whether a request ended."""
        now = time.monotonic()
        for descriptor, flags in self._poller.wait(0.0):
            if flags & pycurl.CSELECT_IN and descriptor not in self._watched:
                self._act(descriptor, pycurl.CSELECT_IN)
        self._collect()
        self._read_until = now
        return bool(self._done)

    def _finished(self, *, has_read_first: bool = False) -> list[Fetched]:
        self._has_read_first = has_read_first
        finished, self._done = self._done, []
        self._refusing = _NO_HOSTS
        return finished

    def ask(self, may_leave: Callable[[Request, Instant, str], bool]) -> None:
        self._may_leave = may_leave

    def sent(self) -> list[tuple[Request, Instant]]:
        sent, self._sent = self._sent, []
        return sent

    def watch(self, descriptor: int) -> None:
        self._poller.update(pycurl.POLL_IN, descriptor)
        self._watched.add(descriptor)

    def cancel(self, which: Callable[[Request], bool] = every) -> list[Request]:
        cancelled = [fetched.request for fetched in self._done if which(fetched.request)]
        self._done = [fetched for fetched in self._done if not which(fetched.request)]
        chosen = [pair for pair in self._busy.items() if which(pair[1].request)]
        for handle, transfer in chosen:
            del self._busy[handle]
            self._forget_paused(transfer)
            self._multi.remove_handle(handle)
            cancelled.append(transfer.request)
            transfer.unload()
            transfer.close()
        return cancelled

    def close(self) -> None:
        """Free everything. This waits for the slowest name lookup under way: a process that must
        end at once should commit and then exit without closing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self.cancel()
        self._multi.close()
        for transfer in self._idle:
            transfer.close()
        self._idle.clear()
        self._poller.close()

    def _name_age_s(self, now: Instant) -> int:
        """Return the age from which names are dropped when the next request ends."""
        if now < self._sweep_at:
            return FOREVER
        self._sweep_at = now + self._settings.dns_cache_s * _SWEEP_SHARE
        return self._settings.dns_cache_s

    def _keep_cookies(self, request: Request, head: bytes) -> None:
        self._own.keep(request, head, time.time())

    def _leaves(self, request: Request, address: str) -> bool:
        now = time.monotonic()
        if request.host in self._refusing:
            return False
        if now - self._read_until > FRESH_S and self._has_company(request):
            return False
        if not self._may_leave(request, now, address):
            return False
        self._leaving.append(request)
        return True

    def _has_company(self, request: Request) -> bool:
        """Return whether another answer of its host may have come that was not returned yet."""
        host = request.host
        if any(each.request.host == host for each in self._done):
            return True
        others = (each for each in self._busy.values() if each.request is not request)
        return any(each.request.host == host and each.was_sent for each in others)

    def _act(self, descriptor: int, flags: int) -> None:
        """Let curl work on a socket; note what it sent, at an instant when the bytes have left.

        The process may be stopped for any time between the permission and the bytes.
        """
        self._multi.socket_action(descriptor, flags)
        if self._leaving:
            now = time.monotonic()
            self._sent += [(request, now) for request in self._leaving]
            self._leaving.clear()

    def _refuse(self, request: Request, error: LocalError, detail: str) -> None:
        self._done.append(Fetched(request, error=error, detail=detail))

    def _collect(self) -> None:
        queued = 1
        while queued:
            queued, succeeded, failed = self._multi.info_read()
            for handle in succeeded:
                self._settle(handle, 0)
            for handle, code, _ in failed:
                self._settle(handle, code)

        for transfer in self._to_pause:
            if transfer.handle in self._busy:
                self._paused[transfer] = time.monotonic()
                transfer.stop_clock()
        self._to_pause.clear()

    def _go_on(self) -> None:
        """Let paused transfers go on whose body is sure to fit, the longest waiting first.

        If memory is taken by nothing but unfinished bodies, one of them goes on in any case.
        """
        memory, now = self._memory, time.monotonic()
        for transfer, since in list(self._paused.items()):
            if memory.used + transfer.needs > memory.limit:
                if memory.held or self._favoured is not None:
                    return
                self._favoured = transfer
            del self._paused[transfer]
            transfer.go_on(now - since)

    def _forget_paused(self, transfer: Transfer) -> None:
        self._paused.pop(transfer, None)
        if transfer in self._to_pause:
            self._to_pause.remove(transfer)
        if transfer is self._favoured:
            self._favoured = None

    def _settle(self, handle: object, code: int) -> None:
        transfer = self._busy.pop(handle)
        self._paused.pop(transfer, None)
        if transfer is self._favoured:
            self._favoured = None
        self._multi.remove_handle(handle)
        server = transfer.server
        fetched = transfer.finish(code)
        if transfer.was_missed:
            self._keep_one_more()
        if fetched.error is None:
            self._note(self._answered_at, server, time.monotonic())
        elif fetched.error is LocalError.STALE_CONNECTION and transfer.was_stale:
            self._note(self._closes_early, server, None)
        if fetched.error is not None and code and (lack := _lack(code)) is not None:
            fetched = replace(fetched, error=lack, detail=lack.value)
        self._done.append(fetched)
        if fetched.error is None:
            self._idle.append(transfer)
        else:
            # A broken answer can leave half a header line in its handle, which would become the
            # beginning of the next answer, from another server.
            transfer.close()

    def _note(self, notes: dict[tuple[str, int], V], server: tuple[str, int], value: V) -> None:
        """Note something of a server, the latest last; what is older than any connection goes."""
        notes.pop(server, None)
        notes[server] = value
        if len(notes) > self._max_connections:
            del notes[next(iter(notes))]

    def _on_timer(self, delay_ms: int) -> None:
        self._alarm_at = math.inf if delay_ms < 0 else time.monotonic() + delay_ms / 1000


def _is_fine(fetched: Fetched) -> bool:
    return fetched.status is not None and fetched.status < _REFUSALS


def _lack(code: int) -> LocalError | None:
    """Return what this machine lacked, if that is why a transfer failed.

    curl does not say why it could not get a resolver thread, its wake-up socket or a buffer, and
    TLS fails in its own ways, so the same is tried here.
    """
    try:
        if code in _MAYBE_STARVED:
            socket.socket().close()
        mmap.mmap(-1, _SOME_MEMORY).close()
    except MemoryError:
        return LocalError.NO_MEMORY
    except OSError as problem:
        if problem.errno in OUT_OF_DESCRIPTORS:
            return LocalError.NO_DESCRIPTORS
        return LocalError.NO_MEMORY if problem.errno == errno.ENOMEM else None
    return None
