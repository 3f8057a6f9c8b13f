"""Test certificates, made when they are needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Issued(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> tuple[bytes, bytes]:
        """Both in PEM."""
        return (
            self.certificate.public_bytes(Encoding.PEM),
            self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )

    def write(self, folder: Path, stem: str) -> tuple[str, str]:
        """Write certificate and key; return their paths."""
        paths = folder / f"{stem}.pem", folder / f"{stem}.key"
        for path, data in zip(paths, self.pem, strict=True):
            path.write_bytes(data)
            path.chmod(0o600)
        return str(paths[0]), str(paths[1])


@cache
def issued(name: str, by: str | None = None, *, days: int = 1, serial: int = 1) -> Issued:
    """Return a certificate for *name*, signed by that of *by*, or by itself: an authority.

    days: until it expires; negative for one that has expired.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else issued(by).certificate.subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .sign(key if by is None else issued(by).key, hashes.SHA256())
    )
    return Issued(certificate, key)


def write_certificate(folder: Path) -> tuple[str, str]:
    """Write certificate and key for localhost; return their paths."""
    return issued("localhost").write(folder, "server")
