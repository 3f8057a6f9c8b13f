"""The backend connections of one session: those that it has, and how it gets another.

The pool keeps a released connection for its session until another session needs it. Connections that must stay with the
session are in `branches`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamfrom.proxy.backends.pooling.connection_handover import (
    SHOW_WARNINGS,
    hand_over,
    hand_over_now,
)
from streamfrom.proxy.backends.pooling.pool_queue import PoolWaiter
from streamfrom.proxy.backends.shard import ANSWERS_WITHIN_S
from streamfrom.proxy.errors import BackendLost, BackendUnavailable
from streamfrom.proxy.execution.retry_rules import (
    Ending,
    Verdict,
    decide,
    is_repeatable,
    is_whole_ack,
)
from streamfrom.proxy.execution.session_state import SessionState, footprint_of
from streamfrom.proxy.execution.session_tracking import bring_insert_id
from streamfrom.proxy.execution.user_variable_sync import carry_variables
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.statements import Kind, Shape


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend, LastDiagnostics
    from streamfrom.proxy.backends.group_commit import Ack
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.prepared_execution import Packet
    from streamfrom.proxy.execution.transaction import Branches


T = TypeVar("T")

# Without a database these kinds change no row: a LOCK is then UNLOCK TABLES.
_TOUCH_NO_ROW: Final = frozenset({Kind.SELECT, Kind.SHOW, Kind.SET, Kind.LOCK})


@dataclass(slots=True, eq=False, repr=False)
class SessionConnections:
    """The connections of one session.

    In all methods *database* is None if unqualified names mean nothing. Otherwise it is the database of a view, whose name
    may differ from shard to shard.
    """

    _state: SessionState
    branches: Branches  # the connections that must stay with the session
    _: KW_ONLY
    failover_buffer_s: float
    # Runs in a task what the caller must not wait for.
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    # An ack under way that is written together with those of other sessions.
    gathered: Ack | None = None
    # The connection of each shard that the session used last: idle in the pool, and still its own until another session
    # needs it.
    homes: dict[ShardRuntime, Backend] = field(default_factory=dict)
    # The connections that run statements, with their shards, for KILL and for the end of the session.
    active: dict[Backend, ShardRuntime] = field(default_factory=dict)
    # The place in a pool's queue of the statement that waits there.
    _turn: tuple[ShardRuntime, PoolWaiter] | None = None

    def retries(self, shape: Shape | None = None) -> Retries:
        """Return the object that decides whether a statement that begins now is sent again.

        shape: the statement's shape; None for a statement that is neither a read nor an ack.
        """
        self._state.is_stopped = False
        return Retries(
            self._state,
            self.branches,
            asyncio.get_running_loop().time() + self.failover_buffer_s,
            shape is not None and is_repeatable(shape),
            shape is not None and is_whole_ack(shape),
            self.branches.has_begun,
        )

    # --- taking ---------------------------------------------------------------------------

    def acquire_soon(
        self,
        shard: ShardRuntime,
        database: str | None,
        use: Callable[[Backend], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Call *use* with the result of `acquire_apart`, or *failed* with its error.

        The call is made at once if a connection is free; none is made after `forget`.
        """
        database = named(shard, database)

        def served(backend: Backend | None) -> None:
            state = self._state
            if backend is not None and hand_over_now(backend, state, state.settings, database):
                self._turn = None
                self.homes[shard] = backend
                use(backend)
            # The connection needs a round trip first (another database, other variables, a new
            # connection), for which a task waits. While `_turn` is set the session
            # still wants the connection.
            elif self._turn is not None:
                self.spawn(self._make_own(shard, backend, self._turn[1], use))

        turn = PoolWaiter(self._state, database, served, failed)
        self._turn = shard, turn
        shard.pool.enqueue(turn)

    async def _make_own(
        self,
        shard: ShardRuntime,
        served: Backend | None,
        turn: PoolWaiter,
        use: Callable[[Backend], None],
    ) -> None:
        """Continue `acquire_soon` if the server must be asked."""
        try:
            backend = await shard.pool.make_own(served, turn.owner, turn.database)
        except Exception as error:  # noqa: BLE001 - the waiting statement must end
            if self._is_next(turn):
                turn.failed(error)
            return
        if self._is_next(turn):
            self.homes[shard] = backend
            use(backend)
        else:
            shard.pool.release(backend)
            shard.pool.forget_owner(self._state, backend)

    def _is_next(self, turn: PoolWaiter) -> bool:
        """True, once, unless the session has forgotten *turn* meanwhile."""
        if self._turn is None or self._turn[1] is not turn:
            return False
        self._turn = None
        return True

    async def patiently(self, shard: ShardRuntime, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of *ask*, as `ask_any` of one shard."""
        return await self.ask_any((shard,), lambda _: ask())

    def choices(self, shards: Sequence[ShardRuntime]) -> Sequence[ShardRuntime]:
        """Return which of *shards*, all of which answer a statement alike, it may go to, in the order to try them.

        A session stays on the connection that it holds, with its transaction, user variables and locks. Otherwise shards that
        respond come first. Other statements have one shard, whether it responds or not: rows and pinned tables, sequences,
        GET_LOCK() and the like (the first, where all sessions meet), the target of a KILL, and statements that must run everywhere.
        """
        if len(shards) == 1:
            return shards
        held = next((shard for shard in shards if shard in self.branches.held), None)
        return [held] if held else sorted(shards, key=lambda shard: not shard.is_answering)

    async def ask_any(
        self,
        shards: Sequence[ShardRuntime],
        ask: Callable[[ShardRuntime], Awaitable[T]],
        retries: Retries | None = None,
    ) -> T:
        """Return the result of *ask* for the first of the `choices` that answers.

        A shard that has just gone down or hangs, unnoticed, is left after ANSWERS_WITHIN_S. If none answers, a statement outside
        a transaction waits for one, and *ask* is called again.

        Raises the errors of *ask*, and BackendUnavailable or BackendLost once `failover_buffer` has passed.
        """
        retries = retries or self.retries()
        while True:
            *others, last = self.choices(shards)
            for shard in others:
                with suppress(BackendUnavailable, BackendLost, TimeoutError):
                    async with asyncio.timeout(ANSWERS_WITHIN_S):
                        return await ask(shard)
            try:
                return await ask(last)
            except (BackendUnavailable, BackendLost):
                if not await retries.again(Ending.UNSENT, *shards, is_any=True):
                    raise

    def commits_at_once(self, shard: ShardRuntime) -> bool:
        """Return whether a write to *shard* is its own transaction, on any connection of the session's account.

        Return False as well if the session's transactions may only read, so that the server refuses the write.
        """
        state = self._state
        return (
            state.transaction is None
            and state.settings.autocommit
            and not state.settings.is_read_only
            and shard not in self.branches.held
        )

    async def pipeline(
        self,
        shard: ShardRuntime,
        backend: Backend,
        packets: list[bytes],
        bytes_max: int = sys.maxsize,
        *,
        has_other: Callable[[], bool] | None = None,
    ) -> list[BufferedAnswer]:
        """Run commands whose answers are not relayed; KILL and a vanishing client stop them too. Raises as `Backend.pipeline`.

        has_other: as in `Backend`.
        bytes_max: how many bytes of rows are kept of each answer; of a longer answer no row is kept.
        """
        backend.has_other = has_other
        with self.running(shard, backend):
            return await backend.pipeline(packets, bytes_max)

    @contextmanager
    def running(self, shard: ShardRuntime, backend: Backend) -> Iterator[None]:
        """Let KILL and a vanishing client stop the work of *backend* meanwhile."""
        self.active[backend] = shard
        try:
            yield
        finally:
            self.active.pop(backend, None)
            backend.has_other = None

    async def take_warnings(
        self, shard: ShardRuntime, backend: Backend, diagnostics: LastDiagnostics
    ) -> None:
        """Add the warnings of the last statement on *backend* to *diagnostics*.

        They are fetched at once, because the next statement on the connection clears them. Raises as `pipeline`.
        """
        (answer,) = await self.pipeline(shard, backend, [SHOW_WARNINGS])
        diagnostics.columns = answer.columns
        diagnostics.rows = [*diagnostics.rows, *answer.rows]

    async def acquire(self, shard: ShardRuntime, database: str | None, shape: Shape) -> Backend:
        """Return a connection to *shard* that is ready for a statement of this session.

        It has the session's variables and database, and takes part in its transaction.
        """
        backend = await self.acquire_apart(shard, database)
        try:
            if database is None and shape.kind in _TOUCH_NO_ROW:
                # It has no table of a keyspace, so this shard is not one of the transaction's.
                self.branches.check()
            else:
                await self.branches.join(shard, backend, shape)
            if footprint_of(shape).needs_insert_id:
                await bring_insert_id(self._state, backend, shape)
        except BaseException:
            # A connection of the transaction stays with the session, because the branch lives on it.
            if shard not in self.branches.held:
                shard.pool.release(backend)
            raise
        return backend

    async def acquire_apart(self, shard: ShardRuntime, database: str | None) -> Backend:
        """Return a connection as `acquire`, but one that need not take part in a transaction."""
        database = named(shard, database)
        backend = self.branches.held.get(shard)
        if backend is not None and backend.is_closed:
            self.connection_lost(shard, backend)
            # The break is only noticed now, but nothing was sent: report the state of the transaction.
            self.branches.check()
            raise BackendLost(shard.keyspace, shard.name)
        # Not in the transaction yet: any connection of the pool will do.
        if backend is None:
            backend = await shard.pool.acquire(self._state, database)
            self.homes[shard] = backend
        else:
            await hand_over(backend, self._state, self._state.settings, database)
        # User variables belong to a connection. Those SET on another server are copied here
        # first.
        if backend.variables is not self._state.variables:
            await self._bring_variables(shard, backend)
        return backend

    async def _bring_variables(self, shard: ShardRuntime, backend: Backend) -> None:
        try:
            await carry_variables(self._state, self.branches, shard, backend)
        except BaseException:
            # The copy has two ends: this connection, and the one that has the newest values.
            # Either may be the one that broke.
            newest = self._state.variables
            self.release(shard, backend)
            if newest is not None and newest.backend.is_closed:
                self.connection_lost(newest.shard, newest.backend)
            raise

    async def bytes_for(
        self, shard: ShardRuntime, backend: Backend, packet: bytes | Packet
    ) -> bytes:
        """Return the bytes of *packet* for a connection that was taken."""
        if isinstance(packet, bytes):
            return packet
        try:
            data = packet.packet_for(backend)
            if data is None:
                await packet.prepare_on(backend)
                data = packet.packet_for(backend)
        except BackendLost:
            self.connection_lost(shard, backend)
            raise
        except BaseException:
            self.release(shard, backend)
            raise
        assert data is not None
        return data

    def connection_lost(self, shard: ShardRuntime, backend: Backend) -> None:
        """Drop a connection that is gone. Raises SessionLost as `Branches.branch_lost`."""
        shard.suspect()
        shard.pool.discard(backend)
        self.homes.pop(shard, None)
        self.branches.branch_lost(shard, backend)

    def abandon(self, shard: ShardRuntime, backend: Backend) -> None:
        """Give up a connection in the middle of an unwanted answer."""
        self.active.pop(backend, None)
        # A closed socket stops a server only when it next writes: a slow statement would run
        # on.
        self.spawn(shard.kills.kill(backend))
        shard.pool.discard(backend)
        if self.homes.get(shard) is backend:
            del self.homes[shard]

    def release(self, shard: ShardRuntime, backend: Backend) -> None:
        """Return a connection from `acquire` that answered a statement of the proxy's own."""
        if shard not in self.branches.held:
            shard.pool.release(backend)

    # --- the end --------------------------------------------------------------------------

    def interrupt(self) -> list[asyncio.Task[None]]:
        """Stop the running statement; the server's own error ends the answer.

        Returns the tasks that kill the statement on its servers; none if nothing is running.
        """
        told = []
        if (ack := self.gathered) is not None:
            # The whole transaction is killed; the other acks in it are sent again.
            ack.is_stopped = True
            if not self.active:
                ack.is_left = True
                told.append(self.spawn(_give_up(ack)))
        for backend, shard in self.active.items():
            backend.awaits_kill = self._state.is_stopped = True
            told.append(self.spawn(shard.kills.kill(backend, query_only=True)))
        return told

    def break_off(self) -> None:
        """Stop the running statement by closing its connections, if the server has not stopped it."""
        self._state.is_stopped = True
        for backend in list(self.active):
            backend.abort()

    def forget(self) -> list[asyncio.Task[None]]:
        """Give up every connection: the session is reset or gone.

        Return the tasks that make servers end the session's state there, including its locks.
        """
        if self._turn is not None:
            shard, turn = self._turn
            self._turn = None
            shard.pool.dequeue(turn)
        if self.gathered is not None:
            # Others wait for the same transaction.
            self.gathered.is_left = True
            self.gathered = None
            self.active.clear()
        for backend, shard in self.active.items():
            # Otherwise the server would run the statement to its end without a client.
            self.spawn(shard.kills.kill(backend))
            shard.pool.discard(backend)
        ending = [self.spawn(recycling) for recycling in self.branches.forget()]
        for shard, backend in self.homes.items():
            shard.pool.forget_owner(self._state, backend)
        self.active.clear()
        self.homes.clear()
        return ending


async def _give_up(ack: Ack) -> None:
    # In a task: the caller that stops it first sets the reason.
    ack.interrupted()


def named(shard: ShardRuntime, database: str | None) -> str | None:
    """Return the name that the database of a view has on *shard*.

    If the shards' databases have different names, a view has that of the first shard.
    """
    if database is None or shard.is_alone or database in SYSTEM_SCHEMAS:
        return database
    return shard.database


# The pause between a refusal and the next attempt: the known health of the server may be older.
_PAUSE_S: Final = 0.05


@dataclass(slots=True)
class Retries:
    """The attempts to run one statement: each consults the rules, and waits if they require it.

    All of them have one deadline.
    """

    _state: SessionState
    _branches: Branches
    _deadline_s: float  # until when, in the loop's time, the attempts may wait
    _is_read: bool  # as `decide`, like the next one
    _is_ack: bool
    _has_begun: bool
    _renewals: int = 0

    async def again(
        self,
        ending: Ending,
        *shards: ShardRuntime,
        is_any: bool = False,
        is_final: bool = False,
    ) -> bool:
        """Return whether to send the statement again, once *shards* are there for it.

        is_any: one of them is enough.
        is_final: the client has seen some of the answer.
        """
        branches = self._branches
        verdict = decide(
            ending,
            in_transaction=self._has_begun or branches.is_broken,
            is_read=self._is_read,
            is_ack=self._is_ack and self._state.settings.autocommit,
            is_final=is_final or self._state.is_stopped,
            renewals=self._renewals,
            is_late=asyncio.get_running_loop().time() >= self._deadline_s,
        )
        if verdict is Verdict.STANDS:
            return False
        if verdict is Verdict.AGAIN:
            self._renewals += 1
        else:
            if ending is Ending.READ_ONLY:
                await asyncio.sleep(_PAUSE_S)
            waits = [shard.wait_available(self._deadline_s) for shard in shards]
            if not (await _first_true(waits) if is_any else all(await asyncio.gather(*waits))):
                return False
        self._has_begun = branches.has_begun
        return True


async def _first_true(waits: Iterable[Coroutine[Any, Any, bool]]) -> bool:
    """Return True as soon as one of *waits* does, else False."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        for each in asyncio.as_completed(tasks):
            if await each:
                return True
        return False
    finally:
        for task in tasks:
            task.cancel()
