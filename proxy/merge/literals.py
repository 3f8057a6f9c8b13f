"""Values of the text protocol as literals of their own type, for a server to compute with."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import INTEGER_TYPES, NOT_FIXED, STRING_TYPES
from streamfrom.proxy.wire.constants import BINARY_CHARSET, CHARSETS, FieldFlag, FieldType
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.proxy.wire.resultset import ColumnDefinition


class Sort(Enum):
    """What values of a column are, whatever room it has for them."""

    INTEGER = auto()
    UNSIGNED = auto()
    DECIMAL = auto()
    DOUBLE = auto()
    DATE = auto()
    DATETIME = auto()  # TIMESTAMP too: it has no literals, and the same is computed of it
    TIME = auto()
    TEXT = auto()
    BYTES = auto()


_BY_TYPE: Final[dict[int, Sort]] = {
    **dict.fromkeys(INTEGER_TYPES, Sort.INTEGER),
    **dict.fromkeys(STRING_TYPES, Sort.TEXT),
    FieldType.NEWDECIMAL: Sort.DECIMAL,
    FieldType.DOUBLE: Sort.DOUBLE,
    FieldType.DATE: Sort.DATE,
    FieldType.DATETIME: Sort.DATETIME,
    FieldType.TIMESTAMP: Sort.DATETIME,
    FieldType.TIME: Sort.TIME,
}
# ZEROFILL shows in a text that is made of a number.
_NO_VALUES: Final = int(FieldFlag.ENUM | FieldFlag.SET | FieldFlag.ZEROFILL)
_SCALED: Final = frozenset({Sort.DECIMAL, Sort.DOUBLE, Sort.DATETIME, Sort.TIME})


def sort_of(column: ColumnDefinition) -> Sort | None:
    """Return what the values of *column* are; None where no literal is one."""
    found = _BY_TYPE.get(column.type)
    if column.flags & _NO_VALUES:
        return None
    if found is Sort.TEXT and column.charset == BINARY_CHARSET:
        return Sort.BYTES
    if found is Sort.INTEGER and column.flags & FieldFlag.UNSIGNED:
        return Sort.UNSIGNED
    return found


def are_alike(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    """Whether values of both columns are the same things, with the same digits."""
    sort = sort_of(one)
    return (
        sort is sort_of(other)
        and one.charset == other.charset
        and (sort not in _SCALED or one.decimals == other.decimals)
        and (sort is not None or one.type == other.type)
    )


def is_same(column: ColumnDefinition, sent: bytes | None, came: bytes | None) -> bool:
    """Whether a value of *column* that was sent as a `literal` is the one that came back."""
    if sent == came or sent is None or came is None:
        return sent == came
    return sort_of(column) is Sort.DOUBLE and float(sent) == float(came)


def check_times(columns: Sequence[ColumnDefinition], values: Sequence[bytes | None]) -> None:
    """Raise Unsupported for a negative TIME, of which a number is to be made.

    MariaDB 10.11 forgets the sign when it makes a DOUBLE of the column of a derived table.
    """
    for column, value in zip(columns, values, strict=False):
        if sort_of(column) is Sort.TIME and (value or b"").startswith(b"-"):
            raise Unsupported("computing with a negative time over several shards")


def literal(column: ColumnDefinition, text: bytes | None) -> bytes:
    """Return a value of *column* as a literal. Raises Unsupported where there is none."""
    if text is None:
        # Next to a bare NULL, MariaDB forgets that a number has no sign.
        return b"CAST(NULL AS UNSIGNED)" if sort_of(column) is Sort.UNSIGNED else b"NULL"
    match sort_of(column):
        case Sort.INTEGER:
            # Of a number with a sign in front servers know less: -9223372036854775808 is a decimal.
            return b"CAST('%b' AS SIGNED)" % text
        case Sort.UNSIGNED:
            return b"CAST('%b' AS UNSIGNED)" % text
        case Sort.DECIMAL:
            return text if b"." in text else text + b"."
        case Sort.DOUBLE if column.decimals < NOT_FIXED:
            return text  # as a float it would not keep the column's decimals
        case Sort.DOUBLE:
            return text if b"e" in text else text + b"e0"
        case Sort.DATE | Sort.DATETIME as sort:
            if text.startswith(b"0000-") or b"-00" in text:
                raise Unsupported("computing with a date of zeros over several shards")
            return (b"DATE'%b'" if sort is Sort.DATE else b"TIMESTAMP'%b'") % text
        case Sort.TIME:
            return b"TIME'%b'" % text
        case Sort.BYTES:
            return b"x'%b'" % text.hex().encode()
        case Sort.TEXT if column.charset in CHARSETS:
            charset, _ = CHARSETS[column.charset]
            return b"_%b x'%b'" % (charset.encode(), text.hex().encode())
    raise Unsupported(f"computing with '{column.name}' over several shards")
