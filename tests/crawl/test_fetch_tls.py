"""Certificates are verified, sessions are resumed, HTTP/2 is spoken, and each refusal is typed.

The certificates are made with the `openssl` command, which every system with a certificate store
has: the standard library cannot sign.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest
from raw_server import RawServer, answer, hold, reset, says

from mannerly.crawl.fetch import Fetched, FetchSettings, NetworkGuard, Request
from mannerly.crawl.fetch.curl import CurlFetcher
from mannerly.crawl.fetch.trust import Trust, find_trust
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = NetworkGuard(allow_net=["127.0.0.0/8"])

AUTHORITY = """
[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


class Certificate(NamedTuple):
    file: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


class Authority:
    """Makes self-signed certificates; each is its own authority."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "index.txt").touch()
        (directory / "index.txt.attr").write_text("unique_subject = no\n")
        (directory / "serial").write_text("01\n")
        (directory / "authority.cnf").write_text(AUTHORITY)

    def certificate(self, name: str, until: str = "20490101000000Z") -> Certificate:
        stem = f"{name}-{until}".replace(":", "-")
        file, key = self._directory / f"{stem}.pem", self._directory / f"{stem}.key"
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subject = ["-subj", "/CN=test", "-addext", f"subjectAltName={name}"]
        self._openssl("req", "-new", *curve, "-keyout", str(key), *subject, "-out", "request.pem")
        dates = ["-startdate", "20200101000000Z", "-enddate", until]
        own = ["-batch", "-notext", "-selfsign", "-config", "authority.cnf", "-keyfile", str(key)]
        self._openssl("ca", *own, *dates, "-in", "request.pem", "-out", str(file))
        return Certificate(file, key)

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._directory, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def valid(authority: Authority) -> Certificate:
    return authority.certificate("IP:127.0.0.1")


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
        fetched = fetch(server, trusting(authority.certificate("IP:127.0.0.2")))

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
    stranger = str(authority.certificate("IP:127.0.0.2").file)
    with RawServer(says(answer()), tls=valid.context()) as server:
        named, other = (
            fetch(server, FetchSettings(ca_file=stranger, unverified_hosts=frozenset({host})))
            for host in ("127.0.0.1", "127.0.0.9")
        )

    assert (named.status, other.error) == (200, ErrorKind.TLS)


def test_tls_refuses_an_expired_certificate(authority: Authority) -> None:
    """A certificate past its date is refused even if its issuer is trusted."""
    expired = authority.certificate("IP:127.0.0.1", until="20200201000000Z")
    with RawServer(says(answer()), tls=expired.context()) as server:
        fetched = fetch(server, trusting(expired))

    assert (fetched.error, fetched.detail) == (ErrorKind.TLS, "tls_expired")


def test_tls_refuses_a_certificate_of_another_host(authority: Authority) -> None:
    """A trusted certificate for another name is refused."""
    other = authority.certificate("DNS:example.com")
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
    """Over TLS the fetcher offers HTTP/2 and speaks it where the server does."""
    context = valid.context()
    context.set_alpn_protocols(["h2"])

    def http2(connection: socket.socket, _path: str) -> bool:
        connection.sendall(frame(4, 0, 0) + frame(4, 1, 0))  # settings, and ours acknowledged
        connection.sendall(frame(1, 4, 1, b"\x88"))  # headers: the static table's ":status 200"
        connection.sendall(frame(0, 1, 1, b"hello"))
        return hold(connection)

    with RawServer(http2, tls=context) as server:
        fetched = fetch(server, trusting(valid))

    assert (fetched.status, fetched.body, fetched.http_version) == (200, b"hello", "2")


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


def test_trust_says_what_is_missing(tmp_path: Path) -> None:
    """No bundle anywhere, or none where one was named, is an error at start and not per request."""
    with pytest.raises(ValueError, match="ca-certificates"):
        find_trust(None, {}, ())
    with pytest.raises(ValueError, match="gone"):
        find_trust(None, {"SSL_CERT_FILE": str(tmp_path / "gone")})
