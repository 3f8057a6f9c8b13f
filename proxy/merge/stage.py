"""Rows as a SELECT that returns them, for a server to compute further, or as rows of VALUES (`values_row`). Pure.

    SELECT `a`, UNHEX(`b`) AS `b` FROM JSON_TABLE(CONVERT(_utf8mb4 x'…' USING utf8mb4), '$[*]' COLUMNS (`a` INT PATH '$[0]', …)) AS `streamfrom`

The text is ASCII in hexadecimal, which reads the same under every sql_mode and character set. It is a plain SELECT: it needs no
privilege, leaves no trace, and runs in READ ONLY transactions. Its columns have the types and collations of the rows, and
each value comes back byte for byte. The types for which this holds were found by trial on MariaDB and MySQL (`tests/integration/test_stage.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge.comparison import (
    Sort,
    are_alike,
    loses_digits,
    sort_of,
)
from streamfrom.proxy.wire.binary_parameters import Parameter, literal_of
from streamfrom.proxy.wire.constants import (
    BINARY_CHARSET,
    CHARSETS,
    STRING_TYPES,
    FieldFlag,
    FieldType,
)
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects, TableRows, without_rows
from streamfrom.sqlparse_ext.statements import Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, quoted


_TYPES: Final[dict[int, str]] = {
    FieldType.TINY: "TINYINT{unsigned}",
    FieldType.SHORT: "SMALLINT{unsigned}",
    FieldType.INT24: "MEDIUMINT{unsigned}",
    FieldType.LONG: "INT{unsigned}",
    FieldType.LONGLONG: "BIGINT{unsigned}",
    FieldType.NEWDECIMAL: "DECIMAL({digits},{decimals})",
    FieldType.DATETIME: "DATETIME({decimals})",
    FieldType.TIMESTAMP: "DATETIME({decimals})",
    FieldType.TIME: "TIME({decimals})",
    FieldType.DOUBLE: "DOUBLE",
    FieldType.DATE: "DATE",
    FieldType.YEAR: "YEAR",
    FieldType.NULL: "CHAR(0)",
}
_DATES: Final = frozenset({FieldType.DATE, FieldType.DATETIME, FieldType.TIMESTAMP})
# An ENUM's value is also a number, ZEROFILL shows in a text, and MariaDB's INET6 and UUID are numbers.
_MORE_THAN_TEXT: Final = int(FieldFlag.ENUM | FieldFlag.SET | FieldFlag.UNSIGNED)
_CHARACTER_BYTES: Final = {"utf8mb4": 4, "utf8mb3": 3}
# Servers take statements of at least 16 MB, MariaDB's default.
_TEXT_BYTES_MAX: Final = 15 << 20
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Warnings about utf8mb3 and its collations, which are deprecated.
_OWN_WARNINGS: Final = frozenset({b"1287", b"3778", b"4079"})
# Keeps MySQL from merging a derived table into its query, in which GROUP BY would read an alias instead of the column that it hides.
_AS_A_TABLE: Final = b" LIMIT 18446744073709551615"
_CHAR_MAX: Final = 255
_VARCHAR_MAX: Final = 16383
_HEX: Final = " CHARACTER SET ascii"


def json_table(
    columns: Iterable[tuple[str, str]],
    rows: Iterable[bytes],
    name: str,
    charset: str = "utf8mb4",
) -> bytes:
    """Return rows as a table in a FROM clause. Raises MergeTooLarge if the text is longer than servers take.

    columns: the names and types, in the order of the values.
    rows: JSON arrays in the character set *charset*.
    """
    text = "2c".join(row.hex() for row in rows)
    if len(text) > _TEXT_BYTES_MAX:
        raise MergeTooLarge(_TEXT_BYTES_MAX // 2)
    typed = ", ".join(
        f"{quote_identifier(column)} {kind} PATH '$[{index}]'"
        for index, (column, kind) in enumerate(columns)
    )
    return b"JSON_TABLE(CONVERT(_%b x'5b%b5d' USING utf8mb4), '$[*]' COLUMNS (%b)) AS %b" % (
        charset.encode(),
        text.encode(),
        typed.encode("utf-8", "surrogateescape"),
        quoted(name),
    )


def of_the_client(rows: Sequence[bytes]) -> list[bytes]:
    """Return rows of SHOW WARNINGS without those about the types of a stage itself."""
    return [row for row in rows if parse_text_row(row)[1] not in _OWN_WARNINGS]


def is_text(column: ColumnDefinition) -> bool:
    """Return whether values of *column* compare by a collation."""
    return column.type in STRING_TYPES and column.charset != BINARY_CHARSET


class Stage:
    """Columns as a server describes them, and rows of them as a SELECT.

    collations: those of the columns, "" for columns without one.

    Raises Unsupported if the texts of a column do not show its whole values.
    """

    def __init__(self, columns: Sequence[ColumnDefinition], collations: Sequence[str]) -> None:
        self._columns = columns
        self._types = [
            (column.name, _type(column, collation))
            for column, collation in zip(columns, collations, strict=True)
        ]
        charsets = {CHARSETS[column.charset][0] for column in columns if is_text(column)} - {
            "ascii"
        }
        if len(charsets) > 1:
            raise Unsupported(
                "going on with texts of several character sets over several shards"
            )
        self._charset = next(iter(charsets), "utf8mb4")
        # Texts that came in another character set than their column's, which may lack some of its characters.
        self._converted = [
            is_text(column)
            and CHARSETS[column.charset][0] not in ("utf8mb4", collation.partition("_")[0])
            for column, collation in zip(columns, collations, strict=True)
        ]

    def select(self, rows: Sequence[bytes]) -> bytes:
        """Return the SELECT that returns *rows*, payloads of the text protocol. Raises Unsupported."""
        columns = list(zip(self._columns, self._types, strict=True))
        items = b", ".join(_item(column, kind) for column, (_, kind) in columns)
        # A character here is a byte of the texts' own character set, in which JSON's signs are those of ASCII.
        values = (
            _ENCODE([*map(_value, self._columns, self._converted, parse_text_row(row))]).encode(
                "latin-1"
            )
            for row in rows
        )
        table = json_table(self._types, values, "streamfrom", self._charset)
        return b"SELECT %b FROM %b" % (items, table)


def _type(column: ColumnDefinition, collation: str) -> str:
    kind, decimals = column.type, column.decimals
    unsigned = " UNSIGNED" if column.flags & FieldFlag.UNSIGNED else ""
    is_padded = column.flags & FieldFlag.ZEROFILL and kind != FieldType.YEAR
    found: str | None = None
    if kind not in STRING_TYPES:
        digits = min(column.length - bool(decimals) - (not unsigned), 65)
        form = _TYPES.get(kind, "")
        found = form.format(unsigned=unsigned, digits=digits, decimals=decimals)
    elif not column.flags & _MORE_THAN_TEXT:
        found = _hex(column) if column.charset == BINARY_CHARSET else _text(column, collation)
    if not found or is_padded or loses_digits(column):
        raise Unsupported(f"going on with '{column.name}' over several shards")
    return found


def _hex(column: ColumnDefinition) -> str:
    """Return the type of bytes in hexadecimal. Over a BLOB and a text, DISTINCT of both servers keeps equal values twice."""
    is_short = column.type != FieldType.BLOB and 2 * column.length <= _VARCHAR_MAX
    return (f"VARCHAR({2 * column.length})" if is_short else "MEDIUMTEXT") + _HEX


def _text(column: ColumnDefinition, collation: str) -> str | None:
    if column.charset not in CHARSETS or not collation:
        return None
    charset, _ = CHARSETS[column.charset]
    length = column.length // _CHARACTER_BYTES.get(charset, 1)
    kind = "MEDIUMTEXT"
    if column.type == FieldType.STRING and length <= _CHAR_MAX:
        kind = f"CHAR({length})"
    elif column.type in (FieldType.STRING, FieldType.VAR_STRING) and length <= _VARCHAR_MAX:
        kind = f"VARCHAR({length})"
    return f"{kind} CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}"


def _item(column: ColumnDefinition, kind: str) -> bytes:
    name = quote_identifier(column.name)
    if column.type == FieldType.NULL:
        name = f"NULL AS {name}"
    elif kind.endswith(_HEX):
        name = f"UNHEX({name}) AS {name}"
    return name.encode("utf-8", "surrogateescape")


def _value(column: ColumnDefinition, is_converted: bool, text: bytes | None) -> str | None:  # noqa: FBT001
    if text is None:
        return None
    if is_converted and b"?" in text:
        raise Unsupported(
            f"going on with a '?' in the column '{column.name}' over several shards, which may be a"
            " character that the session's character set lacks; SET NAMES utf8mb4"
        )
    _check_text("going on with", column, text)
    if column.type in STRING_TYPES and column.charset == BINARY_CHARSET:
        return text.hex()
    return text.decode("latin-1")


def _check_text(doing: str, column: ColumnDefinition, text: bytes) -> None:
    """Raise Unsupported for a text that may be another value where it is read."""
    if column.type in _DATES and (text.startswith(b"0000-") or b"-00" in text[:10]):
        # Under NO_ZERO_DATE they are NULL, or an error.
        raise Unsupported(f"{doing} a date of zeros over several shards")


_MOMENTS: Final = {
    Sort.DATE: b"DATE'%b'",
    Sort.DATETIME: b"TIMESTAMP'%b'",
    Sort.TIME: b"TIME'%b'",
}


def values_row(
    columns: Sequence[ColumnDefinition],
    row: Sequence[bytes | None],
    *,
    backslash_escapes: bool,
    is_summed: bool,
) -> bytes:
    """Return `(1, 'a')`.

    backslash_escapes: False under NO_BACKSLASH_ESCAPES.
    is_summed: the rows are groups of several shards, so the sum of a DOUBLE depends on their order.

    Raises Unsupported if a column's texts do not show its whole values.
    """
    values = []
    for column, text in zip(columns, row, strict=True):
        sort = sort_of(column)
        if (
            (sort is None and column.type != FieldType.NULL)
            or loses_digits(column)
            # In the hour in which clocks are set back, its text means two moments.
            or column.type == FieldType.TIMESTAMP
            or (is_summed and sort is Sort.DOUBLE)
        ):
            raise Unsupported(
                f"INSERT … SELECT of the column '{column.name}' over several shards, whose type has"
                " no exact text; CAST it as CHAR, DECIMAL or DATETIME"
            )
        if text is None:
            values.append(b"NULL")
            continue
        _check_text("INSERT … SELECT of", column, text)
        if sort is Sort.TEXT:
            parameter = Parameter(FieldType.VAR_STRING, False, text)  # noqa: FBT003
            values.append(literal_of(parameter, backslash_escapes=backslash_escapes))
        elif sort in _MOMENTS:
            values.append(_MOMENTS[sort] % text)
        elif sort is Sort.BYTES:
            values.append(b"x'%b'" % text.hex().encode())
        elif sort is Sort.DOUBLE and b"e" not in text:
            values.append(text + b"e0")
        elif sort is Sort.DECIMAL and b"." not in text:
            values.append(text + b".")
        else:
            values.append(text)
    return b"(" + b", ".join(values) + b")"


_NAMED: Final = b"SELECT * FROM (%b) AS `streamfrom`"
_WHOLE: Final = frozenset({Sort.INTEGER, Sort.UNSIGNED})


class AnsweredPart:
    """One part of a statement (of a UNION, a derived table, a body of WITH) and its rows, which become a `Stage` in its place.

    is_merged: its rows are merged groups of several shards.
    """

    def __init__(self, part: Statement, *, is_merged: bool) -> None:
        self._is_merged = is_merged
        self.empty = _NAMED % without_rows(part)  # the query whose definitions are the part's
        self.columns: Sequence[ColumnDefinition] = ()  # these definitions
        self._stage: Stage
        self.text = b""  # the SELECT in the part's place

    def described(
        self,
        columns: Sequence[ColumnDefinition],
        *,
        is_compared: bool,
        is_windowed: bool = False,
    ) -> None:
        """Take the part's columns. Raises Unsupported if these cannot be selected by name, or their texts do not show their whole values.

        is_compared: the statement uses how the values of the rows compare.
        is_windowed: a server may compute with a decimal before it has rounded it to its digits.
        """
        self.columns = columns
        _check_names(columns)
        for column in columns:
            is_sum = self._is_merged and sort_of(column) is Sort.DOUBLE
            is_instant = column.type == FieldType.TIMESTAMP
            is_cut = is_windowed and sort_of(column) is Sort.DECIMAL
            # A sum of floats depends on their order, and a TIMESTAMP's text is two moments when clocks are set back.
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
        """Take the collations of the columns. Raises Unsupported."""
        self._stage = Stage(self.columns, [(each or b"").decode() for each in collations])
        self.give(())

    def give(self, rows: Sequence[bytes]) -> None:
        """Take the part's rows; from now on `text` returns them. Raises Unsupported."""
        self.text = self._stage.select(rows)


class Combination:
    """A statement with its parts; given parts are named by their numbers."""

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
        # UNION ALL concatenates rows; everything else compares their values.
        self.is_compared = bool(statement.shape.uses & Uses.ORDER) or not (
            parts.operators and {"UNION ALL"}.issuperset(parts.operators)
        )

    def described(self) -> bytes:
        """Return the query whose definitions are the answer's."""
        return without_rows(self._statement)

    def learn(self, columns: Sequence[ColumnDefinition]) -> None:
        """Take the answer's columns. Raises Unsupported for names that hide one another."""
        self._columns = columns
        if self._parts.operators:
            _check_names(columns)

    def check_parts(self) -> None:
        """Raise Unsupported if values of a UNION's parts are read differently from values of the whole."""
        for part in self._given.values() if self._parts.operators else ():
            for own, common in zip(part.columns, self._columns, strict=False):
                if not (_read_alike(own, common) or own.type == FieldType.NULL):
                    raise Unsupported(
                        f"a UNION of other types in '{common.name}' over several shards"
                    )

    def sql(self) -> bytes:
        """Return the statement with its given parts in place."""
        kept = b"" if self._parts.operators else _AS_A_TABLE
        texts = {number: part.text + kept for number, part in self._given.items()}
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
    # A literal 1 is a BIGINT or a DECIMAL depending on how it is written; its comparisons are the
    # same.
    return _is_whole(one) and _is_whole(other)


def _is_whole(column: ColumnDefinition) -> bool:
    sort = sort_of(column)
    return sort in _WHOLE or (sort is Sort.DECIMAL and not column.decimals)


def _check_names(definitions: Sequence[ColumnDefinition]) -> None:
    """Raise Unsupported for names that a derived table must not have."""
    names = [column.name.lower() for column in definitions]
    if len(set(names)) < len(names) or not all(
        name and name == name.rstrip() for name in names
    ):
        raise Unsupported("two columns of one name in a part of this over several shards")
