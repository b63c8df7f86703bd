"""A certificate for all addresses of a web, signed by an authority that is made for the occasion.

Crawlers verify as usual: they are pointed to the authority by SSL_CERT_FILE. Addresses have no
server name indication, so one certificate carries them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from .spec import WebSpec


class Certificate(NamedTuple):
    """Files in PEM."""

    authority: Path
    chain: Path
    key: Path


def make_certificate(spec: WebSpec, directory: Path) -> Certificate:
    """Write the three files into `directory`."""
    import trustme

    authority = trustme.CA()
    leaf = authority.issue_cert(*(spec.address(host) for host in range(spec.hosts)))
    made = Certificate(*(directory / name for name in ("authority.pem", "chain.pem", "key.pem")))
    authority.cert_pem.write_to_path(str(made.authority))
    made.chain.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    leaf.private_key_pem.write_to_path(str(made.key))
    return made
