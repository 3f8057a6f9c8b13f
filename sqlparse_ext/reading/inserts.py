"""Reads INSERT and REPLACE: where their lists are, and what the lists say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.reading.conditions import read_operand
from streamfrom.sqlparse_ext.reading.queries import (
    QUERY_STARTS,
    add_subqueries,
    guess_tables,
    read_assignments,
)
from streamfrom.sqlparse_ext.statements import (
    InsertShape,
    InsertSource,
    Kind,
    Param,
    TableRef,
    Uses,
)
from streamfrom.sqlparse_ext.text.lexer_patterns import CALL_ROWS, ROWS
from streamfrom.sqlparse_ext.text.tokens import Cursor, split_commas, stand_in, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Operand, Shape

_OPTIONS: Final = frozenset({"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"})
_ROW_MARKS: Final = frozenset({ROWS.decode(), CALL_ROWS.decode()})


class InsertParts(NamedTuple):
    """Where the lists of an INSERT are, in indexes of tokens.

    columns: the names of the column list, in lower case; None without a list.
    columns_end: the parenthesis that closes the column list; without a list, the token before its place.
    source_at: the rows of VALUES, the assignments of SET, or the SELECT.
    duplicate_at: the assignments of ON DUPLICATE KEY UPDATE.
    complete: every token of the statement belongs to one of these parts.
    """

    table: TableRef
    ignore: bool
    columns: tuple[str, ...] | None
    columns_end: int
    source: InsertSource
    source_at: tuple[int, int]
    row_alias: str | None
    duplicate_at: tuple[int, int] | None
    complete: bool


def insert_parts(cursor: Cursor) -> InsertParts | None:
    """Find the lists of an INSERT or REPLACE, behind its verb; None when it is none."""
    seen = cursor.skip_all(_OPTIONS)
    cursor.accept("INTO")
    table = cursor.table()
    if table is None or (cursor.accept("PARTITION") and not cursor.skip_parens()):
        return None
    columns = _column_list(cursor)
    columns_end = cursor.at - 1
    if cursor.accept_any({"VALUES", "VALUE"}):
        source = InsertSource.VALUES
        start = cursor.at
        _skip_rows(cursor)
    elif cursor.accept("SET"):
        source = InsertSource.SET
        start = cursor.at
        cursor.at = cursor.find({"AS", "ON", "RETURNING"})
    elif cursor.key in QUERY_STARTS:
        source = InsertSource.SELECT
        start = cursor.at
        cursor.at = _query_end(cursor)
    else:
        return None
    source_at = (start, cursor.at)
    row_alias = None
    if cursor.accept("AS"):
        row_alias = cursor.name()
        cursor.skip_parens()
    duplicate_at = None
    if cursor.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
        duplicate_at = cursor.at, cursor.find({"RETURNING"})
        cursor.at = duplicate_at[1]
    return InsertParts(
        table,
        "IGNORE" in seen,
        columns,
        columns_end,
        source,
        source_at,
        row_alias,
        duplicate_at,
        cursor.key in ("", "RETURNING"),
    )


def _column_list(cursor: Cursor) -> tuple[str, ...] | None:
    """Read `(a, b)`, but not `(SELECT …)`."""
    if cursor.key != "(" or cursor.peek(1).key in QUERY_STARTS:
        return None
    start = cursor.at + 1
    if not cursor.skip_parens():
        return None
    last_names = [
        cursor.tokens[end - 1]
        for first, end in split_commas(cursor.tokens, start, cursor.at - 1)
        if end > first
    ]
    return tuple(unquote(token, cursor.template).lower() for token in last_names)


def _skip_rows(cursor: Cursor) -> None:
    if cursor.accept_any(_ROW_MARKS):
        return
    while True:
        cursor.accept("ROW")
        if not cursor.skip_parens() or not cursor.accept(","):
            return


def _query_end(cursor: Cursor) -> int:
    """Return where the query of INSERT … SELECT ends."""
    behind = Cursor(cursor.tokens, cursor.template, cursor.at)
    while True:
        behind.at = behind.find({"ON", "RETURNING"})
        # Any other ON belongs to a join of the query.
        if behind.key != "ON" or behind.peek(1).key == "DUPLICATE":
            return behind.at
        behind.take()


def read_insert(shape: Shape, cursor: Cursor, verb: str) -> None:
    """Read an INSERT or REPLACE behind its verb."""
    shape.kind = Kind(verb)
    parts = insert_parts(cursor)
    if parts is None:
        shape.uses |= Uses.UNPARSED
        shape.tables = guess_tables(cursor.tokens, shape.template)
        return
    shape.tables = (parts.table,)
    given = (
        _operands(shape, cursor, parts.source_at) if parts.source is InsertSource.SET else {}
    )
    if parts.duplicate_at is not None:
        # Of the rows before these the template keeps one of a kind, so `?`s are counted from
        # the end.
        count = sum(isinstance(token.slot, Param) for token in cursor.tokens)
        shape.assignments = {
            column: Param(operand - count) if isinstance(operand, Param) else operand
            for column, operand in _operands(shape, cursor, parts.duplicate_at).items()
        }
    if not parts.complete:
        shape.uses |= Uses.UNPARSED
    source = cursor.tokens[slice(*parts.source_at)]
    expressions = []
    read_beside: tuple[TableRef, ...] = ()
    if parts.source is InsertSource.SELECT:
        add_subqueries(shape, source)
    else:
        expressions.append(source)
    if shape.uses & Uses.SUBQUERY:
        if parts.duplicate_at is not None:
            expressions.append(cursor.tokens[slice(*parts.duplicate_at)])
        if cursor.accept("RETURNING"):
            expressions.append(cursor.tokens[cursor.at :])
        # Rows, assignments and what RETURNING gives read as a SELECT's list.
        query = [stand_in("SELECT"), stand_in("1")]
        for each in expressions:
            query += [stand_in(","), *each]
        tables, shape.tables = shape.tables, ()
        add_subqueries(shape, query)
        read_beside = shape.tables
        shape.tables = tuple(dict.fromkeys(tables + read_beside))
    shape.insert = InsertShape(
        parts.columns,
        parts.source,
        given,
        parts.duplicate_at is not None,
        parts.ignore,
        parts.row_alias,
        read_beside,
    )


def _operands(shape: Shape, cursor: Cursor, span: tuple[int, int]) -> dict[str, Operand]:
    assignments = read_assignments(cursor, *span)
    if assignments is None:
        shape.uses |= Uses.UNPARSED
        return {}
    return {
        each.column: read_operand(cursor.tokens, each.start, each.end) for each in assignments
    }
