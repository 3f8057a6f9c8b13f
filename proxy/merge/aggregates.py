"""COUNT, SUM, MIN, MAX and AVG of a group, from the parts that the shards computed of it.

Each accumulator reads its own columns of a shard's row, beginning at `column`. Its results have the type, scale and NULL rule
that one server gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from streamfrom.proxy.merge.comparison import (
    Component,
    double_text,
    scaled,
    unscaled,
)
from streamfrom.proxy.wire.constants import FieldType


if TYPE_CHECKING:
    from streamfrom.proxy.wire.resultset import ColumnDefinition


Row = list[bytes | None]

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

        *is_new*: its values of the DISTINCT arguments were not met in this group before, and none
        of them is NULL.
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


class Count:
    """COUNT(*) and COUNT(x)."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._count = 0

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        self._count += int(row[self._column] or 0)

    def finish(self) -> bytes:
        """Return the group's value."""
        count, self._count = self._count, 0
        return b"%d" % count


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
    """SUM(x): exact but for floats, and NULL of no values."""

    def __init__(self, column: int, definition: ColumnDefinition) -> None:
        self._column = column
        self.decimals = definition.decimals
        # Decimals as integers of one scale: exact, and faster to add than Decimal.
        self._parse: Callable[[bytes], int | float] = (
            float if definition.type in _FLOATS else scaled
        )
        self._sum: int | float | None = None

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        text = row[self._column]
        if text is not None:
            self._sum = self._parse(text) + (self._sum or 0)

    def total(self) -> int | float | None:
        """Return the sum, scaled by `decimals` unless it is a float, and begin the next group."""
        total, self._sum = self._sum, None
        return total

    def finish(self) -> bytes | None:
        """Return the group's value."""
        total = self.total()
        if isinstance(total, float):
            return double_text(total, self.decimals)
        return None if total is None else unscaled(total, self.decimals)


class Average:
    """AVG(x), from SUM(x) and the number of values; rounded half away from zero, as servers round."""

    def __init__(self, total: Sum, count: Count, decimals: int) -> None:
        self._total = total
        self._count = count
        self._decimals = decimals

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        self._total.add(row, is_new=is_new)
        self._count.add(row, is_new=is_new)

    def finish(self) -> bytes | None:
        """Return the group's value."""
        total, count = self._total.total(), int(self._count.finish())
        if total is None or not count:
            return None
        if isinstance(total, float):
            return double_text(total / count, self._decimals)
        shift = self._decimals - self._total.decimals
        count *= 10 ** max(-shift, 0)
        # In integers: (2a + b) // 2b rounds a / b half away from zero.
        quotient = (2 * abs(total) * 10 ** max(shift, 0) + count) // (2 * count)
        return unscaled(-quotient if total < 0 else quotient, self._decimals)


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
        self._best: tuple[Component, bytes, bytes | None] | None = None
        # The key of the value that `finish` returned last, None for NULL.
        self.key: bytes | None = None

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's part."""
        value, text = row[self._column], row[self._key_column]
        if value is None:
            return
        key, best = self._decode(text), self._best
        if best is None or (key > best[0] if self._largest else key < best[0]):
            self._best = key, value, text

    def finish(self) -> bytes | None:
        """Return the group's value."""
        _, value, self.key = self._best or (None, None, None)
        self._best = None
        return value
