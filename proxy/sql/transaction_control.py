"""BEGIN, COMMIT, ROLLBACK and savepoints, on the one shard that is concerned or on all of them.

BEGIN is answered here, and reaches a shard with the transaction's first statement there. If one server has the whole
transaction, it gets the client's own text and gives its own answer; over several shards `proxy.execution.transaction` keeps
the branches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import NoSuchSavepoint
from streamfrom.proxy.execution.session_state import Transaction
from streamfrom.proxy.execution.transaction import SNAPSHOT_OF_SHARDS
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.routed_statements import RoutedStatements
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.sqlparse_ext.statements import Shape, Statement


class TransactionControl:
    """Begins and ends the transactions of one session.

    All methods return False if nothing may follow in the same text: the answer is a server's
    error, or the client is disconnected.
    """

    def __init__(self, context: SessionContext, routed: RoutedStatements) -> None:
        self._state = context.state
        self._target = context.compiler.target
        self._branches = context.executor.branches
        self._routed = routed

    async def begin(self, statement: Statement, reply: Reply) -> bool:
        """Begin a transaction. Raises Unsupported if none can begin."""
        view = self._target.here()
        if view.is_replica and view.is_sharded:
            raise Unsupported("a transaction over replicas of several shards; USE one of them")
        transaction = self._state.transaction
        is_broken = transaction is not None and transaction.broken
        is_elsewhere = any(shard is not view.runtimes[0] for shard, _ in self._branches.open)
        if view.is_sharded or is_elsewhere or is_broken:
            # On a server BEGIN commits the transaction before it.
            await self._branches.commit()
        before, self._state.transaction = self._state.transaction, None
        begun = Transaction.begun_by(statement)
        if self._is_due(begun) and not view.is_sharded:
            step, database = CompiledStatement(statement), self._target.database
            ok = await self._routed.on_shard(view.runtimes, database, step, reply)
            begun.reads_only = begun.reads_only or self._branches.reads_only
            # A server that refuses it, for example within a transaction of XA, has ended nothing.
            self._state.transaction = begun if ok else before
            return ok
        if begun.is_snapshot and self._target.view is not None:
            raise Unsupported(SNAPSHOT_OF_SHARDS)
        self._enter(begun, statement)
        reply.ok()
        return True

    def begin_now(self, statement: Statement) -> bool:
        """Begin a transaction if no query has to run and no transaction has to end first; else return False."""
        begun = Transaction.begun_by(statement)
        if self._state.transaction is not None or self._is_due(begun):
            return False
        self._enter(begun, statement)
        return True

    def _is_due(self, begun: Transaction) -> bool:
        """Return whether a BEGIN cannot wait for the first statement.

        It ends locks, takes a snapshot, or makes the server report the transaction's state.
        """
        settings = self._state.settings
        return bool(
            self._branches.held
            or begun.is_snapshot
            or not settings.autocommit
            or "session_track_transaction_info" in settings.values
        )

    def _enter(self, begun: Transaction, statement: Statement) -> None:
        if self._state.settings.is_read_only and "READ WRITE" not in statement.shape.options:
            begun.reads_only = True
        self._state.transaction = begun
        self._state.answered_since = True

    async def commit(self, statement: Statement, reply: Reply) -> bool:
        """Commit. Raises as `Branches.commit`."""
        return await self._end_transaction(statement, reply, self._branches.commit)

    async def rollback(self, statement: Statement, reply: Reply) -> bool:
        """Roll back."""
        return await self._end_transaction(statement, reply, self._branches.rollback)

    async def _end_transaction(
        self, statement: Statement, reply: Reply, end: Callable[[], Awaitable[None]]
    ) -> bool:
        transaction = self._state.transaction
        is_broken = transaction is not None and transaction.broken
        chains, releases = self._what_follows(statement.shape)
        view = self._target.here()
        if not releases and not is_broken:
            shard, database = None, self._target.database
            alone = self._branches.alone
            if alone is not None:
                # One server, its own transaction, with AND CHAIN and the rest.
                shard, database = alone[0], alone[1].database
            elif not (self._branches.open or view.is_sharded) and (
                chains or not self._state.settings.autocommit
            ):
                # One server and no transaction: it begins one, or warns of rows that no
                # transaction holds (1196), which no flag of MariaDB's shows.
                self._state.transaction = None
                shard = view.runtimes[0]
            if shard is not None:
                return await self._routed.on_shard(
                    [shard], database, CompiledStatement(statement), reply
                )
        await end()
        if chains and not releases:
            self._state.transaction = Transaction.chained_to(transaction)
        self._state.answered_since = True
        reply.ok()
        if releases:
            reply.link.close()
        return not releases

    def _what_follows(self, shape: Shape) -> tuple[bool, bool]:
        """Return whether the next transaction begins, and whether the client is disconnected."""
        options = shape.options
        completion = self._state.settings.values.get("completion_type")
        return (
            "CHAIN" in options or (completion == "CHAIN" and "NO CHAIN" not in options),
            "RELEASE" in options or (completion == "RELEASE" and "NO RELEASE" not in options),
        )

    async def savepoint(self, statement: Statement, reply: Reply) -> bool:
        """Set, release or roll back to a savepoint. Raises as `Branches.savepoint`, and NoSuchSavepoint if no shard is queried."""
        shape = statement.shape
        if shape.verb == "ROLLBACK":
            self._branches.effects.partly_rolled_back()
        self._branches.check()
        transaction, branches = self._state.transaction, self._branches.open
        shard, database = None, self._target.database
        if len(branches) == 1:
            # One server, its own transaction.
            ((shard, backend),) = branches
            database = backend.database
        elif not branches and (transaction is None or not transaction.has_begun):
            view = self._target.here()
            shard = None if view.is_sharded else view.runtimes[0]
        if shard is not None:
            step = CompiledStatement(statement)
            done = await self._routed.on_shard([shard], database, step, reply)
            if done:
                self._branches.has_savepoint(statement.sql)
            return done
        if shape.verb != "SAVEPOINT" and not branches:
            self._check_is_set(shape.target or "")
        await self._branches.savepoint(statement.sql)
        self._state.answered_since = True
        reply.ok()
        return True

    def _check_is_set(self, name: str) -> None:
        """Raise NoSuchSavepoint unless *name* is set in a transaction that no shard has begun."""
        transaction = self._state.transaction
        names: list[str] = []
        for sql in transaction.savepoints if transaction else ():
            shape = self._target.parse(sql).shape
            said = (shape.target or "").lower()
            if shape.verb == "SAVEPOINT":
                names = [*(name for name in names if name != said), said]
            elif said in names:
                # ROLLBACK TO drops the later savepoints, RELEASE drops this one, too.
                del names[names.index(said) + (shape.verb == "ROLLBACK") :]
        if name.lower() not in names:
            raise NoSuchSavepoint(name)
