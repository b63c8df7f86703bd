"""Certificates for tests, each its own authority."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

FAR_OFF = datetime(2049, 1, 1, tzinfo=UTC)


class Certificate(NamedTuple):
    """Self-signed: it is its own authority."""

    file: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


class Authority:
    """Makes certificates, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def certificate(self, *names: x509.GeneralName, until: datetime = FAR_OFF) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        signed = (
            x509.CertificateBuilder(subject, subject, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(until)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem, stem = serialization.Encoding.PEM, f"{signed.serial_number:x}"
        made = Certificate(self._directory / f"{stem}.pem", self._directory / f"{stem}.key")
        made.file.write_bytes(signed.public_bytes(pem))
        plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        made.key.write_bytes(key.private_bytes(pem, *plain))
        return made
