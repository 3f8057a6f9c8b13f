"""The proxy as the client of one backend: the login, until commands may be sent.

    GREETING ─ greeting ─► TLS ─ tls_started ─► AUTHENTICATING ─ OK ─► READY
    GREETING ─ greeting ──────────────────────► AUTHENTICATING
    any ────── refusal, bad bytes ────────────► CLOSED, by exception

From READY on the bytes of answers go to a reader of ``response_reader``, and not to this object. The capability flags of a backend
connection always include ``BACKEND_NEEDS``, whatever flags the clients have.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
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

# Error codes of the client library, for errors that the client itself finds.
_CR_SSL_CONNECTION_ERROR: Final = 2026
_CR_VERSION_ERROR: Final = 2007


class LoginPhase(Enum):
    """The state of a connection."""

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
    phase: LoginPhase = field(init=False)
    capabilities: int = 0  # the flags in force, 0 before
    greeting: Greeting = field(init=False)  # the server's, once it has come
    _steps: Generator[LoginPhase, bytes, None] = field(init=False)
    _framer: Framer = field(default_factory=lambda: Framer(_LOGIN_BYTES_MAX))
    _out: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._steps = self._conversation()
        self.phase = next(self._steps)

    def data_to_send(self) -> bytes:
        """Return and remove the bytes to write."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive_data(self, data: bytes) -> LoginPhase:
        """Accept bytes in pieces of any size; return the resulting phase.

        Raises BackendError with the server's own error if it refuses, WireError if its bytes are malformed; the connection
        cannot be used then. It must not be called once READY.
        """
        assert self.phase in _READING, "nothing is expected"
        try:
            self._framer.feed(data)
            while (payload := self._framer.next_packet()) is not None:
                if not payload:
                    raise WireError("empty packet during the login at a backend")
                if payload[0] == ERR_HEADER:
                    raise parse_err(payload).exception()
                self.phase = self._steps.send(payload)
                if self.phase not in _READING:
                    if self._framer.take_rest():
                        raise WireError("the server speaks out of turn")
                    break
        except ProxyError:
            self.phase = LoginPhase.CLOSED
            raise
        return self.phase

    def tls_started(self) -> None:
        """Continue after the TLS handshake: bytes from now on have come through TLS."""
        assert self.phase is LoginPhase.TLS
        self.phase = next(self._steps)

    def _conversation(self) -> Generator[LoginPhase, bytes, None]:
        """Yield each phase, and take the packet that ends it."""
        greeting = self.greeting = decode_greeting((yield LoginPhase.GREETING))
        self._check(greeting)
        self.capabilities = (BACKEND_WISHES | self.options) & greeting.capabilities
        if self.database is not None:
            self.capabilities |= Capability.CONNECT_WITH_DB
        offers_tls = bool(greeting.capabilities & Capability.SSL)
        is_tls = offers_tls and (self.wants_tls or self.requires_tls)
        if is_tls:
            self.capabilities |= Capability.SSL
            self._send(encode_tls_request(self._login("", b"")))
            yield LoginPhase.TLS
        auth = ClientAuth(
            self._password.encode(),
            is_secure=self.is_secure or is_tls,
            is_tls=is_tls,
            dice=self.dice,
        )
        self._send(encode_login(self._login(*auth.begin(greeting.plugin, greeting.nonce))))
        while (payload := (yield LoginPhase.AUTHENTICATING))[0] != OK_HEADER:
            if (answer := auth.receive(payload)) is not None:
                self._send(answer)
        yield LoginPhase.READY

    def _check(self, greeting: Greeting) -> None:
        """Raise BackendError if the server lacks a required capability."""
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
        if self.requires_tls and not greeting.capabilities & Capability.SSL:
            raise BackendError(
                _CR_SSL_CONNECTION_ERROR,
                "HY000",
                "TLS is required but the server has none; configure it there, or set ssl_mode in the shard's address",
            )

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
