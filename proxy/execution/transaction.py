"""A session's transaction over one or several shards.

A *branch* is the part of a transaction that one shard runs, on one backend connection. BEGIN reaches a shard only when a
statement does, in one write with it if possible. COMMIT goes to the branches in the order in which they joined. If some shards
commit and others fail, the error reports it. With `transaction_mode = "twopc"` every branch but the first is an XA transaction, and
`proxy.twophase.coordinator` commits over several shards.

A branch that is lost takes the transaction with it: the others are rolled back, and every
statement is refused until the client sends ROLLBACK. Otherwise the client's next INSERT would
quietly run outside the transaction that it believes to be in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.backends.answer_readers import AnswerCollector
from streamfrom.proxy.errors import (
    BackendError,
    BackendLost,
    CommitPending,
    PartialCommit,
    ProxyError,
    SessionLost,
    TransactionBroken,
    TransactionSpansShards,
)
from streamfrom.proxy.execution.session_state import SessionState, Transaction
from streamfrom.proxy.twophase.coordinator import Branch, Coordinator, roll_back
from streamfrom.proxy.wire.commands import query
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.writes.hidden_writes import WRITES, runs_unseen


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.pending_effects import PendingEffects
    from streamfrom.sqlparse_ext.writes.message_effects import Effect


# InnoDB then undoes the whole transaction, not just the statement: a full lock table, a deadlock.
ROLLS_BACK: Final = frozenset({1206, 1213})

# XAER_RMFAIL: a statement that would commit is refused within an XA transaction, and ends nothing.
XA_REFUSES: Final = 1399

SNAPSHOT_OF_SHARDS: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT over several shards"
# These statements may commit, on the only shard that runs them.
_MAY_COMMIT: Final = frozenset({Kind.CALL, Kind.LOCK, Kind.XA})
# For these it is known whether the effects before them are committed.
_ENDS: Final = frozenset({Kind.BEGIN, Kind.COMMIT, Kind.ROLLBACK})


def may_commit(shape: Shape) -> bool:
    """Return whether a statement may commit the transaction that it finds, on the only shard that runs it."""
    return bool(shape.uses & Uses.IMPLICIT_COMMIT) or runs_unseen(shape)


class Keep(Enum):
    """Why a connection stays with its session, other than a transaction."""

    STATE = auto()  # it holds session state that cannot be rebuilt elsewhere
    CURSORS = auto()  # cursors of the session are open on it
    SAVEPOINTS = auto()  # without autocommit: savepoints of a transaction that has not begun


@dataclass(slots=True, eq=False, repr=False)
class Branches:
    """The connections that must stay with a session, and the transaction on them."""

    _state: SessionState
    effects: PendingEffects  # the transaction's effects on message tables
    _: KW_ONLY
    may_span_shards: bool
    # The coordinator of commits in two phases, if the configuration has them.
    coordinator: Coordinator | None = None
    # The connection of each shard, in the order in which the shards were reached.
    held: dict[ShardRuntime, Backend] = field(default_factory=dict)
    # The shards whose connections stay, each with a reason.
    _kept: set[tuple[ShardRuntime, Keep]] = field(default_factory=set)

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open, on any shard or on none yet."""
        return self._state.transaction is not None or any(
            backend.in_transaction for backend in self.held.values()
        )

    @property
    def has_begun(self) -> bool:
        """True from the first shard or savepoint of the transaction on: from then on no statement waits."""
        transaction = self._state.transaction
        if transaction is not None and transaction.savepoints:
            return True
        return any(backend.in_transaction for backend in self.held.values())

    @property
    def reads_only(self) -> bool:
        """True while a transaction is open that may not write."""
        return self._state.transaction is not None and self._state.transaction.reads_only

    @property
    def is_broken(self) -> bool:
        """True once the transaction has lost a branch: only ROLLBACK leads out."""
        return self._state.transaction is not None and bool(self._state.transaction.broken)

    @property
    def open(self) -> list[tuple[ShardRuntime, Backend]]:
        """The branches of the transaction, in the order in which they joined."""
        return [(s, b) for s, b in self.held.items() if b.in_transaction]

    @property
    def alone(self) -> tuple[ShardRuntime, Backend] | None:
        """The only branch, if that has the whole transaction and can still commit it."""
        branches = self.open
        if len(branches) != 1 or branches[0][1].is_closed or self.is_broken:
            return None
        return branches[0]

    def is_sticky(self, shard: ShardRuntime) -> bool:
        """True when the connection to *shard* stays with the session, with or without a transaction."""
        return bool(self._kept) and any(kept is shard for kept, _ in self._kept)

    def keep(self, shard: ShardRuntime, backend: Backend, reason: Keep = Keep.STATE) -> None:
        """Keep *backend* until `let_go`, or until the session ends or is reset."""
        self._kept.add((shard, reason))
        self.held[shard] = backend

    def let_go(self, shard: ShardRuntime, reason: Keep) -> None:
        """Stop keeping the connection to *shard* for *reason*; release it if that was the last one."""
        self._kept.discard((shard, reason))
        backend = self.held.get(shard)
        if backend is not None and not self.is_sticky(shard) and not backend.in_transaction:
            del self.held[shard]
            shard.pool.release(backend)

    def saved(self, shard: ShardRuntime, backend: Backend) -> None:
        """Keep *backend*, which has a savepoint that began no transaction, until `savepoints_ended`."""
        self.keep(shard, backend, Keep.SAVEPOINTS)
        # The next session would find it if the server is sent nothing more.
        backend.has_residue = True
        self._may_begin()

    @property
    def has_savepoints(self) -> bool:
        """True while a connection is kept for savepoints that began no transaction."""
        return any(reason is Keep.SAVEPOINTS for _, reason in self._kept)

    def savepoints_ended(self) -> None:
        """Note that the savepoints of a transaction that has not begun are gone."""
        transaction = self._state.transaction
        if transaction is not None and not transaction.has_begun:
            self._state.transaction = None
        for shard, reason in list(self._kept):
            if reason is Keep.SAVEPOINTS:
                self.let_go(shard, reason)

    def _may_begin(self) -> Transaction:
        if self._state.transaction is None:
            self._state.transaction = Transaction(b"START TRANSACTION", has_begun=False)
        return self._state.transaction

    def entered(self, *, is_xa: bool = False, reads_only: bool = False) -> None:
        """Note that a branch is in a transaction, perhaps without a BEGIN.

        Without autocommit any statement opens one. The next shard must join it like any other:
        with its savepoints, within `transaction_mode`, and with all the rest if it breaks.
        """
        transaction = self._may_begin()
        transaction.has_begun = True
        transaction.is_xa = transaction.is_xa or is_xa
        transaction.reads_only = transaction.reads_only or reads_only

    def check(self) -> None:
        """Raise TransactionBroken if the transaction has lost a branch: only ROLLBACK leads out."""
        transaction = self._state.transaction
        if transaction is not None and transaction.broken:
            raise TransactionBroken(transaction.broken)

    async def join(self, shard: ShardRuntime, backend: Backend, shape: Shape) -> None:
        """Open the session's transaction on *backend* for a statement of *shape*, if there is one and it lacks it.

        Raises as `check`; TransactionSpansShards if the configuration allows one shard only; NoDecisionTable if this shard, or the
        first one, cannot commit in two phases; Unsupported if the statement may commit on one of several, or each would have a snapshot
        of another moment.
        """
        self.check()
        transaction = self._state.transaction
        if transaction is None:
            return
        # Even for a branch that is already open: the statement that commits comes on that one.
        if self.coordinator is not None:
            self._check_commits_nothing(shard, shape)
        others = self.open
        # With savepoints that began nothing it continues if it is the only one; behind others it begins again, as these have had more since.
        if backend.in_transaction or ((shard, Keep.SAVEPOINTS) in self._kept and not others):
            return
        self.check_span([shard])
        opening = transaction.opening
        if others and self.coordinator is not None and transaction.is_decided:
            if transaction.whole is None:
                transaction.whole = await self.coordinator.name(others[0][0])
            xid = await self.coordinator.branch(transaction.whole, shard)
            transaction.xids[backend] = xid
            opening[-1] = xid.sql("START")
        elif transaction.is_plain and not transaction.savepoints:
            self.open_ahead(shard, backend)
            return
        if opening[0] != transaction.begin and not self._state.settings.autocommit:
            # MySQL has begun a transaction with a mere SHOW, which is in the way.
            opening.insert(0, backend.ending(b"COMMIT"))
        # Noted before it is sent: a connection that fails half way must stay with this session.
        backend.in_transaction = transaction.has_begun = True
        await backend.pipeline([query(sql) for sql in (*opening, *transaction.savepoints)])
        self._joined(shard, backend)

    def check_span(self, shards: Sequence[ShardRuntime]) -> None:
        """Raise TransactionSpansShards or Unsupported if the transaction may not be on *shards* as well.

        Nothing is sent before, so the transaction so far can still be committed.
        """
        transaction = self._state.transaction
        if transaction is None:
            if self._state.settings.autocommit:
                return
            transaction = Transaction(b"START TRANSACTION")  # the first shard begins it
        spanned = list(dict.fromkeys([*(shard for shard, _ in self.open), *shards]))
        if len(spanned) == 1:
            return
        first, second, *_ = map(str, spanned)
        if transaction.is_xa:
            # XA PREPARE and XA COMMIT reach only the shard that has seen XA START.
            raise Unsupported(
                f"a transaction of XA over several shards; it is on {first}; end it there,"
                " or send one for each shard"
            )
        if not self.may_span_shards:
            raise TransactionSpansShards(first, second)
        if transaction.is_snapshot and len({s.keyspace for s in spanned}) < len(spanned):
            raise Unsupported(SNAPSHOT_OF_SHARDS)

    @property
    def opens_at_once(self) -> bool:
        """True if `join` would only `open_ahead`, as for the first shard of a transaction."""
        transaction = self._state.transaction
        return (
            transaction is not None
            and transaction.is_plain
            and not (self.held or transaction.broken or transaction.savepoints)
        )

    def _joined(self, shard: ShardRuntime, backend: Backend) -> None:
        self._kept.discard((shard, Keep.SAVEPOINTS))
        # Behind those that joined before it, even if it was held already.
        self.held.pop(shard, None)
        self.held[shard] = backend

    def open_ahead(self, shard: ShardRuntime, backend: Backend) -> None:
        """Open the session's transaction on *backend*, in one write with the statement that follows in this turn of the loop.

        No server refuses a plain BEGIN. If one did, the statement behind it would be committed alone, so the connection is closed.
        """
        transaction = self._state.transaction
        assert transaction is not None
        backend.in_transaction = transaction.has_begun = True
        self._joined(shard, backend)

        def heard(answer: BufferedAnswer) -> None:
            if answer.error is not None:  # an OK has no news
                backend.abort()

        reader = AnswerCollector(heard, lambda _: None)
        backend.send(query(transaction.begin), reader, ahead=True)

    def _check_commits_nothing(self, shard: ShardRuntime, shape: Shape) -> None:
        if (shape.kind in _MAY_COMMIT or shape.uses & Uses.IMPLICIT_COMMIT) and any(
            other is not shard for other, _ in self.open
        ):
            raise Unsupported(
                f"{shape.verb} in a transaction over several shards with transaction_mode ="
                ' "twopc", as it may commit by itself; send it'
                " outside of the transaction"
            )

    def happened(
        self,
        shard: ShardRuntime,
        table: str,
        effect: Effect,
        insert_id: int = 0,
        *,
        rows: int | None = None,
    ) -> None:
        """Note the effect of a statement; outside a transaction it is committed already.

        *insert_id* is the id that the server generated for it, if it did; *rows* how many it affected.
        """
        self.effects.add(shard, table, effect.answered(insert_id, rows))
        self.committed_by_itself()

    def committed_by_itself(self) -> None:
        """Report the effects of a statement, unless a transaction is open that holds them."""
        if not self.in_transaction:
            self.effects.committed()

    def failed(self, shard: ShardRuntime, shape: Shape) -> None:
        """Schedule a read of tables to which a statement may have written or committed before the server refused it."""
        if runs_unseen(shape):
            self.effects.wrote_unseen(shard)
        if may_commit(shape):
            self.effects.perhaps_committed()
            self.committed_by_itself()

    def broke_off(self, shard: ShardRuntime, shape: Shape) -> None:
        """Schedule a read of tables to which a statement whose answer never came may have written or committed."""
        is_write = shape.kind in WRITES and not self.in_transaction
        if is_write or runs_unseen(shape):
            self.effects.wrote_unseen(shard)
        if is_write or shape.kind in _ENDS or may_commit(shape):
            self.effects.perhaps_committed()

    def went_on(self, shape: Shape) -> None:
        """Follow a statement after which its branch is in a transaction, possibly a new one.

        The server's flag is also set after a second BEGIN and after AND CHAIN.
        """
        if shape.kind is Kind.ROLLBACK:
            self.effects.rolled_back()
        elif shape.kind in _ENDS:
            self.effects.committed()
        elif may_commit(shape):
            self.effects.perhaps_committed()

    def branch_ended(self, shard: ShardRuntime, shape: Shape) -> None:
        """End the branch of *shard*, after COMMIT, ROLLBACK, an implicit commit or another statement of *shape*."""
        rolled_back = "ROLLBACK" in (shape.verb, *shape.words[:1])
        if runs_unseen(shape) or shape.kind is Kind.XA:
            # A procedure may have done either, and XA PREPARE has done neither.
            self.effects.partly_rolled_back()
        if self.open:
            if self.coordinator is not None:
                self._break(f"shard '{shard}' ended its part by itself")
            elif not rolled_back:
                self.effects.perhaps_committed()
            return
        self._state.transaction = None
        self.savepoints_ended()
        if rolled_back:
            self.effects.rolled_back()
        else:
            self.effects.committed()

    def undone(self, shard: ShardRuntime, backend: Backend) -> None:
        """Break the transaction: a server has rolled its branch back, as after a deadlock.

        The others go with it: one server would have rolled back everything.
        """
        transaction = self._state.transaction
        # On one server a deadlock ends the whole transaction. Here it ended one branch of it.
        if transaction is not None and backend in transaction.xids:
            # Undone or not, it is a branch until XA ROLLBACK; `_break` closes it.
            self.held[shard] = backend
        else:
            backend.in_transaction = False
            if not self.is_sticky(shard):
                self.held.pop(shard, None)
        self._break(f"shard '{shard}' rolled it back")
        if not self.open:
            self._state.transaction = None

    def branch_lost(self, shard: ShardRuntime, backend: Backend) -> None:
        """Drop the connection of a branch, which is gone. Raises SessionLost if it held state that nothing can rebuild."""
        if self.held.get(shard) is not backend:
            return
        del self.held[shard]
        was_in_transaction = backend.in_transaction
        held_state = (shard, Keep.STATE) in self._kept
        self._kept = {each for each in self._kept if each[0] is not shard}
        if held_state:
            raise SessionLost(shard.keyspace, shard.name)
        if was_in_transaction:
            self._break(f"shard '{shard}' lost its connection")

    def _break(self, reason: str) -> None:
        transaction = self._state.transaction
        if transaction is not None:
            transaction.broken = reason
        self.effects.rolled_back()
        # `open` is a list made for this loop, so `held` may shrink meanwhile.
        for shard, backend in self.open:
            # Closing is the surest rollback, and nothing waits for it. Only a connection that
            # holds state of the session itself must live on; ROLLBACK reaches it.
            if not self.is_sticky(shard):
                del self.held[shard]
                shard.pool.discard(backend)

    # --- COMMIT, ROLLBACK, SAVEPOINT over several shards -----------------------------------

    async def commit(self) -> None:
        """Commit every branch: in turn, or in two phases if so configured.

        Raises PartialCommit if some branches committed before one failed, and the rest is rolled back. Everything is rolled back at
        BackendError or BackendLost, if the first one failed, and at TransactionBroken, if one had been lost before. Raises CommitUnknown or
        CommitPending as the coordinator.
        """
        transaction, self._state.transaction = self._state.transaction, None
        self.savepoints_ended()
        broken = "" if transaction is None else transaction.broken
        branches = self._branches(transaction)
        for branch in branches:
            if branch.backend.is_closed:
                broken = f"shard '{branch.shard}' lost its connection"
        # Found before the first COMMIT is sent: here "nothing is committed" is still true
        # everywhere.
        if broken:
            self.effects.rolled_back()
            await self._end(branches)
            raise TransactionBroken(broken, ended=True)
        if (
            self.coordinator is not None
            and len(branches) > 1
            and (transaction is None or transaction.is_decided)
        ):
            await self._commit_in_two_phases(self.coordinator, branches)
        else:
            await self._commit_in_turn(branches, transaction)

    async def _commit_in_turn(
        self, branches: list[Branch], transaction: Transaction | None
    ) -> None:
        committed: list[str] = []
        for index, branch in enumerate(branches):
            try:
                await branch.backend.query(branch.backend.ending(b"COMMIT"))
            except (BackendError, BackendLost) as error:
                if isinstance(error, BackendError) and error.code == XA_REFUSES and not index:
                    # The transaction continues, as on one server, with the connections that it has.
                    self._state.transaction = transaction
                    raise
                await self._end(branches[index:])
                # Nothing has been committed before this one, so the client gets its error as
                # from one server. From the second on it must know which shards have what.
                if not committed:
                    if isinstance(error, BackendLost):
                        self.effects.perhaps_committed()
                    self.effects.rolled_back()
                    raise
                self.effects.committed()
                failed = [str(other.shard) for other in branches[index:]]
                raise PartialCommit(committed, failed, str(error)) from error
            self._ended(branch)
            committed.append(str(branch.shard))
        self.effects.committed()

    async def _commit_in_two_phases(
        self, coordinator: Coordinator, branches: list[Branch]
    ) -> None:
        # If a client leaves, its connections are reset, and a reset connection answers OK to
        # a COMMIT. So they are out of its reach until this is over, and it continues without it.
        sticky = {branch.shard for branch in branches if self.is_sticky(branch.shard)}
        for branch in branches:
            del self.held[branch.shard]
        deciding = self._decide(coordinator, branches, sticky, self.effects.taken())
        error = await asyncio.shield(asyncio.ensure_future(deciding))
        if error is not None:
            raise error

    async def _decide(
        self,
        coordinator: Coordinator,
        branches: list[Branch],
        sticky: set[ShardRuntime],
        effects: PendingEffects,
    ) -> ProxyError | None:
        """Commit and release the connections; return the client's error, None for success."""
        failure: ProxyError | None = None
        try:
            await coordinator.commit(branches[0], branches[1:])
        except ProxyError as error:
            failure = error
        except BaseException:
            # In an unknown state: only closing is safe.
            for branch in branches:
                branch.shard.pool.discard(branch.backend)
            raise
        if failure is None or isinstance(failure, CommitPending):
            effects.committed()
        # A sticky connection goes back to its session, unless the session has gone since.
        for branch in branches:
            if branch.shard not in sticky or self.is_sticky(branch.shard):
                if branch.shard in sticky:
                    self.held[branch.shard] = branch.backend
                self._ended(branch)
            else:
                # The client has left, and its `forget` did not reset these connections.
                await branch.shard.pool.recycle(branch.backend)
        return failure

    async def rollback(self) -> None:
        """Roll back every branch; closing the connection rolls back one that does not answer."""
        transaction, self._state.transaction = self._state.transaction, None
        self.savepoints_ended()
        self.effects.rolled_back()
        await self._end(self._branches(transaction))

    def _branches(self, transaction: Transaction | None) -> list[Branch]:
        xids = {} if transaction is None else transaction.xids
        return [Branch(shard, backend, xids.get(backend)) for shard, backend in self.open]

    async def _end(self, branches: list[Branch]) -> None:
        await roll_back(branches)
        for branch in branches:
            self._ended(branch)

    def _ended(self, branch: Branch) -> None:
        shard, backend = branch.shard, branch.backend
        backend.in_transaction = False
        # One that held state of the session stays, even closed: its next statement must learn
        # that this state is gone.
        if not self.is_sticky(shard):
            self.held.pop(shard, None)
            shard.pool.release(backend)

    async def savepoint(self, sql: bytes) -> None:
        """Run SAVEPOINT, ROLLBACK TO or RELEASE on every branch; late branches repeat it.

        Raises TransactionBroken as `check`, BackendError or BackendLost if a branch could not do it.
        """
        self.check()
        for _, backend in self.open:
            await backend.query(sql)
        self.has_savepoint(sql)

    def has_savepoint(self, sql: bytes) -> None:
        """Make late branches repeat *sql*, which has been run, or begins no transaction."""
        transaction = self._state.transaction
        if transaction is None and not self._state.settings.autocommit:
            transaction = self._may_begin()
        if transaction is not None:
            transaction.savepoints.append(sql)

    # --- the end --------------------------------------------------------------------------

    def forget(self) -> list[Coroutine[Any, Any, None]]:
        """Let go of every connection; return coroutines that reset them and give them back."""
        self._state.transaction = None
        self.effects.rolled_back()
        recycling = [
            shard.pool.recycle(backend)
            for shard, backend in self.held.items()
            if not backend.is_busy
        ]
        self.held.clear()
        self._kept.clear()
        return recycling
