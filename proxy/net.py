"""A `Link` is one byte stream, TLS or not: no other module reads or writes a client's or a server's socket.

A link hands received bytes to its owner and takes bytes to send; it knows nothing of MySQL.
Both sides of the proxy use it: clients are accepted links, backends are connected ones.

TLS is done by hand over `ssl.MemoryBIO` rather than by `loop.start_tls`: in the MySQL
protocol TLS begins in the middle of a conversation, a client may send its ClientHello in the
same segment as the request for TLS, and `start_tls` loses those bytes on CPython before 3.13
and on uvloop. Feeding them to the BIO loses nothing.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast


# Bytes that may wait in user space before the owner must pause: large enough that a
# burst of rows leaves in one system call, small enough that 10,000 slow clients fit in memory.
WRITE_HIGH_WATER_BYTES = 256 << 10

# Packing more takes 1 ms and up, and libuv reads up to 32 times from one socket in a turn of the loop: without
# a pause in between, a reply of 16 MB that hardly shrinks took 54 ms.
_PACKED_AT_ONCE_BYTES = 64 << 10

_TLS_READ_BYTES = 256 << 10

# With the kernel's defaults a dead peer is found after two hours, and load balancers drop silent connections
# after minutes. So probe after 60 s of silence, then every 10 s, and give up after 6 probes.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6))

# Keep-alive sends no probe while sent bytes are unconfirmed; the kernel resends these for a quarter of an hour. Give up on a
# server after the same time as keep-alive; not on a client, because a slow reader would be cut off.
_UNCONFIRMED_MS = 120_000

# RFC 4514, 3
_SHORT_NAMES = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "domainComponent": "DC",
    "userId": "UID",
}


def is_loopback(host: str) -> bool:
    """Return whether *host* is this machine: a loopback address, or the word for a Unix socket."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Owner(Protocol):
    """The receiver of a link's events. Every call comes from the event loop."""

    def connection_made(self) -> None:
        """Note that bytes can be sent."""

    def data_received(self, data: bytes) -> None:
        """Process bytes that arrived (already decrypted)."""

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the link is gone; *error* is None for an orderly close. Called exactly once."""

    def resume_writing(self) -> None:
        """Note that a blocked link has sent the waiting bytes."""


class Link(asyncio.Protocol):
    """One byte stream with flow control.

    `blocked` is True while more bytes wait in user space than the high-water mark allows, and for
    the rest of the loop's turn once much has been packed.
    Writing is still allowed then, but a well-behaved owner stops until `resume_writing`.
    `is_paused` is True while the link does not read from the peer; `on_resumed` is called once when
    that ends. `on_blocked` is called with the number of waiting bytes when `blocked` begins. `fault` is the
    reason why TLS failed, else None.
    """

    __slots__ = (
        "_ahead",
        "_encode",
        "_is_busy",
        "_is_full",
        "_is_lost",
        "_owner",
        "_tls",
        "_transport",
        "blocked",
        "closed",
        "data_received",
        "fault",
        "is_paused",
        "on_blocked",
        "on_resumed",
    )

    # Not a method: the receiver is called directly, without a step in between, once for every
    # statement and once for every reply.
    data_received: Callable[[bytes], None]  # type: ignore[assignment]

    def __init__(self, owner_of: Callable[[Link], Owner]) -> None:
        self.blocked = False
        self.closed = False
        self.fault: str | None = None
        self.is_paused = False
        self.on_resumed: Callable[[], None] | None = None
        self.on_blocked: Callable[[int], None] | None = None
        self._is_busy = False
        self._is_full = False
        self._is_lost = False
        self._ahead = b""
        self._encode: Callable[[bytes], bytes] | None = None
        self._tls: _Tls | None = None
        self._transport: asyncio.Transport | None = None
        self._owner = owner_of(self)
        self.data_received = self._owner.data_received

    # --- what the owner calls -------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send *data* in order; bytes written to a closed link are dropped."""
        if self.closed or self._transport is None:
            return
        if self._ahead:
            data, self._ahead = self._ahead + data, b""
        if self._encode is not None:
            data = self._encode(data)
            # TLS keeps it until its handshake is over, packing until a packet is whole.
            if not data:
                return
        self._transport.write(data)

    def write_ahead(self, data: bytes, within_s: float = 0) -> None:
        """Send *data* together with the next write, but at the latest *within_s*; 0 means the end of this turn of the loop.

        Each `write` is a system call that wakes the peer.
        """
        loop = asyncio.get_running_loop()
        if within_s:
            loop.call_later(within_s, self._write_rest)
        elif not self._ahead:
            loop.call_soon(self._write_rest)
        self._ahead += data

    def _write_rest(self) -> None:
        if self._ahead:
            self.write(b"")

    @property
    def is_gone(self) -> bool:
        """Whether writing is in vain; `connection_lost` may follow a turn of the loop later."""
        return self.closed or self._transport is None or self._transport.is_closing()

    def set_high_water(self, limit_bytes: int) -> None:
        """Set how many bytes may wait before `blocked`; 0 means any."""
        # A uvloop transport rejects every call once it is lost.
        if self._transport is not None and not self._is_lost:
            self._transport.set_write_buffer_limits(high=limit_bytes)

    def pause_reading(self) -> None:
        """Stop reading from the peer, which then stops sending. May be repeated."""
        if self._transport is not None and not self.closed:
            self.is_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again. May be repeated."""
        if self._transport is not None and not self.closed:
            self.is_paused = False
            if not self._is_busy:
                self._transport.resume_reading()
            if self.on_resumed is not None:
                asyncio.get_running_loop().call_soon(self.on_resumed)
                self.on_resumed = None

    def set_busy(self, *, on: bool) -> None:
        """Stop reading while the received bytes are processed; independent of `pause_reading`."""
        if self._transport is not None and not self.closed:
            self._is_busy = on
            if on:
                self._transport.pause_reading()
            elif not self.is_paused:
                self._transport.resume_reading()

    def pass_turn(self) -> None:
        """Read no more in this turn of the loop, in which a transport may read 32 times."""
        self.set_busy(on=True)
        asyncio.get_running_loop().call_soon(partial(self.set_busy, on=False))

    def start_tls(
        self, context: ssl.SSLContext, *, server_side: bool, hostname: str | None, early: bytes
    ) -> None:
        """Speak TLS from here on; *early* holds the TLS bytes that the peer has already sent.

        Bytes written before the handshake ends are sent after it.
        """
        self._tls = _Tls(context, server_side=server_side, hostname=hostname)
        self._encode = self._tls.encrypt
        self._receive_by(self._receive_tls)
        self._receive_tls(early)

    def start_packing(self, pack: Callable[[bytes], bytes]) -> None:
        """Pass all bytes written from here on through *pack*; call only after TLS has begun."""
        tls = self._tls

        def encode(data: bytes) -> bytes:
            packed = pack(data)
            if len(data) > _PACKED_AT_ONCE_BYTES and not self.blocked:
                self.blocked = True
                asyncio.get_running_loop().call_soon(self._rested)
            return packed if tls is None else tls.encrypt(packed)

        self._encode = encode

    def _rested(self) -> None:
        if not self._is_full:
            self.resume_writing()

    def close(self) -> None:
        """Send the waiting bytes, then close."""
        if self._transport is not None and not self.closed:
            self._write_rest()
            self.closed = True
            self._transport.close()

    def abort(self) -> None:
        """Close now and drop the waiting bytes."""
        if self._transport is not None:
            self.closed = True
            self._transport.abort()

    @property
    def peer(self) -> str:
        """The peer's host, `localhost` for a Unix socket; shown in login errors."""
        return self._address or "localhost"

    @property
    def endpoint(self) -> str:
        """`peer` with its port, if it has one; shown in SHOW PROCESSLIST."""
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{self.peer}:{name[1]}" if isinstance(name, tuple) else self.peer

    @property
    def is_unix(self) -> bool:
        """Whether the peer came through a Unix socket."""
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        return sock is not None and sock.family == socket.AF_UNIX

    @property
    def is_loopback(self) -> bool:
        """Whether the peer is on this machine."""
        address = self._address
        return self.is_unix or (
            # None: it was gone before its address could be read.
            address is not None and ipaddress.ip_address(address).is_loopback
        )

    @property
    def subject(self) -> str | None:
        """The subject of the peer's verified certificate; None without one."""
        return None if self._tls is None else self._tls.subject

    @property
    def tls(self) -> tuple[str, str]:
        """The cipher and the version of TLS, both empty without TLS."""
        return ("", "") if self._tls is None else self._tls.terms

    @property
    def _address(self) -> str | None:
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return name[0] if isinstance(name, tuple) else None

    # --- called by asyncio ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Adopt the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            # A stream may be silent for hours: only keep-alive detects a peer that lost power.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, seconds in _KEEPALIVE:
                sock.setsockopt(socket.IPPROTO_TCP, option, seconds)
            # Replies end with a small packet that nothing follows; Nagle's algorithm would hold
            # it back until the one before is acknowledged, up to 40 ms.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._owner.connection_made()

    def pause_writing(self) -> None:
        """Note that the peer reads more slowly than we write."""
        self.blocked = self._is_full = True
        if self.on_blocked is not None and self._transport is not None:
            self.on_blocked(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Note that the peer has caught up."""
        self.blocked = self._is_full = False
        self._owner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end, once."""
        self.closed = True
        self._is_lost = True
        self._owner.connection_lost(exc)

    def _receive_by(self, take: Callable[[bytes], None]) -> None:
        assert self._transport is not None
        self.data_received = take
        # A transport looks up its protocol's methods only once.
        self._transport.set_protocol(self)

    # --- TLS ------------------------------------------------------------------------------

    def _receive_tls(self, data: bytes) -> None:
        assert self._tls is not None
        assert self._transport is not None
        try:
            plain = self._tls.decrypt(data)
        except ssl.SSLError as error:
            self.fault = getattr(error, "verify_message", None) or error.reason or str(error)
            # The outgoing BIO holds the alert that explains the refusal to the peer.
            self._transport.write(self._tls.pending())
            self.close()
            # Drop bytes that arrive after the conversation was given up.
            self._receive_by(lambda _: None)
            return
        answer = self._tls.pending()
        if answer:
            self._transport.write(answer)
        if plain:
            self._owner.data_received(plain)
        # close_notify: the peer has announced that it sends no more.
        if self._tls.ended:
            self.close()


class _Tls:
    """The two BIOs of one TLS conversation."""

    __slots__ = ("_incoming", "_object", "_outgoing", "_ready", "_waiting", "ended")

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool, hostname: str | None
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=hostname
        )
        self._ready = False
        self._waiting = bytearray()
        self.ended = False

    @property
    def terms(self) -> tuple[str, str]:
        """The negotiated cipher and version."""
        cipher = self._object.cipher()
        return cipher[0] if cipher else "", self._object.version() or ""

    @property
    def subject(self) -> str | None:
        """The subject in the peer's certificate, as in `CN=app, O=shop`."""
        certificate = self._object.getpeercert()
        if not certificate:
            return None
        names = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate["subject"])
        return ", ".join(
            f"{_SHORT_NAMES.get(name, name)}={value}" for part in names for name, value in part
        )

    def decrypt(self, data: bytes) -> bytes:
        """Return the plain bytes that *data* completes. Raises ssl.SSLError."""
        self._incoming.write(data)
        if not self._ready:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                return b""
            # Bytes written before go out now; the reply to the last handshake message is
            # in `pending`.
            self._ready = True
            if self._waiting:
                self._object.write(self._waiting)
                self._waiting.clear()
        pieces = []
        while True:
            try:
                piece = self._object.read(_TLS_READ_BYTES)
            except ssl.SSLWantReadError:
                break
            if not piece:
                self.ended = True
                break
            pieces.append(piece)
        return b"".join(pieces)

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes to send for *data*; before the handshake ends they are kept back."""
        if not self._ready:
            self._waiting += data
            return b""
        self._object.write(data)
        return self._outgoing.read()

    def pending(self) -> bytes:
        """Return the bytes that TLS itself wants to send."""
        return self._outgoing.read()


def is_out_of_descriptors(error: BaseException | None) -> bool:
    """Return whether this process, or this machine, has no file descriptor left."""
    return isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}


async def connect(
    owner_of: Callable[[Link], Owner],
    *,
    host: str,
    port: int,
    unix_socket: str | None,
    timeout_s: float,
) -> Link:
    """Open a link to a server.

    Raises:
        OSError: no process listens there, or (TimeoutError) it was not reached within *timeout_s* seconds.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout_s):
        if unix_socket:
            _, link = await loop.create_unix_connection(lambda: Link(owner_of), unix_socket)
        else:
            transport, link = await loop.create_connection(lambda: Link(owner_of), host, port)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has it
                sock = transport.get_extra_info("socket")
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNCONFIRMED_MS)
    return link
