"""A worker: functions, each with its queue, until it is stopped."""

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

    A function that returns acknowledges its message. One that raises has it delivered again after the
    queue's backoff; `Retry(after=…)` and `Park("why")` choose otherwise. While a function runs, its
    message's lease is extended.

    grace: seconds that running functions have to end after SIGTERM.
    on_result: called with each `Result`; an error of its own is logged.
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
        """Return a decorator: the function works on the messages of the queue *name*.

        Args:
            name: the queue, in the URL's keyspace, or `keyspace.queue`.
            concurrency: how many calls run at once: in threads, or as coroutines.
            prefetch: how many messages are held at most; as many as can be worked on by default. More
                is faster for work of a few milliseconds.
            batch: the function gets a list of so many messages at most, and answers for all of them.
            columns: those that a message brings; all by default.
            json: the columns to decode; those of the type JSON by default.
            heartbeat: seconds between two extensions of a lease; a third of `ack_wait` by default.
            retry: seconds until the next delivery, given the number of this one; the queue's own
                backoff by default.

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
        """Work until SIGTERM or Ctrl-C.

        Raises:
            MySQLError: a queue does not exist, or the user may not use it.
            ValueError: a queue does not fit its function, or there is no function.
        """
        asyncio.run(self._run_until_signal())

    async def serve(self) -> None:
        """Work until `stop`; for programs that have an event loop already. Raises as `run` does."""
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
            # The first that fails stops the others, which end their work first.
            await asyncio.wait(consumers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stopping.set()
            ended = await asyncio.gather(*consumers, return_exceptions=True)
            threads.shutdown(wait=False)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    def stop(self) -> None:
        """Take no more messages, let running functions end, then return from `serve`.

        Another thread may call it, too.
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
            except Exception:  # a hook must not cost a message
                log.exception("on_result failed")


def log_result(result: Result) -> None:
    """Log how work on a message ended; what a function asks for, by Retry or Park, is no failure to trace."""
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
