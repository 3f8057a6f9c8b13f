"""TLS towards clients: the certificate, its key, and the authority that signs those of clients."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.hashes import SHA256

from streamfrom.proxy.certificate import fault_of_key, read_certificate
from streamfrom.proxy.config.toml_values import ConfigError, read_bytes


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import TlsSettings


class ServerTls:
    """What the files of `[server.tls]` hold, read once.

    Attributes:
        context: speaks TLS to clients. With `client_ca` a client's certificate that this authority did not
            sign, or that is not valid now, ends the handshake; whether there is one must be asked.
        wants_certificate: a client must have one.
        requires_tls: a client must speak TLS.
        fingerprint: another one if any of the files holds something else.
        contents: what the files hold, by their keys.
        certificate_sha256: of the certificate in DER, which MariaDB's clients since 11.4 ask for.
        certificate_ends: when the certificate is no longer valid.

    Raises:
        ConfigError: a file cannot be used; it names the key of the configuration and the path.
    """

    def __init__(self, tls: TlsSettings) -> None:
        self._settings = tls
        self.requires_tls = tls.require
        self.wants_certificate = tls.client_ca is not None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Each file is read once here, as what is checked and what the fingerprint is of.
        self.contents = {
            key: read_bytes(Path(path), f"server.tls.{key}")
            for key, path in (
                ("cert", tls.cert),
                ("key", tls.key),
                ("client_ca", tls.client_ca),
            )
            if path is not None
        }
        self.fingerprint = hashlib.sha256(b"\0".join(self.contents.values())).digest()
        certificate = read_certificate(self.contents["cert"])
        if isinstance(certificate, str):
            raise ConfigError("server.tls.cert", f"{tls.cert} {certificate}")
        fault = fault_of_key(self.contents["key"], certificate)
        if fault is not None:
            raise ConfigError("server.tls.key", f"{tls.key} {fault}")
        self.certificate_sha256 = certificate.fingerprint(SHA256())
        self.certificate_ends = certificate.not_valid_after_utc
        try:
            self.context.load_cert_chain(tls.cert, tls.key)
        except (ssl.SSLError, OSError) as error:
            # The pair fits, and yet OpenSSL refuses it: a key that is too short, a broken chain.
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
            # Optional, as TLS 1.3 could not inform a client without one why it was refused: that
            # is said by an error in answer to its login.
            self.context.verify_mode = ssl.CERT_OPTIONAL

    def for_listener(self, now: Callable[[], ServerTls | None]) -> ssl.SSLContext:
        """Return a context for a listener whose context cannot be replaced.

        now: returns what is in force when a client comes, whose certificate is shown.
        """
        listening = ServerTls(self._settings).context

        def renew(client: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            in_force = now()
            if in_force is not None:
                client.context = in_force.context

        # Called for each client, also for one that names no host.
        listening.sni_callback = renew
        return listening
