"""One backend, seen from its client: the login, up to the moment when commands may be sent.

    GREETING ─ greeting ─► TLS ─ tls_started ─► AUTHENTICATING ─ OK ─► READY
    GREETING ─ greeting ──────────────────────► AUTHENTICATING
    any ────── refusal, bad bytes ────────────► CLOSED, by exception

From READY on the bytes of answers go to a reader of ``response_reader``, and not to this object. The capability flags of a backend
connection always include ``BACKEND_NEEDS``, whatever flags the clients have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BackendError, ProxyError, WireError
from streamfrom.proxy.wire.constants import (
    BACKEND_NEEDS,
    BACKEND_WISHES,
    ERR_HEADER,
    MARIADB_METADATA,
    OK_HEADER,
    UTF8MB4_CHARSET,
    Capability,
)
from streamfrom.proxy.wire.framing import Framer, frame
from streamfrom.proxy.wire.login.client_auth import ClientAuth
from streamfrom.proxy.wire.login.handshake import (
    LoginRequest,
    decode_greeting,
    encode_login,
    encode_tls_request,
)
from streamfrom.proxy.wire.resultset import parse_err


if TYPE_CHECKING:
    from streamfrom.proxy.wire.login.handshake import Greeting


# No server sends more before its first OK.
_LOGIN_BYTES_MAX: Final = 64 << 10
# The packet size that the proxy announces; servers use it only for checks of their own.
_PACKET_BYTES_MAX: Final = 1 << 30

# Error codes of the client library, for what the client itself finds.
_CR_SSL_CONNECTION_ERROR: Final = 2026
_CR_VERSION_ERROR: Final = 2007


class LoginPhase(Enum):
    """Where a connection stands."""

    GREETING = auto()
    TLS = auto()  # write ``data_to_send``, do the TLS handshake, then call ``tls_started``
    AUTHENTICATING = auto()
    READY = auto()  # the login is accepted: send commands
    CLOSED = auto()


# The phases in which the server's packets are read.
_READING: Final = (LoginPhase.GREETING, LoginPhase.AUTHENTICATING)


@dataclass(slots=True, eq=False, repr=False)
class ClientConnection:
    """The login at one backend."""

    _user: str
    _password: str
    _: KW_ONLY
    dice: bytes  # 32 random bytes
    database: str | None = None
    # The flags in which sessions differ; a server without a wanted EXTENDED_METADATA is refused.
    options: int = 0
    # The connection attributes, seen in performance_schema.
    attributes: Mapping[str, str] = field(default_factory=dict)
    wants_tls: bool = False  # use TLS if the server offers it
    requires_tls: bool = False  # refuse a server that does not offer TLS
    is_secure: bool = False  # no third party can listen: TLS, or a unix socket
    phase: LoginPhase = LoginPhase.GREETING
    capabilities: int = 0  # the flags in force, 0 before
    is_tls: bool = False
    _greeting: Greeting | None = None
    _auth: ClientAuth | None = None
    _framer: Framer = field(default_factory=lambda: Framer(_LOGIN_BYTES_MAX))
    _out: list[bytes] = field(default_factory=list)

    @property
    def greeting(self) -> Greeting:
        """The server's greeting. It must not be read before the greeting has come."""
        assert self._greeting is not None, "the server has not spoken yet"
        return self._greeting

    def data_to_send(self) -> bytes:
        """Return and remove the bytes to write."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive_data(self, data: bytes) -> LoginPhase:
        """Accept bytes in pieces of any size; return the phase that they lead to.

        Raises BackendError with the server's own error if it refuses, WireError if its bytes are malformed; the connection
        cannot be used then. It must not be called once READY.
        """
        assert self.phase in _READING, "nothing is expected"
        try:
            self._framer.feed(data)
            while (payload := self._framer.next_packet()) is not None:
                if self._packet(payload) not in _READING:
                    if self._framer.take_rest():
                        raise WireError("the server speaks out of turn")
                    break
        except ProxyError:
            self.phase = LoginPhase.CLOSED
            raise
        return self.phase

    def tls_started(self) -> None:
        """Go on after the TLS handshake: bytes from now on have come through TLS."""
        assert self.phase is LoginPhase.TLS
        self.is_tls = self.is_secure = True
        self._log_in()

    def _packet(self, payload: bytes) -> LoginPhase:
        """Take a packet; return the phase that it leads to."""
        if not payload:
            raise WireError("empty packet during the login at a backend")
        if payload[0] == ERR_HEADER:
            raise parse_err(payload).exception()
        if self.phase is LoginPhase.GREETING:
            self._greeted(payload)
        elif payload[0] == OK_HEADER:
            self.phase = LoginPhase.READY
        else:
            assert self._auth is not None
            answer = self._auth.receive(payload)
            if answer is not None:
                self._send(answer)
        return self.phase

    def _greeted(self, payload: bytes) -> None:
        greeting = self._greeting = decode_greeting(payload)
        missing = BACKEND_NEEDS & ~greeting.capabilities
        if missing:
            raise BackendError(
                _CR_VERSION_ERROR,
                "HY000",
                f"server {greeting.server_version} lacks {Capability.names(missing)}; "
                "MySQL 5.7.5 or MariaDB 10.2 is the oldest that serves",
            )
        if self.options & MARIADB_METADATA & ~greeting.capabilities:
            raise BackendError(
                _CR_VERSION_ERROR,
                "HY000",
                f"server {greeting.server_version} lacks the extended metadata that other servers"
                " have and this session's login has promised; log in again",
            )
        wishes = BACKEND_WISHES | self.options
        self.capabilities = wishes & greeting.capabilities
        if self.database is not None:
            self.capabilities |= Capability.CONNECT_WITH_DB
        if (
            not (self.wants_tls or self.requires_tls)
            or not greeting.capabilities & Capability.SSL
        ):
            if self.requires_tls:
                raise BackendError(
                    _CR_SSL_CONNECTION_ERROR,
                    "HY000",
                    "TLS is required but the server has none; configure it there, or set ssl_mode in the shard's address",
                )
            self._log_in()
            return
        self.capabilities |= Capability.SSL
        self._send(encode_tls_request(self._login("", b"")))
        self.phase = LoginPhase.TLS

    def _log_in(self) -> None:
        self.phase = LoginPhase.AUTHENTICATING
        self._auth = ClientAuth(
            self._password.encode(),
            is_secure=self.is_secure,
            is_tls=self.is_tls,
            dice=self.dice,
        )
        plugin, proof = self._auth.begin(self.greeting.plugin, self.greeting.nonce)
        self._send(encode_login(self._login(plugin, proof)))

    def _login(self, plugin: str, proof: bytes) -> LoginRequest:
        return LoginRequest(
            self._user,
            proof,
            self.database,
            self.capabilities,
            UTF8MB4_CHARSET,
            _PACKET_BYTES_MAX,
            plugin,
            self.attributes,
        )

    def _send(self, payload: bytes) -> None:
        self._out.append(frame(payload, self._framer.next_sequence))
        self._framer.next_sequence = self._framer.next_sequence + 1 & 0xFF
