"""Connections that many sessions use at the same moment, for quick reads, one after the other.

With a connection for each statement, every statement is a write and a read, and wakes a thread of
the server and the proxy. On a shared connection, the reads that all sessions send in one
turn of the loop leave in one write, and several answers come back in one read. For point SELECTs
of 16 clients that saves half of the server's processor time and a third of the proxy's.

Three conditions make it safe: the read changes nothing (`sqlparse_ext.selects.plain_reads`), the sessions
have the same variables and database, and the shape has been quick (`proxy.backends.pooling.multiplexing`).
A read that is slow this time holds up all later ones. The connection then breaks up: the slow read's session
keeps it, and every other read is sent again elsewhere.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from streamfrom.proxy.backends.answer_readers import AnswerReader
from streamfrom.proxy.backends.backend import Backend, ConnectionOwner
from streamfrom.proxy.errors import ProxyError


if TYPE_CHECKING:
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.pooling.pool import Pool
    from streamfrom.proxy.backends.session_variables import Settings
    from streamfrom.proxy.backends.statement_ids import StatementKey


# How many seconds a quick shape's fastest answer may be slower than the server's fastest answer.
QUICK_S: Final = 0.001
FIRST_TRIAL: Final = 8
_LONGER: Final = 4
LAST_TRIAL: Final = 8192


class LatencyClass:
    """The measured latency of one shape: whether its statements are quick enough to share a connection.

    The shape gets FIRST_TRIAL answers on sessions' own connections. It is quick if the fastest of these took at most QUICK_S longer
    than this server's fastest answer ever: on a busy machine all others measure the queue. A slow one gets a longer trial.
    """

    __slots__ = ("_answers", "_fastest_s", "_trial", "is_quick")

    def __init__(self) -> None:
        self.is_quick = False  # reads of the shape may share a connection
        self._trial = FIRST_TRIAL
        self._answers = 0
        self._fastest_s = math.inf

    def answered(self, took_s: float, way_s: float) -> None:
        """Count a small answer that took *took_s* seconds; the server's fastest answer took *way_s* seconds."""
        self._fastest_s = min(self._fastest_s, took_s)
        self._answers += 1
        if self._answers >= self._trial:
            self.is_quick = self._fastest_s <= way_s + QUICK_S
            self._start_over()

    def was_slow(self) -> None:
        """Begin a longer trial: an answer was large, late, or had warnings."""
        self.is_quick = False
        self._trial = min(self._trial * _LONGER, LAST_TRIAL)
        self._start_over()

    def _start_over(self) -> None:
        self._answers = 0
        self._fastest_s = math.inf


# A pool shares one of eight connections, and none if it has fewer than four: statements that cannot share
# need connections, too.
_SIZE_MIN: Final = 4
_CONNECTIONS_FOR_ONE: Final = 8
# A read that arrives while this many wait gets its own connection, and so another core of the server.
_WAITING_MAX: Final = 64
# It breaks up after this long without an answer, plus twice the round trip to the server.
# A server that shares its processors may be silent for a while.
_PATIENCE_S: Final = 0.04
# Before the break-up the loop reads answers that came while it was busy elsewhere.
_SECOND_LOOK_S: Final = 0.001
# An unused one gives its connection back after this many looks, about one second.
IDLE_LOOKS_MAX: Final = 25
# One without a connection requests another with this pause in seconds.
_REOPEN_S: Final = 1.0


@runtime_checkable
class Borrower(AnswerReader, Protocol):
    """The reader of one answer on a shared connection."""

    def take_over(self) -> None:
        """Own the connection from now on, and release it to its pool after the answer."""


@dataclass(eq=False)
class SharedConnection(ConnectionOwner):
    """One connection for all sessions with the same account, variables, database and variant.

    For the pool it is the `ConnectionOwner`, and it keeps no insert id and no diagnostics: no read makes an insert id, and a
    plain read's diagnostics are known without a query. It keeps its connection while sessions use it.
    """

    _pool: Pool
    _way_s: Callable[[], float]
    # A session must have the same ones to use it.
    account: Account
    settings: Settings
    variant: int
    database: str | None
    began_s: float = 0.0  # of the latest session that reads here
    _backend: Backend | None = None
    _opening: asyncio.Task[None] | None = None
    _may_open_s: float = 0.0
    _preparing: dict[StatementKey, asyncio.Task[None]] = field(default_factory=dict)
    _waiting: int = 0  # how many reads are under way
    _answered: int = 0
    _watching: asyncio.Task[None] | None = None

    # --- using it -------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """True while it has a connection, which then counts as lent."""
        return self._backend is not None

    @property
    def is_unused(self) -> bool:
        """True while it has no connection and requests none."""
        return self._backend is None and self._opening is None

    @property
    def is_busy(self) -> bool:
        """True while answers are due."""
        return self._waiting > 0

    def connection(self, began_s: float) -> Backend | None:
        """Return the connection for one more read of a session that began at *began_s*; the caller calls `read_sent` after sending it.

        Returns None if it is full, or has no connection that may serve the session; in that case it opens one.
        """
        if self._backend is not None and began_s > self._backend.outdated_s:
            self.release()
        backend = self._backend
        if backend is None or backend.is_closed:
            self.began_s = max(self.began_s, began_s)
            self._backend = None
            self._waiting = 0
            self._open()
            return None
        return backend if self._waiting < _WAITING_MAX else None

    def read_sent(self) -> None:
        """Count a read that was sent on the `connection`; its end is `read_over`."""
        self._waiting += 1

    def read_over(self, backend: Backend) -> None:
        """Count the end of a read on *backend*."""
        if backend is self._backend:
            self._waiting -= 1
            self._answered += 1

    def connection_lost(self, backend: Backend) -> None:
        """Forget *backend*, which broke."""
        if backend is self._backend:
            self._backend = None
            self._waiting = 0

    def prepare(self, backend: Backend, key: StatementKey) -> None:
        """Prepare a statement on *backend* in the background, for later reads."""
        # Many sessions request the same statement in the same moment; one COM_STMT_PREPARE
        # serves all.
        if key not in self._preparing:
            self._preparing[key] = asyncio.create_task(self._prepare(backend, key))

    async def _prepare(self, backend: Backend, key: StatementKey) -> None:
        try:
            await backend.prepare(key)
        except ProxyError:
            # A session that prepares it on its own connection gets the error.
            pass
        finally:
            del self._preparing[key]

    # --- leaving it -----------------------------------------------------------------------

    def release(self) -> None:
        """Release the connection: it is unused, or its server is no longer the shard's."""
        if self._waiting:
            self.break_up()
        elif self._backend is not None:
            backend, self._backend = self._backend, None
            self._pool.release(backend)
            self._pool.forget_owner(self, backend)

    def break_up(self) -> None:
        """Leave the connection to the read that is being answered; all others lose it."""
        backend, self._backend = self._backend, None
        # Sessions send the reads that are dropped here again, each on its own
        # connection: a plain read may run twice, and no client has seen a byte of it.
        self._waiting = 0
        if backend is None:
            return
        first = backend.leave_to_first()
        if isinstance(first, Borrower):
            first.take_over()
        else:
            # The first in turn is a COM_STMT_PREPARE, which no session owns.
            self._pool.discard(backend)

    # --- its connection -------------------------------------------------------------------------

    def _open(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._opening is None and now_s >= self._may_open_s:
            # Every read that finds no connection comes by here: without a pause each of them would query
            # a server that refuses logins.
            self._may_open_s = now_s + _REOPEN_S
            self._opening = asyncio.create_task(self._take())

    async def _take(self) -> None:
        try:
            self._backend = await self._pool.acquire(self, self.database)
        except ProxyError:
            # A session gets the same error on its own connection, and reports it.
            pass
        else:
            self._watching = asyncio.create_task(self._watch(self._backend))
        finally:
            self._opening = None

    @property
    def patience_s(self) -> float:
        """The time in seconds without an answer after which it breaks up."""
        return _PATIENCE_S + 2 * self._way_s()

    async def _watch(self, backend: Backend) -> None:
        """Break up if a read is slow; release *backend* once it is unused."""
        idle_looks = 0
        while idle_looks < IDLE_LOOKS_MAX:
            # The first of the reads that wait now has its answer by the next look, or is slow.
            waited, before = self.is_busy, self._answered
            await asyncio.sleep(self.patience_s)
            if waited and before == self._answered:
                await asyncio.sleep(_SECOND_LOOK_S)
            if backend is not self._backend:
                return
            if waited and before == self._answered:
                self.break_up()
                return
            is_idle = before == self._answered and not self.is_busy
            idle_looks = idle_looks + 1 if is_idle else 0
        self.release()


class SharedConnections:
    """The shared connections of one pool; none if they are not allowed.

    way_s: returns the shortest time in seconds that an answer from this server has taken.
    """

    def __init__(
        self, pool: Pool, way_s: Callable[[], float], *, is_allowed: bool = True
    ) -> None:
        self._pool = pool
        self._way_s = way_s
        self._all: list[SharedConnection] = []
        self.allow(is_allowed=is_allowed)

    def allow(self, *, is_allowed: bool) -> None:
        """Have as many as the pool's size provides for from now on, or none."""
        size = self._pool.size if is_allowed else 0
        self._count_max = size // _CONNECTIONS_FOR_ONE or int(size >= _SIZE_MIN)
        for shared in self._all[self._count_max :]:
            shared.release()
        del self._all[self._count_max :]

    def __iter__(self) -> Iterator[SharedConnection]:
        """Iterate over the shared connections."""
        return iter(self._all)

    def matching(
        self, account: Account, settings: Settings, variant: int, database: str | None
    ) -> SharedConnection | None:
        """Return the one for sessions with these values; None if the pool has no room for one.

        Return None without autocommit, where a read begins a transaction.
        """
        for shared in self._all:
            if (
                shared.settings is settings
                and shared.variant == variant
                and shared.database == database
                and (shared.account is account or shared.account == account)
            ):
                return shared
        if not settings.autocommit:
            return None
        # Sessions of another account, or with new variables, may come. Unused ones make room.
        if len(self._all) >= self._count_max:
            unused = next((shared for shared in self._all if shared.is_unused), None)
            if unused is None:
                return None
            self._all.remove(unused)
        shared = SharedConnection(self._pool, self._way_s, account, settings, variant, database)
        self._all.append(shared)
        return shared

    @property
    def others_are_busy(self) -> bool:
        """True when another session uses a connection now; without others, sharing gains nothing."""
        held = busy = 0
        for shared in self._all:
            held += shared.is_held
            busy += shared.is_busy
        # Other lent connections are with sessions.
        return busy > 0 or self._pool.lent > held

    def release(self) -> None:
        """Release all of them."""
        for shared in self._all:
            shared.release()
