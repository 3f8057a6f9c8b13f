"""A STREAM that is held open, and opened again whenever it breaks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import asyncmy
from asyncmy.cursors import SSCursor

from .address import Address
from .session import BROKEN, Session, connect, is_permanent, pause


PING_S = 15.0  # between two looks whether the proxy still answers

log = logging.getLogger("streamfrom_worker")


class Stream:
    """The rows of one STREAM, until `stop`.

    A stream may rightly be silent for hours, so silence does not show that the proxy has gone. The other
    session, *control*, is asked instead: while it is not answered the stream counts as broken.

    on_break: called when it has broken: its messages go to any worker.
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
        """Yield rows as they come.

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
        """End the stream, and keep its connection, so that its messages stay with this worker."""
        self._stopped.set()
        if self._connection is not None:
            await self._control.run(f"KILL QUERY {self._connection.thread_id()}")

    async def close(self) -> None:
        """Leave, which gives what is still unacked to other workers."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.ensure_closed()

    def drop(self) -> None:
        """Close the connection: the proxy gives what is still unacked to other workers."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def watch(self) -> None:
        """Close the stream's connection when the proxy does not answer; runs until it is cancelled."""
        while True:
            await asyncio.sleep(PING_S)
            asking = asyncio.ensure_future(self._control.run("DO 0"))
            done, _ = await asyncio.wait([asking], timeout=2 * PING_S)
            if not done:
                log.warning("the proxy does not answer, opening the stream again")
                self.drop()
            await asking
