"""The TCP port of a gRPC server: accepts connections, enforces the port's limits, and forwards bytes both ways.

gRPC's own listener has no limit per address. It therefore listens on a Unix socket, in a folder that only
this user may enter. The first connection may start it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, cast

from streamfrom.proxy.config.dsn import UNIX_SOCKET_BYTES_MAX
from streamfrom.proxy.listening import FIRST_BYTES_S, Listener, PortLimits, bind_tcp


CONNECTIONS_MAX: Final = 256
# A fleet's members, or clients behind one NAT, may need many.
PER_ADDRESS_MAX: Final = 128
_BACKLOG: Final = 128
_SOCKET: Final = "grpc"
# A member that does not answer within this time is gone.
PING_TIMEOUT_MS: Final = 2000
# For the gRPC server behind a port. It handles the TLS handshake itself.
SERVER_OPTIONS: Final = (("grpc.server_handshake_timeout_ms", int(FIRST_BYTES_S * 1000)),)


class GrpcPort:
    """A port whose gRPC server listens at `inner`.

    name: the port's name in the log.
    shares_port: other processes listen there as well.
    lost_ms: a client that has not confirmed bytes for this long is gone; None for the system's limit. gRPC sets this
        on the sockets that it accepts.

    Raises OSError if another process listens there, or *host* is not an address of this machine.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        *,
        shares_port: bool = False,
        lost_ms: int | None = None,
    ) -> None:
        bound = bind_tcp(f"{name}.listen", host, port, shares_port=shares_port)
        if lost_ms is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has it
            for each in bound:  # accepted sockets inherit it
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, lost_ms)
        self.port: int = bound[0].getsockname()[1]  # chosen by the system for 0
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        # Starts the gRPC server, awaited before the first connection is forwarded; None if that is not needed.
        self.opens: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._folder = _socket_folder()
        self._path = str(self._folder / _SOCKET)
        self.inner = f"unix:{self._path}"
        self._hosts: dict[str, str] = {}
        self._count = 0
        self._joining: set[asyncio.Task[None]] = set()
        self._listener = Listener(
            name,
            bound,
            lambda: _Side(on_made=self._begin),
            backlog=_BACKLOG,
            limits=PortLimits(CONNECTIONS_MAX, PER_ADDRESS_MAX),
        )

    def host_of(self, peer: str) -> str:
        """Return the host of the client that gRPC calls *peer*, "" once it has left."""
        return self._hosts.get(peer, "")

    def close(self) -> None:
        """Stop accepting, once the gRPC server has stopped."""
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self, outer: _Side) -> None:
        task = asyncio.get_running_loop().create_task(self._join(outer))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    async def _join(self, outer: _Side) -> None:
        """Connect a client to gRPC, under a name that `host_of` can look up."""
        loop = asyncio.get_running_loop()
        if self.opens is not None:
            self._opening = self._opening or loop.create_task(self.opens())
            try:
                await asyncio.shield(self._opening)
            except Exception:
                self._opening = None  # the next connection tries again
                outer.transport.abort()
                raise
        self._count += 1
        name = f"{self._folder.name}-{self._count}"
        peer = f"unix-abstract:{name}"
        self._hosts[peer] = outer.transport.get_extra_info("peername")[0]
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        inner = _Side(on_lost=lambda: self._hosts.pop(peer, None))
        inner.other = outer.transport
        try:
            connection.settimeout(0)
            connection.bind(f"\0{name}")
            await loop.sock_connect(connection, self._path)
            await loop.create_unix_connection(lambda: inner, sock=connection)
        except OSError:  # gRPC has stopped, or no file descriptor is left
            connection.close()
            self._hosts.pop(peer, None)
            outer.transport.abort()
        else:
            outer.join(inner.transport)


def fleet_port(listen: str) -> GrpcPort:
    """Return the port for other members at *listen*, host:port. Raises OSError if that address cannot be bound."""
    host, _, port = listen.rpartition(":")
    return GrpcPort("fleet", host.strip("[]"), int(port), lost_ms=PING_TIMEOUT_MS)


def _socket_folder() -> Path:
    """Make a folder for the socket: in /tmp if the temporary folder's name is too long for a socket path."""
    made = Path(tempfile.mkdtemp(prefix="streamfrom-"))
    if len(os.fsencode(made / _SOCKET)) > UNIX_SOCKET_BYTES_MAX:
        made.rmdir()
        made = Path(tempfile.mkdtemp(prefix="streamfrom-", dir="/tmp"))
    return made


class _Side(asyncio.Protocol):
    """One side of a connection: incoming bytes leave by the *other* side, and wait until there is one."""

    transport: asyncio.Transport

    def __init__(
        self,
        on_made: Callable[[_Side], None] | None = None,
        on_lost: Callable[[], object] | None = None,
    ) -> None:
        self.other: asyncio.Transport | None = None
        self._on_made = on_made
        self._on_lost = on_lost
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._on_made is not None:
            self._on_made(self)

    def join(self, other: asyncio.Transport) -> None:
        """Forward to *other* from now on."""
        self.other = other
        other.writelines(self._early)
        self._early.clear()
        if self.transport.is_closing():
            other.close()
        else:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.write(data)
        else:
            self._early.append(data)
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._on_lost is not None:
            self._on_lost()
        if self.other is not None:
            self.other.close()
            # A peer that no longer reads keeps its place no longer than one that never sends.
            asyncio.get_running_loop().call_later(FIRST_BYTES_S, self.other.abort)
