"""Import curl, and keep it from writing the secrets of its TLS sessions to a file.

curl and OpenSSL read the variable SSLKEYLOGFILE when a TLS session begins. Another program that
sets it and reads the file could decrypt what the crawler sends, so it is removed from the
environment of every process that crawls.
"""

from __future__ import annotations

import os

import pycurl  # type: ignore[import-untyped]

os.environ.pop("SSLKEYLOGFILE", None)

__all__ = ["pycurl"]
