"""The backend connections of one shard that clients share.

A session releases a connection after each statement, and acquires the same one again unless another
session needed it meanwhile. With fewer clients than connections every session keeps its own, and state that
no tracker shows (FOUND_ROWS, ROW_COUNT, the warnings of the last statement) is simply there.
When connections are short, the one that has been idle longest is handed over. When none is idle,
sessions wait in a queue, and a release serves the first of them in the same turn of the loop.
A place in the queue is two functions and no task: with 64 clients of 32 connections every
statement waits in it.

All accounts share the size of the pool. Waiters of different accounts take turns. An idle connection is closed for another
account once no waiter of its own account wants it, or the other has waited for `PATIENCE_S`: a login for each statement
would cost more than the statement.

`proxy.backends.pooling.pool_queue` decides; the methods here carry the decision out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.backends.answer_readers import Awaited
from streamfrom.proxy.backends.pooling.connection_handover import (
    hand_over,
    take_diagnostics,
)
from streamfrom.proxy.backends.pooling.pool_queue import (
    NewConnection,
    PoolQueue,
    PoolWaiter,
    choose,
)
from streamfrom.proxy.errors import (
    USER_LIMITS,
    BackendError,
    BackendLost,
    BackendUnavailable,
    PoolTimeout,
    ProxyError,
)
from streamfrom.proxy.wire.commands import RESET_CONNECTION


if TYPE_CHECKING:
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner


# A server that takes longer for COM_RESET_CONNECTION hangs, and would keep the place in the pool.
RESET_TIMEOUT_S: Final = 5.0
# How long an account leaves another one the connections that it is working on.
PATIENCE_S: Final = 0.1
# When to ask the server again for more connections of an account than it allowed.
LIMIT_RETRY_S: Final = 1.0


class _AccountLimit(NamedTuple):
    """A server's refusal of more connections of an account, which its waiters get instead of PoolTimeout."""

    retry_s: float
    error: BackendError


@dataclass(slots=True, eq=False, repr=False)
class Pool:
    """At most *size* connections to one server.

    Every connection is in one of three places: idle here, lent to a session, or being opened.
    """

    _keyspace: str
    _shard: str
    _: KW_ONLY
    size: int  # how many connections there may be
    timeout_s: float  # how long a new statement waits for one
    open_backend: Callable[[Account, str | None, int], Awaitable[Backend]]
    # Called whenever a connection is lost, because the server may be down.
    on_lost: Callable[[], None]
    # Called whenever a session has waited in vain.
    on_timeout: Callable[[PoolTimeout], None] = lambda _: None
    # Least recently used first: a dict keeps the order and removes in O(1).
    _idle: dict[Backend, None] = field(default_factory=dict)
    _lent: set[Backend] = field(default_factory=set)
    _opening: int = 0
    _waiting: PoolQueue = field(default_factory=PoolQueue)
    # The accounts for which the server takes no more connections.
    _limited: dict[Account, _AccountLimit] = field(default_factory=dict)
    _is_serving: bool = False
    _timer: asyncio.TimerHandle | None = None
    # Makes the error of sessions that come after `refuse`.
    _refusal: Callable[[], ProxyError] | None = None

    @property
    def connections(self) -> int:
        """How many connections there are, including those being opened."""
        return len(self._idle) + len(self._lent) + self._opening

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
        """Take *backend* back if it is idle and unchanged since *owner* left it: the hot path."""
        # Waiters come first, even if that takes this session's connection from it.
        if (
            backend not in self._idle
            or self._waiting
            or backend.owner is not owner
            or backend.settings is not owner.settings
            or backend.database != database
        ):
            return False
        # No write, no query: with fewer clients than connections every statement comes this
        # way.
        del self._idle[backend]
        self._lent.add(backend)
        return True

    def enqueue(self, waiter: PoolWaiter) -> None:
        """Serve *waiter* as soon as all before it are served, which may be at once."""
        if self._refusal is not None:
            waiter.failed(self._refusal())
            return
        waiter.came_s = asyncio.get_running_loop().time()
        # A waiter with a deadline has waited before, and its deadline comes before those of all others.
        self._waiting.add(waiter, is_first=waiter.deadline_s > 0)
        waiter.deadline_s = waiter.deadline_s or waiter.came_s + self.timeout_s
        self._serve()
        if self._waiting and self._timer is None:
            self._set_timer()

    def dequeue(self, waiter: PoolWaiter) -> None:
        """Remove *waiter* from the queue. Its owner releases a connection that it was already served."""
        self._waiting.remove(waiter)

    async def make_own(
        self, served: Backend | None, owner: ConnectionOwner, database: str | None
    ) -> Backend:
        """Return *served*, or a new connection for None, as the connection of *owner*.

        Raises BackendUnavailable; BackendError if the server refuses the login, the database or a variable; BackendLost.
        """
        backend = await self._open(owner, database) if served is None else served
        while backend.owner is not owner and (
            backend.may_have_role or not backend.may_serve(owner)
        ):
            backend = await self._as_logged_in(backend, owner, database)
        try:
            await hand_over(backend, owner, owner.settings, database)
        except BaseException:
            self.release(backend)
            raise
        return backend

    async def acquire(self, owner: ConnectionOwner, database: str | None) -> Backend:
        """Return a connection that is *owner*'s own now: its variables, its database. Raises as `make_own`, and PoolTimeout."""
        found = await self._line_up(owner, database)
        return await self.make_own(found, owner, database)

    async def _line_up(
        self, owner: ConnectionOwner, database: str | None, deadline_s: float = 0.0
    ) -> Backend | None:
        """Return the connection that a waiter is served; *deadline_s* is that of `timeout_s` unless given. Raises PoolTimeout."""
        outcome: Awaited[Backend | None] = Awaited()
        future = outcome.future

        def served(backend: Backend | None) -> None:
            if future.done():
                # Its task was cancelled, and has not run since.
                self._take_back(backend)
            else:
                future.set_result(backend)

        waiter = PoolWaiter(owner, database, served, outcome.fail, deadline_s=deadline_s)
        self.enqueue(waiter)
        try:
            return await future
        except asyncio.CancelledError:
            self.dequeue(waiter)
            if future.done() and not future.cancelled() and future.exception() is None:
                self._take_back(future.result())
            raise

    def release(self, backend: Backend) -> None:
        """Put a connection back; close it if no other session may have it."""
        self._lent.discard(backend)
        if backend.link.closed or self._refusal is not None:
            backend.close()
        elif backend.is_busy or backend.in_transaction or backend.awaits_kill:
            # The session left in the middle of an answer, and no reset can be sent before its end.
            backend.abort()
        elif backend.is_left or (backend.is_spent and backend.owner is None):
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
                # Refused within an XA transaction. A prepared one outlives the
                # connection, but on MariaDB no reset: XA COMMIT answers OK, the rows are
                # gone, and the next user of the connection is refused InnoDB's tables (1031).
                await backend.query(backend.ending(b"ROLLBACK"))
                await backend.command(RESET_CONNECTION)
                has_login_role = await backend.has_login_role()
        except (ProxyError, TimeoutError):
            has_login_role = False
        if not has_login_role:
            self.discard(backend)
            return
        backend.was_reset()
        backend.in_transaction, backend.owner = False, None
        # The next handover sets the tracking again.
        backend.has_residue = True
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
            if backend in self._idle:
                del self._idle[backend]
                if backend.is_spent:
                    backend.close()
                else:
                    # To the front: no session will come back for it.
                    self._idle = {backend: None, **self._idle}

    def release_statements(self) -> list[asyncio.Future[object]]:
        """Close the prepared statements of the idle connections.

        Return futures that are done when the server has closed them; none if there are no statements.
        """
        return [each.caught_up() for each in self._idle if each.release_statements()]

    def outdate(self, since_s: float) -> None:
        """Let no session that began after *since_s* use the present connections.

        So new sessions begin with the server's new global variables and rights; existing sessions keep the old ones. A reset is
        not enough: the limit of `max_allowed_packet` and the global privileges are those of the login, and only a login runs
        `init_connect`.
        """
        for backend in (*self._idle, *self._lent):
            backend.outdated_s = min(backend.outdated_s, since_s)

    def leave(self) -> None:
        """Close the connections, lent ones when they come back: the server has restarted or lost its role."""
        for backend in self._lent:
            backend.is_left = True
        idle, self._idle = self._idle, {}
        for backend in idle:
            backend.close()

    def fell_silent(self) -> None:
        """Close the connections whose statements can run on another shard that responds."""
        for backend in [each for each in self._lent if each.has_other and each.has_other()]:
            backend.abort()

    def resize(self, size: int) -> None:
        """Have *size* connections at most; lent ones beyond it are closed when they come back."""
        self.size = size
        beyond = max(0, self.connections - size)
        for backend in list(self._idle)[:beyond]:
            del self._idle[backend]
            backend.close()
        for backend in list(self._lent)[: max(0, self.connections - size)]:
            backend.is_left = True
        self._serve()

    def refuse(self, refusal: Callable[[], ProxyError]) -> None:
        """Stop lending: sessions get a *refusal*. Lent connections are closed when they come back."""
        self._refusal = refusal
        self.leave()
        self._stop_timer()
        waiting, self._waiting = self._waiting, PoolQueue()
        for waiter in waiting:
            waiter.failed(refusal())

    def close(self) -> None:
        """Close everything; waiting sessions get BackendUnavailable, unless `refuse` was called."""
        self.refuse(self._refusal or self._shutting_down)
        for backend in list(self._lent):
            backend.close()

    # --- serving --------------------------------------------------------------------------

    def _serve(self) -> None:
        """Serve the accounts in turn, as far as possible."""
        if self._is_serving:
            # A waiter that was just served has released at once; the loop below handles that.
            return
        self._is_serving = True
        try:
            while self._waiting:
                found = self._next()
                if found is None:
                    break
                waiter, choice = found
                self._waiting.took_turn(waiter)
                if isinstance(choice, NewConnection):
                    if choice.victim is not None:
                        del self._idle[choice.victim]
                        choice.victim.close()
                    self._opening += 1
                    # Permission, not a connection: opening takes a login's round trips, and the
                    # queue continues.
                    waiter.served(None)
                else:
                    del self._idle[choice]
                    self._lent.add(choice)
                    waiter.served(choice)
        finally:
            self._is_serving = False

    def _next(self) -> tuple[PoolWaiter, Backend | NewConnection] | None:
        """Return the first waiter that can be served, and its connection; None if all must wait."""
        heads = self._waiting.heads()
        now_s = 0.0
        if self._limited or (len(heads) > 1 and self._idle):
            now_s = asyncio.get_running_loop().time()
        # Connections that no waiter of their own account took in the first round are for the others.
        for is_left_over in (False, True) if len(heads) > 1 else (True,):
            for waiter in heads:
                account = waiter.owner.account
                limit = self._limited.get(account)
                choice = choose(
                    self._idle,
                    waiter.owner,
                    waiter.database,
                    has_room=self.connections < self.size,
                    may_open=limit is None or now_s >= limit.retry_s,
                    may_displace=is_left_over or now_s - waiter.came_s >= PATIENCE_S,
                )
                if choice is None:
                    continue
                if limit is not None and isinstance(choice, NewConnection):
                    # One login tries for all.
                    self._limited[account] = _AccountLimit(now_s + LIMIT_RETRY_S, limit.error)
                return waiter, choice
        return None

    def _take_back(self, served: Backend | None) -> None:
        """Undo the serving of a waiter whose owner has gone."""
        if served is not None:
            self.release(served)
        else:
            self._opening -= 1
            self._serve()

    async def _open(self, owner: ConnectionOwner, database: str | None) -> Backend:
        """Open a connection for a waiter that was served None.

        If the server takes no more of an own account, wait for one of the account.
        """
        loop, deadline_s = asyncio.get_running_loop(), 0.0
        backend: Backend | None = None
        while backend is None:
            try:
                backend = await self.open_backend(owner.account, database, owner.variant)
            except BaseException as error:
                if not (
                    isinstance(error, BackendError)
                    and error.code in USER_LIMITS
                    and owner.account.is_own
                ):
                    self._take_back(None)
                    raise
                self._limited[owner.account] = _AccountLimit(loop.time() + LIMIT_RETRY_S, error)
                self._take_back(None)
                deadline_s = deadline_s or loop.time() + self.timeout_s
                self._stop_timer()
                served = await self._line_up(owner, database, deadline_s)
                if served is not None:
                    return served
        self._limited.pop(owner.account, None)
        self._opening -= 1
        backend.on_lost = self._lost
        backend.on_crowded = self.release_statements
        self._lent.add(backend)
        return backend

    async def _as_logged_in(
        self, backend: Backend, owner: ConnectionOwner, database: str | None
    ) -> Backend:
        """Return *backend*, or a new connection for *owner* if that one is not, or may not be, in the state of a fresh login."""
        await take_diagnostics(backend, backend.owner).known()
        try:
            if backend.may_serve(owner) and await backend.has_login_role():
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

    def _set_timer(self) -> None:
        """Look again when the first wait ends, or when a server may be asked again."""
        when_s, loop = self._waiting.first_deadline_s(), asyncio.get_running_loop()
        if when_s is not None:
            retries = [
                each.retry_s for each in self._limited.values() if each.retry_s > loop.time()
            ]
            self._timer = loop.call_at(min([when_s, *retries]), self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        for waiter in self._waiting.late(now_s):
            error = PoolTimeout(self._keyspace, self._shard, self.timeout_s)
            self.on_timeout(error)
            limit = self._limited.get(waiter.owner.account)
            # Raised for several waiters, an error would gather their tracebacks.
            waiter.failed(error if limit is None else limit.error.with_traceback(None))
        self._serve()
        # An account whose time has come without a waiter tries when it has one.
        self._limited = {
            a: limit for a, limit in self._limited.items() if limit.retry_s > now_s
        }
        if self._timer is None:
            self._set_timer()

    def _shutting_down(self) -> BackendUnavailable:
        return BackendUnavailable(self._keyspace, self._shard, "the proxy is shutting down")

    def _lost(self, backend: Backend) -> None:
        self._idle.pop(backend, None)
        # Its session learns of the loss from its reader and gives it back; here it only stops counting,
        # so that a server that restarted can be connected to again at once.
        self._lent.discard(backend)
        self._serve()
        if self._refusal is None:
            self.on_lost()
