"""Where clients come in: TCP ports and Unix sockets, of this process alone or shared by several."""

from __future__ import annotations

import asyncio
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamfrom.proxy.net import Link


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.proxy.net import Owner


async def listen_tcp(
    accept: Callable[[Link], Owner],
    host: str,
    port: int,
    *,
    backlog: int,
    shares_port: bool = False,
) -> asyncio.Server:
    """Listen on a TCP address; port 0 takes a free one. *shares_port*: other processes listen there as well."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: Link(accept),
        host,
        port,
        backlog=backlog,
        reuse_address=True,
        reuse_port=shares_port or None,
    )


async def hold_port(host: str, port: int) -> list[socket.socket]:
    """Return sockets that hold a TCP port for processes that listen there and share it; 0 takes a free one.

    They accept nobody themselves.

    Raises:
        OSError: somebody listens there already, or *host* is no address of this machine.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    held: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            where = (address[0], port, *address[2:])
            # A second proxy that shares its port as well would take some of our clients.
            _bound_tcp(family, where, shares_port=False).close()
            held.append(_bound_tcp(family, where, shares_port=True))
            port = held[0].getsockname()[1]
    except OSError:
        for each in held:
            each.close()
        raise
    return held


def _bound_tcp(
    family: socket.AddressFamily, address: tuple[Any, ...], *, shares_port: bool
) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares_port)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        where = f"{address[0]} port {address[1]}"
        raise OSError(error.errno, f"cannot listen on {where}: {error.strerror}") from None
    return bound


def bind_unix(path: str, *, mode: int) -> socket.socket:
    """Return a Unix socket for `listen_unix`, whose file has *mode* whatever the umask is.

    What an earlier process left at *path* is replaced.

    Raises:
        OSError: the path cannot be used.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        file = Path(path)
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(file.stat().st_mode):
                file.unlink()
        bound.bind(path)
        # Nobody gets in before the mode is right: what does not listen yet refuses everybody.
        file.chmod(mode)
    except OSError:
        bound.close()
        raise
    return bound


async def listen_unix(
    accept: Callable[[Link], Owner], bound: socket.socket, *, backlog: int
) -> asyncio.Server:
    """Listen on a socket of `bind_unix`, which is closed with the server."""
    loop = asyncio.get_running_loop()
    return await loop.create_unix_server(lambda: Link(accept), sock=bound, backlog=backlog)


def remove_socket(path: str) -> None:
    """Remove the file of a Unix socket that nobody listens on any more."""
    Path(path).unlink(missing_ok=True)
