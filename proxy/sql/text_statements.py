"""`PREPARE s FROM '…'`, `EXECUTE s USING @a` and `DEALLOCATE PREPARE s`.

A server would keep a named statement on one connection, and run it there unseen. The proxy keeps the text. An execution puts the
values of the variables into the text, so that they route it, and runs it like any other text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.errors import (
    BadArguments,
    EmptyQuery,
    NotPreparable,
    SeveralStatements,
    TooManyStatements,
    UnknownStatement,
)
from streamfrom.proxy.sql.compile.answerers import PREPARED_BY_SHARDS
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.wire.binary_parameters import Parameter, literal_of
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.session.session_calls import Dynamic, Step, dynamic
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Shape, Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.insert_rows import as_text, parameter_places
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.session_context import SessionContext


STATEMENTS_MAX: Final = 1024
# Kinds that a shard prepares, so that wrong names are refused at the PREPARE, as are texts that may be no statement at all.
_CHECKED: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.OTHER}
)
_OWN: Final = frozenset({Kind.STREAM, Kind.QUEUE})
_FLOATS: Final = frozenset({FieldType.DOUBLE, FieldType.FLOAT})
_NUMBERS: Final = _FLOATS | {
    *(FieldType.LONGLONG, FieldType.LONG, FieldType.NEWDECIMAL, FieldType.DECIMAL)
}


class _Kept(NamedTuple):
    sql: bytes
    target: str  # the session's, as the client wrote it


class TextStatements:
    """The statements that one session has prepared by name.

    run_one: runs the text of an execution. Returns False if its answer is an error.
    """

    def __init__(
        self,
        context: SessionContext,
        run_one: Callable[[Statement, Reply], Awaitable[bool]],
    ) -> None:
        self._run_one = run_one
        self._context = context
        self._compiler = context.compiler
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._executor = context.executor
        self._state = context.state
        self._kept: dict[str, _Kept] = {}

    def clear(self) -> None:
        """Remove all statements: the session was reset or has ended."""
        for name in [*self._kept]:
            self._forget(name)

    def _forget(self, name: str) -> bool:
        """Remove a statement; False if there is none."""
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._context.memory.change(-len(kept.sql))
        return kept is not None

    async def run(self, statement: Statement, reply: Reply) -> bool:
        """Carry out a statement of Kind.PREPARE. Raises as a server would, and Unsupported."""
        asked = dynamic(statement.shape)
        if asked is None:
            raise Unsupported(
                f"this form of {statement.shape.verb}; give the text as a literal or a user variable,"
                " and values as user variables"
            )
        if asked.step is Step.DEALLOCATE:
            if not self._forget(asked.name):
                raise UnknownStatement(asked.name, asked.step.value)
            reply.ok()
            return True
        if asked.step is Step.EXECUTE:
            kept = self._kept.get(asked.name)
            if kept is None:
                raise UnknownStatement(asked.name, asked.step.value)
            if kept.target != self._target.name:
                raise Unsupported(
                    "EXECUTE in another keyspace or target than PREPARE; USE that one, or PREPARE it here"
                )
            return await self._run_one(await self._bound(kept.sql, asked), reply)
        sql = await self._prepared(statement, asked)
        if asked.step is Step.IMMEDIATE:
            return await self._run_one(await self._bound(sql, asked), reply)
        if len(self._kept) >= STATEMENTS_MAX:
            raise TooManyStatements(STATEMENTS_MAX)
        self._context.memory.change(len(sql))
        self._kept[asked.name] = _Kept(sql, self._target.name)
        reply.ok(info=b"Statement prepared")
        return True

    async def _prepared(self, statement: Statement, asked: Dynamic) -> bytes:
        """Return the text to prepare. Its name is free from now on."""
        self._forget(asked.name)
        sql = await self._text(statement, asked) or b""
        if not sql.strip(b"; \t\n\r\f\v"):
            raise EmptyQuery
        read = self._large_texts.read
        found = await self._large_texts.parse(self._target.parse, sql)
        if found.shape.uses & Uses.MULTIPLE:
            raise SeveralStatements
        if found.shape.kind is Kind.PREPARE:
            raise NotPreparable(found.shape.verb)
        await read(size_of(found), self._compiler.check, found)
        if found.shape.kind in _CHECKED and not self._is_own(found.shape):
            size = size_of(found)
            view, database, own = await read(size, self._target.resolve, found)
            if found.shape.kind is Kind.OTHER and view.is_sharded:
                await read(size, view.planner.plan, own.shape)
            else:
                shards = await read(size, self._target.shards_to_prepare, view, own.shape)
                asks = await read(size, self._compiler.asked, view, own)
                await self._executor.prepare_on(shards, database, asks)
        return sql

    def _is_own(self, shape: Shape) -> bool:
        """True for a statement that the proxy itself answers."""
        return shape.kind in _OWN or self._target.answerer(shape) not in PREPARED_BY_SHARDS

    async def _text(self, statement: Statement, asked: Dynamic) -> bytes | None:
        """Return the text to prepare, from its literal or its variable; None if that is NULL."""
        text = asked.text
        if isinstance(text, Slot):
            if statement.sql.isascii() or SqlMode.OTHER_CHARSET not in statement.mode:
                return str(statement.text(text)).encode("utf-8", "surrogateescape")
            # The server knows the meaning of these characters, and of a backslash after them.
            tokens = statement_tokens(statement.shape.template)
            at = next(token for token in tokens if token.slot is not None)
            places = locate(statement.sql, statement.mode, (at.start, at.end))
            text = statement.sql[slice(*places)].decode("utf-8", "surrogateescape")
        ((_, value),) = await self._values([text or ""])
        return value

    async def _bound(self, sql: bytes, asked: Dynamic) -> Statement:
        """Return the statement to run, as read by the session's current sql_mode."""
        read = self._large_texts.read
        statement = await self._large_texts.parse(self._target.parse, sql)
        count = len(await read(len(sql), parameter_places, statement.sql, statement.mode))
        if count != len(asked.using):
            raise BadArguments("EXECUTE")
        escapes = SqlMode.NO_BACKSLASH_ESCAPES not in statement.mode
        if statement.shape.kind is Kind.CALL:  # it may assign to them
            texts = [name.encode("utf-8", "surrogateescape") for name in asked.using]
        else:
            texts = [
                _literal(kind, value, backslash_escapes=escapes)
                for kind, value in (await self._values(asked.using) if count else ())
            ]
        bound = statement.bind((OPAQUE,) * count, texts.__getitem__)
        text = await read(len(sql), as_text, bound)
        bound = await self._large_texts.parse(self._target.parse, text)
        await read(size_of(bound), self._compiler.check, bound)
        return bound

    async def _values(self, variables: Sequence[str]) -> list[tuple[int, bytes | None]]:
        """Return the type and the value of each user variable; the type of bytes in no character set is BLOB."""
        names = ", ".join(variables).encode("utf-8", "surrogateescape")
        asked = self._target.parse(b"SELECT " + names)
        answer = await self._executor.ask(
            self._target.here().runtimes, self._target.database, query(asked.sql), asked.shape
        )
        columns = map(parse_column_definition, answer.columns)
        kinds = [
            FieldType.BLOB
            if column.charset == BINARY_CHARSET and column.type not in _NUMBERS
            else column.type
            for column in columns
        ]
        return list(zip(kinds, parse_text_row(answer.rows[0], len(kinds)), strict=True))


def _literal(kind: int, value: bytes | None, *, backslash_escapes: bool) -> bytes:
    if value is not None and kind in _NUMBERS:
        return value + b"e0" if kind in _FLOATS and b"e" not in value else value
    if kind != FieldType.BLOB:
        kind = FieldType.VAR_STRING
    return literal_of(Parameter(kind, False, value), backslash_escapes=backslash_escapes)  # noqa: FBT003
