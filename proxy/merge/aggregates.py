"""COUNT, SUM, MIN, MAX and AVG of a group, from the parts that the shards computed of it.

Each is a `GroupFold` over the shards' rows, which reads its own columns, from *column* on. Its results have the type, scale and NULL
rule that one server gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

_FLOATS: Final = frozenset({int(FieldType.DOUBLE), int(FieldType.FLOAT)})


class GroupFold(NamedTuple):
    """How one output value of a group is made of the shards' parts."""

    start: Any  # the state of a group without a part
    # Returns the state that follows on one; takes a shard's part, and whether its values of the DISTINCT arguments were not met in
    # this group before, and none of them is NULL.
    step: Callable[[Any, Row, bool], Any]
    end: Callable[[Any], bytes | None]  # returns the group's value


# A value that follows from others once the group is complete.
NOTHING: Final = GroupFold(None, lambda *_: None, lambda _: None)
# COUNT(DISTINCT x, y): how many sets of values were new in the group.
COUNT_DISTINCT: Final = GroupFold(0, lambda count, _, is_new: count + is_new, b"%d".__mod__)


def first(column: int) -> GroupFold:
    """Return the fold of a value that all rows of the group share."""
    return GroupFold(
        (),
        lambda found, row, _: found or (row[column],),
        lambda found: found[0] if found else None,
    )


def count(column: int) -> GroupFold:
    """Return the fold of COUNT(*) and COUNT(x)."""
    return GroupFold(0, lambda count, row, _: count + int(row[column] or 0), b"%d".__mod__)


def total(column: int, definition: ColumnDefinition) -> GroupFold:
    """Return the fold of SUM(x): exact but for floats, and NULL of no values."""
    decimals = definition.decimals
    # Decimals as integers of one scale: exact, and faster to add than Decimal.
    parse: Callable[[bytes], int | float] = float if definition.type in _FLOATS else scaled

    def step(found: int | float | None, row: Row, _: bool) -> int | float | None:  # noqa: FBT001
        text = row[column]
        return found if text is None else parse(text) + (found or 0)

    def end(found: int | float | None) -> bytes | None:
        if isinstance(found, float):
            return double_text(found, decimals)
        return None if found is None else unscaled(found, decimals)

    return GroupFold(None, step, end)


def average(column: int, definition: ColumnDefinition, decimals: int) -> GroupFold:
    """Return the fold of AVG(x), from SUM(x) and the number of values; rounded half away from zero, as servers round."""
    add, more = total(column, definition).step, count(column + 1).step

    def end(found: tuple[int | float | None, int]) -> bytes | None:
        total, count = found
        if total is None or not count:
            return None
        if isinstance(total, float):
            return double_text(total / count, decimals)
        shift = decimals - definition.decimals
        count *= 10 ** max(-shift, 0)
        # In integers: (2a + b) // 2b rounds a / b half away from zero.
        quotient = (2 * abs(total) * 10 ** max(shift, 0) + count) // (2 * count)
        return unscaled(-quotient if total < 0 else quotient, decimals)

    return GroupFold(
        (None, 0),
        lambda found, row, is_new: (add(found[0], row, is_new), more(found[1], row, is_new)),
        end,
    )


def extreme(
    column: int,
    key_column: int,
    decode: Callable[[bytes | None], Component],
    *,
    largest: bool,
) -> GroupFold:
    """Return the fold of MIN(x) or MAX(x): the shards' own, compared by the key in the column *key_column*.

    Its states are None, or the key as it compares, the value, and the key as it came.
    """

    def step(best: Any, row: Row, _: bool) -> Any:  # noqa: FBT001
        value, text = row[column], row[key_column]
        if value is None:
            return best
        key = decode(text)
        is_better = best is None or (key > best[0] if largest else key < best[0])
        return (key, value, text) if is_better else best

    return GroupFold(None, step, lambda best: best and best[1])
