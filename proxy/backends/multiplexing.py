"""Connections that many sessions use at the same moment: quick reads, one behind the other.

With a connection for each statement, every statement is a write and a read, and wakes somebody on
either side. On a line, what all sessions ask in one turn of the loop leaves in one write, and
several answers come back in one read. For point SELECTs of 16 clients that is half of the
server's processor time and a third of the proxy's.

What makes it safe: only reads that leave nothing behind come here (`sqlparse_ext.selects.plain_reads`), of
sessions with the same variables and database, in shapes that have been quick (`proxy.execution.latency_class`).
A read that is slow this time holds up those behind it. Then the line breaks up: the connection
becomes the slow one's own, and to the others it is lost, so that each asks again on another.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from streamfrom.proxy.backends.answer_readers import AnswerReader
from streamfrom.proxy.errors import ProxyError


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.diagnostics_area import LastDiagnostics
    from streamfrom.proxy.backends.pool import Pool
    from streamfrom.proxy.backends.settings import Settings
    from streamfrom.proxy.backends.statement_ids import StatementKey
    from streamfrom.proxy.wire.attribute_encoding import Attribute


# A pool has a line for eight connections. A small one has none: who cannot use the line must
# find connections, too.
_SIZE_MIN: Final = 4
_CONNECTIONS_FOR_ONE: Final = 8
# Who comes when so many wait gets a connection of its own, and so another core of the server.
_WAITING_MAX: Final = 64
# How long no answer may come before the line breaks up, beside twice the way to the server.
# A server that has to share its processors may be silent for a while.
_PATIENCE_S: Final = 0.04
# Before that is believed, the loop reads what came while it was busy elsewhere.
_SECOND_LOOK_S: Final = 0.001
# An unused line gives its connection back after about so long.
_IDLE_LOOKS_MAX: Final = 25
# One without a connection asks for another as often.
_REOPEN_S: Final = 1.0


@runtime_checkable
class Borrower(AnswerReader, Protocol):
    """What takes the answer of a read on a line."""

    def take_over(self) -> None:
        """Learn that the connection is yours alone now, to be given back to its pool."""


class SharedConnection:
    """One connection for all sessions with the same variables, database and variant.

    It is the pool's `Tenant`, and keeps its connection while it is used.

    Attributes:
        settings, variant, database: what a session must have to use it.
    """

    attributes: tuple[Attribute, ...] = ()

    def __init__(
        self,
        pool: Pool,
        way_s: Callable[[], float],
        settings: Settings,
        variant: int,
        database: str | None,
    ) -> None:
        self.settings = settings
        self.variant = variant
        self.database = database
        self._pool = pool
        self._way_s = way_s
        self._backend: Backend | None = None
        self._opening: asyncio.Task[None] | None = None
        self._may_open_s = 0.0
        self._preparing: dict[StatementKey, asyncio.Task[None]] = {}
        # How many reads wait, and how many there have been, for the looks.
        self._waiting = self._boarded = self._answered = 0
        self._idle_looks = 0
        self._next_look: asyncio.TimerHandle | None = None

    # --- using it -------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """True while it has a connection, which then counts as lent."""
        return self._backend is not None

    @property
    def is_unused(self) -> bool:
        """True while it has no connection and asks for none."""
        return self._backend is None and self._opening is None

    @property
    def is_busy(self) -> bool:
        """True while answers are due."""
        return self._waiting > 0

    def connection(self) -> Backend | None:
        """Return the connection for one more read; `read_sent` is called when it is sent.

        None where there is no room, or no connection; then it asks for one.
        """
        backend = self._backend
        if backend is None or backend.is_closed:
            self._backend = None
            self._waiting = 0
            self._open()
            return None
        return backend if self._waiting < _WAITING_MAX else None

    def read_sent(self) -> None:
        """Learn that a read was sent on the `connection`; `read_over` is called when it is over."""
        self._waiting += 1
        self._boarded += 1

    def read_over(self, backend: Backend) -> None:
        """Learn that a read on *backend* is over."""
        if backend is self._backend:
            self._waiting -= 1
            self._answered += 1

    def connection_lost(self, backend: Backend) -> None:
        """Learn that *backend* broke."""
        if backend is self._backend:
            self._backend = None
            self._waiting = 0

    def prepare(self, backend: Backend, key: StatementKey) -> None:
        """Have a statement prepared on *backend* for those who come later."""
        if key not in self._preparing:
            self._preparing[key] = asyncio.create_task(self._prepare(backend, key))

    async def _prepare(self, backend: Backend, key: StatementKey) -> None:
        try:
            await backend.prepare(key)
        except ProxyError:
            # Whoever asks on a connection of its own is told why.
            pass
        finally:
            del self._preparing[key]

    # --- leaving it -----------------------------------------------------------------------

    def release(self) -> None:
        """Give the connection up: nobody uses it, or the server is not the right one any more."""
        if self._waiting:
            self.break_up()
        elif self._backend is not None:
            backend, self._backend = self._backend, None
            self._pool.release(backend)
            self._pool.forget_owner(self, backend)

    def break_up(self) -> None:
        """Leave the connection to the read that is being answered; to the others it is lost."""
        backend, self._backend = self._backend, None
        self._waiting = 0
        if backend is None:
            return
        first = backend.leave_to_first()
        if isinstance(first, Borrower):
            first.take_over()
        else:
            # A statement is being prepared.
            self._pool.discard(backend)

    # --- what a tenant of the pool is asked -----------------------------------------------

    def handed_over(self, backend: Backend, last_insert_id: int) -> None:
        """Let it go: no read has an insert id."""

    def keeps_diagnostics(self, backend: Backend, left: LastDiagnostics) -> bool:
        """Return False: what a read leaves is known without asking."""
        return False

    # --- having one, and looking after it -------------------------------------------------

    def _open(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._opening is None and now_s >= self._may_open_s:
            self._may_open_s = now_s + _REOPEN_S
            self._opening = asyncio.create_task(self._take())

    async def _take(self) -> None:
        try:
            self._backend = await self._pool.acquire(self, self.database)
        except ProxyError:
            # Whoever wants to read meets the same trouble on a connection of its own.
            pass
        else:
            self._idle_looks = 0
            if self._next_look is None:
                self._look_again()
        finally:
            self._opening = None

    @property
    def patience_s(self) -> float:
        """How long no answer may come, about, before the line breaks up."""
        return _PATIENCE_S + 2 * self._way_s()

    def _look_again(self) -> None:
        # Of those who wait now, the first has an answer by then.
        expected = self._answered if self._waiting else None
        self._next_look = asyncio.get_running_loop().call_later(
            self.patience_s, self._look, self._boarded, expected
        )

    def _look(self, boarded: int, answered: int | None) -> None:
        self._next_look = None
        if self._backend is None:
            return
        self._idle_looks = self._idle_looks + 1 if boarded == self._boarded else 0
        if answered == self._answered:
            self._next_look = asyncio.get_running_loop().call_later(
                _SECOND_LOOK_S, self._judge, self._backend, answered
            )
        elif self._idle_looks >= _IDLE_LOOKS_MAX:
            self.release()
        else:
            self._look_again()

    def _judge(self, backend: Backend, answered: int) -> None:
        self._next_look = None
        if backend is self._backend and answered == self._answered:
            self.break_up()
        elif self._backend is not None:
            self._look_again()


class SharedConnections:
    """The lines of one pool; none where they are not allowed.

    way_s: returns how long an answer from this server takes at least.
    """

    def __init__(
        self, pool: Pool, way_s: Callable[[], float], *, is_allowed: bool = True
    ) -> None:
        self._pool = pool
        self._way_s = way_s
        self._lines: list[SharedConnection] = []
        self._lines_max = 0
        if is_allowed:
            self._lines_max = pool.size // _CONNECTIONS_FOR_ONE or int(pool.size >= _SIZE_MIN)

    def line(
        self, settings: Settings, variant: int, database: str | None
    ) -> SharedConnection | None:
        """Return the line of such sessions; None where there are enough others.

        Without autocommit a read begins a transaction, so there is none either.
        """
        for line in self._lines:
            if (
                line.settings is settings
                and line.variant == variant
                and line.database == database
            ):
                return line
        if not settings.autocommit:
            return None
        if len(self._lines) >= self._lines_max:
            unused = next((line for line in self._lines if line.is_unused), None)
            if unused is None:
                return None
            self._lines.remove(unused)
        line = SharedConnection(self._pool, self._way_s, settings, variant, database)
        self._lines.append(line)
        return line

    @property
    def others_are_busy(self) -> bool:
        """True when somebody uses a connection at this moment: only then is there company."""
        held = busy = 0
        for line in self._lines:
            held += line.is_held
            busy += line.is_busy
        return busy > 0 or self._pool.lent > held

    def release(self) -> None:
        """Have all lines give their connections up."""
        for line in self._lines:
            line.release()
