"""TLS towards clients: the certificate, its key, and the authority that signs those of clients."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.config.toml_values import ConfigError, reason


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import TlsSettings


_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


class ServerTls:
    """What the files of `[server.tls]` hold, read once.

    Attributes:
        context: speaks TLS to clients. With `client_ca` a client's certificate that this authority did not
            sign, or that is not valid now, ends the handshake; whether there is one must be asked.
        wants_certificate: a client must have one.
        requires_tls: a client must speak TLS.
        fingerprint: another one if any of the files holds something else.
        certificate_sha256: of the certificate in DER, which MariaDB's clients since 11.4 ask for.

    Raises:
        ConfigError: a file cannot be used; it names the key of the configuration and the path.
    """

    __slots__ = (
        "certificate_sha256",
        "context",
        "fingerprint",
        "requires_tls",
        "wants_certificate",
    )

    def __init__(self, tls: TlsSettings) -> None:
        self.requires_tls = tls.require
        self.wants_certificate = tls.client_ca is not None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.certificate_sha256 = hashlib.sha256(_first_certificate(tls.cert)).digest()
        try:
            # An encrypted key would have the terminal asked for its password.
            self.context.load_cert_chain(tls.cert, tls.key, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
                problem = f"{tls.key} is not the key of the certificate {tls.cert}"
            else:
                problem = f"expected a private key without a password in PEM, not {tls.key}"
            raise ConfigError("server.tls.key", problem) from None
        if tls.client_ca is not None:
            try:
                self.context.load_verify_locations(tls.client_ca)
            except (ssl.SSLError, OSError) as error:
                raise ConfigError(
                    "server.tls.client_ca",
                    f"expected certificates of authorities in PEM, not {tls.client_ca}",
                ) from error
            # Optional, as TLS 1.3 could not tell a client without one why it was refused: that
            # is said by an error in answer to its login.
            self.context.verify_mode = ssl.CERT_OPTIONAL
        paths = (tls.cert, tls.key, *([tls.client_ca] if tls.client_ca else []))
        self.fingerprint = hashlib.sha256(b"\0".join(map(_bytes_of, paths))).digest()


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError("server.tls", f"cannot read {path}: {reason(error)}") from error


def _first_certificate(path: str) -> bytes:
    try:
        pem = Path(path).read_text(encoding="ascii", errors="replace")
        return ssl.PEM_cert_to_DER_cert(pem[pem.index(_BEGIN) : pem.index(_END) + len(_END)])
    except (ValueError, OSError):
        raise ConfigError(
            "server.tls.cert", f"expected a certificate in PEM, not {path}"
        ) from None
