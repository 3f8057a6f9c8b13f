"""COUNT, SUM, MIN, MAX, AVG and BIT_AND, BIT_OR, BIT_XOR of a group, from the parts that the shards computed of it.

Each accumulator reads its own columns of a shard's row, beginning at `column`. Its results have
the type, scale and NULL rule that one server gives them:
SUM of integers and decimals is exact, AVG is rounded half away from zero at the scale that the
server announces, a group without values is NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.proxy.merge.comparison import Component, double_text, scaled, unscaled
from streamfrom.proxy.wire.constants import FieldType


if TYPE_CHECKING:
    from streamfrom.proxy.wire.resultset import ColumnDefinition


Row = list[bytes | None]

# Decimals are kept in words of so many digits.
_WORD_DIGITS = 9
# How two parts of a value become one, and the value of a group without any.
_FOLDS: Final[dict[str, tuple[Callable[[int, int], int], int]]] = {
    "COUNT": (operator.add, 0),
    "BIT_AND": (operator.and_, (1 << 64) - 1),
    "BIT_OR": (operator.or_, 0),
    "BIT_XOR": (operator.xor, 0),
}
_FLOATS = frozenset({int(FieldType.DOUBLE), int(FieldType.FLOAT)})


class Nothing:
    """A value that follows from others once the group is complete."""

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take nothing."""

    def finish(self) -> None:
        """Return NULL."""


class Accumulator(Protocol):
    """One output value of the group under way."""

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part.

        *is_new*: its values of this one's DISTINCT arguments were not met in this group before,
        and none of them is NULL.
        """

    def finish(self) -> bytes | None:
        """Return the group's value and begin the next group."""


class First:
    """A value that all rows of the group share."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._value: bytes | None = None
        self._is_set = False

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        if not self._is_set:
            self._is_set = True
            self._value = row[self._column]

    def finish(self) -> bytes | None:
        """Return the group's value."""
        self._is_set = False
        return self._value


class Folded:
    """COUNT(*), COUNT(x), BIT_AND, BIT_OR and BIT_XOR: of no values, the one that changes nothing."""

    def __init__(self, column: int, function: str) -> None:
        self._column = column
        self._combine, self._nothing = _FOLDS[function]
        self._value = self._nothing

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        text = row[self._column]
        if text is not None:
            self._value = self._combine(self._value, int(text))

    def finish(self) -> bytes:
        """Return the group's value."""
        value, self._value = self._value, self._nothing
        return b"%d" % value


class CountDistinct:
    """COUNT(DISTINCT x, y): how many sets of values were new in the group."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        self._count += is_new

    def finish(self) -> bytes:
        """Return the group's value."""
        count, self._count = self._count, 0
        return b"%d" % count


class Sum:
    """SUM(x) and, of values met for the first time only, SUM(DISTINCT x)."""

    def __init__(
        self, column: int, definition: ColumnDefinition, *, distinct: bool = False
    ) -> None:
        self._column = column
        self.decimals = definition.decimals
        # Decimals as integers of one scale: exact, and faster to add than Decimal.
        self._parse: Callable[[bytes], int | float] = (
            float if definition.type in _FLOATS else scaled
        )
        self._distinct = distinct
        self._sum: int | float | None = None

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        text = row[self._column]
        if text is not None and (is_new or not self._distinct):
            value = self._parse(text)
            self._sum = value if self._sum is None else self._sum + value

    def total(self) -> int | float | None:
        """Return the sum, scaled by `decimals` unless it is a float, and begin the next group."""
        total, self._sum = self._sum, None
        return total

    def finish(self) -> bytes | None:
        """Return the group's value."""
        total = self.total()
        if total is None:
            return None
        if isinstance(total, float):
            return double_text(total, self.decimals)
        return unscaled(total, self.decimals)


class Average:
    """AVG(x), from SUM(x) and the number of values."""

    def __init__(self, total: Sum, count: Folded | CountDistinct, decimals: int) -> None:
        self._total = total
        self._count = count
        self._decimals = decimals
        # Sum and number of the group that is finished.
        self._finished: tuple[int | float | None, int] = None, 0

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        self._total.add(row, is_new=is_new)
        self._count.add(row, is_new=is_new)

    def finish(self) -> bytes | None:
        """Return the group's value."""
        total, count = self._finished = self._total.total(), int(self._count.finish())
        if total is None or not count:
            return None
        if isinstance(total, float):
            return double_text(total / count, self._decimals)
        shift = self._decimals - self._total.decimals
        count *= 10 ** max(-shift, 0)
        # Half away from zero, as servers round, in integers: (2a + b) // 2b rounds a / b.
        quotient = (2 * abs(total) * 10 ** max(shift, 0) + count) // (2 * count)
        return unscaled(-quotient if total < 0 else quotient, self._decimals)

    def cut(self) -> bytes | None:
        """Return what `finish` returned last with the digits that servers compute with.

        They divide to the end of the nine digits that the shown ones reach into
        (my_decimal_div, https://dev.mysql.com/doc/refman/8.4/en/arithmetic-functions.html).
        """
        total, count = self._finished
        if total is None or not count:
            return None
        if isinstance(total, float):
            return double_text(total / count)
        places = -(-self._total.decimals // _WORD_DIGITS) * _WORD_DIGITS
        more = self._decimals - self._total.decimals - (places - self._total.decimals)
        places += -(-max(more, 0) // _WORD_DIGITS) * _WORD_DIGITS
        quotient = abs(total) * 10 ** (places - self._total.decimals) // count
        return unscaled(-quotient if total < 0 else quotient, places)

    def exact(self) -> Fraction | None:
        """Return what `finish` returned last, before it was rounded; None for NULL."""
        total, count = self._finished
        if total is None or not count:
            return None
        if isinstance(total, float):
            return Fraction(total / count)
        return Fraction(total, count * 10**self._total.decimals)


class Extreme:
    """MIN(x) or MAX(x): the shards' own, compared by the key in the column *key_column*."""

    def __init__(
        self,
        column: int,
        key_column: int,
        decode: Callable[[bytes | None], Component],
        *,
        largest: bool,
    ) -> None:
        self._column = column
        self._key_column = key_column
        self._decode = decode
        self._largest = largest
        self._value: bytes | None = None
        self._key: Component | None = None
        self.key: Component = (0,)

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        value = row[self._column]
        if value is None:
            return
        key = self._decode(row[self._key_column])
        if self._key is None or (key > self._key if self._largest else key < self._key):
            self._key = key
            self._value = value

    def finish(self) -> bytes | None:
        """Return the group's value; `key` is what it compares by."""
        value, self._value = self._value, None
        # No value at all is NULL, which is (0,) among keys.
        self.key, self._key = self._key or (0,), None
        return value
