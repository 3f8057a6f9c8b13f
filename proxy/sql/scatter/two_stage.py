"""A SELECT of several shards: merged, or first its parts are answered and then a shard answers the rest from their rows.

The parts are routed and run one after another, like statements of the client. Their rows are kept, up to a limit, and
written into the text that the first shard answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.errors import BackendError, MergeTooLarge
from streamfrom.proxy.merge.stage import AnsweredPart, Combination
from streamfrom.proxy.routing.routes import Combine, Merge, Route
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.scatter.gather import RowSink, ask_stage, gather
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects, TableRows
from streamfrom.sqlparse_ext.statements import Statement, Uses


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.wire.resultset import ColumnDefinition


_TWO_OF_ONE_NAME: Final = 1060  # ER_DUP_FIELDNAME
# ER_BAD_FIELD_ERROR, ER_WRONG_FIELD_WITH_GROUP, ER_MIX_OF_GROUP_FUNC_AND_FIELDS_V2: rows have neither keys nor hidden columns.
_ONLY_OF_A_TABLE: Final = frozenset({1054, 1055, 1140})
# The most rows of all parts of a statement: in hexadecimal they are well below MariaDB's default limit of 16 MB.
PARTS_ROWS_MAX: Final = 50_000
PARTS_BYTES_MAX: Final = 4 << 20
# A text up to this is below the max_allowed_packet of any server in use; for longer ones the server's limit is read.
TEXT_BYTES_MAX: Final = 512 << 10

# The most rows from the queries of one INSERT … SELECT.
INSERT_ROWS_MAX: Final = 5000
INSERT_BYTES_MAX: Final = 2 << 20


class TakenRows:
    """The rows of a query, in the place of a client.

    what: the name of the rows in the error for more than *rows_max*.
    """

    binary = False

    def __init__(self, bytes_max: int, what: str, rows_max: int = INSERT_ROWS_MAX) -> None:
        self._what = what
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self.size = 0  # the bytes of the rows of all queries so far
        self.count = 0  # the number of the rows of all queries so far
        # The columns and rows of this query, as payloads of the text protocol.
        self.columns: Sequence[bytes] = ()
        self.rows: list[bytes] = []
        self.warnings = 0  # the number of warnings of all queries so far

    def head(self, columns: Sequence[bytes]) -> None:
        """Take the column definitions."""
        self.columns = columns

    def more_rows(self, rows: Sequence[bytes]) -> None:
        """Take rows. Raises Unsupported or MergeTooLarge if there are too many."""
        self.rows += rows
        self.count += len(rows)
        self.size += sum(map(len, rows))
        if self.count > self._rows_max:
            raise Unsupported(
                f"{self._what} of more than {self._rows_max} rows over several shards"
            )
        if self.size > self._bytes_max:
            raise MergeTooLarge(self._bytes_max)

    def end_of_rows(self, *, status: int = 0, warnings: int = 0) -> None:
        """Take the number of warnings."""
        self.warnings += warnings

    def take_back(self) -> bool:
        """Drop the rows of this query, and return True."""
        self.count -= len(self.rows)
        self.size -= sum(map(len, self.rows))
        self.rows = []
        return True


class RowCount(TakenRows):
    """The number of rows of a query, without the rows."""

    def __init__(self) -> None:
        super().__init__(0, "")

    def more_rows(self, rows: Sequence[bytes]) -> None:
        """Count rows."""
        self.count += len(rows)

    def take_back(self) -> bool:
        """Drop the count, and return True."""
        self.count = 0
        return True


class TwoStageSelect:
    """Answers these SELECTs for one session."""

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

    async def run(self, statement: Statement, route: Merge | Combine, reply: RowSink) -> bool:
        """Answer *statement*, and return True.

        Raises Unsupported or MergeTooLarge if the shards' answers do not suffice to make the answer; else as any statement.
        """
        # Parts, groups and the proxy's own queries are complete whatever the session's sql_select_limit is.
        with self._state.select_limit() as limit:
            if isinstance(route, Combine):
                return await self._combine(statement, route, reply, limit)
            shards = [self._runtime(shard) for shard in route.shards]
            otherwise = None
            if route.otherwise is not None:
                rows = route.otherwise
                otherwise = lambda: self._combine(statement, rows(statement), reply, limit)  # noqa: E731
            return await gather(
                self._context, self._database, shards, statement, route, reply, limit, otherwise
            )

    async def _combine(
        self, statement: Statement, route: Combine, reply: RowSink, limit: str
    ) -> bool:
        diagnostics = LastDiagnostics()
        shard = self._runtime(route.shards[0])

        async def ask(sql: bytes) -> BufferedAnswer:
            return await self._executor.ask(
                [shard], self._database, query(sql), statement.shape
            )

        given: dict[int, AnsweredPart] = {}
        whole = Combination(statement, route.parts, given)
        read, size = self._context.large_texts.read, size_of(statement)
        # A server describes the whole statement first, so a statement that it refuses costs no rows.
        described = await ask(await read(size, whole.described))
        answered = route.answered
        if isinstance(route.parts, InnerSelects) and route.parts.counts_rows:
            ((_, part, way),) = answered
            counted = RowCount()
            await self.take(part, part.sql, way, counted)
            reply.head(described.columns)
            reply.more_rows([text_row([b"%d" % counted.count])])
            assert described.ok is not None
            status = described.ok.status & Status.IN_TRANS
            reply.end_of_rows(status=status, warnings=counted.warnings)
            return True
        whole.learn(await read(size, _columns, described))
        if isinstance(route.parts, TableRows) and route.parts.wanted is not None:
            listed = [await ask(question) for question in route.parts.ask_columns()]
            names = [parse_text_row(row)[0] or b"" for each in listed for row in each.rows]
            columns = [name.decode("utf-8", "surrogateescape") for name in names]
            part = await read(size, route.parts.statement, statement, columns)
            ((number, _, way),) = answered
            answered = ((number, part, way),)
        for number, part, way in answered:
            is_merged = isinstance(way, Merge) and way.in_groups
            given[number] = await read(size, AnsweredPart, part, is_merged=is_merged)
            try:
                answer = await ask(given[number].empty)
            except BackendError as error:
                if error.code != _TWO_OF_ONE_NAME:
                    raise
                raise Unsupported(
                    "two columns of one name in a part of this over several shards"
                ) from error
            given[number].described(
                await read(size, _columns, answer),
                is_compared=whole.is_compared,
                is_windowed=bool(part.shape.uses & Uses.WINDOW) and not route.parts.operators,
            )
            (row,) = (await ask(given[number].ask_collations())).rows
            given[number].collated(parse_text_row(row))
        whole.check_parts()
        collated = [(await ask(question)).rows for question in whole.ask_collations()]
        if any(rows != collated[0] for rows in collated):
            raise Unsupported(
                "going on with strings over several shards that compare by another collation on"
                " their way; name it with COLLATE, or send one SELECT after another"
            )
        taken = TakenRows(
            min(self._context.config.merge_memory_bytes, PARTS_BYTES_MAX),
            "parts",
            PARTS_ROWS_MAX,
        )
        for number, part, way in answered:
            # A merged part leaves its warnings in the session like any statement; they are
            # collected here.
            before = self._state.diagnostics
            bounded = given[number].ask_rows(part, PARTS_ROWS_MAX + 1)
            await self.take(part, bounded, way, taken, diagnostics)
            if self._state.diagnostics is not before and self._state.diagnostics is not None:
                diagnostics.columns = self._state.diagnostics.columns or diagnostics.columns
                diagnostics.rows = [*diagnostics.rows, *self._state.diagnostics.rows]
            await read(taken.size, given[number].give, taken.rows)
            taken.rows = []
        sql = await read(max(size, taken.size), whole.sql)
        if len(sql) > TEXT_BYTES_MAX:
            # A server that gets a longer text ends the connection, and with it the transaction.
            (row,) = (await ask(b"SELECT @@max_allowed_packet")).rows
            (packet_bytes_max,) = map(int, filter(None, parse_text_row(row)))
            if len(sql) >= packet_bytes_max:
                raise Unsupported(
                    f"parts of {taken.size} bytes over several shards, which is more than a server with a"
                    f" max_allowed_packet of {packet_bytes_max} takes"
                )
        try:
            with self._state.select_limit(limit):
                answer, warnings = await ask_stage(
                    self._executor, shard, self._database, sql, statement.shape, diagnostics
                )
        except BackendError as error:
            if error.code in _ONLY_OF_A_TABLE:
                raise Unsupported(f"going on with rows of several shards: {error}") from error
            raise
        assert answer.ok is not None
        whole.check(await read(size, _columns, answer))
        if diagnostics.rows:
            self._state.answered_at, self._state.diagnostics = None, diagnostics
        reply.head(described.columns)
        reply.more_rows(answer.rows)
        reply.end_of_rows(
            status=answer.ok.status & Status.IN_TRANS,
            warnings=taken.warnings + warnings,
        )
        return True

    async def take(
        self,
        part: Statement,
        bounded: bytes,
        route: Route,
        taken: TakenRows,
        diagnostics: LastDiagnostics | None = None,
    ) -> None:
        """Let the shards answer one SELECT. Raises as `run`.

        bounded: the text for a shard that answers alone, for one row more than allowed, so that an excess is noticed.
        diagnostics: takes the warnings of these shards.
        """
        if isinstance(route, Merge | Combine):
            await self.run(part, route, taken)
            return
        for shard in route.shards:
            answer = await self._executor.ask(
                [self._runtime(shard)],
                self._database,
                query(bounded),
                part.shape,
                diagnostics=diagnostics,
            )
            assert answer.ok is not None
            taken.head(answer.columns)
            taken.more_rows(answer.rows)
            taken.end_of_rows(warnings=answer.ok.warnings)


def _columns(answer: BufferedAnswer) -> list[ColumnDefinition]:
    return [parse_column_definition(each) for each in answer.columns]
