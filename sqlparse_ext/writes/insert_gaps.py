"""Fill the gaps of an INSERT: values of sequences, the list of its columns, and the rows of its SELECT.

A column gets a generated value if a row has none: the column is absent, NULL, DEFAULT, or 0
unless NO_AUTO_VALUE_ON_ZERO, as MySQL fills AUTO_INCREMENT and Vitess fills from a sequence
(`shouldGenerate` in engine/insert_common.go). Any other expression stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.literal_values import integer_of
from streamfrom.sqlparse_ext.reading.queries import read_assignments
from streamfrom.sqlparse_ext.statements import InsertSource, Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, quoted
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.text.lexer import Edit, locate, replace, splice
from streamfrom.sqlparse_ext.text.tokens import (
    Cursor,
    outside_parens,
    statement_tokens,
    unquote,
)
from streamfrom.sqlparse_ext.writes.completion import NO_STRUCTURE, edits_of_text


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import InsertShape, Opaque, Operand, TableRef, Value
    from streamfrom.sqlparse_ext.text.insert_rows import InsertRows


@dataclass(frozen=True, slots=True)
class Gaps:
    """The places of generated values in a statement: texts around each, in order."""

    # (start, end) of each gap in the statement's text, and the text to put before its value.
    places: tuple[tuple[int, int, bytes], ...]
    # The column name to add, by its place in the column list; None if the list has it.
    names: Edit | None = None
    # The integer that the last row gives the column, if no row lacks one; None for another value.
    last: int | None = None

    def __len__(self) -> int:
        """Return the number of missing values."""
        return len(self.places)

    def filled(self, sql: bytes, values: Iterable[int]) -> bytes:
        """Return *sql* with *values* in the gaps, one for each."""
        edits = [
            Edit(start, end, before + b"%d" % value)
            for (start, end, before), value in zip(self.places, values, strict=True)
        ]
        return replace(sql, edits if self.names is None else [self.names, *edits])


def check_load_fills(shape: Shape, column: str) -> None:
    """Raise Unsupported for a LOAD DATA with a list of columns but without *column*: a server would give all its rows one value."""
    template = shape.template
    tokens = statement_tokens(template)
    keys = ["", *(token.key for token in tokens)]
    # The list comes before SET, unless that is a character set's.
    end = next((at for at, pair in enumerate(pairwise(keys)) if _sets(*pair)), len(tokens))
    lists = [
        at
        for at, (before, key) in enumerate(pairwise(keys[: end + 1]))
        if key == "(" and before != "PARTITION"
    ]
    if lists and column not in {
        unquote(token, template).lower() for token in tokens[lists[0] :] if token.is_name
    }:
        raise Unsupported(
            f"LOAD without {column} into a queue whose ids are made for INSERT alone; load {column} too, or INSERT the rows"
        )


def _sets(before: str, key: str) -> bool:
    return key == "SET" and before != "CHARACTER"


def gaps(
    statement: Statement, column: str, columns: Sequence[str] | None, *, zero_is_value: bool
) -> Gaps:
    """Return the places where *statement*, an INSERT or REPLACE, lacks values of *column* (in lower case).

    columns: the table's columns, for a statement without a column list.
    Raises Unsupported if the form of the statement does not show where its values are.
    """
    shape = statement.shape
    insert = shape.insert
    if insert is None or shape.uses & NO_STRUCTURE:
        raise _refusal(shape, column)
    if insert.source is InsertSource.SET:
        return _gap_of_set(statement, insert, column, zero_is_value=zero_is_value)
    names = insert.columns or columns
    if names is not None and column in names and insert.source is InsertSource.SELECT:
        return Gaps(())
    rows = insert_rows(statement)  # none for a SELECT
    if rows is None or names is None or (column not in names and not insert.columns):
        raise _refusal(shape, column)
    if not insert.columns and not any(map(rows.elements, range(len(rows)))):
        # VALUES () gives every column its default.
        name = quoted(column) if insert.columns == () else b" (%b)" % quoted(column)
        return _at_ends(statement, insert, rows, b"", name)
    if column in names:
        at = names.index(column)
        # With as many values as there are columns; otherwise the server reports an error.
        elements = [rows.elements(row) for row in range(len(rows))]
        places = [
            (*spans[at], b"")
            for spans in elements
            if at < len(spans)
            and _is_gap(
                statement.sql[slice(*spans[at])],
                rows.value(*spans[at]),
                zero_is_value=zero_is_value,
            )
        ]
        last = None
        if elements and not places and at < len(elements[-1]):
            last = integer_of(rows.value(*elements[-1][at]))
        return Gaps(tuple(places), last=last)
    return _at_ends(statement, insert, rows, b", ", b", " + quoted(column))


def _refusal(shape: Shape, column: str) -> Unsupported:
    return Unsupported(
        f"this form of {shape.verb} into a table whose column '{column}' takes values of a sequence or of vt_auto_id;"
        " name the columns, and give the rows by VALUES"
    )


def _at_ends(
    statement: Statement, insert: InsertShape, rows: InsertRows, before: bytes, name: bytes
) -> Gaps:
    """Return gaps at the ends of *rows*, for a column whose *name* is added at the end of the list."""
    (edit,) = edits_of_text(statement, [Edit(insert.columns_at, insert.columns_at, name)])
    return Gaps(tuple((last - 1, last - 1, before) for _, last in rows.spans), edit)


def _gap_of_set(
    statement: Statement, insert: InsertShape, column: str, *, zero_is_value: bool
) -> Gaps:
    span = insert.set_at.get(column)
    if span is None:
        (end,) = locate(statement.sql, statement.mode, (insert.set_end,))
        name = quoted(column)
        return Gaps(((end, end, b", " + name + b" = "),))
    start, end = locate(statement.sql, statement.mode, span)
    values = statement.values((insert.set[column],))
    text = statement.sql[start:end]
    is_gap = (
        text.strip().upper() == b"DEFAULT"
        if values is None
        else _is_gap(text, values[0], zero_is_value=zero_is_value)
    )
    if is_gap:
        return Gaps(((start, end, b""),))
    return Gaps((), last=None if values is None else integer_of(values[0]))


def _is_gap(text: bytes, value: Value | Opaque, *, zero_is_value: bool) -> bool:
    if value is None or text.upper() == b"DEFAULT":
        return True
    return not zero_is_value and value in (0, b"0")


def naming_updated(statement: Statement, column: str) -> bytes | None:
    """Return the text of an INSERT … ON DUPLICATE KEY UPDATE whose answer has *column* of an updated row as insert id.

    None if no assignment can take it.
    """
    span = _first_assigned(statement.shape)
    if span is None:
        return None
    (start, end), table = span, statement.shape.tables[0]
    names = (table.schema, table.name, column)
    name = ".".join(quote_identifier(name) for name in names if name is not None)
    # MySQL assumes without looking that an id IS NOT NULL.
    head = b"IF(LAST_INSERT_ID(%s) = -1, NULL, " % name.encode("utf-8", "surrogateescape")
    edits = [Edit(start, start, head), Edit(end, end, b")")]
    return splice(statement.sql, statement.mode, edits)


@lru_cache(maxsize=1024)
def _first_assigned(shape: Shape) -> tuple[int, int] | None:
    """Return the place in the template of the first expression of ON DUPLICATE KEY UPDATE; DEFAULT is no expression."""
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    assert shape.insert is not None
    assert shape.insert.duplicate_at is not None
    for each in read_assignments(cursor, *shape.insert.duplicate_at) or ():
        if cursor.tokens[each.start].key != "DEFAULT" or each.end > each.start + 1:
            return cursor.tokens[each.start].start, cursor.tokens[each.end - 1].end
    return None


@lru_cache(maxsize=1024)
def keeps_shard(shape: Shape, column: str) -> bool:
    """Return whether ON DUPLICATE KEY UPDATE leaves *column* unchanged, or equal to that of the row to be inserted."""
    insert = shape.insert
    if insert is None or insert.duplicate_at is None:
        return False
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    for each in read_assignments(cursor, *insert.duplicate_at) or ():
        if each.column != column:
            continue
        value = Cursor(cursor.tokens, cursor.template, each.start)
        is_call = (
            value.key in {"VALUES", "VALUE", "LAST_INSERT_ID"} and value.peek(1).key == "("
        )
        if is_call:
            value.at += 2
        name, of = value.name(), None
        while value.accept("."):
            name, of = value.name(), name
        is_whole = value.accept(")") if is_call else True
        if (name or "").lower() != column or not is_whole or value.at != each.end:
            return False
        if of is not None and of not in {insert.table.name, insert.row_alias}:
            return False  # a column of the query that returns the rows
    return True


# --- INSERT without a column list ---------------------------------------------------------------


def leaves_out_columns(shape: Shape) -> bool:
    """Return whether a statement is an INSERT or REPLACE of VALUES or of a query, without a column list."""
    return (
        shape.insert is not None
        and shape.insert.columns is None
        and shape.insert.source is not InsertSource.SET
        and not shape.uses & Uses.UNPARSED
    )


def with_columns(statement: Statement, names: Sequence[str]) -> bytes:
    """Return the text of a statement that `leaves_out_columns` with the list of *names*."""
    assert statement.shape.insert is not None
    place = statement.shape.insert.columns_at
    names_sql = ", ".join(map(quote_identifier, names)).encode("utf-8", "surrogateescape")
    return splice(statement.sql, statement.mode, [Edit(place, place, b" (%s)" % names_sql)])


# --- SELECT NEXT … VALUES ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NextValues:
    """`SELECT NEXT VALUE FROM table` or `SELECT NEXT n VALUES FROM table`."""

    table: TableRef
    # The number of values; None in the first form, which in other tables selects a column `next`.
    count: Operand

    @property
    def is_certain(self) -> bool:
        """True if the statement can have no other meaning."""
        return self.count is not None


@lru_cache(maxsize=1024)
def next_values(shape: Shape) -> NextValues | None:
    """Return the request of a SELECT to a sequence; None for every other statement."""
    if shape.kind is not Kind.SELECT or shape.words[:1] != ("NEXT",):
        return None
    cursor = Cursor(statement_tokens(shape.template), shape.template, 2)
    count: Operand = None
    if cursor.accept("VALUE"):
        pass
    elif cursor.peek(1).key == "VALUES" and (slot := cursor.peek().slot) is not None:
        count = slot
        cursor.at += 2
    else:
        return None
    table = cursor.table() if cursor.accept("FROM") else None
    if table is None or cursor.key:
        return None
    return NextValues(table, count)


def count_of(asked: NextValues, statement: Statement) -> int | None:
    """Return how many values are requested; None if that is no integer."""
    if asked.count is None:
        return 1
    values = statement.values((asked.count,))
    value = values[0] if values else None
    return value if isinstance(value, int) else None


_NAME: Final = b"streamfrom"


class InsertSelect(NamedTuple):
    """The text before the rows, up to the column list, the query for the rows, without parentheses around it, and the rest: RETURNING."""

    head: bytes
    query: bytes
    tail: bytes

    def giving(self, rows: bytes) -> bytes:
        """Return the text of the INSERT with *rows* in the place of the query."""
        return b"%b%b %b" % (self.head, rows, self.tail) if self.tail else self.head + rows


def is_insert_select(shape: Shape) -> bool:
    """Return whether a statement is an INSERT or REPLACE of a query's rows that does nothing else, except perhaps return them."""
    insert = shape.insert
    return (
        insert is not None
        and insert.source is InsertSource.SELECT
        and not (insert.on_duplicate or insert.read_beside)
        and not shape.uses & Uses.UNPARSED
    )


def insert_select(statement: Statement) -> InsertSelect:
    """Take a statement that `is_insert_select` apart."""
    template, insert = statement.shape.template, statement.shape.insert
    assert insert is not None
    tokens = statement_tokens(template)
    first, last = source_at = insert.source_at
    while tokens[first].key == "(":
        inside = Cursor(tokens, template, first, last)
        if not inside.skip_parens() or inside.at != last:
            break
        first, last = first + 1, last - 1
    places = tokens[first].start, tokens[last - 1].end
    sql = statement.sql
    (head, start, end) = locate(sql, statement.mode, (tokens[source_at[0]].start, *places))
    tail = len(sql)
    if source_at[1] < len(tokens):
        (tail,) = locate(sql, statement.mode, (tokens[source_at[1]].start,))
    return InsertSelect(sql[:head], sql[start:end], sql[tail:])


def bounded(query: Statement, rows: int, lock: bytes = b"") -> bytes:
    """Return a query's text that returns *rows* rows at most, with *lock* as its locking clause."""
    tokens = statement_tokens(query.shape.template)
    if any(tokens[place].key == "LIMIT" for place in outside_parens(tokens, 0, len(tokens))):
        return b"SELECT * FROM (%b%b) AS `%b` LIMIT %d" % (query.sql, lock, _NAME, rows)
    return b"%b LIMIT %d%b" % (query.sql, rows, lock)
