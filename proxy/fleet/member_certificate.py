"""The key that a process makes at its start, its certificate, and which certificates of others gRPC accepts."""

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


# From an answer to what gRPC makes of it, or from a handshake's beginning to its own copy, take microseconds.
SETTLE_S: Final = 0.05


class TrustedCertificates:
    """Answers gRPC only when something has changed, and while no other handshake begins.

    gRPC asks in a thread of its own for each handshake, and frees what it had at once, without a lock: another thread that begins a
    handshake in that moment crashes the process (seen on grpcio 1.71 to 1.85, within 15 s of four clients that came and went).

    read: what to trust by now, in PEM. It is called in threads.
    answered: what gRPC got last; at first what *read* returns at once.
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
        """Return what to trust from now on; None for what was answered last.

        Handshakes whose answer is a new one, and those right after it, take SETTLE_S longer.
        """
        with self._lock:
            self._sleep(max(0.0, self._settled_s - self._now_s()))
            trusted = self._read()
            if trusted == self.answered:
                return None
            # Handshakes that have had their answer, and not yet their copy of what is replaced now.
            self._sleep(SETTLE_S)
            self.answered = trusted
            self._settled_s = self._now_s() + SETTLE_S
            return trusted
