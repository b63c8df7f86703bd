"""Certificates are verified, sessions are resumed, HTTP/2 is spoken, and each refusal is typed."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import Authority, Certificate
from tests.crawler.fetch.raw_server import RawServer, answer, hold, reset, says

from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.fetch.trust import Trust, find_trust
from mannerly.crawler.model import Fetched, Request
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = NetworkGuard(allow_net=["127.0.0.0/8"])
HERE, ELSEWHERE = (x509.IPAddress(ip_address(text)) for text in ("127.0.0.1", "127.0.0.2"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def valid(authority: Authority) -> Certificate:
    return authority.certificate(HERE)


def fetch(server: RawServer, settings: FetchSettings, times: int = 1) -> Fetched:
    fetcher = CurlFetcher(LOOPBACK, settings)
    for _ in range(times):
        fetcher.start(Request(server.url(), "127.0.0.1", 5.0))
        (fetched,) = fetcher.wait(10)
    fetcher.close()
    return fetched


def trusting(certificate: Certificate) -> FetchSettings:
    return FetchSettings(ca_file=str(certificate.file))


def test_tls_refuses_a_stranger_by_default(authority: Authority, valid: Certificate) -> None:
    """A self-signed certificate is refused before a request is sent."""
    with RawServer(says(answer()), tls=valid.context()) as server:
        fetched = fetch(server, trusting(authority.certificate(ELSEWHERE)))

        assert (fetched.error, fetched.detail) == (ErrorKind.TLS, "tls_self_signed")
        assert server.heads == []


def test_tls_accepts_a_trusted_certificate(valid: Certificate) -> None:
    """The same certificate is fine when the trusted file holds it."""
    with RawServer(says(answer()), tls=valid.context()) as server:
        assert fetch(server, trusting(valid)).body == b"hello"


def test_tls_takes_an_unverified_host_only_where_told(
    authority: Authority, valid: Certificate
) -> None:
    """Verification is switched off for the named host alone."""
    stranger = str(authority.certificate(ELSEWHERE).file)
    with RawServer(says(answer()), tls=valid.context()) as server:
        named, other = (
            fetch(server, FetchSettings(ca_file=stranger, insecure_hosts=frozenset({host})))
            for host in ("127.0.0.1", "127.0.0.9")
        )

    assert (named.status, other.error) == (200, ErrorKind.TLS)


def test_tls_refuses_an_expired_certificate(authority: Authority) -> None:
    """A certificate past its date is refused even if its issuer is trusted."""
    expired = authority.certificate(HERE, until=datetime(2020, 2, 1, tzinfo=UTC))
    with RawServer(says(answer()), tls=expired.context()) as server:
        fetched = fetch(server, trusting(expired))

    assert (fetched.error, fetched.detail) == (ErrorKind.TLS, "tls_expired")


def test_tls_refuses_a_certificate_of_another_host(authority: Authority) -> None:
    """A trusted certificate for another name is refused."""
    other = authority.certificate(x509.DNSName("example.com"))
    with RawServer(says(answer()), tls=other.context()) as server:
        fetched = fetch(server, trusting(other))

    assert (fetched.error, fetched.detail) == (ErrorKind.TLS, "tls_wrong_host")


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (b"220 mail.example ESMTP\r\n", "tls_handshake"),
        (b"", "tls_handshake"),
        (None, "tls_timeout"),
    ],
    ids=["garbage", "reset", "silence"],
)
def test_tls_types_a_broken_handshake(valid: Certificate, said: bytes | None, detail: str) -> None:
    """A server that speaks no TLS, resets in the handshake or says nothing is a TLS error."""
    fetcher = CurlFetcher(LOOPBACK, trusting(valid))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        fetcher.start(Request(f"https://127.0.0.1:{port}/", "127.0.0.1", 0.3))
        finished = fetcher.wait(0.02)
        connection, _ = listener.accept()
        if said is not None:
            connection.sendall(said)
            reset(connection)
            connection.close()
        (fetched,) = finished or fetcher.wait(10)
        connection.close()
    fetcher.close()

    assert (fetched.error, fetched.detail) == (ErrorKind.TLS, detail)


def test_tls_resumes_sessions(valid: Certificate) -> None:
    """A second connection to a host resumes the session of the first."""
    farewell = answer(b"hello", "200 OK", "Connection: close")
    with RawServer(says(farewell, keeps_open=False), tls=valid.context()) as server:
        fetched = fetch(server, trusting(valid), times=2)

        assert fetched.status == 200
        assert server.resumed == [False, True]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One HTTP/2 frame (RFC 9113 §4.1)."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def test_tls_negotiates_http2(valid: Certificate) -> None:
    """Over TLS the fetcher offers HTTP/2, and understands an answer that is nothing but frames."""
    context = valid.context()
    context.set_alpn_protocols(["h2"])

    def http2(connection: socket.socket, _path: str) -> bool:
        connection.sendall(frame(4, 0, 0) + frame(4, 1, 0))  # settings, and ours acknowledged
        connection.sendall(frame(1, 4, 1, b"\x88"))  # headers: the static table's ":status 200"
        connection.sendall(frame(0, 1, 1, b"hello"))
        return hold(connection)

    with RawServer(http2, tls=context) as server:
        fetched = fetch(server, trusting(valid))

    assert (fetched.status, fetched.body) == (200, b"hello")


# Whom to trust


def test_trust_prefers_what_was_chosen(tmp_path: Path) -> None:
    """A chosen file beats SSL_CERT_FILE, which beats SSL_CERT_DIR and the usual places."""
    chosen, named = tmp_path / "chosen.pem", tmp_path / "named.pem"
    chosen.touch()
    named.touch()
    environ = {"SSL_CERT_FILE": str(named), "SSL_CERT_DIR": str(tmp_path)}

    found = [
        find_trust(str(chosen), environ),
        find_trust(None, environ),
        find_trust(None, {"SSL_CERT_DIR": str(tmp_path)}),
        find_trust(None, {}, (str(tmp_path / "absent"), str(named))),
    ]

    assert found == [
        Trust(str(chosen), None),
        Trust(str(named), None),
        Trust(None, str(tmp_path)),
        Trust(str(named), None),
    ]


def test_trust_falls_back_to_the_store_of_the_system() -> None:
    """Where authorities are kept in no file (Windows), curl is told to read the system's store."""
    assert find_trust(None, {}, (), has_store=True) == Trust(None, None)


def test_trust_says_what_is_missing(tmp_path: Path) -> None:
    """No bundle anywhere, or none where one was named, is an error at start and not per request."""
    with pytest.raises(ValueError, match="ca-certificates"):
        find_trust(None, {}, (), has_store=False)
    with pytest.raises(ValueError, match="gone"):
        find_trust(None, {"SSL_CERT_FILE": str(tmp_path / "gone")})
