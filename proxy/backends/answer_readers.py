"""Readers of a backend connection's answers, one for each command.

`Backend.send` takes an `AnswerReader` for the answer that will come. The readers of this module make an object of it: a
whole answer (`AnswerCollector`), a prepared statement (`PrepareAnswerReader`), or
nothing (`DiscardedAnswer`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from streamfrom.proxy.wire.prepare_response import PrepareReader
from streamfrom.proxy.wire.row_collector import RowCollector


if TYPE_CHECKING:
    from streamfrom.proxy.errors import BackendLost
    from streamfrom.proxy.net import Link


T = TypeVar("T")


class AnswerReader(Protocol):
    """Consumes one answer."""

    __slots__ = ()

    def data_received(self, data: bytes) -> bytes | None:
        """Take bytes; return None while the answer continues, else the bytes that follow it."""

    def answer_completed(self) -> None:
        """Use the complete answer; the connection is free for the next command."""

    def connection_lost(self, error: BackendLost) -> None:
        """Give the answer up: the rest will not come."""


class DiscardedAnswer:
    """Drops an answer."""

    def data_received(self, data: bytes) -> bytes | None:
        """Drop it."""

    def answer_completed(self) -> None:
        """Do nothing."""

    def connection_lost(self, error: BackendLost) -> None:
        """Do nothing: no caller waits."""


class BufferedAnswer:
    """A whole answer to one of the proxy's own statements."""

    __slots__ = ("bytes", "columns", "error", "ok", "rows")

    def __init__(self, collector: RowCollector, rows: list[bytes], size: int) -> None:
        self.columns = collector.columns  # column definitions, as payloads
        self.rows = rows  # the rows in the protocol of the command, as payloads
        # The bytes of the rows on the wire; if they exceed the limit, `rows` is empty.
        self.bytes = size
        self.ok = collector.ok  # the final OK, None after an error
        self.error = collector.error  # the server's error, None after success


class AnswerCollector:
    """Collects a whole answer and calls *heard* with it, be it a refusal; *lost* if the rest will not come. So no task needs to wait.

    bytes_max: how many bytes of rows are kept; of a longer answer no row is kept.
    """

    __slots__ = ("_bytes", "_bytes_max", "_collector", "_heard", "_lost", "_rows")

    def __init__(
        self,
        heard: Callable[[BufferedAnswer], None],
        lost: Callable[[BackendLost], None],
        bytes_max: int = sys.maxsize,
    ) -> None:
        self._heard = heard
        self._lost = lost
        self._collector = RowCollector()
        self._rows: list[bytes] = []
        self._bytes = 0
        self._bytes_max = bytes_max

    def data_received(self, data: bytes) -> bytes | None:
        """Take bytes, as `AnswerReader.data_received`."""
        rows = self._collector.feed(data)
        if rows:
            self._bytes += len(data)
            self._rows += rows
            if self._bytes > self._bytes_max:
                self._rows.clear()
        return self._collector.rest if self._collector.done else None

    def answer_completed(self) -> None:
        """Call *heard*."""
        self._heard(BufferedAnswer(self._collector, self._rows, self._bytes))

    def connection_lost(self, error: BackendLost) -> None:
        """Call *lost*."""
        self._lost(error)


class Awaited(Generic[T]):
    """The result for which a sender waits."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        # Raises BackendLost if the rest of the answer will not come.
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def succeed(self, result: T) -> None:
        """Wake the sender with *result*, unless it has stopped waiting."""
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        """Wake the sender with *error*, unless it has stopped waiting."""
        if not self.future.done():
            self.future.set_exception(error)
            # Read: asyncio would log it where the sender is cancelled at the same moment.
            self.future.exception()


class PrepareAnswerReader(Awaited[PrepareReader]):
    """Reads the answer to COM_STMT_PREPARE."""

    __slots__ = ("_answer", "_link")

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self._answer = PrepareReader()

    def data_received(self, data: bytes) -> bytes | None:
        """Take bytes, as `AnswerReader.data_received`."""
        self._answer.feed(data)
        if self._answer.done:
            return self._answer.rest
        # The definitions of 65,535 parameters are 20 ms of work.
        self._link.pass_turn()
        return None

    def answer_completed(self) -> None:
        """Return the answer, even a refusal."""
        self.succeed(self._answer)

    connection_lost = Awaited.fail
