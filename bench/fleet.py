"""Worker processes: consumers, producers and pollers, ready before the start, stopped after it.

Clients run in separate processes so that none of them waits for another's Python. Each is a
coroutine that connects, reports that it is ready, waits for the common start, works, and returns a value.
"""

import asyncio
import contextlib
import ctypes
import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from multiprocessing.connection import Connection as Pipe
from multiprocessing.sharedctypes import RawArray
from typing import Any, Final, Self

import uvloop


WORKERS_MAX: Final = 64
READY_S: Final = 60.0
POLL_S: Final = 0.005
END_S: Final = 20.0
PR_SET_PDEATHSIG: Final = 1

FORK: Final = multiprocessing.get_context("fork")


class LabError(Exception):
    """A part of the laboratory did not start, broke, or was not done in time."""


class Signals:
    """A worker's connection to the parent."""

    def __init__(self, pipe: Pipe, progress: Any, slot: int) -> None:
        self._pipe, self._progress, self._slot = pipe, progress, slot
        loop = asyncio.get_running_loop()
        self._start_ns: asyncio.Future[int] = loop.create_future()
        self.stopping = asyncio.Event()
        loop.add_reader(pipe.fileno(), self._hear)

    async def start(self) -> int:
        """Report that this worker is ready; return the common start in wall-clock ns once it has come."""
        self._pipe.send(("ready", None))
        return await self._start_ns

    def count(self, more: int) -> None:
        """Report *more* finished messages to the parent."""
        self._progress[self._slot] += more

    async def until_stopped(self, *work: Coroutine[Any, Any, None]) -> None:
        """Run *work* until the parent stops it; an error in it ends the worker."""
        stop = asyncio.ensure_future(self.stopping.wait())
        # Done when all have ended, or when one fails.
        working: asyncio.Future[Any] = asyncio.gather(*work)
        await asyncio.wait([stop, working], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        stop.cancel()
        working.cancel()
        await asyncio.gather(stop, working, return_exceptions=True)

    def _hear(self) -> None:
        try:
            word, value = self._pipe.recv()
        except EOFError:
            os._exit(1)
        if word == "start":
            self._start_ns.set_result(value)
        else:
            self.stopping.set()


Work = Callable[[Signals], Awaitable[Any]]


class Worker:
    """One process that runs *work*."""

    def __init__(self, work: Work, progress: Any, slot: int) -> None:
        self._pipe, theirs = FORK.Pipe()
        self._progress, self._slot = progress, slot
        self._process = FORK.Process(target=_run, args=(work, theirs, progress, slot))
        self._process.start()
        theirs.close()
        self._results: list[Any] = []

    @property
    def counted(self) -> int:
        """How many messages it has counted so far."""
        return int(self._progress[self._slot])

    @property
    def has_ended(self) -> bool:
        """Whether it has returned. Raises LabError if it failed."""
        if not self._results and self._pipe.poll(0):
            self.result(0)
        return bool(self._results)

    def send(self, word: str, value: int = 0) -> None:
        """Send a signal: to start, or to stop and return the result."""
        with contextlib.suppress(BrokenPipeError):  # it has ended; `result` reports how
            self._pipe.send((word, value))

    def result(self, seconds: float = END_S) -> Any:
        """Wait for it to end and return its coroutine's result."""
        if not self._results:
            self._results.append(self.receive("result", time.monotonic() + seconds))
        return self._results[0]

    def end(self) -> None:
        """Kill it if it is still running."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def receive(self, expected: str, deadline: float) -> Any:
        """Receive its next signal, which must be *expected*. Raises LabError if it failed or is late."""
        if not self._pipe.poll(max(deadline - time.monotonic(), 0)):
            raise LabError(f"a worker did not get to its {expected} in time")
        try:
            word, value = self._pipe.recv()
        except EOFError:
            raise LabError("a worker died") from None
        if word != expected:
            raise LabError(f"a worker failed:\n{value}")
        return value


class Fleet:
    """The workers of one run: add them, `start`, wait, stop; leaving the block kills the rest."""

    def __init__(self) -> None:
        self._progress = RawArray("q", WORKERS_MAX)
        self._workers: list[Worker] = []

    def add(self, work: Work) -> Worker:
        """Start a process for *work*, which runs up to its own `Signals.start`."""
        worker = Worker(work, self._progress, len(self._workers))
        self._workers.append(worker)
        return worker

    def start(self) -> int:
        """Wait until all are ready, start them, and return that moment in wall-clock ns."""
        deadline = time.monotonic() + READY_S
        for worker in self._workers:
            worker.receive("ready", deadline)
        now_ns = time.time_ns()
        for worker in self._workers:
            worker.send("start", now_ns)
        return now_ns

    def reach(self, workers: list[Worker], count: int, seconds: float) -> None:
        """Wait until *workers* have counted *count* messages.

        Raises:
            LabError: *seconds* are over, all workers have ended before that, or one of them failed.
        """
        deadline = time.monotonic() + seconds
        while sum(worker.counted for worker in workers) < count:
            # Check all, for each may have failed. The last may have counted since the sum, so sum again.
            ended = sum(worker.has_ended for worker in workers) == len(workers)
            done = sum(worker.counted for worker in workers)
            if done < count and (ended or time.monotonic() > deadline):
                raise LabError(f"only {done} of {count} messages were done")
            time.sleep(POLL_S)

    def finish(self, workers: list[Worker], count: int, seconds: float) -> list[Any]:
        """Return the results of *workers* once they have counted *count* messages; see `reach`."""
        self.reach(workers, count, seconds)
        return self.stop(workers)

    def stop(self, workers: list[Worker]) -> list[Any]:
        """Stop *workers* and return their results."""
        for worker in workers:
            worker.send("stop")
        return [worker.result() for worker in workers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that forked it ends.

    The harness forks from its only thread, so this happens whenever and however the harness ends.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def raise_file_limit() -> None:
    """Raise the limit of open files to the hard limit: a thousand streams need two thousand."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _run(work: Work, pipe: Pipe, progress: Any, slot: int) -> None:
    die_with_parent()
    # Ctrl-C reaches the whole group; the parent decides when to stop the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def main() -> Any:
        return await work(Signals(pipe, progress, slot))

    try:
        result = uvloop.run(main())
        os.set_blocking(pipe.fileno(), True)  # the loop's reader had turned this off
        pipe.send(("result", result))
    except BaseException:  # noqa: BLE001 - the parent must learn of any error
        pipe.send(("failed", traceback.format_exc()))
