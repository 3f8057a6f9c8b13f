"""The proxy as the server of one client: bytes in, events out, and the bytes of the login back.

The shell writes ``data_to_send``, feeds ``receive_data`` and acts on the events; it writes answers to
commands itself. The phases and every allowed move between them are the table ``_NEXT``:

    GREETED ─ request for TLS ──► TLS ─ tls_started ─► GREETED
    GREETED ─ login ────────────► AUTHENTICATING ─ right ─► DECIDING ─ accept ─► COMMAND
    AUTHENTICATING ─ a proof ─► JUDGING ─ judge ─► AUTHENTICATING
    COMMAND ─ COM_CHANGE_USER ──► AUTHENTICATING
    COMMAND ─ expect_infile ────► INFILE ─ empty packet ─► COMMAND
    any ───── refuse, bad bytes, wrong password ─────────► CLOSED

CLOSED is final: not one byte that arrives then is looked at. Commands are read in COMMAND only,
and the one way there leads through an ``Authenticated``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.errors import (
    CertificateRequired,
    InsecureTransport,
    ProxyError,
    WireError,
)
from streamfrom.proxy.memory import Memory
from streamfrom.proxy.wire.compression import Compression, packer_for
from streamfrom.proxy.wire.constants import HEADER_BYTES, Capability, Command, Status
from streamfrom.proxy.wire.framing import Framer, frame
from streamfrom.proxy.wire.login.auth import Authenticated, Deferred, ServerAuth
from streamfrom.proxy.wire.login.handshake import (
    decode_change_user,
    decode_login,
    is_tls_request,
)
from streamfrom.proxy.wire.resultset import error_packet, ok_packet


if TYPE_CHECKING:
    from streamfrom.proxy.wire.login.auth import Authenticator, Step
    from streamfrom.proxy.wire.login.handshake import Greeting, LoginRequest
    from streamfrom.sqlparse_ext.errors import StreamfromError


_CHANGE_USER: Final = int(Command.CHANGE_USER)


@dataclass(frozen=True, slots=True)
class TlsRequested:
    """The client asks for TLS. *leftover* is the bytes after the request, which belong to the TLS layer."""

    leftover: bytes


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """A login was read; its outcome is open. *is_change*: by COM_CHANGE_USER."""

    request: LoginRequest
    is_change: bool


class CommandReceived(NamedTuple):
    """A command. The answer's first packet carries *sequence*, and *piece* in a compressed stream.

    A tuple because one is made for every statement: a third of the cost of a frozen dataclass.
    """

    payload: bytes
    sequence: int
    piece: int = 1


@dataclass(frozen=True, slots=True)
class InfileData:
    """A piece of the file of LOAD DATA LOCAL; an empty one ends it."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection has ended. ``data_to_send`` has the last packet for the client."""

    error: StreamfromError


Event = (
    TlsRequested
    | LoginAttempt
    | Deferred
    | Authenticated
    | CommandReceived
    | InfileData
    | Closed
)


class ConnectionPhase(Enum):
    """The state of a connection."""

    GREETED = auto()
    TLS = auto()
    AUTHENTICATING = auto()
    JUDGING = auto()
    DECIDING = auto()
    COMMAND = auto()
    INFILE = auto()
    CLOSED = auto()


_NEXT: Final[dict[ConnectionPhase, tuple[ConnectionPhase, ...]]] = {
    ConnectionPhase.GREETED: (ConnectionPhase.TLS, ConnectionPhase.AUTHENTICATING),
    ConnectionPhase.TLS: (ConnectionPhase.GREETED,),
    ConnectionPhase.AUTHENTICATING: (ConnectionPhase.JUDGING, ConnectionPhase.DECIDING),
    ConnectionPhase.JUDGING: (ConnectionPhase.AUTHENTICATING,),
    ConnectionPhase.DECIDING: (ConnectionPhase.COMMAND,),
    ConnectionPhase.COMMAND: (ConnectionPhase.AUTHENTICATING, ConnectionPhase.INFILE),
    ConnectionPhase.INFILE: (ConnectionPhase.COMMAND,),
}
"""The phases that may follow each phase. CLOSED may follow all of them, and none follows it."""


@dataclass(eq=False, repr=False)
class ServerConnection:
    """The protocol of one client connection."""

    _greeting: Greeting
    _authenticator: Authenticator
    _: KW_ONLY
    host: str  # the client's host, which a refusal names
    packet_bytes_max: int = 64 << 20  # the largest command
    memory: Memory = field(default_factory=Memory)  # the budget that counts incomplete packets
    is_secure: bool = False  # no third party can listen: TLS, or a unix socket
    requires_tls: bool = False  # refuse logins in the clear
    # Returns whether a client with TLS lacks a required certificate.
    lacks_certificate: Callable[[], bool] = lambda: False
    phase: ConnectionPhase = ConnectionPhase.GREETED
    capabilities: int = 0  # the flags in force, 0 before a login was read
    login: LoginRequest | None = None  # the last login read
    is_tls: bool = False
    # Whole packets, or packed bytes, wait; call ``receive_data(b"")`` for them after other sessions have run.
    holds_back: bool = False
    # Packs and unpacks all bytes after the first login, None if the client does not compress. `receive_data` unpacks; the
    # shell packs its own output.
    compression: Compression | None = None
    _held_bytes: int = 0
    _auth: ServerAuth | None = None
    _login_info: bytes = b""
    _framer: Framer = field(default_factory=lambda: Framer(_LOGIN_BYTES_MAX, next_sequence=1))

    def __post_init__(self) -> None:
        self._nonce = self._greeting.nonce
        self._out = [frame(self._greeting.encode(), 0)]

    @property
    def is_mariadb(self) -> bool:
        """True when the greeting makes the client expect MariaDB."""
        return "MariaDB" in self._greeting.server_version

    def data_to_send(self) -> bytes:
        """Remove and return the bytes to write."""
        if not self._out:
            return b""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive_data(self, data: bytes) -> list[Event]:
        """Accept bytes in pieces of any size; return the events they complete, in order.

        Never raises for the client's bytes: the last event is then ``Closed``. Call it with
        ``b""`` after ``accept`` to get commands that came together with the login.
        """
        if self.phase is ConnectionPhase.CLOSED:
            return []
        events: list[Event] = []
        try:
            if self.compression is not None:
                self._unpack(self.compression, data, events)
            elif self.phase is ConnectionPhase.COMMAND:
                # The usual read brings one whole packet, which needs no list of packets, and no
                # loop.
                payload = self._framer.feed_next(data)
                if payload is not None:
                    self._command(payload, events)
                if self._held_bytes or not self._framer.is_empty:
                    self._packets(events)
            else:
                self._framer.feed(data)
                self._packets(events)
        except ProxyError as error:
            self._fail(error, events)
        return events

    def judge(self) -> Generator[None, None, list[Event]]:
        """Judge the proof of a ``Deferred``, in pieces; return the next events, as `receive_data`.

        Call ``receive(b"")`` then, to get packets that came after the proof.
        """
        assert self._auth is not None
        events: list[Event] = []
        try:
            step = yield from self._auth.judge()
            if self.phase is ConnectionPhase.JUDGING:
                self._move(ConnectionPhase.AUTHENTICATING)
                self._act(step, events)
        except ProxyError as error:
            self._fail(error, events)
        return events

    def _fail(self, error: ProxyError, events: list[Event]) -> None:
        if self.compression is not None:
            self.compression.sequence = self.compression.next_sequence
        self.refuse(error)
        events.append(Closed(error))

    def _packets(self, events: list[Event]) -> None:
        """Take complete packets, some at a time, and count the rest."""
        framer = self._framer
        for _ in range(_PACKETS_MAX):
            payload = None if self.phase in _PAUSED else framer.next_packet()
            if payload is None:
                break
            if self.phase is ConnectionPhase.COMMAND:
                self._command(payload, events)
            elif self.phase is ConnectionPhase.INFILE:
                self._infile(payload, events)
            elif self._auth is None:
                self._greeted(payload, events)
            else:
                self._act(self._auth.receive(payload), events)
        self.holds_back = self.phase not in _PAUSED and framer.has_packet
        self._count()

    def _count(self) -> None:
        """Count the waiting bytes. Raises as `Memory.change`."""
        held_bytes = self._framer.held_bytes
        if self.compression is not None:
            held_bytes += self.compression.held_bytes
        if held_bytes == self._held_bytes:
            return
        try:
            self.memory.change(held_bytes - self._held_bytes, slack_bytes=_SLACK_BYTES)
        except ProxyError:
            # The answer belongs to the command whose frame has begun.
            self._framer.next_sequence = self._framer.next_sequence + 1 & 0xFF
            raise
        self._held_bytes = held_bytes

    def _unpack(self, compression: Compression, data: bytes, events: list[Event]) -> None:
        """Unpack *data*, as far as memory allows for one call."""
        compression.feed(data)
        # Packets that wait for the shell come before any new piece.
        self._packets(events)
        unpacked_bytes = 0
        while (
            self.phase not in _PAUSED
            and unpacked_bytes < _UNPACKED_BYTES_MAX
            and not self.holds_back
        ):
            in_conversation = self.phase is not ConnectionPhase.COMMAND
            if in_conversation and not compression.is_mid_piece:
                # A login or a file: both sides continue the count of the other's packets.
                compression.next_sequence = compression.sequence
            piece = compression.next_piece(self._framer.packet_bytes_max + HEADER_BYTES)
            if piece is None:
                break
            unpacked_bytes += len(piece)
            if in_conversation:
                compression.sequence = compression.next_sequence
            self._framer.feed(piece)
            self._packets(events)
            if (
                self.phase is ConnectionPhase.COMMAND
                and self._framer.is_empty
                and not compression.is_mid_piece
            ):
                compression.next_sequence = 0
        if self.phase not in _PAUSED and compression.has_piece:
            self.holds_back = True
        self._count()

    def tls_started(self) -> None:
        """Continue: bytes received from now on came through TLS."""
        self._move(ConnectionPhase.GREETED)
        self.is_tls = self.is_secure = True

    def accept(self, *, status: int = Status.AUTOCOMMIT) -> None:
        """Answer the client that its login succeeded, and begin to read commands."""
        assert self._auth is not None
        self._move(ConnectionPhase.COMMAND)
        assert self.login is not None
        self._send(
            ok_packet(status=status, info=self._login_info, capabilities=self.capabilities)
        )
        self._nonce = self._auth.nonce
        self._auth = None
        self._login_info = b""
        self._framer.packet_bytes_max = self.packet_bytes_max
        self._framer.next_sequence = 0
        if self.compression is not None:
            self.compression.next_sequence = 0
            return
        packer = packer_for(self.capabilities, self.login.zstd_level)
        if packer is not None:
            self.compression = Compression(packer)
            self.compression.feed(self._framer.take_rest())
            self._framer.is_numbered = False

    def refuse(self, error: StreamfromError) -> None:
        """Send the client the error, and close: nothing it sends is read any more."""
        if self.phase is ConnectionPhase.CLOSED:
            return
        self._send(error_packet(error, self.capabilities))
        self.phase = ConnectionPhase.CLOSED
        self.holds_back = False
        self._framer.take_rest()
        if self.compression is not None:
            self.compression.take_rest()
        self._count()

    def expect_infile(self, sequence: int) -> None:
        """Read file data next, its first packet numbered *sequence*."""
        self._move(ConnectionPhase.INFILE)
        self._framer.next_sequence = sequence

    def _move(self, phase: ConnectionPhase) -> None:
        # Any other move is a mistake of ours, not of the client.
        assert phase in _NEXT[self.phase], (self.phase, phase)
        self.phase = phase

    def _send(self, payload: bytes) -> None:
        self._out.append(frame(payload, self._framer.next_sequence))
        self._framer.next_sequence = self._framer.next_sequence + 1 & 0xFF

    def _greeted(self, payload: bytes, events: list[Event]) -> None:
        if is_tls_request(payload) and not self.is_tls:
            if not self._greeting.capabilities & Capability.SSL:
                raise WireError("TLS was not offered")
            self._move(ConnectionPhase.TLS)
            # The bytes after the request are TLS already. They must not be read as clear text:
            # an attacker on the way could have put them there.
            events.append(TlsRequested(self._framer.take_rest()))
            return
        # Only this packet counts: everything before TLS may be forged.
        login = decode_login(payload)
        # A flag that was not offered is not in force, whatever the client requests.
        self.capabilities = login.capabilities & self._greeting.capabilities
        if self.requires_tls and not self.is_secure:
            raise InsecureTransport
        if self.is_tls and self.lacks_certificate():
            raise CertificateRequired
        self._begin(login, events, is_change=False)

    def _command(self, payload: bytes, events: list[Event]) -> None:
        if not payload:
            raise WireError("empty command packet")
        if payload[0] == _CHANGE_USER:
            # Until the new user is known the client gets no more room than a stranger.
            login = decode_change_user(payload, self.capabilities)
            self._framer.packet_bytes_max = _LOGIN_BYTES_MAX
            if self.compression is not None:
                self.compression.sequence = self.compression.next_sequence
            self._begin(login, events, is_change=True)
            return
        piece = 1 if self.compression is None else self.compression.next_sequence
        events.append(CommandReceived(payload, self._framer.next_sequence, piece))
        self._framer.next_sequence = 0

    def _infile(self, payload: bytes, events: list[Event]) -> None:
        if not payload:
            self._move(ConnectionPhase.COMMAND)
            self._framer.next_sequence = 0
        events.append(InfileData(payload))

    def _begin(self, login: LoginRequest, events: list[Event], *, is_change: bool) -> None:
        self.login = login
        self._move(ConnectionPhase.AUTHENTICATING)
        events.append(LoginAttempt(login, is_change))
        self._auth = ServerAuth(
            self._authenticator,
            login,
            host=self.host,
            nonce=self._nonce,
            greeted_plugin=self._greeting.plugin,
            is_secure=self.is_secure,
            is_tls=self.is_tls,
        )
        self._act(self._auth.begin(is_change=is_change), events)

    def _act(self, step: Step, events: list[Event]) -> None:
        if isinstance(step, bytes):
            self._send(step)
        elif isinstance(step, Deferred):
            self._move(ConnectionPhase.JUDGING)
            events.append(step)
        else:
            self._move(ConnectionPhase.DECIDING)
            if step.ahead:
                self._send(step.ahead)
            self._login_info = step.info
            events.append(step)


# The largest packet before the login is accepted.
_LOGIN_BYTES_MAX: Final = 64 << 10
# How much one call of `receive_data` unpacks before it gives the shell a chance to pause.
_UNPACKED_BYTES_MAX: Final = 1 << 20
# How far a connection may exceed its budget with an incomplete command. To refuse one
# means to close; a piece of long data (drivers send 1 MiB at most) is refused when it is whole.
_SLACK_BYTES: Final = 1 << 20
# How many packets it takes: the 25,000 that one read can bring, each of which closes a
# statement, would hold all other clients up for 0.1 s.
_PACKETS_MAX: Final = 500

# The client must not be read: bytes wait until the shell continues. Not a set, because the hash of an
# enumeration's member is a call of Python's, here for every packet.
_PAUSED: Final = (
    ConnectionPhase.TLS,
    ConnectionPhase.JUDGING,
    ConnectionPhase.DECIDING,
    ConnectionPhase.CLOSED,
)


def refusal(error: StreamfromError, capabilities: int = 0) -> bytes:
    """Return the packet that refuses a client in place of a greeting, or ends the connection of one with *capabilities*.

    It is framed; the connection closes behind it.
    """
    return frame(error_packet(error, capabilities), 0)
