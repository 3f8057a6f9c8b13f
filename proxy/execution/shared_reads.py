"""Quick reads of one session on connections that other sessions use at the same time.

`SharedReads.send` decides whether a read shares a connection (`proxy.backends.pooling.multiplexing`), and `SharedReads.answered`
returns how the read ended there. Nothing is written to the client before the answer is complete. An error, or an
answer with warnings, is dropped, and the statement runs again on the session's own connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.execution.retry_rules import Ending
from streamfrom.proxy.execution.session_connections import SessionConnections, named
from streamfrom.proxy.wire.constants import Status


if TYPE_CHECKING:
    from streamfrom.proxy.backends.pooling.multiplexing import SharedConnection
    from streamfrom.proxy.errors import BackendLost
    from streamfrom.proxy.execution.attempt import Attempt
    from streamfrom.proxy.execution.session_state import SessionState


# How many bytes of an answer are kept back; the reader of a longer answer gets the connection exclusively.
HELD_BYTES_MAX: Final = 64 << 10
# The longest that an answer may take on a connection whose later reads wait for it.
_SMALL_BYTES_MAX: Final = 16 << 10
# A longer statement has hundreds of values, and is not as quick as others of its shape.
SENT_BYTES_MAX: Final = 4 << 10

_OPEN: Final = int(Status.IN_TRANS | Status.CURSOR_EXISTS)


@dataclass(slots=True, eq=False)
class SharedRead:
    """The reader of an attempt's answer on a shared connection."""

    attempt: Attempt  # the statement
    # The shared connection that runs it, None once the connection is the session's own.
    shared: SharedConnection | None
    _reads: SharedReads

    def data_received(self, data: bytes) -> bytes | None:
        """Keep the part of *data* that is for the client until the answer is complete."""
        attempt, shared = self.attempt, self.shared
        if shared is None:
            return attempt.data_received(data)
        scanner = attempt.scanner
        attempt.held += scanner.feed(data)
        if scanner.done:
            return scanner.rest
        if len(attempt.held) > HELD_BYTES_MAX:
            shared.break_up()
        return None

    def answer_completed(self) -> None:
        """Report the end."""
        if self.shared is not None:
            self.shared.read_over(self.attempt.backend)
        self.attempt.answer_completed()

    def connection_lost(self, error: BackendLost) -> None:
        """Report that the backend went away, at least for this read."""
        attempt = self.attempt
        if self.shared is None:
            attempt.connection_lost(error)
            return
        self.shared.connection_lost(attempt.backend)
        attempt.failure = error
        attempt.on_over(attempt)

    def take_over(self) -> None:
        """Continue like any other attempt, with the connection as the session's own."""
        self.shared = None
        attempt = self.attempt
        if attempt.held:
            held, attempt.held = attempt.held, b""
            attempt.write(held)
        self._reads.taken_over(self)


class SharedReads:
    """The shared reads of one session: one at a time, as all its statements are."""

    def __init__(self, state: SessionState, connections: SessionConnections) -> None:
        self._state = state
        self._own = connections
        self._current: SharedRead | None = None
        self._began_s = 0.0
        self._loop = asyncio.get_running_loop()

    def send(self, attempt: Attempt) -> bool:
        """Send a plain read among those of other sessions; False if that is impossible.

        If sent, its answer goes to `answered`.
        """
        assert attempt.latency is not None
        if not attempt.latency.is_quick:
            self._began_s = self._loop.time()
            return False
        shard, packet = attempt.shard, attempt.packet
        if not shard.pool.lent:
            return False  # on its own, which is the usual case
        state, lines = self._state, shard.shared_connections
        database = named(shard, attempt.database)
        shared = lines.matching(state.account, state.settings, state.variant, database)
        if shared is None or not (shared.is_busy or lines.others_are_busy):
            return False
        backend = shared.connection(state.began_s)
        if backend is None:
            return False
        data = packet if isinstance(packet, bytes) else packet.packet_for(backend)
        if data is None:
            if isinstance(packet, Execution):
                shared.prepare(backend, packet.key)
            return False
        if len(data) > SENT_BYTES_MAX:
            return False
        attempt.backend, attempt.scanner = backend, attempt.reply.scanner()
        read = self._current = SharedRead(attempt, shared, self)
        shared.read_sent()
        backend.send(data, read, ahead=True)
        return True

    def answered(self, attempt: Attempt) -> bool | None:
        """Apply the answer of a plain read; None if it came on the session's own connection.

        Return False if the answer is dropped and the read must run again on the session's own connection. This is
        for errors and warnings: the session may read them next, and the next read on the shared connection clears
        them.
        """
        latency, read = attempt.latency, self._current
        assert latency is not None
        self._current = None
        if read is None or read.shared is None:
            if read is not None or attempt.has_written or len(attempt.held) > _SMALL_BYTES_MAX:
                latency.was_slow()
            elif not latency.is_quick:
                latency.answered(self._loop.time() - self._began_s, attempt.shard.way_s)
            return None if read is None else self._taken(attempt)
        backend, scanner = attempt.backend, attempt.scanner
        if attempt.failure is not None:
            if backend.is_closed:
                attempt.shard.suspect()
            return False
        if scanner.error is not None or not scanner.is_plain or scanner.status & _OPEN:
            latency.was_slow()
            backend.has_residue = True
            if attempt.ending is Ending.STALE and not isinstance(attempt.packet, bytes):
                attempt.packet.forget_on(backend)
            return False
        self._state.answered_at, self._state.diagnostics = None, LastDiagnostics(scanner.rows)
        return True

    def _taken(self, attempt: Attempt) -> bool | None:
        """Apply the answer of a read that has taken its connection over, as `answered`.

        Reads of others that were sent behind it run all the same, and clear its warnings. An error stands: it is complete in itself.
        """
        backend, ok = attempt.backend, attempt.scanner.ok
        are_cleared = ok is not None and ok.warnings > 0 and backend.is_busy
        if not are_cleared or attempt.has_written:
            return None
        self._own.active.pop(backend, None)
        attempt.shard.pool.release(backend)
        return False

    def break_up(self) -> None:
        """Give the current read its own connection, on which it can be stopped.

        A read that waits for earlier ones is not stopped but sent again.
        """
        read = self._current
        if read is not None and read.shared is not None:
            read.shared.break_up()

    def forget(self) -> None:
        """Give up the current read."""
        self._current = None

    def taken_over(self, read: SharedRead) -> None:
        """Keep the connection of a read that runs there exclusively from now on."""
        attempt = read.attempt
        if read is self._current:
            attempt.backend.owner = self._state
            self._own.active[attempt.backend] = attempt.shard
        else:
            self._own.abandon(attempt.shard, attempt.backend)
