"""Read streamfrom's own statements: STREAM, and CREATE, ALTER and DROP QUEUE.

    STREAM [/*vt+ … */] * | column [, …] FROM [ks.]table [WHERE key = value | key IN (value, …)] [LIMIT n [WAIT s]]

    CREATE QUEUE [IF NOT EXISTS] [ks.]q (column …[,]) [SHARD BY [vindex](column)]
        [PARTITION BY HOUR | DAY] [WITH (key = value, …[,])]
    ALTER QUEUE [ks.]q SET (key = value | DEFAULT, …[,]) | PAUSE | RESUME | REQUEUE PARKED | DEAD [LIMIT n] [RATE r]
    DROP QUEUE [IF EXISTS] [ks.]q

`name_queue` reads the name while a shape is made; `read_queue` reads a whole statement when it runs.
The server judges the definitions of columns and indexes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.conditions import read_operand
from streamfrom.sqlparse_ext.statements import (
    OPAQUE,
    Kind,
    Operand,
    Slot,
    Statement,
    StreamShape,
    TableRef,
    Uses,
)
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import Cursor, split_commas, statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape


_NEAR_BYTES: Final = 80
# The first words of parts of CREATE TABLE's list that define no column.
_NO_COLUMN: Final = frozenset(
    {"INDEX", "KEY", "UNIQUE", "CONSTRAINT", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL"}
    | {"PRIMARY", "LIKE", "PERIOD", "VECTOR"}
)


@dataclass(frozen=True, slots=True)
class QueuePart:
    """One part of the list of CREATE QUEUE, as written."""

    column: str | None  # its name; None for an index or another part
    text: bytes
    has_primary_key: bool
    is_unique_without_id: bool  # it is, or has, a unique index that does not contain the id


class Requeue(NamedTuple):
    """The messages to make ready again."""

    source: str  # PARKED or DEAD
    limit: int | None  # how many at most; None for all
    rate: float | None  # how many a second; None for no limit


@dataclass(frozen=True, slots=True)
class QueueStatement:
    """A CREATE, ALTER or DROP QUEUE."""

    verb: str  # CREATE, ALTER, DROP, PAUSE, RESUME or REQUEUE
    table: TableRef
    if_exists: bool = False  # it has IF EXISTS, or IF NOT EXISTS
    parts: tuple[QueuePart, ...] = ()  # the list of CREATE
    # The vindex, or None if unnamed, and the column.
    shard_by: tuple[str | None, str] | None = None
    partition_by: str | None = None  # HOUR or DAY
    # The keys in lower case and their values; None for DEFAULT.
    settings: tuple[tuple[str, str | None], ...] = ()
    requeue: Requeue | None = None  # the messages that REQUEUE takes


def name_queue(shape: Shape, cursor: Cursor) -> None:
    """Read CREATE, ALTER or DROP after its verb, at QUEUE, up to the queue's name."""
    shape.kind = Kind.QUEUE
    shape.uses |= Uses.IMPLICIT_COMMIT
    cursor.take()
    _accept_existence(cursor, shape.verb)
    shape.tables = cursor.only_table()


def _accept_existence(cursor: Cursor, verb: str) -> bool:
    words = {"CREATE": ("IF", "NOT", "EXISTS"), "DROP": ("IF", "EXISTS")}.get(verb)
    return words is not None and cursor.accept(*words)


def read_queue(statement: Statement) -> QueueStatement:
    """Return the parts of a statement of Kind.QUEUE. Raises SqlError, with the expected word and its place."""
    return _Reader(statement).read()


class _Reader:
    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.template = statement.shape.template
        self.tokens = statement_tokens(self.template)
        self.cursor = Cursor(self.tokens, self.template, 2)

    def read(self) -> QueueStatement:
        verb, cursor = self.statement.shape.verb, self.cursor
        if_exists = _accept_existence(cursor, verb)
        table = cursor.table()
        if table is None:
            self.fail(f"{verb} QUEUE takes the name of a queue")
        match verb:
            case "CREATE":
                found = self.create(table, if_exists=if_exists)
            case "ALTER":
                found = self.alter(table)
            case _:
                found = QueueStatement(verb, table, if_exists)
        if cursor.key:
            self.fail(f"{verb} QUEUE ends here")
        return found

    def create(self, table: TableRef, *, if_exists: bool) -> QueueStatement:
        cursor = self.cursor
        listed = self.listed("CREATE QUEUE takes a list of columns")
        parts = tuple(map(self.part, listed, self.texts(listed)))
        shard_by = self.shard_by() if cursor.accept("SHARD", "BY") else None
        partition_by = None
        if cursor.accept("PARTITION", "BY"):
            partition_by = cursor.accept_any({"HOUR", "DAY"})
            if not partition_by:
                self.fail("PARTITION BY takes HOUR or DAY")
        settings = self.settings() if cursor.accept("WITH") else ()
        return QueueStatement(
            "CREATE", table, if_exists, parts, shard_by, partition_by, settings
        )

    def alter(self, table: TableRef) -> QueueStatement:
        if verb := self.cursor.accept_any({"PAUSE", "RESUME"}):
            return QueueStatement(verb, table)
        if self.cursor.accept("REQUEUE"):
            return QueueStatement("REQUEUE", table, requeue=self.requeue())
        if not self.cursor.accept("SET"):
            self.fail("ALTER QUEUE takes SET (key = value, …), PAUSE, RESUME or REQUEUE")
        settings = self.settings()
        if not settings:
            self.fail("SET takes at least one key = value")
        return QueueStatement("ALTER", table, settings=settings)

    def requeue(self) -> Requeue:
        cursor = self.cursor
        source = cursor.accept_any({"PARKED", "DEAD"})
        if not source:
            self.fail("REQUEUE takes PARKED or DEAD")
        limit = rate = None
        if cursor.accept("LIMIT"):
            limit = int(
                self.number(
                    "LIMIT takes a whole number of at least 1", lambda n: n >= 1 and not n % 1
                )
            )
        if cursor.accept("RATE"):
            rate = self.number(
                "RATE takes a number of messages a second above 0", lambda n: n > 0
            )
        return Requeue(source, limit, rate)

    def number(self, what: str, is_right: Callable[[float], bool]) -> float:
        slot = self.cursor.take().slot if self.cursor.key else None
        text = self.statement.text(slot) if isinstance(slot, Slot) else None
        try:
            found = float(text or "")
        except ValueError:
            found = math.nan
        if not (math.isfinite(found) and is_right(found)):
            self.fail(what, self.cursor.at - 1)
        return found

    def part(self, place: tuple[int, int], text: bytes) -> QueuePart:
        tokens = self.tokens[slice(*place)]
        keys = [token.key for token in tokens]
        names = [unquote(token, self.template) for token in tokens if token.is_name]
        is_column = tokens[0].is_name and keys[0] not in _NO_COLUMN
        has_id = "id" in map(str.lower, names)
        return QueuePart(
            names[0] if is_column else None,
            text,
            "PRIMARY" in keys,
            "UNIQUE" in keys and not has_id,
        )

    def shard_by(self) -> tuple[str | None, str]:
        cursor = self.cursor
        vindex = cursor.name() if cursor.key != "(" else None
        column = cursor.name() if cursor.accept("(") else None
        if column is None or not cursor.accept(")"):
            self.fail("SHARD BY takes vindex(column) or (column)")
        return vindex, column

    def settings(self) -> tuple[tuple[str, str | None], ...]:
        what = "settings are a list (key = value, …)"
        found: dict[str, str | None] = {}
        listed = self.listed(what)
        for start, end in listed:
            name = self.tokens[start]
            if end - start < 3 or not name.is_name or self.tokens[start + 1].key != "=":
                self.fail(what, start)
            key = unquote(name, self.template).lower()
            if key in found:
                self.fail(f"{key} is set twice", start)
            found[key] = None
        places = [(start + 2, end) for start, end in listed]
        return tuple(zip(found, map(self.value, places, self.texts(places)), strict=True))

    def value(self, place: tuple[int, int], whole: bytes) -> str | None:
        start, end = place
        token = self.tokens[start]
        if end - start == 1:
            if token.key == "DEFAULT":
                return None
            if isinstance(token.slot, Slot):
                text = self.statement.text(token.slot)
                if text is None:
                    self.fail("NULL is no value of a setting; DEFAULT is", start)
                return text
            if token.is_name:
                return unquote(token, self.template)
        return whole.decode("utf-8", "surrogateescape")

    def listed(self, what: str) -> list[tuple[int, int]]:
        """Move past a list in parentheses; return where the tokens of its parts are."""
        cursor = self.cursor
        start = cursor.at + 1
        if not cursor.skip_parens():
            self.fail(what)
        ranges = split_commas(self.tokens, start, cursor.at - 1)
        if ranges[-1][0] == ranges[-1][1]:  # the list is empty, or has a comma at its end
            ranges.pop()
        for begin, end in ranges:
            if begin == end:
                self.fail(what, begin)
        return ranges

    def texts(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        """Return the texts of tokens, all in one reading of the statement."""
        sql, tokens = self.statement.sql, self.tokens
        borders = [
            at for start, end in ranges for at in (tokens[start].start, tokens[end - 1].end)
        ]
        places = locate(sql, self.statement.mode, borders)
        return [sql[first:last] for first, last in zip(places[::2], places[1::2], strict=True)]

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        place = min(self.cursor.at if at is None else at, len(self.tokens))
        position = self.tokens[place].start if place < len(self.tokens) else len(self.template)
        sql = self.statement.sql
        (begin,) = locate(sql, self.statement.mode, (position,))
        near = sql[begin : begin + _NEAR_BYTES].decode("utf-8", "replace")
        raise SqlError(f"{what}, near '{near}'")


class StreamSyntaxError(Exception):
    """A malformed STREAM; *position* is the place of the error in the template.

    The template has no literals, so the caller, which has the text, makes the error for the client.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"not a STREAM at {position}")
        self.position = position


def read_stream(shape: Shape, cursor: Cursor) -> None:
    """Read STREAM after its verb. Raises StreamSyntaxError for anything outside the grammar."""
    shape.kind = Kind.STREAM
    columns = None if cursor.accept("*") else _columns(cursor)
    if not cursor.accept("FROM"):
        raise _error(cursor)
    place = cursor.at
    table = cursor.table()
    if table is None:
        cursor.at = place
        raise _error(cursor)
    limit: Operand = OPAQUE
    wait: Operand = OPAQUE
    key, key_values = _where(cursor) if cursor.accept("WHERE") else (None, ())
    if cursor.accept("LIMIT"):
        limit = _operand(cursor)
        if cursor.accept("WAIT"):
            wait = _operand(cursor)
    if cursor.key:
        raise _error(cursor)
    shape.stream = StreamShape(columns, table, limit, wait, key, key_values)
    shape.tables = (table,)


def _columns(cursor: Cursor) -> tuple[str, ...]:
    columns = []
    while True:
        # `STREAM FROM t` names no column; a column called from must be quoted.
        if cursor.key == "FROM" or (column := cursor.name()) is None:
            raise _error(cursor)
        columns.append(column)
        if not cursor.accept(","):
            return tuple(columns)


def _where(cursor: Cursor) -> tuple[str, tuple[Operand, ...]]:
    column = cursor.name()
    if column is None:
        raise _error(cursor)
    if cursor.accept("="):
        return column, (_operand(cursor),)
    if not cursor.accept("IN", "("):
        raise _error(cursor)
    values = [_operand(cursor)]
    while cursor.accept(","):
        values.append(_operand(cursor))
    if not cursor.accept(")"):
        raise _error(cursor)
    return column, tuple(values)


def _operand(cursor: Cursor) -> Operand:
    operand = read_operand(cursor.tokens, cursor.at, min(cursor.at + 1, cursor.end))
    if operand is OPAQUE:
        raise _error(cursor)
    cursor.take()
    return operand


def _error(cursor: Cursor) -> StreamSyntaxError:
    here = cursor.peek()
    return StreamSyntaxError(here.start if here.key else len(cursor.template))
