"""Make certificates for the addresses of a web, signed by a temporary authority.

Crawlers verify as usual: they are pointed to the authority by SSL_CERT_FILE. Each host has a
certificate of its own, as on the web, because parsing one with hundreds of names would take half of
the time of a handshake. A server with one socket for all addresses cannot choose a certificate by
address, as there is no server name indication for addresses; it gets one certificate for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from trustme import CA

    from .spec import WebSpec


class Certificate(NamedTuple):
    """Files in PEM."""

    chain: Path
    key: Path


class Authority:
    """Signs certificates, and keeps them in a directory."""

    def __init__(self, directory: Path) -> None:
        import trustme

        self._directory = directory
        self._authority: CA = trustme.CA()
        self.file = directory / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def of_all(self, spec: WebSpec) -> Certificate:
        return self._issue("all", *(spec.address(host) for host in range(spec.hosts)))

    def of_each(self, spec: WebSpec) -> dict[str, Certificate]:
        """By address."""
        addresses = [spec.address(host) for host in range(spec.hosts)]
        return {address: self._issue(address, address) for address in addresses}

    def _issue(self, stem: str, *addresses: str) -> Certificate:
        leaf = self._authority.issue_cert(*addresses)
        made = Certificate(self._directory / f"{stem}.chain.pem", self._directory / f"{stem}.key")
        made.chain.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        leaf.private_key_pem.write_to_path(str(made.key))
        return made
