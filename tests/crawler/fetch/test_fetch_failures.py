"""Each of curl's failures has one kind and one finer code, by how far the transfer got."""

from __future__ import annotations

import errno

import pytest

from mannerly.crawler.fetch.failures import (
    BAD_CA_FILE,
    NO_CONNECTION,
    NO_NAME,
    NOT_VERIFIED,
    RECEIVE,
    TIMED_OUT,
    WRITE,
    TransferProgress,
    explain,
)
from mannerly.crawler.model import LocalError
from mannerly.politeness.model import ErrorKind

NOWHERE = TransferProgress(
    is_https=True,
    has_name=False,
    has_connection=False,
    has_tls=False,
    has_bytes=False,
    is_out_of_time=True,
    os_errno=0,
    verify_result=0,
)
RESOLVED = NOWHERE._replace(has_name=True)
CONNECTED = RESOLVED._replace(has_connection=True)
SECURE = CONNECTED._replace(has_tls=True)
PLAIN = CONNECTED._replace(is_https=False)


@pytest.mark.parametrize(
    ("progress", "kind", "detail"),
    [
        (NOWHERE, ErrorKind.DNS, "dns_timeout"),
        (RESOLVED, ErrorKind.CONNECT, "connect_timeout"),
        (CONNECTED, ErrorKind.TLS, "tls_timeout"),
        (SECURE, ErrorKind.TIMEOUT, "first_byte_timeout"),
        (PLAIN, ErrorKind.TIMEOUT, "first_byte_timeout"),
        (SECURE._replace(has_bytes=True), ErrorKind.TIMEOUT, "body_timeout"),
        (SECURE._replace(is_out_of_time=False), ErrorKind.TIMEOUT, "too_slow"),
    ],
)
def test_timeout_is_named_after_the_stage_it_hit(
    progress: TransferProgress, kind: ErrorKind, detail: str
) -> None:
    """A timeout in the lookup is DNS, in the connect CONNECT, in the handshake TLS."""
    assert explain(TIMED_OUT, progress) == (kind, detail)


@pytest.mark.parametrize(
    ("code", "progress", "failure"),
    [
        (NO_NAME, NOWHERE, (ErrorKind.DNS, "name_not_resolved")),
        (
            NO_CONNECTION,
            RESOLVED._replace(os_errno=errno.ECONNREFUSED),
            (ErrorKind.CONNECT, "connection_refused"),
        ),
        (
            NO_CONNECTION,
            RESOLVED._replace(os_errno=errno.ENETUNREACH),
            (ErrorKind.CONNECT, "unreachable"),
        ),
        (NO_CONNECTION, RESOLVED, (ErrorKind.CONNECT, "connect_failed")),
        (
            RECEIVE,
            PLAIN._replace(os_errno=errno.ECONNRESET),
            (ErrorKind.RESET, "connection_reset"),
        ),
        (RECEIVE, SECURE, (ErrorKind.RESET, "connection_reset")),
        (RECEIVE, PLAIN, (ErrorKind.PROTOCOL, "bad_framing")),
        (NOT_VERIFIED, CONNECTED._replace(verify_result=20), (ErrorKind.TLS, "tls_unknown_issuer")),
        (NOT_VERIFIED, CONNECTED._replace(verify_result=99), (ErrorKind.TLS, "tls_not_trusted")),
        (WRITE, PLAIN, (ErrorKind.PROTOCOL, "bad_content_encoding")),
        (BAD_CA_FILE, CONNECTED, (LocalError.TRUST, "ca_file")),
        (12345, PLAIN, (ErrorKind.PROTOCOL, "curl_12345")),
    ],
)
def test_failure_has_a_kind_and_a_code(
    code: int, progress: TransferProgress, failure: tuple[ErrorKind | LocalError, str]
) -> None:
    """The kind follows from code, errno and progress alone; an unknown code is named by number."""
    assert explain(code, progress) == failure
