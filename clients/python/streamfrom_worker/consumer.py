"""Consume one queue: receive messages from its stream, process them, and write the results."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asyncmy.errors import MySQLError

from .message import Message
from .names import quoted
from .outcomes import Outcome, Result
from .session import Session, Stream
from .table import ERROR_MAX, Table, describe


if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .address import Address
    from .handler import Handler


AT_ONCE = 500  # ids in one statement

log = logging.getLogger("streamfrom_worker")


class Completer:
    """Collects results while a statement is running and writes them with the next one."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session = session
        self._table = table
        self._acked: list[Any] = []
        self._writing: list[Any] = []
        self._returned: list[Any] = []
        self._others: list[Result] = []
        self._news = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def add(self, result: Result) -> None:
        """Queue *result* to be written."""
        if result.outcome is Outcome.ACKED:
            self._acked.append(result.id)
        elif result.outcome is Outcome.RETURNED:
            self._returned.append(result.id)
        else:
            self._others.append(result)
        self._is_idle.clear()
        self._news.set()

    def is_done(self, ident: Any) -> bool:
        """Return whether a message's acknowledgement is still to be written."""
        return ident in self._acked or ident in self._writing

    async def written(self) -> None:
        """Wait until all added results are written."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Write results until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._acked or self._returned or self._others:
                await self._write()
            if not self._news.is_set():
                self._is_idle.set()

    async def _write(self) -> None:
        acked, self._acked = self._acked[:AT_ONCE], self._acked[AT_ONCE:]
        self._writing = acked
        if acked:
            changed = await self._each(self._table.acknowledge, acked)
            if changed < len(acked):
                # A lease ended before its work did, and another worker was faster.
                log.warning(
                    "messages were acknowledged before",
                    extra={"queue": self._table.name, "count": len(acked) - changed},
                )
        self._writing = []
        returned, self._returned = self._returned[:AT_ONCE], self._returned[AT_ONCE:]
        if returned:
            await self._each(self._table.give_back, returned)
        others, self._others = self._others, []
        for result in others:
            await self._reschedule(result)

    async def _each(self, statement: Any, ids: list[Any]) -> int:
        """Run *statement* for all ids; if the server refuses them together, run it for each alone."""
        try:
            return (await self._session.run(statement(len(ids)), ids)).changed
        except MySQLError as error:
            if len(ids) == 1:
                log.error(  # noqa: TRY400 - the server's message is enough
                    "the server refuses a change of a message",
                    extra={"queue": self._table.name, "id": ids[0], "error": str(error)},
                )
                return 1
            return sum([await self._each(statement, [one]) for one in ids])

    async def _reschedule(self, result: Result) -> None:
        is_parked = result.outcome is Outcome.PARKED
        wait = [] if is_parked else [round((result.retry_after or 0.0) * 1e6)]
        error_text = [_text(result.error)] if self._table.has_last_error else []
        statement = self._table.reschedule(parked=is_parked)
        try:
            await self._session.run(statement, [*wait, *error_text, result.id])
        except MySQLError as error:
            # Its lease will end, and the message will be redelivered.
            log.error(  # noqa: TRY400 - as above
                "the server refuses to reschedule a message",
                extra={"queue": self._table.name, "id": result.id, "error": str(error)},
            )


def _text(error: BaseException | None) -> str | None:
    if error is None:
        return None
    said, name = str(error), type(error).__name__
    text = said if name in ("Retry", "Park") else f"{name}: {said}" if said else name
    return text[:ERROR_MAX]


class Consumer:
    """Consumes one queue until it is stopped.

    on_result: called with each result, in the worker's event loop.
    """

    # Set once the proxy has described the queue.
    _table: Table
    _completer: Completer

    def __init__(
        self,
        address: Address,
        handler: Handler,
        threads: Executor,
        on_result: Callable[[Result], None],
    ) -> None:
        self._address = address
        self._handler = handler
        self._threads = threads
        self._on_result = on_result
        self._session = Session(address)
        self._received: asyncio.Queue[Message] = asyncio.Queue()
        self._held: dict[Any, float] = {}  # when the lease of each id was last extended
        self._working: set[asyncio.Task[None]] = set()

    async def run(self, stopping: asyncio.Event, grace_s: float) -> None:
        """Process messages until *stopping*, then give running work *grace_s* seconds to finish.

        Raises:
            MySQLError: the queue does not exist, or the user may not use it.
            ValueError: the queue does not fit the handler.
        """
        try:
            table = await self._described_unless(stopping)
            if table is not None:
                self._table = table
                self._completer = Completer(self._session, table)
                await self._consume(stopping, grace_s)
        finally:
            await self._session.close()

    async def _consume(self, stopping: asyncio.Event, grace_s: float) -> None:
        prefetch = self._handler.prefetched
        sql = self._table.stream(prefetch)
        stream = Stream(self._address, self._session, sql, self._forget_waiting)
        log.info("queue opened", extra={"queue": self._table.name, "prefetch": prefetch})
        work = (self._receive(stream), self._extend(), stream.watch(), self._completer.run())
        slots = [asyncio.create_task(self._work()) for _ in range(self._handler.concurrency)]
        stopped = asyncio.create_task(stopping.wait())
        tasks = [*map(asyncio.create_task, work), *slots, stopped]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                await self._end(stream, slots, grace_s)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await stream.close()
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _described_unless(self, stopping: asyncio.Event) -> Table | None:
        """Return the queue's table, or None if the worker is stopped while the proxy is unreachable."""
        describing = asyncio.create_task(self._described())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait([describing, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not describing.done():
            describing.cancel()
            await asyncio.wait([describing])
            return None
        return await describing

    async def _described(self) -> Table:
        name = self._handler.queue
        columns = (await self._session.run(f"SHOW COLUMNS FROM {quoted(name)}")).rows
        definition = (await self._session.run(f"SHOW CREATE TABLE {quoted(name)}")).rows
        return describe(
            name,
            [(str(row[0]), str(row[1])) for row in columns],
            str(definition[0][1]),
            wanted=self._handler.columns,
            json_columns=self._handler.json,
        )

    async def _receive(self, stream: Stream) -> None:
        async for row in stream.rows():
            try:
                message = self._table.message(row)
            except ValueError as error:
                broken = Message(self._table.name, row[0], int(row[1]) + 1)
                self._report([self._handler.result(broken, Outcome.PARKED, 0.0, error)])
                continue
            if message.id in self._held or self._completer.is_done(message.id):
                continue  # a restarted proxy does not know that this worker holds it
            self._held[message.id] = time.monotonic()
            self._received.put_nowait(message)

    def _forget_waiting(self) -> None:
        """Drop unstarted messages of a broken stream: the proxy redelivers them to any worker."""
        while not self._received.empty():
            self._held.pop(self._received.get_nowait().id, None)

    async def _work(self) -> None:
        while True:
            messages = [await self._received.get()]
            while len(messages) < (self._handler.batch or 1) and not self._received.empty():
                messages.append(self._received.get_nowait())
            # A separate task, so that a stop can wait for the work instead of the slot.
            task = asyncio.create_task(self._work_on(messages))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
            await asyncio.shield(task)

    async def _work_on(self, messages: Sequence[Message]) -> None:
        self._report(await self._handler.call(messages, self._threads))

    def _report(self, results: Sequence[Result]) -> None:
        for one in results:
            result = one
            if result.outcome is Outcome.RETRIED and result.retry_after is None:
                result = replace(result, retry_after=self._table.backoff_s(result.delivery))
            self._held.pop(result.id, None)
            if not result.is_written:
                self._completer.add(result)
            self._on_result(result)

    async def _extend(self) -> None:
        """Extend the leases of messages held for long, including those not started yet."""
        table = self._table
        every_s = self._handler.heartbeat_s or table.ack_wait_s / 3
        while True:
            await asyncio.sleep(every_s / 4)
            now = time.monotonic()
            late = [one for one, since in self._held.items() if now - since >= every_s]
            if late:
                try:
                    await self._session.run(
                        table.extend(len(late)), [round(every_s * 1e6), *late]
                    )
                except MySQLError as error:
                    log.warning(
                        "leases not extended", extra={"queue": table.name, "error": str(error)}
                    )
                for one in late:
                    if one in self._held:
                        self._held[one] = now

    async def _end(
        self, stream: Stream, slots: Sequence[asyncio.Task[None]], grace_s: float
    ) -> None:
        """Stop receiving, return the messages not started, and wait for the others."""
        for slot in slots:
            slot.cancel()
        try:
            await asyncio.wait_for(stream.stop(), grace_s)
        except (asyncio.TimeoutError, MySQLError):
            stream.drop()
        while not self._received.empty():
            waiting = self._received.get_nowait()
            self._completer.add(self._handler.result(waiting, Outcome.RETURNED, 0.0))
        if self._working:
            _, running = await asyncio.wait(self._working, timeout=grace_s)
            for task in running:
                task.cancel()
            if running:
                log.warning(
                    "work was cut off",
                    extra={"queue": self._handler.queue, "count": len(running)},
                )
                await asyncio.wait(running)
        try:
            await asyncio.wait_for(self._completer.written(), grace_s)
        except asyncio.TimeoutError:
            log.warning("results were not written", extra={"queue": self._handler.queue})
