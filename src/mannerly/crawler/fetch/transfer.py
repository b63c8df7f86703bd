"""One reusable curl handle and the state of the request on it.

A handle keeps its options between requests, so they are set once; a request sets its URL and the
options that differ from the request before. Everything that a hostile server can make grow is
bounded. The body is bounded here, in its callback. It stays as it was received: bodies are decoded
one at a time, later, by faster decoders than curl's (`decoding`). Header lines are many and short,
so curl writes them to a buffer without a call into this module: curl itself ends a flood at 300 KB,
interim answers and trailers counted, and our own caps, which are lower, are checked at the end.

Two callbacks control what leaves:

- *open socket* asks the network guard about the address that is about to be connected;
- *before each send* asks the fetcher whether the request may still leave, now that its connection
  is open; if not, it comes back as HELD. It also stops curl's automatic second attempt when the
  server closed a kept-alive connection. That second request would reach the server without a
  politeness permit. If the connection had been idle for a while, its time was over: the request
  comes back as STALE_CONNECTION, and the caller asks for a new permit. No server keeps connections
  for less than `PROMPT_S`, but for one that closes them behind its answer without saying so
  (`AT_ONCE_S`): one that closes them in between has dropped the request, a RESET.

The memory of all bodies is bounded, too (`body_memory`): when it is scarce a transfer is paused,
its time stands still, and if its server does not wait for it, it is asked for again. It goes on
when the memory for all of its body is claimed.

A transfer knows nothing of the loop, of other transfers, or of time. The module is long because
every option of a handle has its reason beside it.
"""

from __future__ import annotations

import socket
from io import BytesIO
from typing import TYPE_CHECKING

from mannerly.crawler.model import Fetched, LocalError
from mannerly.politeness.model import ErrorKind

from .base import HEADERS_SUFFICE
from .decoding import accepted
from .failures import OUT_OF_DESCRIPTORS, WRITE, TransferProgress, explain
from .guard import AddressVerdict
from .libcurl import pycurl
from .raw_exchange import parse_headers, raw_exchange, request_head
from .settings import check_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Request

    from .body_memory import BodyMemory
    from .failures import FetchFailure
    from .guard import NetworkGuard
    from .settings import FetchSettings
    from .trust import Trust

FOREVER = -1  # curl's age without a limit, for names that were looked up

_REFUSE = -1  # any number but the length ends a transfer from the write callback

# A usual page in one read. All handles of a fetcher share one buffer, so it costs no memory.
_READ_BYTES = 64 * 1024

# The memory of a body is counted in steps: most bodies need one.
_STEP_BYTES = 64 * 1024

# Shorter than what servers keep an idle connection for: 2 s gunicorn, 5 s Apache and Node.js,
# 75 s nginx. Two requests of a host that drops them beyond a rate are not so far apart.
PROMPT_S = 1.0
AT_ONCE_S = 0.05  # the end of a connection may still be on its way, behind the answer

MISSED_S = 60.0  # an open connection may have been of use so long after an answer

_DROPPED = (ErrorKind.RESET, "connection_dropped")
_HEADERS_TOO_LARGE = (ErrorKind.TOO_LARGE, "header_too_large")
_HEADERS_BROKE_OFF = (ErrorKind.RESET, "headers_incomplete")

_WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})  # also without a body (RFC 9110 §8.6)
_WITHOUT_BODY = 44  # libcurl's number (curl.h): with it curl sends HEAD
_SUPPRESS_CONNECT_HEADERS = 265  # libcurl's number (curl.h), for which pycurl has no name
_VERIFY_NAME = 2  # curl's number for "the certificate must carry this host's name"


class Transfer:
    """A curl handle with the request that is on it, if any."""

    def __init__(
        self,
        settings: FetchSettings,
        guard: NetworkGuard,
        trust: Trust,
        leaves: Callable[[Request, str], bool],
        memory: BodyMemory,
        on_paused: Callable[[Transfer], None],
        on_headers: Callable[[Request, bytes], None] | None = None,
    ) -> None:
        self._on_headers = on_headers
        self._leaves = leaves
        self._memory = memory
        self._on_paused = on_paused
        self.handle = pycurl.Curl()
        self._settings = settings
        self._guard = guard
        self._headers_set: tuple[tuple[str, str], ...] = ()
        self._timeout_set_s = 0.0
        self._name_age_set_s = FOREVER
        self._is_verified = True
        self._method = "GET"
        self._is_head = self._is_fresh = False
        self._proxy = settings.proxy
        self._head = BytesIO()
        self._configure(settings, trust)

    def load(
        self,
        request: Request,
        headers: tuple[tuple[str, str], ...],
        scheme: str,
        host: str,
        port: int,
        name_age_s: int,
        idle_s: float,
        *,
        is_fresh: bool,
    ) -> None:
        """Put a request on the handle. Raises ValueError for headers that cannot be sent.

        When it ends, looked-up names that are older than `name_age_s` are forgotten. `idle_s`:
        since the last answer of its server. `is_fresh`: on a new connection.
        """
        handle = self.handle
        if headers != self._headers_set:
            self._set_headers(headers)
        if self._settings.proxy_for is not None:
            self._set_proxy(self._settings.proxy_for(scheme, host))
        if request.timeout_s != self._timeout_set_s:
            handle.setopt(pycurl.TIMEOUT_MS, max(1, int(request.timeout_s * 1000)))
            self._timeout_set_s = request.timeout_s
        if name_age_s != self._name_age_set_s:
            handle.setopt(pycurl.DNS_CACHE_TIMEOUT, name_age_s)
            self._name_age_set_s = name_age_s
        if (host not in self._settings.insecure_hosts) != self._is_verified:
            self._is_verified = not self._is_verified
            handle.setopt(pycurl.SSL_VERIFYPEER, int(self._is_verified))
            handle.setopt(pycurl.SSL_VERIFYHOST, _VERIFY_NAME * self._is_verified)
        if request.method != self._method or request.is_head != self._is_head or request.body:
            self._set_method(request)
        if is_fresh != self._is_fresh:
            self._is_fresh = is_fresh
            handle.setopt(pycurl.FRESH_CONNECT, int(is_fresh))
        handle.setopt(pycurl.URL, request.url)
        self.request = request
        self._is_https = scheme == "https"
        self._host = host
        self._port = port
        self._idle_s = idle_s
        self._has_opened = False
        self._chunks: list[bytes] = []  # of a body that needs one step: not copied
        self._large: BytesIO | None = None  # a larger one, in one piece of memory
        self._keep: Callable[[bytes], object] = self._chunks.append
        self._room = 0  # bytes that were claimed for the body and are not used yet
        self._claimed = 0  # bytes of memory
        self._unclaimed = request.max_bytes  # bytes that it may claim beside them
        self._paused_s = 0.0
        self._sends = 0
        self._is_cut = False
        self._refusal: LocalError | None = None

    def finish(self, code: int) -> Fetched:
        """Return the result of the request, after curl is done with it. Leaves the handle empty."""
        info = self.handle.getinfo
        total_s, first_byte_s = info(pycurl.TOTAL_TIME), info(pycurl.STARTTRANSFER_TIME)
        status, head = info(pycurl.RESPONSE_CODE), self._head.getvalue()
        is_oversized = self._is_oversized(head)
        headers = None if is_oversized else parse_headers(head)
        failure: FetchFailure | None = None
        if is_oversized:
            failure = _HEADERS_TOO_LARGE
        elif code and not self._is_cut:
            failure = self._failure(code)
        elif headers is None:
            failure = _HEADERS_BROKE_OFF  # to curl a close within the headers is their end
        error, detail = failure or (None, "cut_at_cap" if self._is_cut else None)
        if headers is not None and status >= HEADERS_SUFFICE and not self._refusal:
            error = None
        is_answer = error is None
        fetched = Fetched(
            self.request,
            status if is_answer else None,
            headers if headers is not None and is_answer else {},
            self._body() if is_answer else b"",
            # Of a second attempt that was stopped, curl knows the beginning but no first byte.
            max(0.0, first_byte_s - info(pycurl.PRETRANSFER_TIME)) if first_byte_s else total_s,
            total_s,
            error,
            detail,
            is_answer and (self._is_cut or failure is not None),
        )
        if self._settings.keep_raw and is_answer:
            address = "" if self._proxy else info(pycurl.PRIMARY_IP)
            encodings = accepted(keeps=True)
            asked = request_head(self.request, self._settings.user_agent, encodings)
            fetched.exchange = raw_exchange(asked, head, fetched, failure, address)
        if self._on_headers is not None and headers is not None:
            self._on_headers(self.request, head)
        self.unload()
        return fetched

    def _body(self) -> bytes:
        return b"".join(self._chunks) if self._large is None else self._large.getvalue()

    @property
    def needs(self) -> int:
        """Return how many bytes more the body may claim, if its length is as announced."""
        length = int(self.handle.getinfo(pycurl.CONTENT_LENGTH_DOWNLOAD_T))  # -1: it was not
        left = length - self._claimed if length >= 0 else self._unclaimed
        return max(0, min(left, self._unclaimed))

    def stop_clock(self) -> None:
        """Count no time against a transfer that was paused."""
        self.handle.setopt(pycurl.TIMEOUT_MS, 0)
        self._timeout_set_s = 0.0

    def go_on(self, paused_s: float) -> None:
        """Receive all of the body, with `paused_s` seconds more time."""
        self._claim(self.needs)
        self._paused_s += paused_s
        patience_s = self.request.timeout_s + self._paused_s
        self.handle.setopt(pycurl.TIMEOUT_MS, max(1, int(patience_s * 1000)))
        self._timeout_set_s = patience_s
        self.handle.pause(pycurl.PAUSE_CONT)

    def unload(self) -> None:
        """Drop the request and its answer: otherwise idle handles would keep bodies in memory."""
        self._memory.receiving -= self._claimed
        del self.request, self._chunks, self._large, self._keep
        self._head.seek(0)
        self._head.truncate()

    def close(self) -> None:
        """Free the handle."""
        self.handle.close()

    def _configure(self, settings: FetchSettings, trust: Trust) -> None:
        option = self.handle.setopt
        http_only = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
        option(pycurl.PROTOCOLS, http_only)
        option(pycurl.REDIR_PROTOCOLS, http_only)
        option(pycurl.FOLLOWLOCATION, 0)
        option(pycurl.PATH_AS_IS, 1)  # the URL was normalised once, by our own parser
        option(pycurl.NOSIGNAL, 1)
        option(pycurl.BUFFERSIZE, _READ_BYTES)
        option(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        option(pycurl.HTTP09_ALLOWED, 0)
        option(pycurl.ACCEPT_ENCODING, accepted(keeps=settings.keep_raw))
        option(pycurl.HTTP_CONTENT_DECODING, 0)
        option(pycurl.USERAGENT, settings.user_agent)
        self._apply_proxy()
        option(pycurl.NOPROXY, "")  # curl would read it from the environment too
        option(_SUPPRESS_CONNECT_HEADERS, 1)  # a proxy's headers are not the server's
        option(pycurl.CONNECTTIMEOUT_MS, max(1, int(settings.connect_timeout_s * 1000)))
        option(pycurl.LOW_SPEED_LIMIT, settings.min_bytes_per_s)
        option(pycurl.LOW_SPEED_TIME, settings.min_speed_window_s)
        option(pycurl.DNS_CACHE_TIMEOUT, FOREVER)
        _set_trust(option, trust)
        option(pycurl.HEADERFUNCTION, self._head.write)
        option(pycurl.WRITEFUNCTION, self._on_body)
        option(pycurl.PREREQFUNCTION, self._on_send)
        option(pycurl.OPENSOCKETFUNCTION, self._on_open_socket)

    def _set_proxy(self, proxy: str | None) -> None:
        if proxy != self._proxy:
            self._proxy = proxy
            self._apply_proxy()

    def _apply_proxy(self) -> None:
        proxy = self._proxy or ""
        self.handle.setopt(pycurl.PROXY, proxy)  # empty: none, not that of the environment
        # If the URL has no port; curl's own default is 1080.
        self.handle.setopt(pycurl.PROXYPORT, 80 if proxy.lower().startswith("http:") else 0)

    def _set_method(self, request: Request) -> None:
        """Let the handle send a method, with the body if there is one; it goes on until told."""
        handle = self.handle
        handle.unsetopt(pycurl.CUSTOMREQUEST)
        handle.setopt(_WITHOUT_BODY if request.is_head else pycurl.HTTPGET, 1)
        if not request.is_head and request.method != "GET":
            if request.body or request.method in _WITH_LENGTH:
                handle.setopt(pycurl.POSTFIELDS, request.body)
            handle.setopt(pycurl.CUSTOMREQUEST, request.method)
        self._method, self._is_head = request.method, request.is_head

    def _set_headers(self, headers: tuple[tuple[str, str], ...]) -> None:
        for name, value in headers:
            check_header(name, value)
        # Unset first: pycurl takes an empty list for "leave it as it was".
        self.handle.unsetopt(pycurl.HTTPHEADER)
        self.handle.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in headers])
        self._headers_set = headers

    def _on_body(self, chunk: bytes) -> int | None:
        size = len(chunk)
        try:
            if size > self._room:
                if self._unclaimed and self._must_wait():  # else it is cut
                    self._on_paused(self)
                    return pycurl.WRITEFUNC_PAUSE  # type: ignore[no-any-return]
                self._claim(size - self._room)
                if size > self._room:
                    chunk, size, self._is_cut = chunk[: self._room], self._room, True
            self._keep(chunk)
        except MemoryError:
            self._refusal = LocalError.NO_MEMORY
            return _REFUSE
        self._room -= size
        return _REFUSE if self._is_cut else None

    def _must_wait(self) -> bool:
        """Return whether there is no memory for more of this body now.

        When half of it is used, a body that is larger than a step waits until all of it fits:
        otherwise unfinished bodies would take all memory, and none of them could go on.
        """
        memory = self._memory
        return memory.is_scarce and (memory.used >= memory.limit or self._claimed > 0)

    def _claim(self, least: int) -> None:
        """Count more memory as used by this body: a step, as far as its cap allows."""
        more = min(max(least, _STEP_BYTES), self._unclaimed)
        self._unclaimed -= more
        self._claimed += more
        self._room += more
        self._memory.receiving += more
        if self._large is None and self._claimed > _STEP_BYTES:
            self._large = BytesIO()
            self._large.writelines(self._chunks)
            self._chunks.clear()
            self._keep = self._large.write

    @property
    def server(self) -> tuple[str, int]:
        """The host and the port of the request."""
        return self._host, self._port

    @property
    def was_missed(self) -> bool:
        """Return whether a new connection was needed although the server answered lately."""
        return self._has_opened and self._idle_s < MISSED_S

    @property
    def was_stale(self) -> bool:
        """Return whether the server had closed the connection after a while."""
        return self._refusal is LocalError.STALE_CONNECTION

    @property
    def was_sent(self) -> bool:
        """Return whether the request has left, or is leaving."""
        return self._sends > 0 and self._refusal is None

    def _on_send(self, address: str, _own: str, _port: int, _own_port: int) -> int:
        self._sends += 1
        seen = "" if self._proxy else address  # else it is the proxy's
        if self._sends == 1 and self._leaves(self.request, seen):
            return pycurl.PREREQFUNC_OK  # type: ignore[no-any-return]
        is_first = self._sends == 1
        self._refusal = LocalError.HELD if is_first else LocalError.STALE_CONNECTION
        return pycurl.PREREQFUNC_ABORT  # type: ignore[no-any-return]

    def _on_open_socket(self, _purpose: int, peer: pycurl.CurlSockAddr) -> _Lent | int:
        self._has_opened = True
        # With a proxy the peer is the proxy, which the user named; the proxy resolves names.
        if not self._proxy:
            verdict = self._guard.judge(peer.addr[0], peer.addr[1], self._host)
            if verdict is not AddressVerdict.ALLOWED:
                self._refusal = LocalError(verdict.value)
                return pycurl.SOCKET_BAD  # type: ignore[no-any-return]
        try:
            lent = _Lent(socket.socket(peer.family, peer.socktype, peer.protocol))
            # pycurl is about to duplicate it too, and would not tell us why that failed. The
            # functions of `os` for this take no sockets on Windows.
            socket.close(socket.dup(lent.fileno()))
        except OSError as problem:
            if problem.errno in OUT_OF_DESCRIPTORS:
                self._refusal = LocalError.NO_DESCRIPTORS
            return pycurl.SOCKET_BAD  # type: ignore[no-any-return]
        return lent

    def _is_oversized(self, head: bytes) -> bool:
        limits = self._settings
        return len(head) > limits.max_header_bytes or head.count(b"\n") > limits.max_headers

    def _failure(self, code: int) -> FetchFailure:
        if self.was_stale and AT_ONCE_S <= self._idle_s < PROMPT_S:
            return _DROPPED
        if self._refusal is not None:
            return self._refusal, self._refusal.value
        if self._paused_s and code != WRITE:
            return LocalError.STALE_CONNECTION, LocalError.STALE_CONNECTION.value
        info = self.handle.getinfo
        tunnel_status = info(pycurl.HTTP_CONNECTCODE)
        if tunnel_status >= HEADERS_SUFFICE:
            return ErrorKind.CONNECT, f"proxy_{tunnel_status}"
        total_s = info(pycurl.TOTAL_TIME)
        return explain(
            code,
            TransferProgress(
                is_https=self._is_https,
                has_name=info(pycurl.NAMELOOKUP_TIME) > 0,
                has_connection=info(pycurl.CONNECT_TIME) > 0,
                has_tls=info(pycurl.APPCONNECT_TIME) > 0,
                has_bytes=self._head.tell() > 0,
                is_out_of_time=total_s >= self._timeout_set_s * 0.99,
                os_errno=info(pycurl.OS_ERRNO),
                verify_result=info(pycurl.SSL_VERIFYRESULT),
            ),
        )


class _Lent:
    """A socket that pycurl duplicates; ours is closed when pycurl drops this object."""

    __slots__ = ("_socket",)

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


def _set_trust(option: Callable[[int, object], None], trust: Trust) -> None:
    """Verify servers, and a proxy that is reached over TLS, with the same authorities."""
    if trust.file:
        option(pycurl.CAINFO, trust.file)
        option(pycurl.PROXY_CAINFO, trust.file)
    elif trust.directory:
        option(pycurl.CAPATH, trust.directory)
        option(pycurl.PROXY_CAPATH, trust.directory)
    else:
        option(pycurl.SSL_OPTIONS, pycurl.SSLOPT_NATIVE_CA)
        option(pycurl.PROXY_SSL_OPTIONS, pycurl.SSLOPT_NATIVE_CA)
