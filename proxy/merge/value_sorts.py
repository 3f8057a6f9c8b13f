"""What values of the text protocol are."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import INTEGER_TYPES, STRING_TYPES
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType


if TYPE_CHECKING:
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
    """Return what the values of *column* are; None where its text does not show it."""
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
