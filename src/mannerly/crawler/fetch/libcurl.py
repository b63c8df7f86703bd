"""Import curl, and keep it from writing the secrets of its TLS sessions to a file.

curl and OpenSSL read the variable SSLKEYLOGFILE when a TLS session begins. Another program that
sets it and reads the file could decrypt what the crawler sends, so it is removed from the
environment of every process that crawls.
"""

from __future__ import annotations

import os

import pycurl  # type: ignore[import-untyped]

os.environ.pop("SSLKEYLOGFILE", None)

__all__ = ["abilities", "curl_version", "pycurl"]

_FEATURES_AT, _TLS_AT = 4, 5  # in the tuple of `pycurl.version_info`


def curl_version() -> str:
    """Return the versions of curl and of its TLS library."""
    found = pycurl.version_info()
    return f"{found[1]} with {found[_TLS_AT]}"


def abilities() -> dict[str, bool]:
    """Return what this curl was built with, of what not every one is."""
    features = pycurl.version_info()[_FEATURES_AT]
    bits = {"HTTP/2": pycurl.VERSION_HTTP2, "HTTP/3": pycurl.VERSION_HTTP3}
    return {name: bool(features & bit) for name, bit in bits.items()}
