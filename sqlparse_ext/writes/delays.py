"""Refuse statements that schedule a message for later, on a table whose comment has ``vt_delayed = off``.

Read after completion, when moments are nanoseconds. A time_next is allowed if it is certainly not in the
future: NULL, a number, a bound value, DEFAULT. Values that only the server could know are refused, except for a heartbeat,
which extends a consumer's lease. Pure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.errors import DelayRefused
from streamfrom.sqlparse_ext.literal_values import integer_of
from streamfrom.sqlparse_ext.reading.queries import assigned_columns, parts_of_update
from streamfrom.sqlparse_ext.statements import OPAQUE, InsertSource, Kind, Opaque, Uses
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.writes.completion import NO_STRUCTURE, TableFacts


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import InsertShape, Shape, Statement, Value

_COLUMN: Final = "time_next"
_SEVERAL_TABLES: Final = Uses.JOIN | Uses.CTE | NO_STRUCTURE
_NUMBERS_AND_SIGNS: Final = frozenset("+-*()")
_DEFAULT: Final = b"DEFAULT"
_EXPRESSION: Final = "time_next is given by an expression"


def check_not_delayed(statement: Statement, facts: TableFacts, now_ns: int) -> None:
    """Raise DelayRefused unless no message of *facts*, the table that is written, is due later than *now_ns*."""
    match statement.shape.kind:
        case Kind.INSERT | Kind.REPLACE:
            _check_insert(statement, facts, now_ns)
        case Kind.UPDATE:
            check_several_tables(statement.shape, facts)
            operand = statement.shape.assignments.get(_COLUMN)
            if not _is_heartbeat(statement.shape):
                _check(statement.known(operand), facts, now_ns)
        case Kind.LOAD:
            raise DelayRefused(facts.name, "the rows of LOAD DATA are not read here")
        case _:
            pass


def check_several_tables(shape: Shape, facts: TableFacts) -> None:
    """Raise DelayRefused for an UPDATE of several tables, one with *facts*, that assigns a time_next."""
    if shape.uses & _SEVERAL_TABLES:
        assigned = assigned_columns(shape.template)
        if assigned is None or _COLUMN in assigned:
            raise DelayRefused(
                facts.name, "time_next is assigned in an UPDATE of several tables"
            )


def _check_insert(statement: Statement, facts: TableFacts, now_ns: int) -> None:
    shape = statement.shape
    insert = shape.insert
    if insert is None or shape.uses & NO_STRUCTURE:
        raise DelayRefused(facts.name, "the statement cannot be read")
    if insert.on_duplicate:
        _check(statement.known(shape.assignments.get(_COLUMN)), facts, now_ns)
    given = (
        insert.set if insert.source is InsertSource.SET else insert.columns or facts.in_order
    )
    if _COLUMN not in given:
        _check(facts.default_time_next_ns, facts, now_ns)
    elif insert.source is InsertSource.SET:
        if shape.template[slice(*insert.set_at[_COLUMN])].upper() == _DEFAULT:
            _check(facts.default_time_next_ns, facts, now_ns)
        else:
            _check(statement.known(insert.set[_COLUMN]), facts, now_ns)
    else:
        _check_rows(statement, insert, facts, now_ns)


def _check_rows(
    statement: Statement, insert: InsertShape, facts: TableFacts, now_ns: int
) -> None:
    rows = insert_rows(statement)
    if rows is None:
        raise DelayRefused(facts.name, _EXPRESSION)
    place = (insert.columns or facts.in_order).index(_COLUMN)
    for row, value in enumerate(rows.position(place)):
        if not isinstance(value, Opaque):
            _check(value, facts, now_ns)
            continue
        elements = rows.elements(row)
        text = statement.sql[slice(*elements[place])] if place < len(elements) else b""
        if text.upper() == _DEFAULT:
            _check(facts.default_time_next_ns, facts, now_ns)
        else:
            raise DelayRefused(facts.name, _EXPRESSION)


def _check(value: Value | Opaque, facts: TableFacts, now_ns: int) -> None:
    time_ns = 0 if value is None else integer_of(value)
    if time_ns is None:
        raise DelayRefused(facts.name, _EXPRESSION)
    if time_ns > now_ns:
        raise DelayRefused(facts.name, f"time_next {time_ns} is later than now, {now_ns}")


@lru_cache(maxsize=1024)
def _is_heartbeat(shape: Shape) -> bool:
    """Return whether an UPDATE of one table makes time_next from itself, plus or minus numbers."""
    if shape.assignments.get(_COLUMN) is not OPAQUE:
        return False
    cursor, parts = parts_of_update(shape)
    given = [each for each in parts.assignments if each.column == _COLUMN] if parts else []
    if len(given) != 1:
        return False
    cursor.at, end = given[0].start, given[0].end
    column = cursor.name()
    while cursor.accept("."):
        column = cursor.name()
    if column is None or column.lower() != _COLUMN or cursor.key not in ("+", "-"):
        return False
    return all(
        token.slot is not None or token.key in _NUMBERS_AND_SIGNS
        for token in cursor.tokens[cursor.at : end]
    )
