"""Reads INSERT and REPLACE: where their lists are, and what the lists say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.conditions import read_operand
from streamfrom.sqlparse_ext.reading.queries import (
    QUERY_STARTS,
    add_subqueries,
    guess_tables,
    read_assignments,
)
from streamfrom.sqlparse_ext.statements import InsertShape, InsertSource, Kind, Param, Uses
from streamfrom.sqlparse_ext.text.lexer_patterns import CALL_ROWS, ROWS
from streamfrom.sqlparse_ext.text.tokens import Cursor, split_commas, stand_in, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.reading.queries import Assignment
    from streamfrom.sqlparse_ext.statements import Shape

_OPTIONS: Final = frozenset({"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"})
_ROW_MARKS: Final = frozenset({ROWS.decode(), CALL_ROWS.decode()})


def insert_parts(cursor: Cursor) -> InsertShape | None:
    """Find the lists of an INSERT or REPLACE, behind its verb; None when it is none."""
    seen = cursor.skip_all(_OPTIONS)
    cursor.accept("INTO")
    table = cursor.table()
    if table is None or (cursor.accept("PARTITION") and not cursor.skip_parens()):
        return None
    columns = _column_list(cursor)
    last = cursor.tokens[cursor.at - 1]
    columns_at = last.end if columns is None else last.start
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
    return InsertShape(
        table,
        "IGNORE" in seen,
        columns,
        columns_at,
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


def read_insert(shape: Shape, cursor: Cursor) -> None:
    """Read an INSERT or REPLACE behind its verb."""
    shape.kind = Kind(shape.verb)
    insert = shape.insert = insert_parts(cursor)
    if insert is None:
        shape.uses |= Uses.UNPARSED
        shape.tables = guess_tables(cursor.tokens, shape.template)
        return
    shape.tables = (insert.table,)
    tokens = cursor.tokens
    if insert.source is InsertSource.SET:
        for each in _assignments(shape, cursor, insert.source_at):
            insert.set[each.column] = read_operand(tokens, each.start, each.end)
            insert.set_at[each.column] = tokens[each.start].start, tokens[each.end - 1].end
    if insert.duplicate_at is not None:
        # Of the rows before these the template keeps one of a kind, so `?`s are counted from
        # the end.
        count = sum(isinstance(token.slot, Param) for token in tokens)
        for each in _assignments(shape, cursor, insert.duplicate_at):
            operand = read_operand(tokens, each.start, each.end)
            shape.assignments[each.column] = (
                Param(operand - count) if isinstance(operand, Param) else operand
            )
    if not insert.is_whole:
        shape.uses |= Uses.UNPARSED
    source = tokens[slice(*insert.source_at)]
    expressions = []
    if insert.source is InsertSource.SELECT:
        add_subqueries(shape, source)
    else:
        expressions.append(source)
    if shape.uses & Uses.SUBQUERY:
        if insert.duplicate_at is not None:
            expressions.append(tokens[slice(*insert.duplicate_at)])
        if cursor.accept("RETURNING"):
            expressions.append(tokens[cursor.at :])
        # Rows, assignments and what RETURNING gives read as a SELECT's list.
        query = [stand_in("SELECT"), stand_in("1")]
        for expression in expressions:
            query += [stand_in(","), *expression]
        tables, shape.tables = shape.tables, ()
        add_subqueries(shape, query)
        insert.read_beside = shape.tables
        shape.tables = tuple(dict.fromkeys(tables + insert.read_beside))


def _assignments(shape: Shape, cursor: Cursor, span: tuple[int, int]) -> tuple[Assignment, ...]:
    found = read_assignments(cursor, *span)
    if found is None:
        shape.uses |= Uses.UNPARSED
    return found or ()
