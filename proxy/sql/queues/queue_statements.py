"""Carry out CREATE, ALTER and DROP QUEUE, SHOW QUEUES and SHOW CREATE QUEUE.

Each statement runs definitions of an ordinary message table, which the user must be allowed to send. The same holds for the
consent in the comment of the table that takes the queue's dead letters. The proxy reads all shards'
definitions before it changes any, so nothing is made while a shard is down. If a shard fails in the
middle, the same statement completes the rest when it is sent again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import EngineError
from streamfrom.engine.messaging.table import key_column
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.groups import placement_fault
from streamfrom.engine.messaging.table.message_table import (
    MessageTable,
    id_fault,
    load,
    naming_fault,
)
from streamfrom.engine.messaging.table.table_settings import in_flight_fault, parse_comment
from streamfrom.engine.messaging.upkeep import dead_letter_table
from streamfrom.engine.sharding.vschema import ColumnVindex, vindex_of, with_queues
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.errors import (
    BackendError,
    BadQueue,
    NoDatabaseSelected,
    NoSuchQueue,
    QueueExists,
)
from streamfrom.proxy.execution.diagnostics_queries import warning
from streamfrom.proxy.local_statements.queue_definitions import (
    DEAD_SUFFIX,
    alter_table,
    ask_columns,
    changed_comment,
    check_partitions,
    checked,
    column_types,
    comment_in,
    create_dead_letters,
    create_table,
    drop_table,
    is_made_for,
    is_queue,
    named,
    new_comment,
    partition_unit,
    sharding,
    show_create_table,
)
from streamfrom.proxy.local_statements.show_queues import (
    create_queue,
    is_show_create_queue,
    show_queues,
)
from streamfrom.proxy.routing.vschema_tables import not_in_vschema
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.queues.requeue_statements import RequeueStatements
from streamfrom.proxy.sql.scatter.scattered_writes import run_everywhere
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import ColumnDefinition, Table
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.queues import QueueStatement, read_queue
from streamfrom.sqlparse_ext.statements import Shape, Statement, TableRef
from streamfrom.sqlparse_ext.stored_forms import ColumnType, folds_case
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEXT_BYTES


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import RawTable
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.session_context import SessionContext

_NO_SUCH_TABLE: Final = 1146
_WRONG_ARGUMENTS: Final = 1210


class QueueStatements:
    """The queue statements of one session.

    run_ddl: runs a definition on every shard and answers the client, with the proxy's own warnings.
    """

    def __init__(
        self,
        context: SessionContext,
        run_ddl: Callable[[Statement, Reply, Sequence[bytes]], Awaitable[bool]],
    ) -> None:
        self._state = context.state
        self._executor = context.executor
        self._compiler = context.compiler
        self._target = context.compiler.target
        self._large_texts = context.large_texts
        self._registry = context.registry
        self._rights = context.rights
        self._run_ddl = run_ddl
        self._requeues = RequeueStatements(context)

    async def run(self, statement: Statement, reply: Reply) -> bool:
        """Run CREATE, ALTER or DROP QUEUE.

        Raises SqlError, BadQueue, Unsupported, QueueExists or NoSuchQueue if nothing is made; BackendUnavailable or BackendError if a shard
        refused: the message names the shards that succeeded before.
        """
        if len(statement.sql) > LARGE_TEXT_BYTES:  # the loop reads the definition made from it
            raise Unsupported(
                f"{statement.shape.verb} QUEUE by a text of more than {LARGE_TEXT_BYTES} bytes;"
                " make fewer columns, and add the others by ALTER TABLE"
            )
        queue = await self._large_texts.read(size_of(statement), read_queue, statement)
        match queue.verb:
            case "CREATE":
                return await self._create(queue, reply)
            case "DROP":
                return await self._drop(queue, reply)
            case "REQUEUE":
                return await self._requeue(queue, reply)
            case _:
                return await self._alter(queue, reply)

    async def _create(self, queue: QueueStatement, reply: Reply) -> bool:
        now_ns = self._compiler.clock.time_ns()
        definition = create_table(queue, new_comment(queue), now_ns)
        await self._allowed(definition)
        name = queue.table.name
        view, found = await self._definitions(queue.table)
        comment = new_comment(queue, await self._sharding(queue, view))
        columns = column_types(definition.decode("utf-8", "replace"))
        _check_settings(name, comment, view, columns)
        if (fault := _placement_fault(name, comment, view.keyspace)) is not None:
            raise BadQueue(fault)
        made_by = await self._allowed(create_table(queue, comment, now_ns))
        made = [shard for shard, text in found if text is not None]
        for shard, text in found:
            if text is not None and not is_queue(text):
                raise BadQueue(f"shard {shard} has a table '{name}' that is no queue")
        if len(made) == len(found):
            if not queue.if_exists:
                raise QueueExists(name)
            return await self._run_ddl(made_by, reply, ())
        for shard, text in found:
            other = None
            if text is not None and comment_in(text) != comment:
                other = f"settings ({comment_in(text)})"
            elif text is not None and partition_unit(text) != queue.partition_by:
                other = "partitions"
            if other is not None:
                raise BadQueue(
                    f"a CREATE QUEUE that was not finished left '{name}' on shard {shard} with other"
                    f" {other}: repeat that one, or DROP QUEUE first"
                )
        await self._consent(queue.table, comment)
        if is_made_for(comment, name) and await self._lacks_dead_letters(queue.table):
            # Its columns are those that the servers made of the queue's.
            await self._run_everywhere(made_by)
            return await self._run_ddl(
                await self._dead_letters(queue.table, comment), reply, ()
            )
        warnings = await _warnings(name, comment, view, columns)
        return await self._run_ddl(made_by, reply, warnings)

    async def _alter(self, queue: QueueStatement, reply: Reply) -> bool:
        view, found = await self._definitions(queue.table)
        name = queue.table.name
        comments = self._comments(name, found)
        for shard, text in found:
            if text is None:
                raise BadQueue(
                    f"shard {shard} has no queue '{name}': CREATE QUEUE completes it"
                )
        # Shards are changed in order, so the first one has the changes of an ALTER that broke off.
        comment = changed_comment(queue, comments[0])
        await self._check_change(view, name, comment)
        fault = _placement_fault(name, comment, view.keyspace)
        if fault is not None and _placement_fault(name, comments[0], view.keyspace) is None:
            raise BadQueue(fault)
        for _, text in found:
            check_partitions(partition_unit(text or ""), comment)
        definition = alter_table(queue.table, comment)
        if any(key == "dead_letter" for key, _ in queue.settings):
            if is_made_for(comment, name) and await self._lacks_dead_letters(queue.table):
                await self._run_everywhere(await self._dead_letters(queue.table, comment))
            await self._consent(queue.table, comment)
        warnings = await _warnings(name, comment, view, column_types(found[0][1] or ""))
        return await self._run_ddl(await self._allowed(definition), reply, warnings)

    async def _consent(self, queue: TableRef, comment: str) -> None:
        """Add the consent to the comment of the table that takes the dead letters of *queue*; without that table do nothing.

        Raises BadQueue if the comment cannot take it, BackendUnavailable or BackendError if a shard refuses.
        """
        taker = parse_comment(comment).dead_letter
        if taker is None:
            return
        table = replace(queue, name=taker)
        _, found = await self._definitions(table)
        changed: dict[str, list[ShardRuntime]] = {}
        for shard, text in found:
            old = "" if text is None else comment_in(text)
            if text is not None and not dead_letter_table.consents(old, queue.name):
                new = checked(dead_letter_table.with_consent(old, queue.name))
                changed.setdefault(new, []).append(shard)
        for new, shards in changed.items():
            await self._run_everywhere(await self._allowed(alter_table(table, new)), shards)

    async def _run_everywhere(
        self, definition: Statement, shards: Sequence[ShardRuntime] | None = None
    ) -> None:
        """Run a definition of one table on *shards*, or on all of its keyspace."""
        place = self._target.resolve(definition)
        if self._executor.branches.in_transaction:
            # On every shard of the transaction, not only those that run the statement.
            await self._executor.branches.commit()
        await run_everywhere(
            self._executor,
            self._state,
            place.database,
            place.view.runtimes if shards is None else shards,
            place.statement,
        )
        name = place.statement.shape.tables[0].name
        await self._registry.definitions_changed(place.view.keyspace.name, (name,))

    async def _lacks_dead_letters(self, queue: TableRef) -> bool:
        """Return whether a shard lacks the queue for the dead letters of *queue*."""
        _, found = await self._definitions(replace(queue, name=queue.name + DEAD_SUFFIX))
        return any(text is None for _, text in found)

    async def _dead_letters(self, queue: TableRef, comment: str) -> Statement:
        """Return the definition of the queue for the dead letters of *queue*, which every shard has, with *comment*.

        Raises BackendUnavailable or BackendError.
        """
        table = replace(queue, name=queue.name + DEAD_SUFFIX)
        view = self._target.resolve(self._target.parse(show_create_table(queue))).view
        shard = view.runtimes[0]
        columns = await shard.control.rows(ask_columns(shard.database, queue.name))
        placed_by = parse_comment(comment).shard_by
        placed = _placed_by(queue.name, comment, view.keyspace)
        if placed_by is None and placed is not None:
            placed_by = placed.vindex.name, placed.column
        return await self._allowed(create_dead_letters(table, queue.name, columns, placed_by))

    async def _check_change(self, view: View, name: str, comment: str) -> None:
        """Raise BadQueue if *comment* would give a table a fault that it does not have yet."""
        keyspace = view.keyspace
        shards = {(shard.keyspace, shard.name): shard for shard in view.runtimes}
        store = ShardStore(shards, self._compiler.clock)

        def faults(raw: RawTable) -> set[str]:
            table = load(keyspace.name, raw, len(keyspace.shards))
            return set() if isinstance(table, MessageTable) else {table.reason, *table.others}

        defined = partial(discover, names=(name,))
        for shard in view.runtimes:
            for raw in await store.ask(keyspace.name, shard.name, defined):
                if raw.name == name and not raw.is_hidden:
                    for fault in sorted(faults(replace(raw, comment=comment)) - faults(raw)):
                        raise BadQueue(fault)

    async def _requeue(self, queue: QueueStatement, reply: Reply) -> bool:
        assert queue.requeue is not None
        # As the user, who must be allowed to write the rows.
        await self._allowed(
            b"UPDATE %s SET time_next = 0, epoch = 0 WHERE time_acked IS NULL"
            % named(queue.table)
        )
        view, found = await self._definitions(queue.table)
        name = queue.table.name
        self._comments(name, found)
        table = self._registry.table(view.keyspace.name, name)
        if isinstance(table, EngineError):
            raise table
        if table is None:
            raise NoSuchQueue(name)
        await self._requeues.run(view, table, queue.requeue, reply)
        return True

    async def _drop(self, queue: QueueStatement, reply: Reply) -> bool:
        definition = await self._allowed(drop_table(queue))
        _, found = await self._definitions(queue.table)
        name, warnings = queue.table.name, list[bytes]()
        try:
            comments = self._comments(name, found)
        except NoSuchQueue:
            if not queue.if_exists:
                raise
        else:
            if is_made_for(comments[0], name):
                warnings += await self._drop_dead_letters(queue)
        return await self._run_ddl(definition, reply, warnings)

    async def _drop_dead_letters(self, queue: QueueStatement) -> list[bytes]:
        """Drop the queue made for dead letters if it is empty; return the warning that it stays."""
        table = replace(queue.table, name=queue.table.name + DEAD_SUFFIX)
        view, found = await self._definitions(table)
        asked = self._target.parse(
            b"SELECT 1 FROM %s LIMIT 1" % named(replace(table, schema=None))
        )
        for shard, text in found:
            if text is None:
                continue
            answer = await self._executor.ask(
                [shard], view.database, query(asked.sql), asked.shape
            )
            if answer.rows:
                reason = f"{table.name} has dead letters and stays"
                return [warning("Warning", _WRONG_ARGUMENTS, reason)]
        if any(text is not None for _, text in found):
            await self._run_everywhere(
                await self._allowed(drop_table(replace(queue, table=table)))
            )
        return []

    @staticmethod
    def _comments(name: str, found: Sequence[tuple[ShardRuntime, str | None]]) -> list[str]:
        """Return the comments of a queue. Raises NoSuchQueue; BadQueue if a table is no queue."""
        for shard, text in found:
            if text is not None and not is_queue(text):
                raise BadQueue(f"table '{name}' of shard {shard} is no queue")
        comments = [comment_in(text) for _, text in found if text is not None]
        if not comments:
            raise NoSuchQueue(name)
        return comments

    async def _sharding(self, queue: QueueStatement, view: View) -> tuple[str, str] | None:
        """Return the sharding that the queue's comment must state; None if the vschema states it.

        Raises BadQueue if there is no such vindex or column, Unsupported if the vschema states another sharding.
        """
        keyspace = view.keyspace
        vschema, name = keyspace.vschema, queue.table.name
        is_sharded = vschema is not None and vschema.sharded
        routing = vschema.tables.get(name) if vschema is not None and is_sharded else None
        left_half_made = self._registry.table(keyspace.name, name)
        if routing is None or (
            isinstance(left_half_made, MessageTable) and left_half_made.properties.shard_by
        ):
            if not is_sharded and queue.shard_by is None:
                return None
            vindex, column = sharding(queue, await _collation(view))
            if vindex_of({} if vschema is None else vschema.vindexes, vindex) is None:
                raise BadQueue(f"there is no vindex '{vindex}'")
            return vindex, column
        if queue.shard_by is not None:
            wanted, column = queue.shard_by
            primary = routing.primary
            if (
                primary is None
                or primary.column != column.lower()
                or wanted not in (None, primary.vindex.name, primary.vindex.type)
            ):
                raise Unsupported(
                    f"SHARD BY other than the vschema of keyspace '{keyspace.name}' says of '{name}';"
                    " leave SHARD BY out"
                )
        return None

    # --- SHOW -----------------------------------------------------------------------------

    def columns(self, shape: Shape) -> tuple[ColumnDefinition, ...]:
        """Return the columns of the answer of `show`. Raises as `show`."""
        if is_show_create_queue(shape):
            return ColumnDefinition("Queue"), ColumnDefinition("Create Queue", length=1 << 16)
        return (ColumnDefinition(f"Queues_in_{self._selected(shape).keyspace.name}"),)

    async def show(self, statement: Statement) -> Table:
        """Return the columns and the rows of SHOW QUEUES or SHOW CREATE QUEUE.

        Raises as for any table; NoSuchQueue or BadQueue if the name is not a queue's.
        """
        shape = statement.shape
        if not is_show_create_queue(shape):
            view = self._selected(shape)
            keyspace, sight = view.keyspace.name, await self._rights.sight(view.runtimes)
            names = (
                name for name in self._registry.tables(keyspace) if sight.sees(keyspace, name)
            )
            return self.columns(shape), [
                (name.encode(),) for name in show_queues(statement, names)
            ]
        if not shape.tables:
            raise NoSuchQueue("")
        table = shape.tables[0]
        _, found = await self._definitions(table)
        self._comments(table.name, found)
        text = next(text for _, text in found if text is not None)
        row = (table.name.encode(), create_queue(table.name, text).encode())
        return self.columns(shape), [row]

    def _selected(self, shape: Shape) -> View:
        view = self._target.view
        if shape.target is not None:
            view = self._target.named(shape.target)
        if view is None or view.schema is not None:
            raise NoDatabaseSelected
        return view

    # --- the shards -----------------------------------------------------------------------

    async def _allowed(self, sql: bytes) -> Statement:
        """Return a definition that the user may send. Raises the reason if not."""
        statement = await self._large_texts.parse(self._target.parse, sql)
        self._compiler.check(statement)
        return statement

    async def _definitions(
        self, table: TableRef
    ) -> tuple[View, list[tuple[ShardRuntime, str | None]]]:
        """Return the place of a table, and its definition on each shard; None on a shard without the table."""
        place = self._target.resolve(self._target.parse(show_create_table(table)))
        view = place.view
        if view.schema is not None:
            raise Unsupported(
                "a queue outside of a keyspace; USE one, or write its name in front"
            )
        found: list[tuple[ShardRuntime, str | None]] = []
        for shard in view.runtimes:
            try:
                # As the user, for the user's view of it; its text depends on the session's sql_mode.
                await self._executor.ask(
                    [shard], place.database, query(place.statement.sql), place.statement.shape
                )
                name = TableRef(shard.database, place.statement.shape.tables[0].name)
                rows = await shard.control.rows(show_create_table(name).decode())
            except BackendError as error:
                if error.code != _NO_SUCH_TABLE:
                    raise
                found.append((shard, None))
            else:
                found.append((shard, str(rows[0][1])))
        return view, found


async def _collation(view: View) -> str:
    """Return the collation of texts in a new table: of the first shard if equal texts may differ, else of any.

    Raises BackendUnavailable or BackendError.
    """
    found = [
        str((await shard.control.rows("SELECT @@collation_database"))[0][0])
        for shard in view.runtimes
    ]
    return next((each for each in found if folds_case(ColumnType("text", each))), found[0])


def _check_settings(name: str, comment: str, view: View, columns: Mapping[str, str]) -> None:
    """Raise BadQueue if a new queue with *comment* could not be used.

    columns: the queue's own columns, with their types, in lower case.
    """
    properties = parse_comment(comment)
    reason = in_flight_fault(properties, len(view.keyspace.shards))
    reason = reason or key_column.fault(properties, columns)
    reason = reason or naming_fault(name, properties, columns)
    reason = reason or id_fault(name, columns.get("id", ""))
    if reason is not None:
        raise BadQueue(reason)


def _placement_fault(name: str, comment: str, keyspace: Keyspace) -> str | None:
    """Return the reason why a queue with *comment* cannot have its groups; None if it can."""
    placed_by = _placed_by(name, comment, keyspace)
    column = None if placed_by is None else placed_by.column
    return placement_fault(parse_comment(comment).groups, column, len(keyspace.shards))


def _placed_by(name: str, comment: str, keyspace: Keyspace) -> ColumnVindex | None:
    """Return the vindex that places the rows of a queue with *comment*; None if there is none."""
    if keyspace.vschema is None:
        return None
    shard_by = parse_comment(comment).shard_by
    by_comment = {} if shard_by is None else {name: shard_by}
    routing = with_queues(keyspace.vschema, by_comment, {}).tables.get(name)
    return None if routing is None else routing.primary


async def _warnings(
    queue: str, comment: str, view: View, own: Collection[str]
) -> tuple[bytes, ...]:
    """Return warnings, as rows of SHOW WARNINGS, if dead letters of a queue with *comment* and columns *own* are lost or unreadable.

    Raises BackendUnavailable or BackendError.
    """
    name = parse_comment(comment).dead_letter
    if name is None:
        return ()
    reasons: dict[ShardRuntime, tuple[int, str]] = {}
    for shard in view.runtimes:
        rows, is_hidden = await shard.control.rows_unlocked(
            dead_letter_table.columns_of(shard.database, name), on_mariadb=shard.is_mariadb
        )
        columns = [(str(column), str(comment)) for column, comment in rows]
        reason = None if is_hidden else dead_letter_table.fault(name, columns, queue, own)
        if reason is not None:
            reasons[shard] = _WRONG_ARGUMENTS if columns else _NO_SUCH_TABLE, reason
    if not reasons:
        vschema = view.keyspace.vschema
        if not view.is_sharded or vschema is None or name in vschema.tables:
            return ()
        placed_by = _placed_by(queue, comment, view.keyspace)
        absent = not_in_vschema(view.keyspace, name, placed_by)
        text = f"vt_dead_letter: messages move to {name}, and it cannot be read back: {absent}"
        return (warning("Warning", Unsupported.mysql_code, text),)
    code, reason = next(iter(reasons.values()))
    where = (
        "" if len(reasons) == len(view.runtimes) else f" (shard {', '.join(map(str, reasons))})"
    )
    return (warning("Warning", code, reason + where),)
