"""A worker's inputs at its start, and the socket between it and its parent.

The worker sends one byte, READY, once it serves clients. Its parent sends HURRY when a stop shall not wait for
clients. The stream ends when the parent is gone, however it ended: then the worker stops too.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final, Self

from streamfrom.proxy.config.toml_values import ConfigError


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import Config


READY: Final = b"+"
HURRY: Final = b"!"


@dataclass(frozen=True, slots=True)
class WorkerSeat:
    """The place of one worker."""

    number: int  # which one of its parent's it is, from 1; each log line of it says so
    parent_fd: int  # the worker's end of the socket between both
    port: int  # the TCP port that all workers share
    unix_fd: int | None  # the Unix socket that all share; None without one
    log_level: int  # the parent's log level

    def __str__(self) -> str:
        """Return the text that `parse` takes."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the seat described by *text*."""
        return cls(**json.loads(text))

    def seated(self, config: Config) -> Config:
        """Return *config* for this worker: with the port that was chosen, and as one of several.

        Each shows its own figures: the first one at the port of `admin.listen`, the others at the ports after it.
        """
        admin = config.admin
        if admin is not None and admin[1]:
            admin = admin[0], admin[1] + self.number - 1
        return replace(config, server=replace(config.server, port=self.port), admin=admin)

    def unix_socket(self) -> socket.socket:
        """Return the shared Unix socket, for a configuration that has one."""
        assert self.unix_fd is not None
        return socket.socket(fileno=self.unix_fd)


def check_ports(config: Config, workers: int) -> None:
    """Raise ConfigError if two keys use the same port, once the workers are `seated`."""
    ports = [("server.listen", config.server.host, config.server.port)]
    if config.grpc is not None:
        ports.append(("grpc.listen", *config.grpc))
    if config.admin is not None and config.admin[1]:
        host, first = config.admin
        ports += [("admin.listen", host, first + n) for n in range(workers)]
    for (other, *taken), (key, *wanted) in combinations(ports, 2):
        if taken == wanted and wanted[1] and key != other:
            expected = "a port for each worker" if workers > 1 else "another port"
            raise ConfigError(key, f"expected {expected}; {wanted[1]} is {other}'s")


class Parent:
    """A worker's parent, as seen by the worker. Belongs to one event loop.

    stop, hurry: set when the parent is gone, and when it announces that a stop does not wait for clients.
    """

    def __init__(self, seat: WorkerSeat, stop: asyncio.Event, hurry: asyncio.Event) -> None:
        self._socket = socket.socket(fileno=seat.parent_fd)
        self._socket.settimeout(0)
        self._stop = stop
        self._hurry = hurry
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._heard)

    def tell_ready(self) -> None:
        """Report that clients are served."""
        try:
            self._socket.send(READY)
        except OSError:
            self._stop.set()

    def close(self) -> None:
        """Stop listening to the parent."""
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _heard(self) -> None:
        try:
            said = self._socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if said == HURRY:
            self._hurry.set()
        elif not said:
            self._stop.set()
            self._loop.remove_reader(self._socket)
