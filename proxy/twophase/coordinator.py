"""Commits a transaction over several shards in two phases.

    1  the decision row           in the transaction of the first shard, which stays open
    2  XA END, XA PREPARE         on all others, at the same time
    3  COMMIT                     on the first shard: the decision
    4  XA COMMIT                  on all others, at the same time

Before 3 any failure rolls everything back. A failure in 3 is settled by looking for the row on the first
shard; one in 4 by trying again, as the decision stands. Both continue until a deadline; the
rest is finished by `proxy.twophase.recovery`, of this proxy or another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.errors import (
    BackendError,
    BackendLost,
    BackendUnavailable,
    CommitPending,
    CommitRefused,
    CommitUnknown,
    ProxyError,
    TransactionBroken,
)
from streamfrom.proxy.twophase.decisions import DECIDES, TABLE, TransactionOutcome, record
from streamfrom.proxy.twophase.xid import GlobalId, Xid, recovered
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import Status


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.twophase.decisions import Decisions


XA_NO_SUCH_BRANCH: Final = 1397  # ER_XAER_NOTA
_READ_ONLY_TRANSACTION: Final = 1792  # ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
_TABLE_DENIED: Final = 1142  # ER_TABLEACCESS_DENIED_ERROR
_RETRY_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Branch:
    """The part of a transaction on one shard: a branch of XA, except on the first shard (None)."""

    shard: ShardRuntime
    backend: Backend
    xid: Xid | None


@dataclass(slots=True, eq=False)
class Coordinator:
    """Commits in two phases, for all sessions of a proxy."""

    _decisions: Decisions
    _clock: Clock
    _: KW_ONLY
    patience_s: float  # how long a commit waits for a shard that went away
    new_number: Callable[[], str]  # draws 32 hexadecimal digits
    # The transactions that are being committed, which recovery leaves alone.
    live: set[GlobalId] = field(default_factory=set)

    async def name(self, first: ShardRuntime) -> GlobalId:
        """Return a name for a transaction that began on *first*. Raises NoDecisionTable."""
        return GlobalId(await self._decisions.table_of(first), self.new_number())

    async def branch(self, whole: GlobalId, shard: ShardRuntime) -> Xid:
        """Return the name of a transaction's branch on *shard*. Raises NoDecisionTable."""
        return whole.branch(await self._decisions.table_of(shard))

    async def commit(self, first: Branch, others: Sequence[Branch]) -> None:
        """Commit. Whatever happens, no connection is left in a transaction: one in an unknown state is closed.

        Raises CommitRefused or TransactionBroken if nothing is committed, CommitUnknown if that is not known yet, CommitPending if it is
        committed, but one of *others* still has to follow.
        """
        xids = [branch.xid for branch in others if branch.xid is not None]
        if first.xid is not None or len(xids) < len(others):
            # No statement leads here. But if one did, half a transaction could get lost.
            await roll_back((first, *others))
            raise TransactionBroken("its shards cannot commit in two phases", ended=True)
        whole = xids[0].whole
        self.live.add(whole)
        try:
            await self._commit(whole, first, others, [xid.branch for xid in xids])
        finally:
            self.live.discard(whole)

    async def _commit(
        self, whole: GlobalId, first: Branch, others: Sequence[Branch], tables: list[str]
    ) -> None:
        try:
            sql = record(first.shard.database, whole, tables, self._clock.time_ns())
            # The row becomes visible with the first shard's own COMMIT, which is the decision:
            # if the row is there, the transaction is committed; if it is not, it never will be.
            await _write(first, sql)
            # From here on a branch outlives its connection, and its server. `recovery` finds it
            # by its name.
            await _all(others, _prepare)
        except _ReadOnly:
            # Read-only on all shards: a transaction that could not write needs no commit.
            writable = [branch for branch in others if not await _is_read_only(branch, sql)]
            await roll_back((first, *others))
            if writable:
                reason = f"shard '{first.shard}' was in a READ ONLY transaction"
                raise TransactionBroken(reason, ended=True) from None
            return
        except (CommitRefused, TransactionBroken):
            await roll_back((first, *others))
            raise
        try:
            await first.backend.query(first.backend.ending(b"COMMIT"))
        except (BackendError, BackendLost) as error:
            await self._settle(whole, first, others, error)
        await self._finish(whole, first, others)

    async def _settle(
        self,
        whole: GlobalId,
        first: Branch,
        others: Sequence[Branch],
        error: BackendError | BackendLost,
    ) -> None:
        """Find out the result of a failed COMMIT on the first shard; return if it committed."""
        # The connection may still hold the transaction, and with it the lock of the decision row:
        # until it ends, the query below can only return UNKNOWN.
        await roll_back((first,))
        deadline_s = _now_s() + self.patience_s
        outcome = await self._decisions.outcome(first.shard, whole)
        while outcome is TransactionOutcome.UNKNOWN and _now_s() < deadline_s:
            await asyncio.sleep(_RETRY_PAUSE_S)
            outcome = await self._decisions.outcome(first.shard, whole)
        match outcome:
            case TransactionOutcome.COMMITTED:
                return
            case TransactionOutcome.ROLLED_BACK:
                # The row is not there, and its lock is free: no COMMIT can follow any more.
                await roll_back(others)
                raise _refusal(first, error) from error
            case TransactionOutcome.UNKNOWN:
                for branch in others:
                    # MariaDB lets no other connection finish a branch while its connection is there.
                    branch.shard.pool.discard(branch.backend)
                names = [str(branch.shard) for branch in others]
                raise CommitUnknown(str(first.shard), names) from error

    async def _finish(self, whole: GlobalId, first: Branch, others: Sequence[Branch]) -> None:
        # First on the branches' own connections; those that failed are closed then, and any other will do.
        pending = [
            branch
            for branch, done in zip(
                others, await asyncio.gather(*map(_commit_branch, others)), strict=True
            )
            if not done
        ]
        if not pending:
            # The row is needed only as long as a branch might look for it.
            self._decisions.forget(first.shard, whole)
            return
        deadline_s = _now_s() + self.patience_s
        while pending and _now_s() < deadline_s:
            await asyncio.sleep(_RETRY_PAUSE_S)
            pending = [branch for branch in pending if not await _commit_elsewhere(branch)]
        if pending:
            raise CommitPending([str(branch.shard) for branch in pending], "no answer")


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class _ReadOnly(Exception):
    """The client began a READ ONLY transaction."""


def _refusal(branch: Branch, error: BackendError | BackendLost) -> ProxyError:
    """Return the client's error for a branch that could not do its step before the decision, so that all are rolled back."""
    shard = str(branch.shard)
    if isinstance(error, BackendError):
        return CommitRefused(shard, error)
    return TransactionBroken(f"shard '{shard}' lost its connection", ended=True)


async def _write(first: Branch, sql: bytes) -> None:
    """Write the decision row."""
    try:
        answer = await first.backend.query(sql)
    except BackendError as error:
        if error.code == _READ_ONLY_TRANSACTION:
            raise _ReadOnly from None
        if error.code == _TABLE_DENIED:
            text = (
                f"{error}; it needs GRANT {DECIDES} ON {TABLE} there, or, where it only reads,"
                " START TRANSACTION READ ONLY"
            )
            error = BackendError(error.code, error.state, text)
        raise _refusal(first, error) from None
    except BackendLost as error:
        raise _refusal(first, error) from error
    ok = answer.ok
    assert ok is not None
    if ok.affected_rows != 1 or not ok.status & Status.IN_TRANS:
        # Another client has replaced the table, or ended the transaction behind our back.
        reason = f"its table {TABLE} is not the one that it was"
        raise _refusal(first, BackendError(1105, "HY000", reason))


async def _is_read_only(branch: Branch, sql: bytes) -> bool:
    try:
        await branch.backend.query(sql)
    except BackendError as error:
        return error.code == _READ_ONLY_TRANSACTION
    except BackendLost:
        pass
    return False


async def _prepare(branch: Branch) -> None:
    assert branch.xid is not None
    try:
        await branch.backend.pipeline(
            [query(branch.xid.sql("END")), query(branch.xid.sql("PREPARE"))]
        )
    except (BackendError, BackendLost) as error:
        raise _refusal(branch, error) from error


async def _all(
    branches: Sequence[Branch], step: Callable[[Branch], Coroutine[Any, Any, None]]
) -> None:
    """Take a step on all branches at the same time; raise once every one has ended."""
    # Not only the first failure: a rollback during a PREPARE that still runs could come before
    # it, and the branch would stay prepared.
    results = await asyncio.gather(*map(step, branches), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _commit_branch(branch: Branch) -> bool:
    """Commit a prepared branch on its own connection; True if that has certainly happened."""
    assert branch.xid is not None
    try:
        await branch.backend.query(branch.xid.sql("COMMIT"))
    except (BackendError, BackendLost):
        branch.shard.pool.discard(branch.backend)
        return False
    return True


async def _commit_elsewhere(branch: Branch) -> bool:
    """Commit a prepared branch that has lost its connection; True once there is none."""
    assert branch.xid is not None
    control = branch.shard.control
    try:
        await control.execute(branch.xid.sql("COMMIT").decode())
    except BackendUnavailable:
        return False
    except BackendError as error:
        # A second XA COMMIT gets this error if the answer to the first one was
        # lost. XA RECOVER below shows whether that is so.
        if error.code != XA_NO_SUCH_BRANCH:
            return False
    try:
        rows = await control.rows("XA RECOVER")
    except (BackendUnavailable, BackendError):
        return False
    return branch.xid not in map(recovered, rows)


async def roll_back(branches: Sequence[Branch]) -> None:
    """Roll back branches in any state; if that fails, close the connection.

    A prepared branch outlives that, and is rolled back by recovery.
    """
    await asyncio.gather(*map(_roll_back, branches))


async def _roll_back(branch: Branch) -> None:
    xid = branch.xid
    # XA END is refused if it was sent before, or if a deadlock has undone the branch.
    rollback = branch.backend.ending(b"ROLLBACK")
    sqls = (rollback,) if xid is None else (xid.sql("END"), xid.sql("ROLLBACK"))
    try:
        *_, last = await branch.backend.answers([query(sql) for sql in sqls])
    except BackendLost:
        last = None
    if last is None or last.error is not None:
        branch.shard.pool.discard(branch.backend)
