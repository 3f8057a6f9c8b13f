"""The key that a process makes at its start, its certificate, and the certificates of other members that gRPC accepts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


# Always: who is trusted is in the directory, and no clock's matter.
VALID: Final = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


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
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID[0])
        .not_valid_after(VALID[1])
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


# The time from an answer to gRPC's use of it, or from a handshake's beginning to its own copy, is microseconds.
SETTLE_S: Final = 0.05


class TrustedCertificates:
    """Answers gRPC only when something has changed, and while no other handshake begins.

    gRPC calls it in its own thread for each handshake, and frees the former answer at once, without a lock: another thread that begins a
    handshake in that moment crashes the process (seen on grpcio 1.71 to 1.85, within 15 s of four clients that came and went).

    read: returns the certificates to trust now, in PEM. It is called in threads.
    answered: gRPC's last answer; at first the result of *read*.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read = read
        self._now_s = now_s
        self._sleep = sleep
        self.answered = read()
        self._settled_s = 0.0
        self._lock = threading.Lock()

    def changed(self) -> bytes | None:
        """Return the certificates to trust from now on; None if they are those of the last answer.

        Handshakes with a new answer, and those right after it, take SETTLE_S longer.
        """
        with self._lock:
            self._sleep(max(0.0, self._settled_s - self._now_s()))
            trusted = self._read()
            if trusted == self.answered:
                return None
            # Wait for handshakes that have their answer, but not yet their copy of the replaced certificates.
            self._sleep(SETTLE_S)
            self.answered = trusted
            self._settled_s = self._now_s() + SETTLE_S
            return trusted
