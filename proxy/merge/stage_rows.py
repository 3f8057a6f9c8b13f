"""Rows of several shards in the place of the SELECT that gave them, for one shard to go on with.

A part of a statement (of a UNION, a derived table, a body of WITH) becomes a `stage` of its rows. The whole must have the columns
that the client's statement has on one server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import Sort, are_alike, sort_of
from streamfrom.proxy.merge.shard_texts import check_names
from streamfrom.proxy.merge.stage import Stage, is_text
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects, TableRows, without_rows
from streamfrom.sqlparse_ext.statements import Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.wire.resultset import ColumnDefinition


_NAMED: Final = b"SELECT * FROM (%b) AS `streamfrom`"
_WHOLE: Final = frozenset({Sort.INTEGER, Sort.UNSIGNED})


class AnsweredPart:
    """One part and its rows.

    is_merged: its rows are merged groups of several shards.

    Attributes:
        empty: the query whose definitions are the part's.
        columns: these.
        text: the SELECT in the part's place.
    """

    def __init__(self, part: Statement, *, is_merged: bool) -> None:
        self._is_merged = is_merged
        self.empty = _NAMED % without_rows(part)
        self.columns: Sequence[ColumnDefinition] = ()
        self._stage: Stage
        self.text = b""

    def described(
        self,
        columns: Sequence[ColumnDefinition],
        *,
        is_compared: bool,
        is_windowed: bool = False,
    ) -> None:
        """Learn the part's columns. Raises Unsupported if these cannot be had by name, or their texts are not all that they are.

        is_compared: what becomes of the rows is up to how their values compare.
        is_windowed: a server may go on with a decimal before it has cut it to its digits.
        """
        self.columns = columns
        check_names(columns, "a part of this")
        for column in columns:
            is_sum = self._is_merged and sort_of(column) is Sort.DOUBLE
            is_instant = column.type == FieldType.TIMESTAMP
            is_cut = is_windowed and sort_of(column) is Sort.DECIMAL
            # A sum of floats depends on their order, and a TIMESTAMP's text is two moments where clocks are set back.
            if is_cut or (is_compared and (is_sum or is_instant)):
                raise Unsupported(f"going on with '{column.name}' over several shards")

    def ask_rows(self, part: Statement, count: int) -> bytes:
        """Return the query for *count* rows of *part* at most."""
        names = ", ".join(quote_identifier(column.name) for column in self.columns)
        items = names.encode("utf-8", "surrogateescape")
        return b"SELECT %b FROM (%b) AS `streamfrom` LIMIT %d" % (items, part.sql, count)

    def ask_collations(self) -> bytes:
        """Return the query whose one row is the columns' collations."""
        return _collations(self.columns, self.empty)

    def collated(self, collations: Sequence[bytes | None]) -> None:
        """Learn the collations of the columns. Raises Unsupported."""
        self._stage = Stage(self.columns, [(each or b"").decode() for each in collations])
        self.give(())

    def give(self, rows: Sequence[bytes]) -> None:
        """Take the part's rows; `text` gives them from now on. Raises Unsupported."""
        self.text = self._stage.select(rows)


class Combination:
    """A statement with its parts, those of them that are given by their number."""

    def __init__(
        self,
        statement: Statement,
        parts: InnerSelects | TableRows,
        given: dict[int, AnsweredPart],
    ) -> None:
        self._statement = statement
        self._parts = parts
        self._given = given  # without rows yet
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
        """Raise Unsupported where values of a UNION's parts read otherwise than values of the whole."""
        for part in self._given.values() if self._parts.operators else ():
            for own, common in zip(part.columns, self._columns, strict=False):
                if not (_read_alike(own, common) or own.type == FieldType.NULL):
                    raise Unsupported(
                        f"a UNION of other types in '{common.name}' over several shards"
                    )

    def sql(self) -> bytes:
        """Return the statement with its parts given."""
        texts = {number: part.text for number, part in self._given.items()}
        return self._parts.with_parts(self._statement, texts)

    def ask_collations(self) -> tuple[bytes, ...]:
        """Return queries for a UNION's collations, of the client's text and of `sql`; or none."""
        if isinstance(self._parts, TableRows) or not self._parts.operators:
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
        b"COLLATION(MAX(%b))"
        % (quote_identifier(column.name).encode() if is_text(column) else b"NULL")
        for column in columns
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
