"""One SELECT whose parts are answered first; a shard then answers the rest from their rows.

The parts are routed and run one after another, like statements of the client. Their rows are kept, up to a limit, and
written into the text, which the first shard answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.execution.diagnostics_queries import diagnostics_of_several
from streamfrom.proxy.merge.stage_rows import AnsweredPart, Combination
from streamfrom.proxy.routing.routes import Combine, Concatenate, Merge, OneShard
from streamfrom.proxy.sql.scatter.gather import gather
from streamfrom.proxy.sql.scatter.taken_rows import BYTES_MAX, ROWS_MAX, TakenRows
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.resultset import parse_column_definition
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Uses


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.routing.routes import Route
    from streamfrom.proxy.sql.scatter.gather import RowSink
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.wire.resultset import ColumnDefinition
    from streamfrom.sqlparse_ext.statements import Statement

_TWO_OF_ONE_NAME: Final = 1060  # ER_DUP_FIELDNAME


class TwoStageSelect:
    """Answers such statements for one session."""

    def __init__(
        self,
        context: SessionContext,
        database: str | None,
        runtime: Callable[[Shard], ShardRuntime],
    ) -> None:
        self._context = context
        self._state = context.state
        self._executor = context.executor
        self._database = database
        self._runtime = runtime

    async def run(self, statement: Statement, route: Combine, reply: RowSink) -> bool:
        """Answer *statement*, and return True.

        Raises:
            Unsupported, MergeTooLarge: the answer cannot be made from the parts.
            BackendUnavailable, BackendLost, BackendError, PoolTimeout: as for any statement.
        """
        diagnostics = diagnostics_of_several()
        shard = self._runtime(route.shards[0])

        async def ask(sql: bytes) -> BufferedAnswer:
            return await self._executor.ask(
                shard, self._database, query(sql), statement.shape, diagnostics=diagnostics
            )

        given: dict[int, AnsweredPart] = {}
        whole = Combination(statement, route.parts, given)
        # A server describes the whole statement first, so a statement that it refuses costs no rows.
        described = await ask(whole.described())
        whole.learn(_columns(described))
        for number, part, way in route.answered:
            given[number] = AnsweredPart(
                part, is_merged=isinstance(way, Merge) and way.in_groups
            )
            try:
                answer = await ask(given[number].ask_columns())
            except BackendError as error:
                if error.code != _TWO_OF_ONE_NAME:
                    raise
                raise Unsupported(
                    "two columns of one name in a part of this over several shards"
                ) from error
            given[number].described(
                _columns(answer),
                is_compared=whole.is_compared,
                is_windowed=bool(part.shape.uses & Uses.WINDOW) and not route.parts.operators,
            )
        whole.check_parts()
        taken = TakenRows(min(self._context.config.merge_memory_bytes, BYTES_MAX), "parts")
        for number, part, way in route.answered:
            # A part leaves its warnings in the session like any statement; here they are
            # collected.
            before = self._state.diagnostics
            await self._take(part, way, taken)
            if self._state.diagnostics is not before and self._state.diagnostics is not None:
                diagnostics.columns = self._state.diagnostics.columns or diagnostics.columns
                diagnostics.rows = [*diagnostics.rows, *self._state.diagnostics.rows]
            given[number].give(taken.rows)
            taken.begin()
        # The rows have become texts in a SELECT, which a server may read as other types: what
        # comes back must be what went in, value by value.
        for each in given.values():
            found = await ask(each.text)
            each.check(_columns(found), found.rows)
            (collations, *_) = await self._compare(each.ask_collations(), ask)
            each.check_collations(collations[0])
        await self._compare(whole.ask_collations(), ask)
        answer = await ask(whole.sql())
        whole.check(_columns(answer))
        if diagnostics.rows:
            self._state.answered_at, self._state.diagnostics = None, diagnostics
        assert answer.ok is not None
        reply.head(described.columns)
        reply.more_rows(answer.rows)
        reply.end_of_rows(
            status=answer.ok.status & Status.IN_TRANS,
            warnings=taken.warnings + answer.ok.warnings,
        )
        return True

    async def _compare(
        self, questions: Sequence[bytes], ask: Callable[[bytes], Awaitable[BufferedAnswer]]
    ) -> list[Sequence[bytes]]:
        answers: list[Sequence[bytes]] = [(await ask(question)).rows for question in questions]
        # A string in the text may compare by another collation than it did as a column.
        if any(answer != answers[0] for answer in answers):
            raise Unsupported(
                "going on with strings over several shards that compare by another collation on"
                " their way; name it with COLLATE, or send one SELECT after another"
            )
        return answers

    async def _take(self, part: Statement, route: Route, taken: TakenRows) -> None:
        """Let the shards answer one part."""
        match route:
            case Merge(shards):
                await gather(
                    self._context,
                    self._database,
                    [self._runtime(shard) for shard in shards],
                    part,
                    route,
                    taken,
                )
            case Combine():
                await self.run(part, route, taken)
            case Concatenate(shards):
                for shard in shards:
                    await self._take_whole(part, shard, taken)
            case OneShard(shard):
                await self._take_whole(part, shard, taken)
            case _:
                raise AssertionError("a part of a SELECT is a SELECT")

    async def _take_whole(self, part: Statement, shard: Shard, taken: TakenRows) -> None:
        # At most one row more than is allowed is read, to see that there are too many.
        sql = b"SELECT * FROM (%b) AS `streamfrom` LIMIT %d" % (part.sql, ROWS_MAX + 1)
        answer = await self._executor.ask(
            self._runtime(shard), self._database, query(sql), part.shape
        )
        assert answer.ok is not None
        taken.more_rows(answer.rows)
        taken.end_of_rows(warnings=answer.ok.warnings)


def _columns(answer: BufferedAnswer) -> list[ColumnDefinition]:
    return [parse_column_definition(each) for each in answer.columns]
