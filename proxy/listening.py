"""Listeners for connections: TCP ports and Unix sockets, of this process alone or shared by several."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import structlog

from streamfrom.proxy.addresses import AddressCounts, group
from streamfrom.proxy.log import SparingLog


if TYPE_CHECKING:
    import ssl


log = structlog.get_logger()

# Connections that are accepted in one turn of the loop.
_AT_ONCE: Final = 64
_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S: Final = 1.0
# How long a peer may stay silent, or leave a handshake unfinished, on the ports that are not MySQL's.
FIRST_BYTES_S: Final = 10.0


class PortLimits(NamedTuple):
    """The most connections that a port allows."""

    connections: int  # in total
    per_address: int  # per address, as grouped by `group`


class Listener:
    """Accepts the connections of one port and makes a protocol for each.

    No other code accepts connections. Rejected connections, and a process without a free file descriptor, are
    logged at most once per 10 s and port.

    name: the port's name in the log.
    bound: the sockets to listen on and to close.
    limits: None if the protocol itself rejects clients.
    tls: the context for TLS on the connections.
    opening: the bytes that a peer must have sent within FIRST_BYTES_S; if empty, any byte will do.
    """

    def __init__(
        self,
        name: str,
        bound: Sequence[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        *,
        backlog: int,
        limits: PortLimits | None = None,
        tls: ssl.SSLContext | None = None,
        opening: bytes = b"",
    ) -> None:
        self.sockets = tuple(bound)
        self._protocol = protocol
        self._limits = limits
        self._tls = tls
        self._opening = opening
        self._loop = asyncio.get_running_loop()
        self._log = SparingLog(log.bind(port=name))
        self._addresses = AddressCounts()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._is_closed = False
        for each in self.sockets:
            each.settimeout(0)
            each.listen(backlog)
            self._loop.add_reader(each, self._accept, each)

    def close(self) -> None:
        """Accept no more connections; open ones are kept."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._pause is not None:
            self._pause.cancel()
        for each in self.sockets:
            self._loop.remove_reader(each)
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._log.warning("no file descriptor left for a client", reason=error.strerror)
                # The client keeps waiting in the kernel's queue.
                for each in self.sockets:
                    self._loop.remove_reader(each)
                self._pause = self._loop.call_later(_PAUSE_S, self._go_on)
                return
            connection.settimeout(0)
            task = self._loop.create_task(self._serve(connection, address))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _go_on(self) -> None:
        for each in self.sockets:
            self._loop.add_reader(each, self._accept, each)

    async def _serve(self, connection: socket.socket, address: Any) -> None:
        limits = self._limits
        if limits is None:
            await self._loop.connect_accepted_socket(self._protocol, connection)
            return
        host = group(address[0] if isinstance(address, tuple) else "localhost")
        if (
            self._addresses.total() >= limits.connections
            or self._addresses[host] >= limits.per_address
        ):
            connection.close()
            self._log.warning("connections turned away", address=host)
            return
        self._addresses.enter(host)
        counted = _Admitted(
            self._protocol(), partial(self._addresses.leave, host), self._opening
        )
        try:
            await self._loop.connect_accepted_socket(
                lambda: counted,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else FIRST_BYTES_S,
            )
        except OSError:  # TLS failed, or the peer has gone or stayed silent
            counted.leave()


class _Admitted(asyncio.Protocol):
    """Forwards everything to *protocol*, calls *on_left* when its connection has ended, and ends a connection without *opening*."""

    def __init__(
        self, protocol: asyncio.Protocol, on_left: Callable[[], None], opening: bytes
    ) -> None:
        self._protocol = protocol
        self._opening = opening
        self._end = b""  # of the bytes received so far
        self._on_left: Callable[[], None] | None = on_left
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        abort = cast("asyncio.Transport", transport).abort
        self._timer = loop.call_later(FIRST_BYTES_S, abort)
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._timer is not None:
            come = self._end + data
            if self._opening in come:
                self._timer.cancel()
                self._timer = None
            else:
                self._end = come[-len(self._opening) :]
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        self._protocol.connection_lost(exc)

    def leave(self) -> None:
        """Stop counting the connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._on_left is not None:
            self._on_left()
            self._on_left = None


def bind_tcp(
    key: str, host: str, port: int, *, shares_port: bool = False, for_others: bool = False
) -> list[socket.socket]:
    """Return sockets that are bound to a port on each address of *host*; port 0 takes a free one.

    key: the setting's key, for error messages.
    for_others: the sockets accept no connection; they reserve the port for processes that share it.
    Raises OSError if another process listens there already, or *host* is not an address of this machine.
    """
    with _named(key, f"{host} port {port}"):
        found = socket.getaddrinfo(
            host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    with ExitStack() as failing:
        bound: list[socket.socket] = []
        for family, _, _, _, address in dict.fromkeys(found):
            where = (address[0], port, *address[2:])
            if for_others:
                # A second proxy that also shares its port would take some of our clients.
                _bound_tcp(key, family, where, shares_port=False).close()
            one = _bound_tcp(key, family, where, shares_port=shares_port or for_others)
            bound.append(failing.enter_context(one))
            port = bound[0].getsockname()[1]
        failing.pop_all()
    return bound


def _bound_tcp(
    key: str, family: socket.AddressFamily, address: tuple[Any, ...], *, shares_port: bool
) -> socket.socket:
    with ExitStack() as failing, _named(key, f"{address[0]} port {address[1]}"):
        bound = failing.enter_context(socket.socket(family, socket.SOCK_STREAM))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares_port)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        failing.pop_all()
    return bound


class UnixSocket(NamedTuple):
    """A Unix socket and the identity of the file that it made: another process may have replaced that file since."""

    socket: socket.socket
    path: Path
    inode: tuple[int, int]

    def remove(self) -> None:
        """Remove the file, on which no process of ours listens any more, unless it has been replaced."""
        with suppress(FileNotFoundError):
            if _inode(self.path) == self.inode:
                self.path.unlink()


def bind_unix(path: str, *, mode: int) -> UnixSocket:
    """Return a Unix socket whose file has *mode* whatever the umask is; replace a file that an earlier process left.

    Raises OSError, also if a process listens there, or the path is another kind of file.
    """
    file = Path(path)
    with ExitStack() as failing, _named("server.unix_socket", path):
        bound = failing.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        if _is_stale(file):
            file.unlink()
        bound.bind(path)
        # No client can connect before the mode is right: a socket that does not listen yet refuses all.
        file.chmod(mode)
        failing.pop_all()
        return UnixSocket(bound, file, _inode(file))


def _is_stale(file: Path) -> bool:
    """Return whether *file* is a Unix socket on which no process listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(0)
        return file.is_socket() and client.connect_ex(str(file)) == errno.ECONNREFUSED


def _inode(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino


@contextmanager
def _named(key: str, where: str) -> Iterator[None]:
    """Add to an OSError the address (*where*) that the proxy was to listen on, and the *key* that configures it."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{key}: cannot listen on {where}: {error.strerror}") from None
