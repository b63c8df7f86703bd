"""Find the certificate authorities to trust: those of this machine, once at the start.

The curl inside pycurl's wheel was built on another distribution, so its compiled-in path is
often wrong here, and as a library it ignores SSL_CERT_FILE. Hence this search: the file that the
user set, then OpenSSL's two variables, then the places where systems keep the bundle. Windows
keeps its authorities in a store instead of a file, and curl reads that. The package carries no
bundle of its own: it would become outdated, and a machine's private authority would be missing.
"""

from __future__ import annotations

import os
import sys
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
    """A bundle file or a directory of hashed certificates; with neither, the system's store."""

    file: str | None
    directory: str | None


def find_trust(
    chosen: str | None = None,
    environ: Mapping[str, str] = os.environ,
    bundles: tuple[str, ...] = BUNDLES,
    *,
    has_store: bool = sys.platform == "win32",
) -> Trust:
    """Return the authorities to verify with.

    Raises:
        ValueError: the chosen file does not exist, or no authorities were found.
    """
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
    if has_store:
        return Trust(None, None)
    raise ValueError("no trusted certificates found: install ca-certificates or set SSL_CERT_FILE")
