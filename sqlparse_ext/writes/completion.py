"""What the proxy completes in the statements on a message table, before they are sent.

An UPDATE that acknowledges becomes the whole idiom, time functions become nanoseconds, and rows of
the first layout get their defaults. Bytes are spliced into the client's text; what to change is
found once per shape. Measured (CPython 3.11): 13 µs for an ack that is completed, 0.7 µs for one
that is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlparse_ext.reading.inserts import insert_parts
from sqlparse_ext.reading.queries import read_assignments, update_parts
from sqlparse_ext.statements import InsertSource, Kind, Uses
from sqlparse_ext.text.lexer import ROWS, Edit, locate, relocate, replace, splice
from sqlparse_ext.text.rows import insert_rows
from sqlparse_ext.text.tokens import Cursor, statement_tokens
from sqlparse_ext.writes.times import moment_ns, read_moment


if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlparse_ext.reading.queries import Assignment, UpdateParts
    from sqlparse_ext.statements import Shape, Statement
    from sqlparse_ext.text.tokens import Token
    from sqlparse_ext.writes.times import Moment

_TIME_COLUMNS: Final = frozenset({"time_acked", "time_next"})
_FIRST_LAYOUT_TIME_COLUMNS: Final = _TIME_COLUMNS | {"time_scheduled", "time_created"}
NO_STRUCTURE: Final = Uses.UNPARSED | Uses.MULTIPLE


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What this module must know of a message table.

    default_time_next_ns: what a row gets that does not say; None for NULL.
    columns: all columns, in lower case.
    first_layout: the one with time_scheduled and time_created.
    """

    name: str
    id_column: str
    has_priority: bool
    default_priority: int
    default_time_next_ns: int | None
    columns: frozenset[str]
    first_layout: bool
    id_auto_increment: bool


def complete(statement: Statement, facts: TableFacts, now_ns: int) -> bytes | None:
    """Return the text to send instead of *statement*; None to send it as it is.

    *facts* are of the statement's target, its first table. Completing the result again changes
    nothing. What is not in the text by position, such as the rows of INSERT … SELECT, is left.
    """
    shape = statement.shape
    if shape.uses & NO_STRUCTURE:
        return None
    if shape.kind is Kind.UPDATE:
        return _complete_update(statement, facts, now_ns)
    if shape.kind in (Kind.INSERT, Kind.REPLACE) and shape.insert is not None:
        return _complete_insert(statement, facts, now_ns)
    return None


# --- UPDATE ------------------------------------------------------------------------------------


class _PlacedMoment(NamedTuple):
    """A range of a template whose expression means a moment."""

    start: int
    end: int
    moment: Moment


class _Plan(NamedTuple):
    """The edits of one shape's template. *moments* need the statement and the clock."""

    fixed: tuple[Edit, ...] = ()
    moments: tuple[_PlacedMoment, ...] = ()
    is_ack: bool = False


def _complete_update(statement: Statement, facts: TableFacts, now_ns: int) -> bytes | None:
    plan = _update_plan(statement.shape, facts.first_layout)
    edits = [*plan.fixed, *_moment_edits(plan.moments, statement, now_ns)]
    return splice(statement.sql, statement.mode, edits) if edits else None


def _moment_edits(
    moments: Iterable[_PlacedMoment], statement: Statement, now_ns: int
) -> list[Edit]:
    edits = []
    for start, end, moment in moments:
        ns = moment.ns(statement, now_ns)
        if ns is not None:
            edits.append(Edit(start, end, b"%d" % ns))
    return edits


@lru_cache(maxsize=1024)
def _update_plan(shape: Shape, first_layout: bool) -> _Plan:  # noqa: FBT001 - part of a cache key
    """Return what to change in the UPDATEs of *shape*: once per shape, not per statement."""
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    cursor.at = cursor.find({"UPDATE"}) + 1
    parts = update_parts(cursor)
    if parts is None or shape.uses & Uses.CTE:
        return _Plan()
    tokens = cursor.tokens
    moments = _moments(cursor, parts.assignments, first_layout=first_layout)
    if not _acknowledges(cursor, parts):
        return _Plan((), moments)
    behind_set = b""
    if "time_next" not in shape.assignments:
        behind_set = b", time_next = NULL"
    fixed = []
    if "time_acked" not in shape.guards:
        if parts.where is None:
            behind_set += b" WHERE time_acked IS NULL"
        elif parts.where[0] < parts.where[1]:
            first, last = parts.where
            fixed.append(Edit(tokens[first].start, tokens[first].start, b"("))
            fixed.append(_behind(shape, tokens[last - 1], b") AND time_acked IS NULL"))
    if behind_set:
        fixed.append(_behind(shape, tokens[parts.set_end - 1], behind_set))
    return _Plan(tuple(fixed), moments, is_ack=True)


def _behind(shape: Shape, token: Token, text: bytes) -> Edit:
    """Return the edit that puts *text* behind *token*, kept apart from a word that follows."""
    follows = shape.template[token.end : token.end + 1]
    return Edit(token.end, token.end, text + (b" " if follows.isalpha() else b""))


def _moments(
    cursor: Cursor, assignments: Iterable[Assignment], *, first_layout: bool
) -> tuple[_PlacedMoment, ...]:
    """Return the ranges of the template whose expression means a moment, and the moment."""
    columns = _time_columns(first_layout=first_layout)
    found = []
    for each in assignments:
        if each.column in columns:
            value = Cursor(cursor.tokens, cursor.template, each.start)
            moment = read_moment(value, each.end)
            if moment is not None:
                start, end = cursor.tokens[each.start].start, cursor.tokens[each.end - 1].end
                found.append(_PlacedMoment(start, end, moment))
    return tuple(found)


def _time_columns(*, first_layout: bool) -> frozenset[str]:
    return _FIRST_LAYOUT_TIME_COLUMNS if first_layout else _TIME_COLUMNS


def _acknowledges(cursor: Cursor, parts: UpdateParts) -> bool:
    """Whether time_acked gets a value: not NULL, not DEFAULT, not just a column's."""
    given = [each for each in parts.assignments if each.column == "time_acked"]
    if not given:
        return False
    start, end = given[-1].start, given[-1].end
    token = cursor.tokens[start]
    if token.key in ("NULL", "DEFAULT"):
        return False
    value = Cursor(cursor.tokens, cursor.template, start)
    return end - start > 1 or token.slot is not None or read_moment(value, end) is not None


def is_ack(shape: Shape) -> bool:
    """Whether an UPDATE of one table gives time_acked a value."""
    return _update_plan(shape, first_layout=False).is_ack


# --- INSERT ------------------------------------------------------------------------------------


def _complete_insert(statement: Statement, facts: TableFacts, now_ns: int) -> bytes | None:
    """Complete the rows, the SET list and ON DUPLICATE KEY UPDATE."""
    shape = statement.shape
    insert = shape.insert
    assert insert is not None
    plan = insert_plan(shape, facts.first_layout)
    edits = _moment_edits(plan.moments, statement, now_ns)
    in_text: list[Edit] = []
    if insert.source is InsertSource.SET:
        edits += _set_defaults(statement, plan, facts, now_ns)
    elif insert.source is InsertSource.VALUES and plan.columns_end is not None:
        in_text, added = _complete_rows(statement, facts, now_ns)
        if added:
            names = b"".join(b", " + name.encode() for name in added)
            edits.append(Edit(plan.columns_end, plan.columns_end, names))
    if edits:
        in_text += relocate(statement.sql, statement.mode, edits)
    return replace(statement.sql, in_text) if in_text else None


class InsertPlan(NamedTuple):
    """Where an INSERT's template takes additions.

    columns_end: before the parenthesis that closes the column list.
    set_end: behind the last assignment of INSERT … SET.
    values: the ranges of that form's values, by column.
    """

    moments: tuple[_PlacedMoment, ...]
    columns_end: int | None = None
    set_end: int | None = None
    values: Mapping[str, tuple[int, int]] = MappingProxyType({})


@lru_cache(maxsize=1024)
def insert_plan(shape: Shape, first_layout: bool) -> InsertPlan:  # noqa: FBT001 - a cache key
    """Return where the INSERTs of *shape* take additions: once per shape."""
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    cursor.at = cursor.find({"INSERT", "REPLACE"}) + 1
    parts = insert_parts(cursor)
    if parts is None:
        return InsertPlan(())
    tokens = cursor.tokens
    set_at = parts.source_at if parts.source is InsertSource.SET else None
    moments: tuple[_PlacedMoment, ...] = ()
    for span in (set_at, parts.duplicate_at):
        assignments = read_assignments(cursor, *span) if span else None
        moments += _moments(cursor, assignments or (), first_layout=first_layout)
    values: dict[str, tuple[int, int]] = {}
    if set_at is not None:
        for each in read_assignments(cursor, *set_at) or ():
            values[each.column] = tokens[each.start].start, tokens[each.end - 1].end
    return InsertPlan(
        moments,
        tokens[parts.columns_end].start if parts.columns else None,
        tokens[set_at[1] - 1].end if set_at is not None else None,
        values,
    )


# In this order, after the client's own columns. time_next follows time_scheduled.
_DEFAULTED: Final = ("time_scheduled", "time_next", "time_created", "epoch")


def _missing(facts: TableFacts, given: Collection[str]) -> list[str]:
    """Return the columns of the first layout that an INSERT leaves to the proxy."""
    if not facts.first_layout:
        return []
    return [name for name in _DEFAULTED if name in facts.columns and name not in given]


def _default(column: str, scheduled: bytes | None, now_ns: int) -> bytes:
    if column == "epoch":
        return b"0"
    if column == "time_next" and scheduled is not None:
        return scheduled
    return b"%d" % now_ns


def _set_defaults(
    statement: Statement, plan: InsertPlan, facts: TableFacts, now_ns: int
) -> list[Edit]:
    """Return what to add to INSERT … SET, as edits of the template."""
    missing = _missing(facts, plan.values)
    if not missing or plan.set_end is None:
        return []
    scheduled = None
    if "time_scheduled" in plan.values:
        places = locate(statement.sql, statement.mode, plan.values["time_scheduled"])
        scheduled = _scheduled(statement, statement.sql[slice(*places)], now_ns)
    added = [
        b", %s = %s" % (name.encode(), _default(name, scheduled, now_ns)) for name in missing
    ]
    return [Edit(plan.set_end, plan.set_end, b"".join(added))]


def _scheduled(statement: Statement, text: bytes, now_ns: int) -> bytes:
    ns = moment_ns(text, now_ns, statement.mode)
    return text if ns is None else b"%d" % ns


def _complete_rows(
    statement: Statement, facts: TableFacts, now_ns: int
) -> tuple[list[Edit], list[str]]:
    """Return the edits of the text's VALUES rows, and the columns they add."""
    insert = statement.shape.insert
    assert insert is not None
    columns = insert.columns or ()
    times = _time_columns(first_layout=facts.first_layout).intersection(columns)
    missing = _missing(facts, columns)
    if ROWS in statement.shape.template:
        times = frozenset()  # literals only
    if not times and not missing:
        return [], []
    rows = insert_rows(statement)
    if rows is None:
        return [], []
    edits: list[Edit] = []
    indexes = {columns.index(name): name for name in sorted(times)}
    scheduled_at = columns.index("time_scheduled") if "time_scheduled" in columns else None
    for row, (_, end) in enumerate(rows.spans):
        elements = rows.elements(row)
        if len(elements) != len(columns):
            return [], []  # the server will say so
        texts = {at: statement.sql[slice(*elements[at])] for at in indexes}
        for at, text in texts.items():
            ns = moment_ns(text, now_ns, statement.mode)
            if ns is not None:
                edits.append(Edit(*elements[at], b"%d" % ns))
        if missing:
            scheduled = None
            if scheduled_at is not None:
                given = statement.sql[slice(*elements[scheduled_at])]
                scheduled = _scheduled(statement, given, now_ns)
            added = [b", " + _default(name, scheduled, now_ns) for name in missing]
            edits.append(Edit(end - 1, end - 1, b"".join(added)))
    return edits, missing
