"""Fetching over real sockets: keep-alive, caps, hostile servers, the guard, the environment."""

from __future__ import annotations

import gzip
import os
import resource
import threading
import time
import tracemalloc
import zlib
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawler.fetch.raw_server import RawServer, answer, hold, reset, routes, says
from tests.harness.waiting import eventually

from mannerly.crawler.fetch.curl import FRESH_S, CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.fetch.transfer import AT_ONCE_S, PROMPT_S
from mannerly.crawler.model import DEFAULT_MAX_BYTES, Fetched, LocalError, Request
from mannerly.crawler.shard.reading import readable
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

LOOPBACK = NetworkGuard(allow_net=["127.0.0.0/8"])
HEAD = b"HTTP/1.1 200 OK\r\n"


def ask(
    fetcher: CurlFetcher,
    url: str,
    *,
    host: str = "127.0.0.1",
    timeout_s: float = 5.0,
    max_bytes: int = DEFAULT_MAX_BYTES,
    headers: tuple[tuple[str, str], ...] = (),
) -> Fetched:
    fetcher.start(Request(url, host, timeout_s, max_bytes, headers))
    finished: list[Fetched] = []
    while not finished:
        finished = fetcher.wait(5.0)
    (fetched,) = finished
    return fetched


@pytest.fixture
def fetcher() -> Iterator[CurlFetcher]:
    fetcher = CurlFetcher(LOOPBACK)
    yield fetcher
    fetcher.close()


def fetch_from(reply: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Fetched:
    """What a fresh fetcher makes of these bytes, with its body decoded as the engine decodes it.

    Then a normal page must still be fetched.
    """
    fetcher = CurlFetcher(LOOPBACK)
    with RawServer(says(reply, keeps_open=False)) as server, RawServer(says(answer())) as other:
        fetched = ask(fetcher, server.url(), max_bytes=max_bytes)
        assert ask(fetcher, other.url()).body == b"hello"
        fetcher.close()
    return readable(fetched)


# Connections


def test_curl_keeps_connections_alive(fetcher: CurlFetcher) -> None:
    """Ten requests to a host, one after another, use one connection."""
    with RawServer(says(answer())) as server:
        for _ in range(10):
            ask(fetcher, server.url())

        assert (server.connections, len(server.heads)) == (1, 10)


def test_curl_was_not_idle_if_it_did_not_wait(fetcher: CurlFetcher) -> None:
    """A look at the sockets without waiting says nothing about the time that a loop has."""
    fetcher.wait(0.05)

    fetcher.wait(0.0)

    assert not fetcher.was_idle


def test_a_retry_has_a_connection_of_its_own(fetcher: CurlFetcher) -> None:
    """One that was kept alive may be what failed; the next request uses what is open again."""
    with RawServer(says(answer())) as server:
        first = ask(fetcher, server.url())
        fetcher.start(Request(server.url(), "127.0.0.1", 5.0, is_fresh=True))
        (second,) = fetcher.wait(5.0) or fetcher.wait(5.0)
        opened = server.connections
        third = ask(fetcher, server.url())

        assert [each.status for each in (first, second, third)] == [200, 200, 200]
        assert (opened, server.connections) == (2, 2)


def test_curl_keeps_open_connections_within_their_limit() -> None:
    """With a limit of 4, a crawl of 20 hosts keeps no more than 4 connections open."""
    fetcher = CurlFetcher(LOOPBACK, FetchSettings(max_connections=4))
    with RawServer(says(answer()), "0.0.0.0") as server:
        for number in range(1, 21):
            host = f"127.0.0.{number}"
            ask(fetcher, server.url(host=host), host=host)
            # The server's threads may notice a close late; that it came is what counts.
            eventually(lambda: server.open_connections <= 4)

        assert server.connections == 20
    fetcher.close()


def test_curl_keeps_more_connections_when_some_were_missed() -> None:
    """Hosts that are asked in turn have their connections, although more are open than at first."""
    hosts = [f"127.0.1.{number}" for number in range(1, 201)]
    hosts += [f"127.0.2.{number}" for number in range(1, 101)]
    fetcher = CurlFetcher(LOOPBACK)
    with RawServer(says(answer()), "0.0.0.0") as server:
        for _ in range(3):
            for host in hosts:
                ask(fetcher, server.url(host=host), host=host)
        opened = server.connections
        for host in hosts:
            ask(fetcher, server.url(host=host), host=host)

        assert server.connections == opened
    fetcher.close()


def test_curl_closes_what_nobody_asks_for_again() -> None:
    """Of five hundred hosts that are asked once, few connections stay open."""
    fetcher = CurlFetcher(LOOPBACK)
    with RawServer(says(answer()), "0.0.0.0") as server:
        for number in range(500):
            host = f"127.0.{3 + number // 250}.{number % 250 + 1}"
            ask(fetcher, server.url(host=host), host=host)

        eventually(lambda: server.open_connections <= 128)
    fetcher.close()


def test_curl_never_queues_in_secret() -> None:
    """A request over the connection limit is an error, not a send without a permit later."""
    fetcher = CurlFetcher(LOOPBACK, FetchSettings(max_connections=1))
    with RawServer(lambda connection, _: hold(connection)) as server:
        fetcher.start(Request(server.url(), "127.0.0.1", 5))

        with pytest.raises(RuntimeError, match="more than 1"):
            fetcher.start(Request(server.url(), "127.0.0.1", 5))
        fetcher.close()


@pytest.mark.parametrize(
    ("idle_s", "error"),
    [(2 * AT_ONCE_S, ErrorKind.RESET), (PROMPT_S, LocalError.STALE_CONNECTION)],
    ids=["soon", "after a while"],
)
def test_curl_does_not_send_twice_on_one_permit(
    fetcher: CurlFetcher, idle_s: float, error: object
) -> None:
    """A kept-alive connection that dies under a request gives the request back unsent again.

    Soon after an answer the server has dropped the request. Later the connection's time was over,
    and the host gets a new connection from then on: what it drops there is no mistake of ours.
    """
    answers = iter([answer(), b"", answer(), b""])

    def handler(connection: socket.socket, _path: str) -> bool:
        reply = next(answers)
        connection.sendall(reply)
        return bool(reply)

    with RawServer(handler) as server:
        first = ask(fetcher, server.url())
        time.sleep(idle_s)
        second, third = (ask(fetcher, server.url()) for _ in range(2))
        time.sleep(idle_s)
        fourth = ask(fetcher, server.url())

        assert (first.status, third.status) == (200, 200)
        assert (second.error, fourth.error) == (error, ErrorKind.RESET)
        assert len(server.heads) == 4


def test_curl_opens_a_new_connection_after_an_idle_one_was_closed(fetcher: CurlFetcher) -> None:
    """A kept-alive connection that the server closed in time costs nothing but a new one."""
    with RawServer(says(answer(), keeps_open=False)) as server:
        fetched = [ask(fetcher, server.url()) for _ in range(3)]

        assert all(one.status == 200 or one.error is LocalError.STALE_CONNECTION for one in fetched)
        assert len(server.heads) <= 3


def test_curl_tells_an_instant_when_the_bytes_had_left(fetcher: CurlFetcher) -> None:
    """However long the process was stopped between the permission and the bytes."""
    permitted_at = []

    def permit(_request: Request, _instant: float, _address: str) -> bool:
        eventually(partial(_has_passed, time.monotonic() + 0.05))
        permitted_at.append(time.monotonic())
        return True

    fetcher.ask(permit)
    with RawServer(says(answer())) as server:
        ask(fetcher, server.url())
    ((_, left_at),) = fetcher.sent()

    assert left_at >= permitted_at[0]


def _has_passed(instant: float) -> bool:
    return time.monotonic() > instant


def test_curl_reports_a_refused_connection(fetcher: CurlFetcher) -> None:
    """Nobody listening is a connect error."""
    with RawServer(says(answer())) as server:
        url = server.url()

    fetched = ask(fetcher, url)

    assert (fetched.error, fetched.detail) == (ErrorKind.CONNECT, "connection_refused")


@pytest.mark.processes  # threads of earlier servers may close descriptors meanwhile
@pytest.mark.parametrize("spare", [0, 1])
def test_curl_reports_a_lack_of_descriptors(fetcher: CurlFetcher, spare: int) -> None:
    """Out of descriptors is our own error, whether none or one is left; later all is well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with RawServer(says(answer())) as server:
        highest = os.dup(0)
        os.close(highest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + spare, hard))
        try:
            starved = ask(fetcher, server.url())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        fed = ask(fetcher, server.url())

    assert starved.error is LocalError.NO_DESCRIPTORS
    assert fed.status == 200


# What is sent


def test_curl_sends_who_it_is_and_what_it_can_decode() -> None:
    """The request names its agent and its encodings, carries the given headers, and no cookie."""
    fetcher = CurlFetcher(LOOPBACK, FetchSettings(user_agent="mannerly/1 (+https://x.example)"))
    with RawServer(says(answer(b"", "200 OK", "Set-Cookie: a=b"))) as server:
        for _ in range(2):
            fetched = ask(fetcher, server.url("/a/../b"), headers=(("X-One", "1"),))
        lines = server.heads[1].split("\r\n")
        fetcher.close()

    assert lines[0] == "GET /a/../b HTTP/1.1"
    assert "User-Agent: mannerly/1 (+https://x.example)" in lines
    assert "X-One: 1" in lines
    assert any(line.startswith("Accept-Encoding: ") and "gzip" in line for line in lines)
    assert not any(line.lower().startswith("cookie") for line in lines)
    assert "set-cookie" not in fetched.headers


def test_curl_forgets_the_headers_of_the_request_before(fetcher: CurlFetcher) -> None:
    """Headers belong to one request; a reused handle does not send them again."""
    with RawServer(says(answer())) as server:
        ask(fetcher, server.url(), headers=(("X-Secret", "1"),))
        ask(fetcher, server.url())

        assert ["X-Secret" in head for head in server.heads] == [True, False]


def test_curl_refuses_headers_that_smuggle(fetcher: CurlFetcher) -> None:
    """A line break in a header is the caller's error, raised before anything is sent."""
    with pytest.raises(ValueError, match="header"):
        fetcher.start(Request("http://127.0.0.1/", "127.0.0.1", 1, headers=(("A", "b\r\nC: d"),)))
    with pytest.raises(ValueError, match="header"):
        FetchSettings(user_agent="a\nb")


def test_curl_ignores_the_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a proxy that is set explicitly is used; then it gets the whole URL."""
    with RawServer(says(answer())) as server, RawServer(says(answer(b"by proxy"))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        direct = CurlFetcher(LOOPBACK)
        monkeypatch.setenv("no_proxy", "*")
        through = CurlFetcher(LOOPBACK, FetchSettings(proxy=proxy.url()))

        bodies = [ask(fetcher, server.url()).body for fetcher in (direct, through)]

        direct.close()
        through.close()
        assert bodies == [b"hello", b"by proxy"]
        assert proxy.heads[0].startswith(f"GET {server.url()} ")


@pytest.mark.parametrize("status", ["407 Who are you", "502 Bad gateway", "302 Found"])
def test_curl_types_a_tunnel_that_a_proxy_refused(status: str) -> None:
    """What a proxy says is not the server's answer: its Retry-After and its status are not read."""
    refusal = answer(b"no", status, "Retry-After: 99")
    with RawServer(says(refusal, keeps_open=False)) as proxy:
        fetcher = CurlFetcher(LOOPBACK, FetchSettings(proxy=proxy.url()))

        fetched = ask(fetcher, "https://127.0.0.1/")

        fetcher.close()
    assert (fetched.status, fetched.headers) == (None, {})
    assert (fetched.error, fetched.detail) == (ErrorKind.CONNECT, f"proxy_{status[:3]}")


def test_settings_show_no_password() -> None:
    """A proxy's password is not in the text of the settings, which may end up in a log."""
    assert "secret" not in repr(FetchSettings(proxy="http://user:secret@127.0.0.1:1"))
    with pytest.raises(ValueError, match="http, https, socks5"):
        FetchSettings(proxy="gopher://127.0.0.1")


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("A.Example.", "a.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("::1", "::1"),
        ("[0:0::1]", "::1"),
        ("127.1", "127.0.0.1"),
    ],
)
def test_insecure_host_is_spelled_as_in_urls(text: str, host: str) -> None:
    """Whatever spelling a user has, it is compared in the one that requests have."""
    assert FetchSettings(insecure_hosts=[text]).insecure_hosts == {host}


def test_curl_follows_no_redirect(fetcher: CurlFetcher) -> None:
    """A redirect is an answer: the next hop is the frontier's decision."""
    with RawServer(says(answer(b"", "302 Found", "Location: /next"))) as server:
        fetched = ask(fetcher, server.url())

        assert (fetched.status, fetched.headers["location"]) == (302, "/next")
        assert len(server.heads) == 1


# Bodies


@pytest.mark.parametrize(
    ("encoding", "encoded"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("br", b"\x0b\x02\x80hello\x03"),
    ],
    ids=["gzip", "deflate", "br"],
)
def test_bodies_arrive_as_they_were_sent_and_are_decoded(encoding: str, encoded: bytes) -> None:
    """gzip, deflate and brotli."""
    fetched = fetch_from(answer(encoded, "200 OK", f"Content-Encoding: {encoding}"))

    assert fetched.body == b"hello"


def test_curl_defuses_a_bomb() -> None:
    """A gzip bomb of 100 MB is cut at its cap and never takes more than cap + 16 MB."""
    cap = 1_000_000
    bomb = answer(gzip.compress(bytes(100_000_000)), "200 OK", "Content-Encoding: gzip")
    tracemalloc.start()

    fetched = fetch_from(bomb, max_bytes=cap)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (fetched.status, len(fetched.body), fetched.is_truncated) == (200, cap, True)
    assert peak < cap + 16 * 1024 * 1024


@pytest.mark.parametrize(
    "framing",
    [
        pytest.param(b"\r\n", id="until-close"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n", id="chunked"),
        pytest.param(b"Content-Length: 999999999999\r\n\r\n", id="lying-length"),
    ],
)
def test_curl_cuts_an_endless_body(fetcher: CurlFetcher, framing: bytes) -> None:
    """A body without end is cut at the cap, and its connection is closed."""
    piece = b"1000\r\n" + b"x" * 4096 + b"\r\n"

    def pour(connection: socket.socket, _path: str) -> bool:
        connection.sendall(HEAD + framing)
        while True:
            connection.sendall(piece)

    with RawServer(pour) as server:
        fetched = ask(fetcher, server.url(), max_bytes=100_000)

    assert (fetched.status, len(fetched.body), fetched.is_truncated) == (200, 100_000, True)


def test_curl_misses_what_a_lying_length_promised() -> None:
    """A body shorter than its Content-Length is a reset, not a page."""
    fetched = fetch_from(HEAD + b"Content-Length: 20\r\n\r\nhello")

    assert (fetched.status, fetched.error) == (None, ErrorKind.RESET)
    assert (fetched.detail, fetched.body) == ("body_incomplete", b"")


def test_curl_takes_no_answer_from_behind_a_body(fetcher: CurlFetcher) -> None:
    """Bytes after the declared body are not the next request's answer."""
    smuggled = answer(b"first") + answer(b"smuggled")
    with RawServer(says(smuggled)) as server:
        bodies = [ask(fetcher, server.url()).body for _ in range(3)]

    assert bodies == [b"first"] * 3


def test_curl_lets_go_of_bodies() -> None:
    """Idle handles hold on to no body: after 20 megabytes next to nothing is left."""
    fetcher = CurlFetcher(LOOPBACK)
    with RawServer(says(answer(bytes(1_000_000)))) as server:
        tracemalloc.start()
        for _ in range(20):
            fetcher.start(Request(server.url(), "127.0.0.1", 10))
        sizes = []
        while fetcher.in_flight:
            sizes += [len(fetched.body) for fetched in fetcher.wait(5)]
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        fetcher.close()

    assert sizes == [1_000_000] * 20
    assert held < 3_000_000


# Hostile servers


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(b"just text, no header", ErrorKind.PROTOCOL, id="http-0.9"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", ErrorKind.PROTOCOL, id="status-line"),
        pytest.param(b"HTTP/9.9 200 OK\r\n\r\n", ErrorKind.PROTOCOL, id="version"),
        pytest.param(b"HTTP/1.1 000 OK\r\n\r\n", ErrorKind.PROTOCOL, id="status-0"),
        pytest.param(HEAD + b"no colon\r\n\r\n", ErrorKind.PROTOCOL, id="no-colon"),
        pytest.param(HEAD + b"A: b\0c\r\n\r\n", ErrorKind.PROTOCOL, id="nul"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", ErrorKind.PROTOCOL, id="length"),
        pytest.param(
            HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", ErrorKind.PROTOCOL, id="two"
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", ErrorKind.PROTOCOL, id="chunk"
        ),
        pytest.param(
            HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
            ErrorKind.PROTOCOL,
            id="not-gzip",
        ),
        pytest.param(
            answer(b"x", "200 OK", "Content-Encoding: gzip, gzip, gzip, gzip, gzip, gzip"),
            ErrorKind.PROTOCOL,
            id="nested-encodings",
        ),
        pytest.param(
            answer(b"x", "200 OK", "Content-Encoding: compress"), ErrorKind.PROTOCOL, id="unknown"
        ),
        pytest.param(HEAD + b"A: b\r\n" * 10_000, ErrorKind.TOO_LARGE, id="many-headers"),
        pytest.param(HEAD + b"A: " + b"x" * 1_000_000, ErrorKind.TOO_LARGE, id="huge-header"),
        pytest.param(
            HEAD + (b"A: " + b"x" * 4000 + b"\r\n") * 100, ErrorKind.TOO_LARGE, id="much-header"
        ),
        pytest.param(
            b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n" * 10_000, ErrorKind.TOO_LARGE, id="1xx-flood"
        ),
        pytest.param(b"", ErrorKind.RESET, id="empty"),
        pytest.param(HEAD + b"A: b\r\n", ErrorKind.RESET, id="early-close"),
        pytest.param(b"HTTP/1.1 101 Switching\r\n\r\n", ErrorKind.RESET, id="101"),
    ],
)
def test_curl_types_what_is_malformed(reply: bytes, error: ErrorKind) -> None:
    """Every malformed answer is a typed error, and no other request suffers from it."""
    fetched = fetch_from(reply)

    assert (fetched.status, fetched.error) == (None, error)
    assert fetched.detail


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        pytest.param(HEAD, b"A: b\r\n", id="headers"),
        pytest.param(HEAD, b"A: " + b"x" * 4000 + b"\r\n", id="long-headers"),
        pytest.param(HEAD + b"A: ", b"x" * 4096, id="one-header"),
        pytest.param(HEAD + b"A: b\r\n", b" c\r\n", id="folded-header"),
        pytest.param(b"", b"HTTP/1.1 100 On\r\n\r\n", id="interim"),
        pytest.param(b"", b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n", id="interim-with-header"),
        pytest.param(CHUNKED, b"A: b\r\n", id="trailers"),
        pytest.param(CHUNKED, b"A: " + b"x" * 3000 + b"\r\n", id="long-trailers"),
    ],
)
def test_curl_ends_a_flood_of_headers(fetcher: CurlFetcher, start: bytes, piece: bytes) -> None:
    """Headers without end, wherever they may stand, are a typed error and cost no 2 MB."""
    sent = piece * 100

    def pour(connection: socket.socket, _path: str) -> bool:
        connection.sendall(start)
        while True:
            connection.sendall(sent)

    with RawServer(pour) as server:
        tracemalloc.start()
        fetched = ask(fetcher, server.url())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert (fetched.error, fetched.detail) == (ErrorKind.TOO_LARGE, "header_too_large")
    assert (fetched.status, fetched.headers, fetched.body) == (None, {}, b"")
    assert peak < 2_000_000


@pytest.mark.parametrize("status", ["200 OK", "429 Slow"])
@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (FetchSettings(max_headers=5), None),
        (FetchSettings(max_headers=4), ErrorKind.TOO_LARGE),
        (FetchSettings(max_header_bytes=100), None),
        (FetchSettings(max_header_bytes=40), ErrorKind.TOO_LARGE),
    ],
)
def test_curl_holds_whole_answers_against_the_header_limits(
    limits: FetchSettings, status: str, error: ErrorKind | None
) -> None:
    """A status line, three headers and an empty line are five; one too many spoils any answer."""
    fetcher = CurlFetcher(LOOPBACK, limits)
    with RawServer(says(answer(b"hello", status, "A: b", "C: d"))) as server:
        fetched = ask(fetcher, server.url())
        fetcher.close()

    assert fetched.error is error
    assert fetched.body == (b"" if error else b"hello")


def test_curl_forgets_the_headers_of_the_answer_before(fetcher: CurlFetcher) -> None:
    """A reused handle shows nobody the headers that came for another request."""
    pages = {"/one": answer(b"", "200 OK", "X-One: 1"), "/two": answer(b"", "200 OK", "X-Two: 2")}
    with RawServer(routes(pages)) as server:
        names = [{*ask(fetcher, server.url(path)).headers} for path in pages]

    assert names == [{"content-length", "x-one"}, {"content-length", "x-two"}]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([b"", b"HTTP/1.1 ", HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n"]),
    st.binary(max_size=200),
)
def test_curl_survives_any_bytes(start: bytes, rest: bytes) -> None:
    """Whatever a server says, one result comes back, with either a status or an error."""
    fetched = fetch_from(start + rest)

    assert (fetched.status is None) != (fetched.error is None)


def test_curl_keeps_nothing_of_a_broken_answer_for_the_next_request() -> None:
    """An answer that ends within a folded header does not spoil another server's answer."""
    fetched = fetch_from(HEAD + b"\0\n\t")  # fetches from another server, too

    assert fetched.error is ErrorKind.RESET


def test_curl_skips_interim_answers_and_trailers() -> None:
    """Headers of 1xx answers and of trailers are not the answer's own."""
    reply = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: early\r\n\r\n"
        + HEAD
        + b"Transfer-Encoding: chunked\r\nVia: a\r\nVia: b\r\n\r\n"
        + b"5\r\nhello\r\n0\r\nRetry-After: 5\r\n\r\n"
    )

    fetched = fetch_from(reply)

    assert (fetched.status, fetched.body) == (200, b"hello")
    assert fetched.headers == {"transfer-encoding": "chunked", "via": "a, b"}


def test_curl_unfolds_headers() -> None:
    """A header over several lines is one value."""
    fetched = fetch_from(HEAD + b"A: one\r\n two\r\nContent-Length: 0\r\n\r\n")

    assert fetched.headers["a"] == "one two"


def test_curl_reports_a_reset_in_the_body(fetcher: CurlFetcher) -> None:
    """A page whose connection is reset half way is a reset."""

    def handler(connection: socket.socket, _path: str) -> bool:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nhalf")
        return reset(connection)

    with RawServer(handler) as server:
        fetched = ask(fetcher, server.url())

    assert (fetched.status, fetched.error) == (None, ErrorKind.RESET)


def test_curl_keeps_a_refusal_whose_body_broke_off(fetcher: CurlFetcher) -> None:
    """A Retry-After is obeyed even if the connection is reset right behind the headers."""

    def handler(connection: socket.socket, _path: str) -> bool:
        connection.sendall(b"HTTP/1.1 429 Slow\r\nRetry-After: 9\r\nContent-Length: 100\r\n\r\nx")
        return reset(connection)

    with RawServer(handler) as server:
        fetched = ask(fetcher, server.url())

    assert (fetched.status, fetched.error, fetched.is_truncated) == (429, None, True)
    assert fetched.headers["retry-after"] == "9"


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (b"HTTP/1.1 200", "first_byte_timeout"),
        (HEAD + b"Content-Length: 100\r\n\r\nslow", "body_timeout"),
    ],
)
def test_curl_drops_a_server_that_stops_talking(
    fetcher: CurlFetcher, said: bytes, detail: str
) -> None:
    """A server that goes silent in its header or its body is a timeout."""

    def handler(connection: socket.socket, _path: str) -> bool:
        connection.sendall(said)
        return hold(connection)

    with RawServer(handler) as server:
        fetched = ask(fetcher, server.url(), timeout_s=0.1)

        assert (fetched.error, fetched.detail) == (ErrorKind.TIMEOUT, detail)
        assert fetcher.in_flight == 0


def test_curl_drops_a_server_that_drips() -> None:
    """A body slower than the minimum speed is given up long before the timeout."""
    fetcher = CurlFetcher(LOOPBACK, FetchSettings(min_bytes_per_s=1000, min_speed_window_s=1))

    def handler(connection: socket.socket, _path: str) -> bool:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nslow")
        return hold(connection)

    with RawServer(handler) as server:
        fetched = ask(fetcher, server.url(), timeout_s=60)
        fetcher.close()

    assert (fetched.error, fetched.detail) == (ErrorKind.TIMEOUT, "too_slow")


def test_curl_serves_other_hosts_while_one_hangs(fetcher: CurlFetcher) -> None:
    """A server that never answers holds up nobody else."""
    with RawServer(lambda connection, _: hold(connection)) as silent:
        fetcher.start(Request(silent.url(), "127.0.0.1", 60))
        with RawServer(says(answer())) as server:
            fetched = [ask(fetcher, server.url()) for _ in range(5)]

        assert [one.status for one in fetched] == [200] * 5
        assert fetcher.in_flight == 1
        fetcher.close()


# Network guard


CANARY_URLS = [
    ("http://127.0.0.1:{port}/", "127.0.0.1"),
    ("http://localhost:{port}/", "localhost"),
    ("http://localhost.:{port}/", "localhost."),
    ("http://rebound.localhost:{port}/", "rebound.localhost"),
    ("http://[::ffff:127.0.0.1]:{port}/", "::ffff:127.0.0.1"),
    ("http://[::ffff:7f00:1]:{port}/", "[::ffff:7f00:1]"),
    ("http://0x7f.1:{port}/", "0x7f.1"),
    ("http://2130706433:{port}/", "2130706433"),
    ("http://0177.0.0.1:{port}/", "0177.0.0.1"),
    ("http://127.1:{port}/", "127.1"),
    ("http://127.0.0.1.:{port}/", "127.0.0.1."),
    ("http://0x7F000001:{port}/", "0x7f000001"),
    ("http://127.255.255.254:{port}/", "127.255.255.254"),
    ("http://[::]:{port}/", "::"),
    ("http://[::127.0.0.1]:{port}/", "::127.0.0.1"),
    ("http://[64:ff9b::7f00:1]:{port}/", "64:ff9b::7f00:1"),
    ("http://0.0.0.0:{port}/", "0.0.0.0"),
    ("http://0:{port}/", "0"),
    ("http://[::1]:{port}/", "::1"),
    ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
]


@pytest.mark.parametrize(("url", "host"), CANARY_URLS)
def test_curl_never_reaches_the_canary(url: str, host: str) -> None:
    """No spelling of a private address, and no name that leads to one, reaches a server there."""
    with RawServer(says(answer())) as canary:
        # With a network allowed any port may be meant, so nothing but the address is the reason.
        fetcher = CurlFetcher(NetworkGuard(allow_net=["10.9.0.0/16"]))

        fetched = ask(fetcher, url.format(port=canary.port), host=host)

        fetcher.close()
        assert fetched.error is LocalError.BLOCKED_ADDRESS
        assert fetched.detail == "blocked_address"
        assert canary.connections == 0


def test_curl_reaches_the_canary_when_it_is_the_seed() -> None:
    """The same server is reached when it is itself a seed, and no other port beside it."""
    with RawServer(says(answer())) as seed, RawServer(says(answer())) as canary:
        fetcher = CurlFetcher(NetworkGuard(seeds=[seed.url()]))

        statuses = [ask(fetcher, server.url()).status for server in (seed, canary)]

        fetcher.close()
        assert statuses == [200, None]
        assert canary.connections == 0


@pytest.mark.parametrize(
    ("url", "host", "detail"),
    [
        ("file:///etc/passwd", "", "bad_url"),
        ("ftp://127.0.0.1/", "127.0.0.1", "bad_url"),
        ("http://127.0.0.1:99999/", "127.0.0.1", "bad_url"),
        ("http://example.com\\@127.0.0.1/", "example.com", "bad_url"),
        ("http://example.com@127.0.0.1/", "example.com", "bad_url"),
        ("http://127.0.0.1/", "example.com", "host_mismatch"),
        ("http://%31%32%37.0.0.1/", "127.0.0.1", "bad_url"),
        ("http://①②⑦.0.0.1/", "127.0.0.1", "bad_url"),
        ("http://127.0.0.1/\ud800", "127.0.0.1", "bad_url"),
        ("http://127.0.0.1/" + "\0", "127.0.0.1", "bad_url"),
    ],
)
def test_curl_takes_no_ambiguous_url(
    fetcher: CurlFetcher, url: str, host: str, detail: str
) -> None:
    """What is not plainly an http URL of the named host comes back without a connection."""
    fetched = ask(fetcher, url, host=host)

    assert (fetched.error, fetched.detail) == (LocalError.BAD_URL, detail)
    assert fetched.total_s == 0.0


def test_curl_takes_a_megabyte_of_url(fetcher: CurlFetcher) -> None:
    """The longest URL is sent or refused with a type, like any other."""
    with RawServer(routes({})) as server:
        fetched = ask(fetcher, server.url("/" + "a" * 1_000_000))

    assert fetched.status == 404


# Stopped processes


class Refusing(RawServer):
    """Answers the first request with a refusal when it is told to, and others at once."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.may_refuse = threading.Event()
        self.has_refused = threading.Event()

    def _answer(self, connection: socket.socket, path: str) -> bool:
        if path != "/first":
            connection.sendall(answer())
            return True
        self.may_refuse.wait(30)
        connection.sendall(answer(b"", "429 Too Many Requests", "Retry-After: 60"))
        self.has_refused.set()
        return True

    def refuse_while_stopped(self) -> None:
        """Let the refusal arrive while the caller does nothing, for longer than is unnoticed."""
        self.may_refuse.set()
        assert self.has_refused.wait(30)
        until = time.monotonic() + 2 * FRESH_S
        eventually(lambda: time.monotonic() > until)

    def paths(self) -> list[str]:
        return [head.split()[1] for head in self.heads]


def test_nothing_leaves_before_what_came_while_stopped_is_returned(
    fetcher: CurlFetcher,
) -> None:
    """The caller must learn of the refusal before the next request to that host is sent."""
    finished: list[Fetched] = []
    fetcher.ask(lambda *_: not finished)
    with Refusing() as server:
        fetcher.start(Request(server.url("/first"), "127.0.0.1", 30.0))
        while not fetcher.sent():
            fetcher.wait(0.01)
        fetcher.start(Request(server.url("/second"), "127.0.0.1", 30.0))
        server.refuse_while_stopped()

        finished += fetcher.wait(0.0)
        while len(finished) < 2:
            finished += fetcher.wait(1.0)

        assert [(each.status, each.error) for each in finished] == [
            (429, None),
            (None, LocalError.HELD),
        ]
        assert server.paths() == ["/first"]


def test_nothing_leaves_if_the_process_was_stopped_immediately_before(
    fetcher: CurlFetcher,
) -> None:
    """Two requests are about to leave; the process is stopped before the second one does."""
    finished: list[Fetched] = []
    with Refusing() as server:

        def may_leave(request: Request, _instant: float, _address: str) -> bool:
            if not request.url.endswith("/first") and not server.has_refused.is_set():
                server.refuse_while_stopped()
            return True

        fetcher.ask(may_leave)
        fetcher.start(Request(server.url("/first"), "127.0.0.1", 30.0))
        while not fetcher.sent():
            fetcher.wait(0.01)
        for path in ("/second", "/third"):
            fetcher.start(Request(server.url(path), "127.0.0.1", 30.0))
        while len(finished) < 3:
            finished += fetcher.wait(1.0)

        assert len(server.paths()) == 2
        assert sorted(str(each.error) for each in finished) == ["None", "None", "held"]


def test_a_stalled_loop_sends_to_hosts_that_owe_no_answer(fetcher: CurlFetcher) -> None:
    """Where nothing can have come in that was not read, a late loop sends as any other."""
    fetcher.ask(lambda *_: True)
    with Refusing() as server, RawServer(says(answer()), "127.0.0.2") as other:
        fetcher.start(Request(server.url("/first"), "127.0.0.1", 30.0))
        while not fetcher.sent():
            fetcher.wait(0.01)
        fetcher.start(Request(other.url(), "127.0.0.2", 30.0))
        server.refuse_while_stopped()
        finished = fetcher.wait(0.0)
        while len(finished) < 2:
            finished += fetcher.wait(1.0)

        assert [each.status for each in finished] == [429, 200]


def test_a_stalled_loop_sends_if_nothing_has_come(fetcher: CurlFetcher) -> None:
    """A host whose answer is still awaited gets the next request: it was looked for first."""
    with Refusing() as server:
        fetcher.start(Request(server.url("/first"), "127.0.0.1", 30.0))
        while not fetcher.sent():
            fetcher.wait(0.01)
        stalled_until = time.monotonic() + 2 * FRESH_S
        eventually(lambda: time.monotonic() > stalled_until)
        fetcher.start(Request(server.url("/second"), "127.0.0.1", 30.0))
        (second,) = fetcher.wait(5.0) or fetcher.wait(5.0)
        server.may_refuse.set()

        assert (second.status, second.error) == (200, None)
