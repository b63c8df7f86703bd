"""Servers that lie, drip, flood and break off, all in one crawl of the real command.

Every fault has a host of its own on 127.30.0.0/24, and beside them is a plain host, which must be
crawled as if it were alone. The reasons are read from the export, the requests from the servers,
the memory from the system.
"""

from __future__ import annotations

import gzip
import ssl
import struct
import warnings
import zlib
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import FAR_OFF, Authority
from tests.crawler.fetch.raw_server import RawServer, answer, hold, reset, says
from tests.hostile.commands import PLAIN, megabytes, pages, records, watched
from torture.command import Command

from mannerly.demo import DemoWeb, paths, plain_sites

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from tests.crawler.fetch.raw_server import Handler
    from tests.hostile.conftest import Figure

pytestmark = pytest.mark.processes

HTML = "Content-Type: text/html"
MAX_BYTES = 1_000_000
TIMEOUT_S = 3.0
MEMORY_BYTES = 450_000_000
NET = "127.30.0.0/24"


def _drip(connection: socket.socket, _path: str) -> bool:
    """Headers, one byte at a time and without end."""
    for byte in answer(b"x" * 1000):
        connection.sendall(bytes([byte]))
        connection.settimeout(0.2)
        with suppress(TimeoutError):
            if not connection.recv(1):
                return False
    return False


def _endless(connection: socket.socket, _path: str) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while True:
        connection.sendall(b"<p>more</p>" * 6000)


def _chunks(connection: socket.socket, _path: str) -> bool:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(head)
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def _interim(connection: socket.socket, _path: str) -> bool:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def _packed(data: bytes, encoding: str) -> bytes:
    return answer(data, "200 OK", HTML, f"Content-Encoding: {encoding}")


def _bombs() -> dict[str, bytes]:
    """Bodies of some hundred kilobytes that unpack to a hundred megabytes and more."""
    zeros = bytes(16 << 20)
    squeezed = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(squeezed.compress(zeros) for _ in range(8)) + squeezed.flush()
    return {
        "gzip": _packed(bomb, "gzip"),
        "deflate": _packed(zlib.compress(zeros), "deflate"),
        "members": _packed(gzip.compress(b"<p>x</p>" * 500) * 1000, "gzip"),
        "nested": _packed(gzip.compress(bomb), "gzip, gzip"),
    }


BAD_ANSWERS: dict[str, bytes] = {
    "no-status": b"HTTP/1.1 fine\r\n\r\n",
    "no-http": b"\x00\x01\x02\x03" * 100,
    "old": b"<html>HTTP/0.9 has no headers</html>",
    "number": b"HTTP/1.1 99999 OK\r\n\r\n",
    "headers": answer(b"x", "200 OK", *(f"X-{n}: y" for n in range(10_000))),
    "long-header": answer(b"x", "200 OK", "X-Long: " + "x" * 1_000_000),
    "nul": b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 1\r\n\r\nx",
    "fold": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\nx",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\nx\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcde",
    "early": b"HTTP/1.1 200 OK\r\nContent-Le",
    "lying": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nnot that long",
}
REDIRECTS: dict[str, bytes] = {
    "self": answer(b"", "302 Found", "Location: /self"),
    "garbage": answer(b"", "302 Found", "Location: http://[::bad/"),
    "empty": answer(b"", "302 Found", "Location: "),
    "none": answer(b"", "302 Found"),
    **{
        scheme: answer(b"", "302 Found", f"Location: {target}")
        for scheme, target in {
            "file": "file:///etc/passwd",
            "ftp": "ftp://127.30.0.250/",
            "gopher": "gopher://127.30.0.250/",
            "data": "data:text/html,x",
            "javascript": "javascript:alert(1)",
            "private": "http://127.0.0.1:80/",
            "metadata": "http://169.254.169.254/latest/meta-data/",
        }.items()
    },
}


def _site(table: dict[str, bytes], **special: Handler) -> Handler:
    """A host whose home page links to every entry; `special` ones talk for themselves."""
    names = (*table, *special)
    home = answer("".join(f"<a href=/{n}>{n}</a>" for n in names).encode(), "200 OK", HTML)

    def handler(connection: socket.socket, path: str) -> bool:
        name = path.strip("/")
        if path == "/":
            connection.sendall(home)
        elif name in special:
            return special[name](connection, path)
        elif name.startswith("chain"):
            onward = f"Location: /chain{int(name[5:] or 0) + 1}"
            connection.sendall(answer(b"", "301 Moved", onward))
        elif name in table:
            connection.sendall(table[name])
            return False
        else:
            connection.sendall(answer(b"", "404 Not Found"))
        return True

    return handler


@dataclass
class Crawled:
    """The one crawl, from both ends."""

    code: int | None
    peak: int
    rows: list[dict[str, Any]]
    servers: dict[str, RawServer]
    plain: set[str]

    def errors(self, name: str) -> dict[str, str | None]:
        """Return the reason of each page of a host, by path."""
        prefix = self.servers[name].url("/")
        return {
            row["url"].removeprefix(prefix): row.get("error") or row.get("reason")
            for row in self.rows
            if row["url"].startswith(prefix) and row["url"] != prefix
        }

    def asked(self, name: str) -> list[str]:
        return [head.split()[1].strip("/") for head in self.servers[name].heads]


def _tls_servers(folder: Path) -> dict[str, tuple[Handler, ssl.SSLContext | None]]:
    authority = Authority(folder)
    page = says(answer(b"<p>secret</p>", "200 OK", HTML))

    def context(address: str, until: datetime = FAR_OFF) -> ssl.SSLContext:
        return authority.certificate(x509.IPAddress(IPv4Address(address)), until=until).context()

    old = context("127.30.0.44")
    with warnings.catch_warnings(action="ignore"):
        old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    return {
        "self-signed": (page, context("127.30.0.41")),
        "expired": (page, context("127.30.0.42", datetime(2021, 1, 1, tzinfo=UTC))),
        "other-host": (page, context("10.0.0.1")),
        "old-version": (page, old),
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("answers")
    handlers: dict[str, tuple[Handler, ssl.SSLContext | None]] = {
        "slow": (_site({}, headers=_drip, silent=lambda c, _: hold(c)), None),
        "endless": (_site({}, body=_endless, chunks=_chunks, interim=_interim), None),
        "bombs": (_site(_bombs()), None),
        "redirects": (_site(REDIRECTS, chain=partial(_chain)), None),
        "bad": (_site(BAD_ANSWERS), None),
        "resets": (_site({}, reset=lambda c, _: reset(c), half=_half), None),
    }
    tls = _tls_servers(folder)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(RawServer(handler, f"127.30.0.{number}", context))
            for number, (name, (handler, context)) in enumerate(handlers.items(), 11)
        }
        for number, (name, (handler, context)) in enumerate(tls.items(), 41):
            servers[name] = stack.enter_context(RawServer(handler, f"127.30.0.{number}", context))
        (site,) = plain_sites(1, pages=60)
        web = stack.enter_context(DemoWeb([site], first_address="127.30.0.2"))
        seeds = [server.url("/") for server in servers.values()]
        words = ["crawl", *seeds, *web.seeds(), *PLAIN, "--data-dir", str(folder / "crawl")]
        words += ["--timeout", str(TIMEOUT_S), "--max-bytes", str(MAX_BYTES), "--scope", "any"]
        words += ["--allow-net", NET, "--processes", "2", "--host-failure-limit", "100"]
        words += ["--ignore-robots", "--exclude", "http://127.30.0.250/*"]
        code, peak = watched(Command(words, folder / "output.txt"))
        rows = records(folder / "crawl")
        fetched = {row["url"] for row in pages(folder / "crawl") if row["status"] == 200}
        wanted = {f"http://{host}{path}" for host in web.hosts for path in paths(site)}
        yield Crawled(code, peak, rows, servers, wanted - fetched)


def _chain(connection: socket.socket, _path: str) -> bool:
    connection.sendall(answer(b"", "301 Moved", "Location: /chain1"))
    return True


def _half(connection: socket.socket, _path: str) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 100)
    connection.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER 0: RST instead of FIN
    return False


def test_crawl_of_broken_servers_ends(crawled: Crawled) -> None:
    """It ends by itself, and the plain host lost no page."""
    assert crawled.code in (0, 1)
    assert crawled.plain == set()


def test_slow_answers_are_dropped(crawled: Crawled, figure: Figure) -> None:
    """Headers that drip and a server that says nothing end at the timeout."""
    errors = crawled.errors("slow")

    figure("F13", f"headers at 5 B/s: {errors.get('headers')}, silence: {errors.get('silent')}")
    assert set(errors) >= {"headers", "silent"}
    assert all(error and "timeout" in error for error in errors.values())


def test_endless_answers_are_cut(crawled: Crawled, figure: Figure) -> None:
    """Bodies without end stop at the cap, interim answers at theirs; memory stays bounded."""
    errors = crawled.errors("endless")

    figure("F14", f"cut at {megabytes(MAX_BYTES)}; peak of all processes {megabytes(crawled.peak)}")
    assert (errors["body"], errors["chunks"]) == ("cut_at_cap", "cut_at_cap")
    assert errors["interim"] is not None
    assert crawled.peak < MEMORY_BYTES


def test_bombs_are_defused(crawled: Crawled, figure: Figure) -> None:
    """gzip, deflate, a thousand members, gzip in gzip: each ends at the cap or with a reason."""
    errors = crawled.errors("bombs")
    largest = max(row.get("bytes") or 0 for row in crawled.rows)

    figure("F15", f"{len(errors)} bombs: largest body kept {megabytes(largest)}")
    assert set(errors) == {"gzip", "deflate", "members", "nested"}
    assert largest <= MAX_BYTES
    assert all(errors[name] == "cut_at_cap" for name in ("gzip", "deflate", "nested"))


def test_redirects_end(crawled: Crawled, figure: Figure) -> None:
    """Loops, chains and nonsense end with a reason; other schemes are not followed."""
    errors = crawled.errors("redirects")
    hops = [path for path in crawled.asked("redirects") if path.startswith("chain")]

    figure(
        "F16",
        f"chain without end: {len(hops)} requests; {len(REDIRECTS)} bad targets: a reason each",
    )
    assert len(hops) == 11
    assert errors["self"] == "redirect_loop"
    for name in ("garbage", "none", "file", "ftp", "gopher", "data", "javascript"):
        assert errors[name] == "bad_redirect", name
    reached = {"127.0.0.1", "169.254.169.254"} & {
        row["url"].split("/")[2] for row in crawled.rows if row.get("status")
    }
    figure("S5", "file:, ftp:, gopher:, data:, javascript:, private: 0 followed")
    assert reached == set()


def test_malformed_answers_have_a_reason(crawled: Crawled, figure: Figure) -> None:
    """Whatever is no HTTP is a typed error or a harmless page, and costs itself alone."""
    errors = crawled.errors("bad")
    harmless = {"fold", "nul", "number", "two-lengths", "length"}

    figure("F24", f"{len(errors)} of {len(BAD_ANSWERS)} malformed answers recorded, 0 crashes")
    assert set(errors) == set(BAD_ANSWERS)
    assert {name for name, error in errors.items() if error is None} <= harmless


def test_bad_certificates_are_refused(crawled: Crawled, figure: Figure) -> None:
    """Self-signed, expired, of another host, an old version: nothing is sent."""
    names = ("self-signed", "expired", "other-host", "old-version")
    sent = {name: len(crawled.servers[name].heads) for name in names}
    reasons = {
        name: next(
            row.get("error") or row.get("reason")
            for row in crawled.rows
            if f"//{crawled.servers[name].address}:" in row["url"]
        )
        for name in names
    }

    figure("F25", ", ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    assert sent == dict.fromkeys(names, 0)
    assert all("tls" in str(reason) for reason in reasons.values())


def test_resets_are_retried_and_recorded(crawled: Crawled, figure: Figure) -> None:
    """A reset before and within the body: tried again, then recorded as such."""
    errors, asked = crawled.errors("resets"), crawled.asked("resets")

    figure("F26", f"reset: {asked.count('reset')} tries, mid-body: {asked.count('half')} tries")
    assert (errors["reset"], errors["half"]) == ("reset", "reset")
    assert 2 <= asked.count("reset") <= 4
    assert 2 <= asked.count("half") <= 4
