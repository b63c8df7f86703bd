"""Whom to trust: the machine's own certificate authorities, found once.

The curl inside pycurl's wheel was built on another distribution, so its compiled-in path is
often wrong here, and as a library it ignores SSL_CERT_FILE. Hence this search: what the user
set, then OpenSSL's two variables, then where distributions keep the bundle. No copy of our own:
a bundle in a package grows stale, and a machine's private authority would be missing from it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, BSD, minimal images
)


class Trust(NamedTuple):
    """A bundle, or a directory of hashed certificates; curl takes both."""

    file: str | None
    directory: str | None


def find_trust(
    chosen: str | None = None,
    environ: Mapping[str, str] = os.environ,
    bundles: tuple[str, ...] = BUNDLES,
) -> Trust:
    """The authorities to verify with. Raises ValueError if what was asked for is not there."""
    asked = chosen or environ.get("SSL_CERT_FILE")
    if asked:
        if not Path(asked).is_file():
            raise ValueError(f"no file of trusted certificates at {asked!r}")
        return Trust(asked, None)
    directory = environ.get("SSL_CERT_DIR")
    if directory:
        return Trust(None, directory)
    for bundle in bundles:
        if Path(bundle).is_file():
            return Trust(bundle, None)
    raise ValueError("no trusted certificates found: install ca-certificates or set SSL_CERT_FILE")
