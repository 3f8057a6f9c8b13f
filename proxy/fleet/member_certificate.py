"""The key that a process makes at its start, and the certificate by which the other members know it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


# Longer than any process lives. Who is trusted is in the directory, and no clock's matter.
VALID: Final = timedelta(days=3650)
# The clocks of two machines may differ.
CLOCKS_DIFFER: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class MemberCertificate:
    """Both as PEM. str() is safe to log: it has no key."""

    key: bytes
    certificate: bytes

    def __str__(self) -> str:
        return self.certificate.decode()

    __repr__ = __str__


def make_certificate(member: str) -> MemberCertificate:
    """Return a new key, and its certificate for the name *member*, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, member)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(member)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return MemberCertificate(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        certificate.public_bytes(Encoding.PEM),
    )
