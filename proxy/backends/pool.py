"""The backend connections of one shard that clients share.

A session releases a connection after each statement, and acquires the same one again unless another
session needed it meanwhile. With fewer clients than connections every session keeps its own, and what
no tracker shows (FOUND_ROWS, ROW_COUNT, the warnings of the last statement) is simply there.
When connections are short, the one that has been idle longest is handed over. When none is idle,
sessions wait in a queue, and a release serves the first of them in the same turn of the loop.
A place in the queue is two functions and no task: with 64 clients of 32 connections every
statement waits in it.

`_choose` decides and does nothing; the methods around it carry the decision out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.connection_handover import fits, hand_over, take_diagnostics
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.errors import BackendLost, BackendUnavailable, PoolTimeout, ProxyError
from streamfrom.proxy.wire.commands import RESET_CONNECTION, query


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner


# A server that takes longer for COM_RESET_CONNECTION hangs, and would keep the place in the pool.
RESET_TIMEOUT_S = 5.0

_ASK_ROLE: Final = query(b"SELECT CURRENT_ROLE()")


class _Choice(Enum):
    OPEN = "open a new connection"
    WAIT = "wait for one to come back"


@dataclass(slots=True, eq=False)
class PoolWaiter:
    """A place in a pool's queue.

    The pool calls one of two functions, once, unless `Pool.dequeue` came before:
    served: with a connection that is lent now and may have to be made the *owner*'s own
        (`Pool.make_own`), or with None as permission to open one.
    failed: with PoolTimeout, or BackendUnavailable where the proxy shuts down.
    """

    owner: ConnectionOwner
    database: str | None
    served: Callable[[Backend | None], None]
    failed: Callable[[Exception], None]
    deadline_s: float = 0.0


class Pool:
    """At most *size* connections to one server.

    Every connection is in one of three places: idle here, lent to a session, or being opened.
    *on_lost* is called whenever a connection goes away by itself, since the server may be down,
    and *on_timeout* whenever a session has waited in vain.

    Attributes:
        size: how many connections there may be.
        timeout_s: how long a statement that comes from now on waits for one.
    """

    def __init__(
        self,
        keyspace: str,
        shard: str,
        *,
        size: int,
        timeout_s: float,
        open_backend: Callable[[Account, str | None, int], Awaitable[Backend]],
        on_lost: Callable[[], None],
        on_timeout: Callable[[PoolTimeout], None] = lambda _: None,
    ) -> None:
        self._keyspace = keyspace
        self._shard = shard
        self.size = size
        self.timeout_s = timeout_s
        self._open_backend = open_backend
        self._on_lost = on_lost
        self._on_timeout = on_timeout
        # Least recently used first: a dict keeps the order and removes in O(1).
        self._idle: dict[Backend, None] = {}
        self._lent: set[Backend] = set()
        self._opening = 0
        # In the order in which they came, and so of their deadlines.
        self._waiting: dict[PoolWaiter, None] = {}
        self._is_serving = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        # CURRENT_ROLE() of a new login of each account one of whose connections may have another role; None where
        # the next login is to be asked.
        self._login_roles: dict[Account, bytes | None] = {}

    @property
    def connections(self) -> int:
        """How many connections there are, the ones being opened included."""
        return len(self._idle) + len(self._lent) + self._opening

    @property
    def idle(self) -> tuple[Backend, ...]:
        """The connections that no session holds, least recently used first."""
        return tuple(self._idle)

    @property
    def waiting(self) -> int:
        """How many sessions wait for a connection."""
        return len(self._waiting)

    @property
    def lent(self) -> int:
        """How many connections sessions hold."""
        return len(self._lent)

    # --- taking and giving ----------------------------------------------------------------

    def acquire_own(
        self, backend: Backend, owner: ConnectionOwner, database: str | None
    ) -> bool:
        """Take *backend* back if it is idle and still as *owner* left it: the hot path."""
        # Whoever waits comes first, even if that takes this session's connection from it.
        if (
            backend not in self._idle
            or self._waiting
            or backend.owner is not owner
            or backend.settings is not owner.settings
            or backend.database != database
        ):
            return False
        # No write, no question: with fewer clients than connections every statement comes this
        # way.
        del self._idle[backend]
        self._lent.add(backend)
        return True

    def enqueue(self, waiter: PoolWaiter) -> None:
        """Serve *waiter* as soon as all before it are served, which may be at once."""
        if self._closed:
            waiter.failed(self._shutting_down())
            return
        waiter.deadline_s = asyncio.get_running_loop().time() + self.timeout_s
        self._waiting[waiter] = None
        self._serve()
        if self._waiting and self._timer is None:
            self._set_timer()

    def dequeue(self, waiter: PoolWaiter) -> None:
        """Take *waiter* out of the queue. A connection that it has been served with is released by its owner."""
        self._waiting.pop(waiter, None)

    async def make_own(
        self, served: Backend | None, owner: ConnectionOwner, database: str | None
    ) -> Backend:
        """Return *served*, or a new connection for None, as the connection of *owner*.

        Raises:
            BackendUnavailable: it could not be opened.
            BackendError: the server refuses the login, the database or a variable.
            BackendLost: it went away in between.
        """
        backend = await self._open(owner, database) if served is None else served
        if backend.may_have_role and backend.owner is not owner:
            backend = await self._with_login_role(backend, owner, database)
        try:
            await hand_over(backend, owner, owner.settings, database)
        except BaseException:
            self.release(backend)
            raise
        return backend

    async def acquire(self, owner: ConnectionOwner, database: str | None) -> Backend:
        """Return a connection that is *owner*'s own now: its variables, its database.

        Raises:
            PoolTimeout: all connections stayed busy.
            BackendUnavailable, BackendError, BackendLost: as `make_own`.
        """
        outcome: asyncio.Future[Backend | None] = asyncio.get_running_loop().create_future()

        def served(backend: Backend | None) -> None:
            if outcome.done():
                # Its task was cancelled, and has not run since.
                self._take_back(backend)
            else:
                outcome.set_result(backend)

        def failed(error: Exception) -> None:
            if not outcome.done():
                outcome.set_exception(error)

        waiter = PoolWaiter(owner, database, served, failed)
        self.enqueue(waiter)
        try:
            found = await outcome
        except asyncio.CancelledError:
            self.dequeue(waiter)
            if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
                self._take_back(outcome.result())
            raise
        return await self.make_own(found, owner, database)

    def release(self, backend: Backend) -> None:
        """Put a connection back; close it if no other session may have it."""
        self._lent.discard(backend)
        if backend.link.closed or self._closed:
            backend.close()
        elif backend.is_busy or backend.in_transaction or backend.awaits_kill:
            # The session left in the middle of an answer, and no reset can be sent before its end.
            backend.abort()
        elif backend.is_spent and backend.owner is None:
            backend.close()
        else:
            self._idle[backend] = None
        if self._waiting:
            self._serve()

    async def recycle(self, backend: Backend) -> None:
        """Reset a lent connection whose session has ended, and put it back."""
        if backend.is_spent:
            self.discard(backend)
            return
        try:
            async with asyncio.timeout(RESET_TIMEOUT_S):
                # Refused within a transaction of XA. What is prepared there outlives the
                # connection, but on MariaDB no reset: XA COMMIT says OK to it, the rows are
                # gone, and who uses the connection next is refused InnoDB's tables (1031).
                await backend.query(backend.ending(b"ROLLBACK"))
                await backend.command(RESET_CONNECTION)
                has_login_role = await self._has_login_role(backend)
        except (ProxyError, TimeoutError):
            has_login_role = False
        if not has_login_role:
            self.discard(backend)
            return
        backend.settings = Settings()
        backend.variables = None
        backend.statements.clear()
        backend.in_transaction = False
        backend.owner = None
        # The reset has ended the tracking too; the next handover sets it again.
        backend.has_residue, backend.has_insert_id = True, False
        self.release(backend)

    def discard(self, backend: Backend) -> None:
        """Close a lent connection."""
        self._lent.discard(backend)
        backend.abort()
        self._serve()

    def forget_owner(self, owner: ConnectionOwner, backend: Backend | None) -> None:
        """Take the owner from a departed session's idle connection, so that it is taken first."""
        if backend is not None and backend.owner is owner:
            backend.owner = None
            if backend in self._idle and backend.is_spent:
                del self._idle[backend]
                backend.close()
            elif backend in self._idle:
                # To the front: no session will come back for it.
                del self._idle[backend]
                self._idle = {backend: None, **self._idle}

    def release_statements(self) -> list[asyncio.Future[None]]:
        """Close the prepared statements of the idle connections.

        Return futures that are done when the server has closed them; none where there are no statements.
        """
        return [each.caught_up() for each in self._idle if each.release_statements()]

    def outdate(self) -> None:
        """Let no other session have the connections that there are, after a SET GLOBAL.

        New sessions begin with the server's new values; sessions that there are keep the old ones. A reset is not enough: the
        limit of `max_allowed_packet` is that of the login, and only a login runs `init_connect`.
        """
        for backend in (*self._idle, *self._lent):
            backend.is_spent = True
        for backend in [each for each in self._idle if each.owner is None]:
            del self._idle[backend]
            backend.close()

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
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            waiter.failed(self._shutting_down())

    # --- deciding -------------------------------------------------------------------------

    def _choose(self, owner: ConnectionOwner, database: str | None) -> Backend | _Choice:
        """Return *owner*'s own connection, else one without owner, else OPEN, else the oldest."""
        fitting = unowned = oldest = spent = None
        # The least recently used comes first, so the first match of each kind is the oldest.
        for backend in self._idle:
            if (
                backend.variant != owner.variant
                or backend.account != owner.account
                # Nothing but a new login leaves a database for no database.
                or (database is None and backend.database is not None)
            ):
                continue
            if backend.owner is owner:
                return backend
            if backend.is_spent:
                spent = spent or backend
            elif backend.owner is not None:
                # Only the oldest: taking a connection from a session costs both of them a
                # handover, and the session that used its own longest ago needs it least.
                oldest = oldest or backend
            elif fitting is None and fits(backend, owner, owner.settings, database):
                fitting = backend
            else:
                unowned = unowned or backend
        found = fitting or unowned
        if found is not None:
            return found
        if self.connections < self.size:
            return _Choice.OPEN
        if oldest is not None and spent is None:
            return oldest
        if self._idle:
            # All idle ones are of another account or variant or have a database, or are only for their own session: the oldest of
            # them makes room.
            victim = spent or next(iter(self._idle))
            del self._idle[victim]
            victim.close()
            return _Choice.OPEN
        return _Choice.WAIT

    def _serve(self) -> None:
        """Serve the queue, in order, with what there is."""
        if self._is_serving:
            # A waiter that was just served has released at once; the loop below goes on with that.
            return
        self._is_serving = True
        try:
            while self._waiting:
                waiter = next(iter(self._waiting))
                choice = self._choose(waiter.owner, waiter.database)
                if choice is _Choice.WAIT:
                    break
                del self._waiting[waiter]
                if isinstance(choice, _Choice):
                    self._opening += 1
                    # Permission, not a connection: opening takes a login's round trips, and the
                    # queue goes on.
                    waiter.served(None)
                else:
                    del self._idle[choice]
                    self._lent.add(choice)
                    waiter.served(choice)
        finally:
            self._is_serving = False

    def _take_back(self, served: Backend | None) -> None:
        """Undo the serving of a waiter whose owner has gone."""
        if served is not None:
            self.release(served)
        else:
            self._opening -= 1
            self._serve()

    async def _open(self, owner: ConnectionOwner, database: str | None) -> Backend:
        """Open a connection for a waiter that was served None."""
        try:
            backend = await self._open_backend(owner.account, database, owner.variant)
        except BaseException:
            self._take_back(None)
            raise
        self._opening -= 1
        if self._login_roles.get(owner.account, b"") is None:
            self._login_roles[owner.account] = await self._ask_role(backend)
        backend.on_lost = self._lost
        backend.on_crowded = self.release_statements
        self._lent.add(backend)
        return backend

    async def _with_login_role(
        self, backend: Backend, owner: ConnectionOwner, database: str | None
    ) -> Backend:
        """Return *backend*, or a new connection for *owner* where the last owner may have changed its roles."""
        await asyncio.wait([take_diagnostics(backend, backend.owner).known])
        try:
            if await self._has_login_role(backend):
                return backend
        except BackendLost:
            pass  # in its place as well
        except BaseException:
            self.discard(backend)
            raise
        self._lent.discard(backend)
        backend.abort()
        self._opening += 1
        return await self._open(owner, database)

    async def _has_login_role(self, backend: Backend) -> bool:
        """Return False where the last session has, or may have, changed the roles of *backend*; no reset undoes that.

        Raises:
            BackendLost: the connection went away.
        """
        if not backend.may_have_role:
            return True
        at_login = self._login_roles.get(backend.account)
        role = None if at_login is None else await self._ask_role(backend)
        backend.may_have_role = False
        if role is not None and role == at_login:
            return True
        # Perhaps the account's default role is another one now: the next login is asked.
        self._login_roles[backend.account] = None
        return False

    async def _ask_role(self, backend: Backend) -> bytes | None:
        (answer,) = await backend.answers([_ASK_ROLE])
        return answer.rows[0] if answer.rows else None

    def _set_timer(self) -> None:
        """Time the first waiter out; all wait equally long, so its wait ends first."""
        first = next(iter(self._waiting), None)
        self._timer = (
            None
            if first is None
            else asyncio.get_running_loop().call_at(first.deadline_s, self._time_out)
        )

    def _time_out(self) -> None:
        now_s = asyncio.get_running_loop().time()
        while self._waiting:
            waiter = next(iter(self._waiting))
            if waiter.deadline_s > now_s:
                break
            del self._waiting[waiter]
            error = PoolTimeout(self._keyspace, self._shard, self.timeout_s)
            self._on_timeout(error)
            waiter.failed(error)
        self._set_timer()

    def _shutting_down(self) -> BackendUnavailable:
        return BackendUnavailable(self._keyspace, self._shard, "the proxy is shutting down")

    def _lost(self, backend: Backend) -> None:
        self._idle.pop(backend, None)
        # Its session learns it from its reader and gives it back; here it only stops counting,
        # so that a server that restarted can be connected to again at once.
        self._lent.discard(backend)
        self._serve()
        if not self._closed:
            self._on_lost()
