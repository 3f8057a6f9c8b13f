"""Rows of several shards in the place of the SELECT that gave them, for one shard to go on with.

A part of a statement (of a UNION, a derived table, a body of WITH) becomes

    SELECT * FROM (SELECT * FROM (the part LIMIT 0) AS p UNION ALL SELECT 5, DATE'2024-01-01' UNION ALL …) AS p

whose columns have the part's own types and collations. Nothing is taken on trust: every value must
come back as it was sent, and the whole must have the columns that the client's statement has on one server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import loses_digits
from streamfrom.proxy.merge.literals import (
    Sort,
    are_alike,
    check_times,
    is_same,
    literal,
    sort_of,
)
from streamfrom.proxy.merge.shard_texts import check_names
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import without_rows
from streamfrom.sqlparse_ext.statements import Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.proxy.wire.resultset import ColumnDefinition
    from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects
    from streamfrom.sqlparse_ext.statements import Statement


_NAMED: Final = b"SELECT * FROM (%b) AS `streamfrom`"
_WHOLE: Final = frozenset({Sort.INTEGER, Sort.UNSIGNED})


class AnsweredPart:
    """One part and its rows.

    is_merged: its rows are merged groups of several shards.
    """

    def __init__(self, part: Statement, *, is_merged: bool) -> None:
        self._is_merged = is_merged
        self._is_compared = False
        self._empty = _NAMED % without_rows(part)
        self._columns: Sequence[ColumnDefinition] = ()
        self._rows: list[Sequence[bytes | None]] = []
        self.text = self._empty

    def ask_columns(self) -> bytes:
        """Return the query whose definitions are the part's."""
        return self._empty

    def described(
        self,
        columns: Sequence[ColumnDefinition],
        *,
        is_compared: bool,
        is_windowed: bool = False,
    ) -> None:
        """Learn the part's columns.

        is_compared: what becomes of the rows is up to how their values compare.
        is_windowed: a server may go on with a decimal before it has cut it to its digits.

        Raises:
            Unsupported: they cannot be had by name, or their texts are not all that they are.
        """
        self._columns = columns
        self._is_compared = is_compared
        check_names(columns, "a part of this")
        for column in columns:
            is_sum = self._is_merged and sort_of(column) is Sort.DOUBLE
            is_instant = column.type == FieldType.TIMESTAMP
            is_cut = is_windowed and sort_of(column) is Sort.DECIMAL
            # A FLOAT's text has fewer digits than its value, a sum of floats depends on their
            # order, and a TIMESTAMP's text is two moments where clocks are set back.
            if loses_digits(column) or is_cut or (is_compared and (is_sum or is_instant)):
                raise Unsupported(f"going on with '{column.name}' over several shards")

    def check_of_union(self, union: Sequence[ColumnDefinition]) -> None:
        """Raise Unsupported unless the values read the same as values of the UNION's columns."""
        for own, common in zip(self._columns, union, strict=False):
            if not (_read_alike(own, common) or own.type == FieldType.NULL):
                raise Unsupported(
                    f"a UNION of other types in '{common.name}' over several shards"
                )

    def give(self, rows: Sequence[bytes]) -> None:
        """Take the part's rows; `text` gives them from now on. Raises Unsupported."""
        self._rows = [parse_text_row(row) for row in rows]
        if self._is_compared:
            for row in self._rows:
                check_times(self._columns, row)
        selects = [
            b"SELECT " + b", ".join(map(literal, self._columns, row)) for row in self._rows
        ]
        # The empty SELECT comes first: it gives the columns their names and types, also without
        # rows.
        self.text = _NAMED % b" UNION ALL ".join([self._empty, *selects])

    def ask_collations(self) -> tuple[bytes, ...]:
        """Return queries of one row each: collations as they are, and as they would be given."""
        return tuple(_collations(self._columns, text) for text in (self._empty, self.text))

    def check_collations(self, row: bytes) -> None:
        """Raise Unsupported for what compares otherwise in its column: *row* is of collations.

        MariaDB sorts the blanks that fill up a CHAR, and a text that is given has none.
        """
        for column, collation in zip(self._columns, parse_text_row(row), strict=True):
            is_char = column.type == FieldType.STRING
            if self._is_compared and is_char and b"nopad" in (collation or b""):
                raise Unsupported(
                    f"comparing values of a CHAR column of collation {(collation or b'').decode()}"
                    " over several shards"
                )

    def check(self, columns: Sequence[ColumnDefinition], rows: Sequence[bytes]) -> None:
        """Raise Unsupported unless the answer to `text` is what was given."""
        came = [parse_text_row(row) for row in rows]
        if len(came) != len(self._rows):
            raise Unsupported("going on with these rows over several shards: a shard lost some")
        for place, column in enumerate(self._columns):
            if not are_alike(columns[place], column) or not all(
                is_same(column, sent[place], found[place])
                for sent, found in zip(self._rows, came, strict=True)
            ):
                raise Unsupported(
                    f"going on with '{column.name}' over several shards: a shard reads its values"
                    " differently; CAST it, or send one SELECT after another"
                )


class Combination:
    """A statement with its parts, those of them that are given by their number."""

    def __init__(
        self, statement: Statement, parts: InnerSelects, given: dict[int, AnsweredPart]
    ) -> None:
        self._statement = statement
        self._parts = parts
        self._given = given
        self._columns: Sequence[ColumnDefinition] = ()
        # UNION ALL puts rows one behind the other; all else looks at what they are.
        self.is_compared = bool(statement.shape.uses & Uses.ORDER) or not (
            parts.operators and {"UNION ALL"}.issuperset(parts.operators)
        )

    def described(self) -> bytes:
        """Return the query whose definitions are the answer's."""
        return without_rows(self._statement)

    def learn(self, columns: Sequence[ColumnDefinition]) -> None:
        """Learn the answer's columns. Raises Unsupported for names that hide one another."""
        self._columns = columns
        if self._parts.operators:
            check_names(columns, "a part of this")

    def check_parts(self) -> None:
        """Raise Unsupported where parts of a UNION have other types than the whole."""
        if self._parts.operators:
            for part in self._given.values():
                part.check_of_union(self._columns)

    def sql(self) -> bytes:
        """Return the statement with its parts given."""
        texts = {number: part.text for number, part in self._given.items()}
        return self._parts.with_parts(self._statement, texts)

    def ask_collations(self) -> tuple[bytes, ...]:
        """Return queries for a UNION's collations, of the client's text and of `sql`; or none."""
        if not self._parts.operators:
            return ()
        body = self._parts.body(self._statement, {})
        given = {number: part.text for number, part in self._given.items()}
        found = self._parts.body(self._statement, given)
        return (
            _collations(self._columns, body + b" LIMIT 0"),
            _collations(self._columns, found + b" LIMIT 0"),
        )

    def check(self, columns: Sequence[ColumnDefinition]) -> None:
        """Raise Unsupported unless the answer to `sql` has the statement's columns."""
        for column, own in zip(columns, self._columns, strict=False):
            if not _read_alike(column, own):
                raise Unsupported(
                    f"going on with '{own.name}' over several shards: a shard gives it another"
                    " type; CAST it, or send one SELECT after another"
                )


def _collations(columns: Sequence[ColumnDefinition], text: bytes) -> bytes:
    names = b", ".join(
        b"COLLATION(MAX(%b))" % quote_identifier(column.name).encode() for column in columns
    )
    return b"SELECT %b FROM (%b) AS `streamfrom`" % (names, text)


def _read_alike(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    if are_alike(one, other):
        return True
    # A literal 1 is a BIGINT or a DECIMAL by how it is written; what it compares with is the
    # same.
    return _is_whole(one) and _is_whole(other)


def _is_whole(column: ColumnDefinition) -> bool:
    sort = sort_of(column)
    return sort in _WHOLE or (sort is Sort.DECIMAL and not column.decimals)
