"""The backend connections of one shard that clients share.

A session that is done with a connection gives it back, and gets the same one again as long as
nobody else needed it: with fewer clients than connections everybody keeps their own, and what
no tracker shows (FOUND_ROWS, ROW_COUNT, the warnings of the last statement) is simply there.
When connections are short, the one that has been idle longest changes hands.

`_choose` decides and does nothing; the methods around it carry the decision out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from proxy.backends.settings import Settings
from proxy.backends.tenancy import adopt, fits
from proxy.errors import BackendUnavailable, PoolTimeout, ProxyError
from proxy.wire.commands import reset_connection


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from proxy.backends.backend import Backend, Tenant


# A server that takes longer for COM_RESET_CONNECTION hangs, and would keep the place in the pool.
RESET_TIMEOUT_S = 5.0


class _Choice(Enum):
    OPEN = "open a new connection"
    WAIT = "wait for one to come back"


class Pool:
    """At most *size* connections to one server.

    Every connection is in one of three places: idle here, lent to a session, or being opened.
    *on_lost* is called whenever one of them goes away by itself: the server may have.
    """

    def __init__(
        self,
        keyspace: str,
        shard: str,
        *,
        size: int,
        timeout_s: float,
        open_backend: Callable[[str | None, int], Awaitable[Backend]],
        on_lost: Callable[[], None],
    ) -> None:
        self._keyspace = keyspace
        self._shard = shard
        self._size = size
        self._timeout_s = timeout_s
        self._open_backend = open_backend
        self._on_lost = on_lost
        # Least recently used first: a dict keeps the order and removes in O(1).
        self._idle: dict[Backend, None] = {}
        self._lent: set[Backend] = set()
        self._opening = 0
        # Whoever waits stays here until its task runs, also when its turn has been called:
        # so nobody who comes later, or gives back and takes again, gets in before it.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def connections(self) -> int:
        """How many connections there are, the ones being opened included."""
        return len(self._idle) + len(self._lent) + self._opening

    @property
    def lent(self) -> int:
        """How many connections sessions hold."""
        return len(self._lent)

    # --- taking and giving ----------------------------------------------------------------

    def take_own(self, backend: Backend | None, tenant: Tenant, database: str | None) -> bool:
        """Take *backend* back if it is idle and still as *tenant* left it: the hot path."""
        if (
            backend is None
            or backend not in self._idle
            or self._waiting
            or backend.owner is not tenant
            or backend.settings is not tenant.settings
            or backend.database != database
        ):
            return False
        del self._idle[backend]
        self._lent.add(backend)
        return True

    async def take(self, tenant: Tenant, database: str | None) -> Backend:
        """Return a connection that is *tenant*'s own now: its variables, its database.

        Raises:
            PoolTimeout: all connections stayed busy.
            BackendUnavailable: none could be opened.
            BackendError: the server refuses the login, the database or a variable.
            BackendLost: it went away in between.
        """
        backend = await self._acquire(tenant, database)
        try:
            await adopt(backend, tenant, tenant.settings, database)
        except BaseException:
            self.give(backend)
            raise
        return backend

    def give(self, backend: Backend) -> None:
        """Put a connection back; one that nobody else may have is thrown away."""
        self._lent.discard(backend)
        if backend.is_closed or self._closed:
            backend.close()
        elif backend.is_busy or backend.in_transaction or backend.awaits_kill:
            # Somebody left in the middle. A reset would do, but not while an answer is due.
            backend.abort()
        else:
            self._idle[backend] = None
        self._wake_one()

    async def recycle(self, backend: Backend) -> None:
        """Undo whatever a departed session left on a lent connection, then put it back."""
        try:
            async with asyncio.timeout(RESET_TIMEOUT_S):
                await backend.command(reset_connection())
        except (ProxyError, TimeoutError):
            self.discard(backend)
            return
        backend.settings = Settings()
        backend.statements.clear()
        backend.in_transaction = False
        backend.owner = None
        # The reset has taken the tracking too: whoever adopts the connection sets it again.
        backend.has_residue, backend.has_insert_id = True, False
        self.give(backend)

    def discard(self, backend: Backend) -> None:
        """Throw a lent connection away."""
        self._lent.discard(backend)
        backend.abort()
        self._wake_one()

    def forget_owner(self, tenant: Tenant, backend: Backend | None) -> None:
        """Mark a departed session's idle connection as nobody's, so that it is taken first."""
        if backend is not None and backend.owner is tenant:
            backend.owner = None
            if backend in self._idle:
                # To the front: nobody will come back for it.
                del self._idle[backend]
                self._idle = {backend: None, **self._idle}

    def close_idle(self) -> None:
        """Drop the idle connections: the server has restarted or lost its role."""
        idle, self._idle = self._idle, {}
        for backend in idle:
            backend.close()

    def close(self) -> None:
        """Close everything; waiting sessions get BackendUnavailable."""
        self._closed = True
        self.close_idle()
        for backend in list(self._lent):
            backend.close()
        for _ in range(len(self._waiting)):
            self._wake_one()

    # --- deciding -------------------------------------------------------------------------

    def _choose(self, tenant: Tenant, database: str | None) -> Backend | _Choice:
        can_open = self.connections < self._size
        usable = [
            backend
            for backend in self._idle
            if backend.variant == tenant.variant
            # Nothing but a new login leaves a database for no database.
            and (database is not None or backend.database is None)
        ]
        for backend in usable:
            if backend.owner is tenant:
                return backend
        unowned = [backend for backend in usable if backend.owner is None]
        for backend in unowned:
            if fits(backend, tenant, tenant.settings, database):
                return backend
        if unowned:
            return unowned[0]
        if can_open:
            return _Choice.OPEN
        if usable:
            return usable[0]
        if self._idle:
            # All of the wrong kind: the oldest makes room.
            victim = next(iter(self._idle))
            del self._idle[victim]
            victim.close()
            return _Choice.OPEN
        return _Choice.WAIT

    async def _acquire(self, tenant: Tenant, database: str | None) -> Backend:
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        if self._waiting:
            await self._wait_until(deadline)
        while True:
            if self._closed:
                raise BackendUnavailable(
                    self._keyspace, self._shard, "the proxy is shutting down"
                )
            choice = self._choose(tenant, database)
            if not isinstance(choice, _Choice):
                del self._idle[choice]
                self._lent.add(choice)
                self._call_next()
                return choice
            if choice is _Choice.OPEN:
                return await self._open(tenant, database)
            await self._wait_until(deadline)

    async def _open(self, tenant: Tenant, database: str | None) -> Backend:
        self._opening += 1
        self._call_next()
        try:
            backend = await self._open_backend(database, tenant.variant)
        except BaseException:
            self._wake_one()
            raise
        finally:
            self._opening -= 1
        backend.on_lost(self._lost)
        self._lent.add(backend)
        return backend

    async def _wait_until(self, deadline: float) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(deadline):
                await turn
        except BaseException as error:
            self._waiting.remove(turn)
            if turn.done() and not turn.cancelled():
                # Called, and gone in the same moment: the turn is the next one's.
                self._wake_one()
            if isinstance(error, TimeoutError):
                raise PoolTimeout(self._keyspace, self._shard, self._timeout_s) from None
            raise
        self._waiting.remove(turn)

    def _wake_one(self) -> None:
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)
                return

    def _call_next(self) -> None:
        """Call one more in, if there is something left for it.

        What came back between the call of a turn and its taking has called nobody.
        """
        if self._idle or self.connections < self._size:
            self._wake_one()

    def _lost(self, backend: Backend) -> None:
        self._idle.pop(backend, None)
        if backend in self._lent:
            # Its session learns it from its reader and gives it back; here it only stops
            # counting, so that a server that restarted can be connected to again at once.
            self._lent.discard(backend)
        self._wake_one()
        if not self._closed:
            self._on_lost()
