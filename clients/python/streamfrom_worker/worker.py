"""A worker calls functions with the messages of their queues until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from . import address
from .consumer import Consumer
from .handler import Function, Handler
from .outcomes import Park, Result, Retry


SIGNALS = (signal.SIGTERM, signal.SIGINT)
F = TypeVar("F", bound=Function)

log = logging.getLogger("streamfrom_worker")


class Worker:
    """Calls your functions with messages.

    ::

        worker = Worker("mysql://app:secret@127.0.0.1:15306/commerce")


        @worker.queue("email", concurrency=8)
        def send(message):
            smtp.send(message["payload"])


        worker.run()

    If a function returns, its message is acknowledged. If it raises, its message is redelivered after the
    queue's backoff; raise `Retry(after=…)` or `Park("why")` to change that. While a function runs, the worker
    extends the lease of its message.

    grace: seconds that running functions have to finish after SIGTERM.
    on_result: called with each `Result`; exceptions from it are logged.
    """

    def __init__(
        self,
        url: str,
        *,
        grace: float = 30.0,
        on_result: Callable[[Result], None] | None = None,
    ) -> None:
        self._address = address.parse(url)
        self._grace_s = grace
        self._hook = on_result
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.handlers: dict[str, Handler] = {}

    def queue(
        self,
        name: str,
        *,
        concurrency: int = 1,
        prefetch: int | None = None,
        batch: int | None = None,
        columns: Sequence[str] | None = None,
        json: Sequence[str] | None = None,
        heartbeat: float | None = None,
        retry: Callable[[int], float] | None = None,
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function for the queue *name*.

        Args:
            name: the queue, in the URL's keyspace, or `keyspace.queue`.
            concurrency: how many calls run at once, in threads or as coroutines.
            prefetch: the maximum number of unacknowledged messages; default: as many as can be processed at once.
                More is faster if processing takes a few milliseconds.
            batch: pass the function a list of up to this many messages; its outcome applies to all of them.
            columns: the columns of a message; default: all.
            json: the columns to decode; default: those of type JSON.
            heartbeat: seconds between two extensions of a lease; default: a third of `ack_wait`.
            retry: a function from the number of this delivery to the seconds until the next;
                default: the queue's backoff.

        Raises:
            ValueError: a number is out of range, or the queue has a function already.
        """

        def register(function: F) -> F:
            if name in self.handlers:
                raise ValueError(f"queue {name} has a function already")
            self.handlers[name] = Handler(
                name, function, concurrency, prefetch, batch, columns, json, heartbeat, retry
            )
            return function

        return register

    def run(self) -> None:
        """Run until SIGTERM or Ctrl-C.

        Raises:
            MySQLError: a queue does not exist, or the user may not use it.
            ValueError: a queue does not fit its function, or no function is registered.
        """
        asyncio.run(self._run_until_signal())

    async def serve(self) -> None:
        """Run until `stop`, for programs with their own event loop. Raises the same errors as `run`."""
        if not self.handlers:
            raise ValueError("the worker has no function: use @worker.queue(…)")
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(
            sum(one.concurrency for one in self.handlers.values()), "streamfrom-worker"
        )
        consumers = [
            asyncio.create_task(
                Consumer(self._address, handler, threads, self._report).run(
                    self._stopping, self._grace_s
                )
            )
            for handler in self.handlers.values()
        ]
        try:
            # The first to fail stops the others, which finish their work first.
            await asyncio.wait(consumers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stopping.set()
            ended = await asyncio.gather(*consumers, return_exceptions=True)
            threads.shutdown(wait=False)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    def stop(self) -> None:
        """Stop taking messages; `serve` returns once running functions have finished.

        Any thread may call it.
        """
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _run_until_signal(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.stop)
        await self.serve()

    def _report(self, result: Result) -> None:
        log_result(result)
        if self._hook is not None:
            try:
                self._hook(result)
            except Exception:  # an error in a hook must not cost a message
                log.exception("on_result failed")


def log_result(result: Result) -> None:
    """Log the outcome of a message, without a traceback if the function raised Retry or Park."""
    is_asked = isinstance(result.error, (Retry, Park))
    log.log(
        logging.DEBUG if result.error is None else logging.WARNING,
        "message ended",
        extra={
            "outcome": result.outcome.value,
            "queue": result.queue,
            "id": result.id,
            "delivery": result.delivery,
            "seconds": result.seconds,
            "retry_after": result.retry_after,
            "error": str(result.error) if is_asked else None,
        },
        exc_info=None if is_asked else result.error,
    )
