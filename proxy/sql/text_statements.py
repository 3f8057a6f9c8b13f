"""`PREPARE s FROM '…'`, `EXECUTE s USING @a` and `DEALLOCATE PREPARE s` over several shards.

A server keeps such a statement on one connection, and runs it there. Where rows may be on several shards the proxy keeps the
text. An execution puts the values of the variables into the text, so that they route it, and runs it like any other text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.backends.session_variables import MULTIBYTE_CHARSETS, TRACKED
from streamfrom.proxy.errors import (
    BadArguments,
    EmptyQuery,
    NotPreparable,
    TooManyStatements,
    UnknownStatement,
)
from streamfrom.proxy.sql.compile.answerers import PREPARED_BY_SHARDS
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.compile.session_target import databases_named
from streamfrom.proxy.sql.schema_names import with_schema_names
from streamfrom.proxy.wire.binary_parameters import Parameter, literal_of
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.session_settings import passing_variables
from streamfrom.sqlparse_ext.session.session_calls import Dynamic, Step, dynamic, takes_text
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Shape, Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.insert_rows import as_text, parameter_places
from streamfrom.sqlparse_ext.text.lexer import Edit, splice
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.session_context import SessionContext


STATEMENTS_MAX: Final = 1024
# A shard is asked to prepare these kinds, so that wrong names are refused at the PREPARE.
_CHECKED: Final = frozenset({Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE})
_OWN: Final = frozenset({Kind.STREAM, Kind.QUEUE})
_NUMBERS: Final = frozenset(
    {FieldType.LONGLONG, FieldType.LONG, FieldType.NEWDECIMAL, FieldType.DECIMAL}
    | {FieldType.DOUBLE, FieldType.FLOAT}
)


class _Kept(NamedTuple):
    statement: Statement
    view: View


class TextStatements:
    """The statements that one session has prepared by name."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._compiler = context.compiler
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._executor = context.executor
        self._state = context.state
        self._kept: dict[str, _Kept] = {}

    def clear(self) -> None:
        """Remove all statements: the session is reset."""
        self._kept.clear()

    async def run(
        self,
        statement: Statement,
        reply: Reply,
        run_one: Callable[[Statement, Reply], Awaitable[bool]],
    ) -> bool:
        """Carry out a statement of Kind.PREPARE in a target of several shards. Raises as a server would, and Unsupported.

        run_one: runs the text of an execution. Returns False when its answer is an error.
        """
        asked = dynamic(statement.shape)
        if asked is None:
            raise Unsupported(
                f"this form of {statement.shape.verb} in a sharded keyspace; give the text as a"
                " literal or a user variable, and values as user variables"
            )
        if asked.step is Step.DEALLOCATE:
            if self._kept.pop(asked.name, None) is None:
                raise UnknownStatement(asked.name, asked.step.value)
            reply.ok()
            return True
        if asked.step is Step.EXECUTE:
            kept = self._kept.get(asked.name)
            if kept is None:
                raise UnknownStatement(asked.name, asked.step.value)
            if kept.view is not self._target.here():
                raise Unsupported(
                    "EXECUTE in another keyspace or target than PREPARE; USE that one, or PREPARE it here"
                )
            return await run_one(await self._bound(kept.statement, asked), reply)
        prepared = await self._prepared(statement, asked)
        if asked.step is Step.IMMEDIATE:
            return await run_one(await self._bound(prepared, asked), reply)
        if asked.name not in self._kept and len(self._kept) >= STATEMENTS_MAX:
            raise TooManyStatements(STATEMENTS_MAX)
        self._kept[asked.name] = _Kept(prepared, self._target.here())
        reply.ok(info=b"Statement prepared")
        return True

    async def _prepared(self, statement: Statement, asked: Dynamic) -> Statement:
        """Return the statement to prepare. Its name is free from now on."""
        self._kept.pop(asked.name, None)
        text = await self._text(statement, asked)
        if not (text or "").strip("; \t\n\r\f\v"):
            raise EmptyQuery
        sql = (text or "").encode("utf-8", "surrogateescape")
        read = self._large_texts.read
        found = await self._large_texts.parse(self._target, sql)
        if found.shape.uses & Uses.MULTIPLE:
            raise self._compiler.one_at_a_time(found)
        if found.shape.kind is Kind.PREPARE:
            raise NotPreparable(found.shape.verb)
        await read(size_of(found), self._compiler.check, found)
        if found.shape.kind in _CHECKED and not self._is_own(found.shape):
            place = await read(size_of(found), self._target.resolve, found)
            shards = self._target.shards_to_prepare(place.view, found.shape)
            await self._executor.prepare_on(shards, place.database, place.statement.sql)
        elif found.shape.kind is Kind.OTHER:
            self._target.here().planner.plan(found.shape)  # it may be no statement at all
        return found

    async def read(self, statement: Statement) -> Statement:
        """Return a statement of Kind.PREPARE for one server, once the text in it has been read.

        A text in a variable is put in as a literal, so the server prepares the text that was checked.

        Raises Unsupported if only the server could evaluate the text, NotPreparable if the proxy itself answers it, DelayRefused if
        its values may schedule a message for later, where vt_delayed is off.
        """
        shape = statement.shape
        asked = dynamic(shape)
        if asked is None and takes_text(shape):
            raise Unsupported(
                f"this form of {shape.verb}; give the text as a literal or a user variable, and"
                " values as user variables"
            )
        if asked is None or asked.text is None:
            return statement
        text = await self._text(statement, asked)
        if text is not None:
            asks = await self._large_texts.parse(
                self._target, text.encode("utf-8", "surrogateescape")
            )
            named = self._named(asks, shape.verb)
            found = await with_schema_names(self._context, named, is_text=True)
            if found is not asks or not isinstance(asked.text, Slot):
                tokens = statement_tokens(shape.template)
                at = next(t for t in tokens if t.slot is not None or t.is_variable)
                escapes = SqlMode.NO_BACKSLASH_ESCAPES not in statement.mode
                spelled = _literal(FieldType.VAR_STRING, found.sql, backslash_escapes=escapes)
                edit = Edit(at.start, at.end, spelled)
                statement = self._target.parse(splice(statement.sql, statement.mode, [edit]))
            self._check_charsets(found.sql, statement, asked)
            self._compiler.check(asks)
            self._compiler.check_unbound(asks)
            if names := passing_variables(found.shape) & TRACKED:
                # EXECUTE would see them as if they stayed.
                raise Unsupported(
                    f"SET STATEMENT {min(names)} in {shape.verb}; SET SESSION before EXECUTE"
                )
            if self._is_own(found.shape):
                # The server knows no such statement, or would report the account that all users have there.
                raise NotPreparable(" ".join((found.shape.verb, *found.shape.words[:1])))
        return statement

    def _named(self, found: Statement, verb: str) -> Statement:
        """Return the text to prepare with the real databases' names, for the session's own connection. Raises as `resolve`."""
        if self._is_own(found.shape) or not databases_named(found.shape):
            return found
        place = self._target.resolve(found)
        if place.view.is_sharded or place.view.server != self._target.here().server:
            raise Unsupported(f"{verb} of a statement in another keyspace; USE it first")
        return place.statement

    def _is_own(self, shape: Shape) -> bool:
        """True for a statement that the proxy itself answers."""
        return shape.kind in _OWN or self._target.answerer(shape) not in PREPARED_BY_SHARDS

    def _check_charsets(self, sql: bytes, statement: Statement, asked: Dynamic) -> None:
        """Raise Unsupported for a text that a server may read differently from the proxy.

        The server converts the text, and reads the result in the client's character set. So half a character may become a
        backslash or a backtick, or take one into the character; in swe7 both are letters. The server finds the end of N'…'
        in the client's character set, and reads it in another one.
        """
        escaped = sql
        if isinstance(asked.text, Slot) and statement.raw(asked.text)[0][:1] in (b"N", b"n"):
            escaped = statement.sql
        if b"\\" not in escaped and b"`" not in sql:
            return
        values = self._state.settings.values
        charsets = {values.get("character_set_client"), values.get("character_set_connection")}
        if "swe7" in charsets or not (
            statement.sql.isascii() or charsets.isdisjoint(MULTIBYTE_CHARSETS)
        ):
            raise Unsupported(
                f"a backslash or a backtick in the text of {statement.shape.verb} with characters"
                " beyond ASCII, in a character set in which they may be part of one;"
                " SET NAMES utf8mb4, or give the values as ?"
            )

    async def _text(self, statement: Statement, asked: Dynamic) -> str | None:
        """Return the text to prepare, from its literal or its variable; None where that is NULL."""
        if isinstance(asked.text, Slot):
            return statement.text(asked.text)
        ((_, value),) = await self._values([asked.text or ""])
        return None if value is None else value.decode("utf-8", "surrogateescape")

    async def _bound(self, statement: Statement, asked: Dynamic) -> Statement:
        count = len(parameter_places(statement.sql, statement.mode))
        if count != len(asked.using):
            raise BadArguments("EXECUTE")
        if not count:
            return statement
        escapes = SqlMode.NO_BACKSLASH_ESCAPES not in statement.mode
        texts = [
            _literal(kind, value, backslash_escapes=escapes)
            for kind, value in await self._values(asked.using)
        ]
        text = as_text(statement.bind((OPAQUE,) * count, texts.__getitem__))
        return await self._large_texts.parse(self._target, text)

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
        return value
    if kind != FieldType.BLOB:
        kind = FieldType.VAR_STRING
    return literal_of(Parameter(kind, False, value), backslash_escapes=backslash_escapes)  # noqa: FBT003
