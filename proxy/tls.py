"""TLS towards clients: the certificate, its key and their faults, the clients' authority; and passwords without TLS."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from streamfrom.proxy.config.toml_values import ConfigError, read_bytes


if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

    from streamfrom.proxy.config.file import TlsSettings


log = structlog.get_logger()


class ServerTls:
    """The files of `[server.tls]`, read once. Raises ConfigError, with the key and the path, if a file cannot be used."""

    def __init__(self, tls: TlsSettings) -> None:
        self._settings = tls
        self.requires_tls = tls.require  # a client must speak TLS
        self.wants_certificate = tls.client_ca is not None  # a client must present one
        # Speaks TLS to clients. With `client_ca`, the handshake fails if a client's certificate is not signed by this authority
        # or not valid now; whether there is one must be checked separately.
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # The files' contents, by key.
        # Each file is read only once, so that the fingerprint is of the contents that were checked.
        self.contents = {
            key: read_bytes(Path(path), f"server.tls.{key}")
            for key, path in (
                ("cert", tls.cert),
                ("key", tls.key),
                ("client_ca", tls.client_ca),
            )
            if path is not None
        }
        # Changes when the contents of any file change.
        self.fingerprint = hashlib.sha256(b"\0".join(self.contents.values())).digest()
        certificate = read_certificate(self.contents["cert"])
        if isinstance(certificate, str):
            raise ConfigError("server.tls.cert", f"{tls.cert} {certificate}")
        fault = fault_of_key(self.contents["key"], certificate)
        if fault is not None:
            raise ConfigError("server.tls.key", f"{tls.key} {fault}")
        self.certificate = certificate
        # Of the certificate in DER; MariaDB's clients request it since 11.4.
        self.certificate_sha256 = certificate.fingerprint(SHA256())
        try:
            self.context.load_cert_chain(tls.cert, tls.key)
        except (ssl.SSLError, OSError) as error:
            # The pair fits, yet OpenSSL refuses it: a key that is too short, a broken chain.
            raise ConfigError(
                "server.tls.cert", f"{tls.cert} cannot be used: {error}"
            ) from error
        if tls.client_ca is not None:
            try:
                self.context.load_verify_locations(tls.client_ca)
            except (ssl.SSLError, OSError) as error:
                raise ConfigError(
                    "server.tls.client_ca",
                    f"expected certificates of authorities in PEM, not {tls.client_ca}",
                ) from error
            # Optional, because in TLS 1.3 a client without a certificate would not learn why it was refused; an
            # error in reply to its login explains it.
            self.context.verify_mode = ssl.CERT_OPTIONAL

    def warn(self) -> None:
        """Log why clients refuse the certificate at this moment, if they do."""
        fault = fault_of_time(self.certificate, datetime.now(UTC))
        if fault is not None:
            log.warning(
                "clients refuse the certificate", cert=self._settings.cert, reason=fault
            )

    def for_listener(self, now: Callable[[], ServerTls | None]) -> ssl.SSLContext:
        """Return a context for a listener whose context cannot be replaced.

        now: returns the TLS in force when a client connects; its certificate is presented.
        """
        listening = ServerTls(self._settings).context

        def renew(client: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            in_force = now()
            if in_force is not None:
                client.context = in_force.context

        # Called for each client, also if it names no host.
        listening.sni_callback = renew
        return listening


# Let's Encrypt's clients renew 30 days before expiry: with 14 days left, renewals have been failing for a while.
SOON: Final = timedelta(days=14)


def read_certificate(pem: bytes) -> x509.Certificate | str:
    """Return the first certificate of *pem*, which is the server's own, or the fault."""
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


KEY_BITS = 2048
_OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), label=None)  # noqa: S303 - the protocol's


class ServerKey:
    """A key pair that is made on first use and kept as long as the process lives."""

    def make(self) -> None:
        """Make the pair unless there is one; this takes some 80 ms."""
        self._key  # noqa: B018 - the property caches its value

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)

    def public_pem(self) -> bytes:
        """Return the public half as PEM, the form in which clients request it."""
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def decrypt(self, data: bytes) -> bytes:
        """Return the decrypted bytes. Raises ValueError."""
        return self._key.decrypt(data, _OAEP)
