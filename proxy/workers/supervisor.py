"""The parent of several workers: it starts them, restarts those that die, and ends them; it serves no client itself.

Workers share the client's TCP port by SO_REUSEPORT: the kernel gives each new connection to one of them. The parent
holds the port without listening, so it stays reserved while they come and go. A Unix socket belongs to the parent, and
all workers accept from it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import structlog

from streamfrom.proxy import listening
from streamfrom.proxy.workers.worker_seat import HURRY, READY, WorkerSeat


if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from pathlib import Path

    from streamfrom.proxy.config.file import Config


log = structlog.get_logger()

# The first pause between two starts of a worker that dies repeatedly.
DELAY_FIRST_S: Final = 0.1
DELAY_LONGEST_S: Final = 10.0
# A worker that ran this long did not die of a problem at its start.
SETTLED_S: Final = 60.0


class WorkerFailed(Exception):
    """A worker ended unexpectedly. It may have printed the reason itself.

    code: the exit code; 1 for a process killed by a signal.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}" if code >= 0 else f"signal {-code}")
        self.code = code if code > 0 else 1


def command_of(config: Path) -> list[str]:
    """Return the command that starts a worker, without its seat: this interpreter, with the same modules."""
    module = (sys.executable, "-P", "-m", "streamfrom.proxy")
    return [*module, "serve", "--config", str(config), "--worker-seat"]


def restart_delay_s(before_s: float, lived_s: float) -> float:
    """Return the seconds to wait after a worker that ran for *lived_s* has ended.

    before_s: the pause before that one was started; 0 for the first one.
    """
    if lived_s >= SETTLED_S or not before_s:
        return DELAY_FIRST_S
    return min(2 * before_s, DELAY_LONGEST_S)


class Workers:
    """The workers of one port. As an async context manager, it is entered once all of them serve.

    config: the configuration to serve.
    command: starts a worker; its seat is appended.
    count: the number of workers.
    environ: the environment of this process, passed on to them.

    Raises WorkerFailed if one ended before it served a client, OSError if the address cannot be bound.
    """

    def __init__(
        self, config: Config, command: Sequence[str], count: int, environ: Mapping[str, str]
    ) -> None:
        self._server = config.server
        self._command = command
        # So that they find the modules in the same places as this process.
        self._environ = {**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._count = count
        self._sockets = ExitStack()
        self._unix: listening.UnixSocket | None = None
        self._stopping = asyncio.Event()
        self._running: dict[int, _WorkerProcess] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self.port = 0  # the TCP port for clients

    async def __aenter__(self) -> Self:
        """Start all workers."""
        server = self._server
        try:
            held = listening.bind_tcp(
                "server.listen", server.host, server.port, for_others=True
            )
            for each in held:
                self._sockets.enter_context(each)
            self.port = held[0].getsockname()[1]
            if server.unix_socket:
                self._unix = listening.bind_unix(
                    server.unix_socket, mode=server.unix_socket_mode
                )
            await self._start()
        except BaseException:
            await self.stop()
            raise
        log.info("workers serve", workers=self._count, host=server.host, port=self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop them; return once all have ended."""
        await self.stop()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        ready = [loop.create_future() for _ in range(self._count)]
        self._keepers = [
            loop.create_task(self._keep(number, served))
            for number, served in enumerate(ready, 1)
        ]
        await asyncio.gather(*ready)

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> int:
        """Run them until *stop* is set; return 0. *ready* is called once all of them serve."""
        starting = asyncio.ensure_future(self.__aenter__())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                ready()
                await stopped
        finally:
            stopped.cancel()
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.stop()
        return 0

    def hangup(self) -> None:
        """Have all workers reread their files."""
        for worker in self._running.values():
            worker.signal(signal.SIGHUP)

    def hurry(self) -> None:
        """End a stop without waiting for clients."""
        for worker in self._running.values():
            worker.hurry()

    async def stop(self) -> None:
        """Stop all workers gracefully; may be called twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        if self._unix is not None:
            # No client shall wait in its queue for workers that no longer accept.
            self._unix.socket.close()
            self._unix.remove()
        for worker in self._running.values():
            worker.signal(signal.SIGTERM)
        await asyncio.gather(*self._keepers, return_exceptions=True)
        self._sockets.close()

    async def _keep(self, number: int, served: asyncio.Future[None]) -> None:
        """Keep worker *number* running until all stop. *served* is done once it serves for the first time."""
        loop = asyncio.get_running_loop()
        delay_s = 0.0
        while not self._stopping.is_set():
            began_s = loop.time()
            try:
                failure: Exception = WorkerFailed(await self._work(number, served))
            except OSError as error:  # no process could be started
                failure = error
            if not served.done():
                served.set_exception(failure)
                return
            if not self._stopping.is_set():
                delay_s = restart_delay_s(delay_s, loop.time() - began_s)
                log.error(
                    "a worker died", worker=number, reason=str(failure), again_in_s=delay_s
                )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), delay_s)

    async def _work(self, number: int, served: asyncio.Future[None]) -> int:
        """Run worker *number* once and return its exit code."""
        worker = await _WorkerProcess.start(
            self._command, self._environ, partial(self._seat, number)
        )
        self._running[number] = worker
        if self._stopping.is_set():
            worker.signal(signal.SIGTERM)
        if await worker.is_ready() and not served.done():
            served.set_result(None)
        code = await worker.ended()
        del self._running[number]
        return code

    def _seat(self, number: int, parent_fd: int) -> WorkerSeat:
        unix_fd = None if self._unix is None else self._unix.socket.fileno()
        level = logging.getLogger().level
        return WorkerSeat(number, parent_fd, self.port, unix_fd, level)


class _WorkerProcess:
    """One worker's process."""

    def __init__(self, process: Process, ours: socket.socket) -> None:
        self._process = process
        self._ours = ours

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environ: Mapping[str, str],
        seat: Callable[[int], WorkerSeat],
    ) -> Self:
        """Start a worker; *seat* is called with the worker's end of the socket to its parent."""
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        with ExitStack() as failing, theirs:
            failing.enter_context(ours)
            place = seat(theirs.fileno())
            shared = () if place.unix_fd is None else (place.unix_fd,)
            process = await asyncio.create_subprocess_exec(
                *(*command, str(place)),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *shared),
                # A terminal signals its whole foreground, above all by Ctrl-C; the parent forwards the signal.
                start_new_session=True,
                env=environ,
            )
            failing.pop_all()
        return cls(process, ours)

    async def is_ready(self) -> bool:
        """Return True once it serves clients, False if it has ended before."""
        with suppress(OSError):
            return await asyncio.get_running_loop().sock_recv(self._ours, 1) == READY
        return False

    async def ended(self) -> int:
        """Return its exit code once it has ended; negative for a signal."""
        code = await self._process.wait()
        self._ours.close()
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def hurry(self) -> None:
        """End its stop without waiting for clients."""
        with suppress(OSError):
            self._ours.send(HURRY)
