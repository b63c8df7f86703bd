"""Translate curl's error codes: into a kind that decides, and a finer code for people.

By code, errno and how far the transfer got; never by curl's text, which changes with versions.
The kinds follow from whether retrying or slowing down would help: a name that does not resolve is
DNS however it failed, a connection that cannot be made is CONNECT even if by timeout, and TIMEOUT
is left for a server that accepted the connection and then was too slow.
"""

from __future__ import annotations

import errno
from typing import NamedTuple

from mannerly.crawler.model import FetchError, LocalError
from mannerly.politeness.model import ErrorKind

# libcurl's numbers (curl.h). pycurl names most, but not 92 and 100.
UNSUPPORTED, FAILED_INIT, MALFORMED_URL = 1, 2, 3
NO_PROXY_NAME, NO_NAME, NO_CONNECTION, WEIRD_REPLY = 5, 6, 7, 8
HTTP2, PARTIAL, WRITE, NO_MEMORY, TIMED_OUT, TLS_CONNECT = 16, 18, 23, 27, 28, 35
EMPTY_REPLY, SEND, RECEIVE, NOT_VERIFIED, BAD_ENCODING = 52, 55, 56, 60, 61
BAD_CA_FILE, HTTP2_STREAM, PROXY, TOO_LARGE = 77, 92, 97, 100

FetchFailure = tuple[FetchError, str]

_BY_CODE: dict[int, FetchFailure] = {
    UNSUPPORTED: (ErrorKind.PROTOCOL, "not_http"),
    MALFORMED_URL: (LocalError.BAD_URL, "bad_url"),
    NO_PROXY_NAME: (ErrorKind.CONNECT, "proxy_name"),
    NO_NAME: (ErrorKind.DNS, "name_not_resolved"),
    WEIRD_REPLY: (ErrorKind.PROTOCOL, "bad_header"),
    HTTP2: (ErrorKind.PROTOCOL, "http2"),
    PARTIAL: (ErrorKind.RESET, "body_incomplete"),
    WRITE: (ErrorKind.PROTOCOL, "bad_content_encoding"),  # a cut at the cap is handled before
    EMPTY_REPLY: (ErrorKind.RESET, "empty_reply"),
    SEND: (ErrorKind.RESET, "connection_reset"),
    NO_MEMORY: (LocalError.NO_MEMORY, "no_memory"),
    BAD_ENCODING: (ErrorKind.PROTOCOL, "bad_content_encoding"),
    BAD_CA_FILE: (LocalError.TRUST, "ca_file"),
    HTTP2_STREAM: (ErrorKind.PROTOCOL, "http2_stream"),
    PROXY: (ErrorKind.CONNECT, "proxy"),
    TOO_LARGE: (ErrorKind.TOO_LARGE, "header_too_large"),
}

# All codes that are about TLS alone.
_TLS_CODES = frozenset({TLS_CONNECT, 51, 53, 54, 58, 59, NOT_VERIFIED, 64, 66, 80, 82, 83, 90, 91})

# OpenSSL's verification results (x509_vfy.h). curl itself compares names, before it asks OpenSSL
# for a result: 1 is the initial value.
_CERTIFICATE = {
    1: "tls_wrong_host",
    9: "tls_not_yet_valid",
    10: "tls_expired",
    18: "tls_self_signed",
    19: "tls_self_signed",
    20: "tls_unknown_issuer",
    21: "tls_unknown_issuer",
    23: "tls_revoked",
    62: "tls_wrong_host",
    64: "tls_wrong_host",
}

_CONNECT = {
    errno.ECONNREFUSED: "connection_refused",
    errno.ECONNRESET: "connection_reset",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ETIMEDOUT: "connect_timeout",
}

# Windows has a number of its own for sockets.
OUT_OF_DESCRIPTORS = frozenset(
    {errno.EMFILE, errno.ENFILE, getattr(errno, "WSAEMFILE", errno.EMFILE)}
)


class TransferProgress(NamedTuple):
    """The progress of a failed transfer: it tells one timeout, or one reset, from another."""

    is_https: bool
    has_name: bool
    has_connection: bool
    has_tls: bool
    has_bytes: bool
    is_out_of_time: bool
    os_errno: int
    verify_result: int


def explain(code: int, progress: TransferProgress) -> FetchFailure:
    """Return the kind of a failure and its finer code."""
    if code == TIMED_OUT:
        return _timeout(progress)
    if code in _TLS_CODES:
        return ErrorKind.TLS, _tls_detail(code, progress)
    if code == NO_CONNECTION:
        return ErrorKind.CONNECT, _CONNECT.get(progress.os_errno, "connect_failed")
    if code == RECEIVE:
        # With an errno the connection broke; without one, over plain text, curl could not make
        # sense of the bytes. Over TLS a broken connection often leaves no errno either.
        if progress.os_errno or progress.is_https:
            return ErrorKind.RESET, "connection_reset"
        return ErrorKind.PROTOCOL, "bad_framing"
    return _BY_CODE.get(code) or (ErrorKind.PROTOCOL, f"curl_{code}")


def _timeout(progress: TransferProgress) -> FetchFailure:
    if not progress.has_name:
        return ErrorKind.DNS, "dns_timeout"
    if not progress.has_connection:
        return ErrorKind.CONNECT, "connect_timeout"
    if progress.is_https and not progress.has_tls:
        return ErrorKind.TLS, "tls_timeout"
    if not progress.is_out_of_time:
        return ErrorKind.TIMEOUT, "too_slow"
    return ErrorKind.TIMEOUT, "body_timeout" if progress.has_bytes else "first_byte_timeout"


def _tls_detail(code: int, progress: TransferProgress) -> str:
    if code != NOT_VERIFIED:
        return "tls_handshake"
    return _CERTIFICATE.get(progress.verify_result, "tls_not_trusted")
