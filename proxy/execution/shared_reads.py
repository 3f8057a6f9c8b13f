"""Quick reads of one session on connections that others use at the same moment.

`SharedReads` finds the line (`proxy.backends.multiplexing`) that a read may join, and follows its answer. A
`SharedRead` is a `AnswerRelay` that writes nothing before its answer is complete: one that is not what a
quick read's should be is dropped, and the statement runs again on a connection of the session's own.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.diagnostics_area import LastDiagnostics
from streamfrom.proxy.execution.answer_relay import AnswerRelay
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.execution.retry_rules import Ending, ending_of
from streamfrom.proxy.execution.session_connections import named
from streamfrom.proxy.wire.constants import Status


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.multiplexing import SharedConnection
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.errors import BackendLost
    from streamfrom.proxy.execution.prepared_execution import Packet
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.execution.session_connections import SessionConnections
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.wire.response import PassThrough, Resequencer


# What is kept back of an answer; a longer one is none for a line.
HELD_BYTES_MAX: Final = 64 << 10
# A longer statement has hundreds of values, and is not as quick as others of its shape.
SENT_BYTES_MAX: Final = 4 << 10

_OPEN: Final = int(Status.IN_TRANS | Status.CURSOR_EXISTS)


class SharedRead(AnswerRelay):
    """One read on a line.

    Attributes:
        line: the shared connection that runs it, None once the connection is the session's own.
        packet: the packet that was sent.
    """

    __slots__ = ("_on_own", "line", "packet")

    def __init__(
        self,
        scanner: PassThrough | Resequencer,
        backend: Backend,
        client: Link,
        on_done: Callable[[AnswerRelay], None],
        line: SharedConnection,
        packet: bytes | Packet,
        on_own: Callable[[SharedRead], None],
    ) -> None:
        """*on_own* is called when the connection becomes the session's own."""
        super().__init__(scanner, backend, client, on_done)
        self.line: SharedConnection | None = line
        self.packet = packet
        self._on_own = on_own

    def data_received(self, data: bytes) -> bytes | None:
        """Keep what *data* holds for the client until the answer is complete."""
        line = self.line
        if line is None:
            return super().data_received(data)
        scanner = self.scanner
        self.held += scanner.feed(data)
        if scanner.done:
            return scanner.rest
        if len(self.held) > HELD_BYTES_MAX:
            line.break_up()
        return None

    def answer_completed(self) -> None:
        """Report the end."""
        if self.line is not None:
            self.line.read_over(self.backend)
        super().answer_completed()

    def connection_lost(self, error: BackendLost) -> None:
        """Report that the backend went away, for this read at least."""
        if self.line is not None:
            self.line.connection_lost(self.backend)
        super().connection_lost(error)

    def take_over(self) -> None:
        """Go on as any other answer, on a connection of the session's own."""
        self.line = None
        if self.held:
            held, self.held = self.held, b""
            self._write(held)
        self._on_own(self)


class SharedReads:
    """The reads of one session on lines: one at a time, as all its statements are."""

    def __init__(self, state: SessionState, link: Link, holdings: SessionConnections) -> None:
        self._state = state
        self._link = link
        self._holdings = holdings
        # By shard, and only as long as the session's variables and database are the line's.
        self._lines: dict[ShardRuntime, SharedConnection] = {}
        self._current: SharedRead | None = None
        self._known: asyncio.Future[None] | None = None

    def send(
        self,
        shard: ShardRuntime,
        database: str | None,
        packet: bytes | Packet,
        reply: Reply,
        on_over: Callable[[AnswerRelay | Exception], None],
    ) -> SharedRead | None:
        """Send a quick read among those of other sessions; None where that cannot be.

        *on_over* gets what is returned, once it is over.
        """
        line = self._line(shard, database)
        if line is None or not (line.is_busy or shard.lines.others_are_busy):
            return None
        backend = line.connection()
        if backend is None:
            # By the next time there may be another line.
            del self._lines[shard]
            return None
        data = packet if isinstance(packet, bytes) else packet.packet_for(backend)
        if data is None:
            if isinstance(packet, Execution):
                line.prepare(backend, packet.key)
            return None
        if len(data) > SENT_BYTES_MAX:
            return None
        on_own = partial(self._take_over, shard)
        read = SharedRead(reply.scanner(), backend, self._link, on_over, line, packet, on_own)
        self._current = read
        line.read_sent()
        backend.send_ahead(data, read)
        return read

    def settle(self, shard: ShardRuntime, read: SharedRead) -> bool:
        """Follow the answer of a read on a line; False where it must be had once more, apart.

        An error or warnings are what the session may ask for next, and the line's next read clears
        them.
        """
        self._current = None
        scanner = read.scanner
        if read.failure is not None:
            if read.backend.is_closed:
                shard.suspect()
            return False
        error = scanner.error
        if error is not None or not scanner.is_plain or scanner.status & _OPEN:
            read.backend.has_residue = True
            packet = read.packet
            if (
                not isinstance(packet, bytes)
                and ending_of(error, is_prepared=True) is Ending.STALE
            ):
                packet.forget_on(read.backend)
            return False
        if self._known is None:
            # What a read leaves is known with its answer.
            self._known = asyncio.get_running_loop().create_future()
            self._known.set_result(None)
        left = LastDiagnostics(self._known)
        left.found_rows = scanner.rows
        self._state.answered_at, self._state.left = None, left
        return True

    def break_up(self) -> None:
        """Give the read under way a connection of its own, where it can be stopped.

        A read that waits for earlier ones is not stopped but sent again.
        """
        read = self._current
        if read is not None and read.line is not None:
            read.line.break_up()

    def forget(self) -> None:
        """Give up the read under way."""
        self._current = None

    def _line(self, shard: ShardRuntime, database: str | None) -> SharedConnection | None:
        state = self._state
        if state.attributes:
            return None
        database = named(shard, database)
        line = self._lines.get(shard)
        if line is None or line.settings is not state.settings or line.database != database:
            line = shard.lines.line(state.settings, state.variant, database)
            if line is not None:
                self._lines[shard] = line
        return line

    def _take_over(self, shard: ShardRuntime, read: SharedRead) -> None:
        backend = read.backend
        if read is self._current:
            backend.owner = self._state
            self._holdings.started(shard, backend)
        else:
            self._holdings.abandon(shard, backend)
