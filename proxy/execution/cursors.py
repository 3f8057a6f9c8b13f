"""The rows of an execution whose client takes them by COM_STMT_FETCH."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from sys import getsizeof
from typing import TYPE_CHECKING, cast

from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.wire.response_reader import DEPRECATE_EOF
from streamfrom.proxy.wire.row_collector import RowCollector
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.prepared_execution import CursorExecution
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.wire.resultset import Ok


class OpenCursor:
    """The rows that a client has still to fetch: those of cursors that shards have opened, and those kept here.

    It is the link of a `CursorReply` and reads the written packets: the columns, the rows, and an OK or an error.
    """

    blocked = False

    def __init__(
        self, link: Link, memory: Memory, stop: Callable[[StreamfromError], None]
    ) -> None:
        self.answer = RowCollector()
        self.on_shards: deque[tuple[ShardRuntime, CursorExecution]] = deque()
        self.rows: deque[bytes] = deque()
        self._link = link
        self._memory = memory
        self._stop = stop  # called with the error when the memory does not suffice
        self._is_dropped = False

    def write(self, data: bytes) -> None:
        """Keep the rows in a piece of the answer."""
        rows = self.answer.feed(data)
        if self._is_dropped:
            return
        try:
            self._memory.change(sum(map(getsizeof, rows)))
        except StreamfromError as error:
            self.drop()
            self._stop(error)
        else:
            self.rows += rows

    def write_ahead(self, data: bytes, _within_s: float = 0) -> None:
        """Keep it, as `write`."""
        self.write(data)

    @property
    def is_gone(self) -> bool:
        """True once the client is gone."""
        return self._link.is_gone

    def set_high_water(self, _limit_bytes: int) -> None:
        """Do nothing: nothing waits here."""

    def close(self) -> None:
        """Do nothing: a broken answer has not reached the client, which gets an error instead."""

    def ended(self, stopped: StreamfromError | None) -> Ok:
        """Return the OK behind the answer. Raises *stopped*, or the error that ended the answer."""
        if stopped is not None:
            raise stopped
        if self.answer.error is not None:
            raise self.answer.error.exception()
        assert self.answer.ok is not None
        return self.answer.ok

    def take(self, count: int) -> list[bytes]:
        """Return the next rows that are kept, *count* at most."""
        rows = [self.rows.popleft() for _ in range(min(count, len(self.rows)))]
        self._memory.change(-sum(map(getsizeof, rows)))
        return rows

    def drop(self) -> None:
        """Forget all kept rows."""
        self._is_dropped = True
        self.take(len(self.rows))


class CursorReply(Reply):
    """An answer that an `OpenCursor` keeps."""

    __slots__ = ("cursor",)

    def __init__(self, cursor: OpenCursor, state: SessionState) -> None:
        super().__init__(cast("Link", cursor), state, 1, binary=True)
        self.cursor = cursor

    @property
    def capabilities(self) -> int:
        """The client's flags, with the form of answers that `RowCollector` reads."""
        return super().capabilities | DEPRECATE_EOF
