"""Connections for statements and for a STREAM, reopened whenever they break."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncmy
from asyncmy.cursors import SSCursor
from asyncmy.errors import MySQLError


if TYPE_CHECKING:
    from .address import Address


SILENCE_S = 30.0  # a connection that is silent for this long is dropped
PAUSE_S = 0.1
PAUSE_MAX_S = 10.0
# Errors that another try would repeat.
PERMANENT = frozenset(
    (
        *(1044, 1045, 1142, 1143),  # a wrong password or a missing privilege
        *(1049, 1054, 1094, 1146),  # no such database, column, connection or table
        *(1064, 1210, 1235),  # wrong or unsupported SQL, a wrong setting
        *(1153, 1264, 1292, 1366, 1406, 1690, 3140),  # a wrong value, or one that is too long
        *(1048, 1062, 1216, 1217, 1442, 1451, 1452, 1644, 3819, 4025),  # a refused row
    )
)
BROKEN = (MySQLError, OSError, EOFError, asyncio.TimeoutError)

log = logging.getLogger("streamfrom_worker")


@dataclass(frozen=True)
class Answer:
    """The rows of a query and the number of rows that a statement changed."""

    rows: Sequence[Sequence[Any]]
    changed: int


def is_permanent(error: BaseException) -> bool:
    """Return whether the same statement would fail again. *error* may come from any driver."""
    return bool(error.args) and error.args[0] in PERMANENT


def pause_s(tries: int) -> float:
    """Return the seconds until the next try: longer after each try, with jitter."""
    longest = min(PAUSE_S * 2.0 ** min(tries, 10), PAUSE_MAX_S)
    return longest * random.uniform(0.5, 1)  # noqa: S311 - jitter


async def pause(tries: int) -> None:
    """Sleep until the next try."""
    await asyncio.sleep(pause_s(tries))


async def connect(address: Address, **options: Any) -> asyncmy.Connection:
    """Open a connection with autocommit."""
    return await asyncmy.connect(
        **address.options(), autocommit=True, program_name="streamfrom-worker", **options
    )


class Session:
    """Runs one statement at a time and repeats it until the proxy replies.

    A statement whose reply was lost is sent again, so each statement must be idempotent.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: asyncmy.Connection | None = None
        self._turn = asyncio.Lock()

    async def run(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Run a statement and return its reply, however long the proxy is unreachable.

        Raises:
            MySQLError: a permanent error.
        """
        tries = 0
        async with self._turn:
            while True:
                try:
                    return await self._once(sql, values)
                except BROKEN as error:
                    self._drop()
                    if is_permanent(error):
                        raise
                    log.warning("statement failed, trying again", extra={"error": str(error)})
                except asyncio.CancelledError:
                    self._drop()
                    raise
                await pause(tries)
                tries += 1

    async def close(self) -> None:
        """Disconnect. The next statement reconnects."""
        async with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.ensure_closed()

    async def _once(self, sql: str, values: Sequence[Any]) -> Answer:
        if self._connection is None:
            self._connection = await connect(self._address, read_timeout=SILENCE_S)
        async with self._connection.cursor() as cursor:
            changed = await cursor.execute(sql, tuple(values) or None)
            rows = await cursor.fetchall() if cursor.description else ()
            return Answer(rows, changed)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


PING_S = 15.0  # how often to check that the proxy replies


class Stream:
    """The rows of one STREAM, until `stop`.

    A stream may be silent for hours, so silence does not show that the proxy has gone. Pings over the
    *control* session show it: while they get no reply, the stream counts as broken.

    on_break: called when the stream broke. The proxy then redelivers its messages to any worker.
    """

    def __init__(
        self, address: Address, control: Session, sql: str, on_break: Callable[[], None]
    ) -> None:
        self._address = address
        self._control = control
        self._sql = sql
        self._on_break = on_break
        self._connection: asyncmy.Connection | None = None
        self._stopped = asyncio.Event()

    async def rows(self) -> AsyncIterator[Sequence[Any]]:
        """Yield rows as they arrive.

        Raises:
            MySQLError: the statement is wrong, or the user may not stream.
        """
        tries = 0
        while not self._stopped.is_set():
            try:
                self._connection = await connect(self._address)
                cursor = self._connection.cursor(SSCursor)
                await cursor.execute(self._sql)
                while (row := await cursor.fetchone()) is not None:
                    tries = 0
                    yield row
            except BROKEN as error:
                if self._stopped.is_set():
                    return
                if is_permanent(error):
                    raise
                log.warning("stream ended, opening it again", extra={"error": str(error)})
                self._on_break()
            finally:
                if not self._stopped.is_set():
                    self.drop()
            await pause(tries)
            tries += 1

    async def stop(self) -> None:
        """End the STREAM but keep its connection, so that its messages stay with this worker."""
        self._stopped.set()
        if self._connection is not None:
            await self._control.run(f"KILL QUERY {self._connection.thread_id()}")

    async def close(self) -> None:
        """Disconnect. Other workers get the unacked messages."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.ensure_closed()

    def drop(self) -> None:
        """Close the connection without a goodbye. Other workers get the unacked messages."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def watch(self) -> None:
        """Ping the proxy, and close the stream's connection if it does not reply; runs until cancelled."""
        while True:
            await asyncio.sleep(PING_S)
            asking = asyncio.ensure_future(self._control.run("DO 0"))
            done, _ = await asyncio.wait([asking], timeout=2 * PING_S)
            if not done:
                log.warning("the proxy does not answer, opening the stream again")
                self.drop()
            await asking
