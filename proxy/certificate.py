"""What is wrong with a certificate and its key, in sentences. Pure: bytes and a clock's reading in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)


if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

# Let's Encrypt's clients renew 30 days before the end: with 14 days left, renewals have been failing for a while.
SOON: Final = timedelta(days=14)


def read_certificate(pem: bytes) -> x509.Certificate | str:
    """Return the first certificate of *pem*, which is the server's own, or what is wrong."""
    try:
        return x509.load_pem_x509_certificates(pem)[0]
    except ValueError:
        return "holds no certificate in PEM"


def fault_of_key(pem: bytes, certificate: x509.Certificate) -> str | None:
    """Return why *pem* cannot be the key of *certificate*; None if it is."""
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        return "is encrypted; write it without a passphrase"
    except (ValueError, UnsupportedAlgorithm):
        return "holds no private key in PEM"
    if _spelled(key.public_key()) != _spelled(certificate.public_key()):
        return "is not the key of the certificate"
    return None


def _spelled(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def fault_of_time(certificate: x509.Certificate, now: datetime) -> str | None:
    """Return why *certificate* is not valid at *now*; None if it is."""
    if now > certificate.not_valid_after_utc:
        return f"has expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if now < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    return None


def expires_soon(certificate: x509.Certificate, now: datetime) -> str | None:
    """Return when *certificate* expires, if that is within SOON of *now*."""
    left = certificate.not_valid_after_utc - now
    if left > SOON:
        return None
    return f"expires on {certificate.not_valid_after_utc:%Y-%m-%d}, in {left.days} days"
