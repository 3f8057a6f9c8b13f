"""The shards' parts of groups, put together group by group.

Only an order that is not the groups' own needs all of them in memory; `merge_memory` bounds
that, and with a LIMIT only the groups that it lets through are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge.aggregates import Accumulator, Average, Row
from streamfrom.proxy.merge.comparison import Comparison, Component
from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge, SortKey
from streamfrom.proxy.wire.resultset import parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.aggregates import Distinct


# What a kept group costs besides its row.
KEPT_BYTES: Final = 300
# Groups beyond a LIMIT that gather before they are sorted and cut.
_SLACK_GROUPS: Final = 1000
# Groups that are sorted at once, and that leave at once: 1 ms each. A sort of 450,000 in one go
# held all other clients up for 0.5 s.
_SORTED_AT_ONCE: Final = 1024
BITE_GROUPS: Final = 250

# What MySQL divides an average out to, at least.
_AVERAGE_DIGITS: Final = 9

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBERS: Final = frozenset({Comparison.NUMBER, Comparison.DOUBLE, Comparison.FLOAT})


class Test:
    """One condition of HAVING on the output *place*: `value operator literal` or IS [NOT] NULL.

    MariaDB rounds an AVG before it compares; MySQL compares nine digits or more, cut off. Where the
    two differ, the statement is refused.
    """

    __slots__ = ("_check", "_holds", "place")

    def __init__(
        self, place: int, comparison: Comparison, symbol: str, literal: int | str | None
    ) -> None:
        self.place = place
        self._check: Callable[[bytes | None], bool]
        self._holds: Callable[[Fraction], bool] | None = None
        if literal is None:
            wants_null = symbol == "IS NULL"
            self._check = lambda value: (value is None) is wants_null
            return
        if comparison not in _NUMBERS:
            raise Unsupported("HAVING that compares no numbers over several shards")
        holds = _OPERATORS[symbol]
        is_float = isinstance(literal, str) and "e" in literal.lower()
        if is_float or comparison is not Comparison.NUMBER:
            limit = float(literal)
            self._check = lambda value: value is not None and holds(float(value), limit)
            self._holds = lambda value: holds(float(value), limit)
        else:
            exact = Decimal(literal)
            fraction = Fraction(exact)
            self._holds = lambda value: holds(value, fraction)
            self._check = lambda value: (
                value is not None and holds(Decimal(value.decode()), exact)
            )

    def passes(
        self, values: Sequence[bytes | None], accumulators: Sequence[Accumulator] = ()
    ) -> bool:
        """Say whether a group stays whose values *accumulators* have just given.

        Raises:
            Unsupported: servers do not agree.
        """
        answer = self._check(values[self.place])
        if accumulators and self._holds is not None:
            accumulator = accumulators[self.place]
            exact = accumulator.exact() if isinstance(accumulator, Average) else None
            if exact is not None:
                cut = Fraction(int(exact * 10**_AVERAGE_DIGITS), 10**_AVERAGE_DIGITS)
                if not (answer is self._holds(exact) is self._holds(cut)):
                    raise Unsupported(
                        "HAVING an AVG that is so near to the number over several shards"
                    )
        return answer


class GroupSort(NamedTuple):
    """One component of the final order.

    of: returns it for a group's key and values.
    is_late: the value is computed after the merge.
    """

    of: Callable[[SortKey, Row], Component]
    descending: bool
    is_late: bool = False


class WaitingGroup(NamedTuple):
    """A group that cannot leave yet, and what it is sorted by."""

    row: bytes
    order: tuple[Component, ...]


class GroupsMerge:
    """The groups of the shards as one answer.

    window: what LIMIT lets out; None where a value that tests or sorts groups is computed later:
        all groups are kept for `take_kept` then.
    distinct: the groups' width, and the lists of DISTINCT arguments.
    sorts: the final order, its last component first; empty where that is the groups' own.
    cut: set where a shard computes with the rows: they then have all values, followed by the
        averages at these places with more digits than are shown.

    Attributes:
        waiting_bytes: the size of each shard's rows that wait.
    """

    def __init__(
        self,
        parts: OrderedMerge,
        window: LimitWindow | None,
        accumulators: Sequence[Accumulator],
        distinct: Distinct,
        *,
        width: int,
        tests: Sequence[Test],
        sorts: Sequence[GroupSort],
        memory_bytes: int,
        cut: Sequence[int] | None = None,
    ) -> None:
        self._parts = parts
        self._is_late = window is None
        self._window = window or LimitWindow()
        self._accumulators = accumulators
        self._distinct = distinct
        self._lists = [distinct.list_of(place) for place in range(len(accumulators))]
        self._width = width
        self._tests = tests
        self._sorts = sorts
        self._kept: list[WaitingGroup] = []
        self._kept_bytes = 0
        self._memory_bytes = memory_bytes
        self._cut = cut
        self._key: SortKey | None = None
        self._ended = False
        # The groups on their way through a sort: at the end, or to be cut to what LIMIT lets out.
        self._sorting: Iterator[list[WaitingGroup]] | None = None
        self._is_cutting = False
        self.waiting_bytes = parts.waiting_bytes
        self.feed = parts.add_rows
        self.end = parts.end_source

    # --- merging ----------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Nothing of what may still come is needed."""
        return self._ended or (self._window.is_shut and not self._sorts)

    @property
    def has_more(self) -> bool:
        """Another `next_rows` goes on without further news."""
        return self._sorting is not None or self._parts.has_more

    def next_rows(self) -> list[bytes]:
        """Return rows that are sure, for the client, some at a time.

        Raises:
            MergeTooLarge: more groups must be sorted, or values remembered, than there may be.
        """
        if self.is_complete:
            return []
        if self._sorting is not None:
            return self._take_sorted(self._sorting)
        rows: list[bytes] = []
        width = self._distinct.width
        accumulators = list(zip(self._accumulators, self._lists, strict=True))
        for key, payload in zip(*self._parts.next_rows(), strict=True):
            before = self._key
            is_same = before is not None and before[:width] == key[:width]
            # The merge gives rows in the order of the groups, so another key says that the last
            # group has had all its rows, from all shards.
            if before is not None and not is_same:
                self._finish(before, rows)
            news = self._distinct.news(key, before if is_same else None)
            row = parse_text_row(payload)
            for accumulator, number in accumulators:
                accumulator.add(row, is_new=news[number])
            self._key = key
        is_complete = self._parts.is_complete
        if is_complete and (self._key is not None or not width):
            # Without GROUP BY no rows are one group too.
            self._finish(self._key or (), rows)
        # With a LIMIT, memory holds twice its reach and some slack before a sort cuts it back:
        # a sort for each group would cost far more than the groups that are kept too long.
        reach = self._window.reach
        has_slack = reach is not None and len(self._kept) > 2 * reach + _SLACK_GROUPS
        if self._kept_bytes > self._memory_bytes and not has_slack:
            raise MergeTooLarge(self._memory_bytes)
        if is_complete and (self._is_late or not self._sorts):
            self._ended = True
        elif is_complete or has_slack:
            self._is_cutting = not is_complete
            return self._take_sorted(self._sort())
        return self._window.cut(rows)

    def _sort(self) -> Iterator[list[WaitingGroup]]:
        directions = [sort.descending for sort in self._sorts]
        kept, self._kept, self._kept_bytes = self._kept, [], 0
        self._sorting = sorted_in_bites(kept, directions)
        return self._sorting

    def _take_sorted(self, sorting: Iterator[list[WaitingGroup]]) -> list[bytes]:
        """Go on with a sort, by one bite."""
        bite = next(sorting, None)
        if self._is_cutting:
            reach = self._window.reach
            if bite is not None:
                bite = bite[: (reach or 0) - len(self._kept)]
                self._kept += bite
                self._kept_bytes += sum(len(kept.row) + KEPT_BYTES for kept in bite)
            if bite is None or len(self._kept) == reach:
                self._sorting, self._is_cutting = None, False
                if self._kept_bytes > self._memory_bytes:
                    raise MergeTooLarge(self._memory_bytes)
            return []
        rows = [] if bite is None else self._window.cut([kept.row for kept in bite])
        if bite is None or self._window.is_shut:
            self._sorting, self._ended = None, True
        return rows

    def take_kept(self) -> list[WaitingGroup]:
        """Return all groups, where what sorts or tests them is to be computed yet."""
        kept, self._kept = self._kept, []
        return kept

    def _finish(self, key: SortKey, rows: list[bytes]) -> None:
        values = [accumulator.finish() for accumulator in self._accumulators]
        if not all(test.passes(values, self._accumulators) for test in self._tests):
            return
        if self._cut is None:
            values_out = values[: self._width]
        else:
            # A shard goes on computing with these rows: it needs every value, shown or not.
            values_out = [*values, *(self._average(place) for place in self._cut)]
        row = text_row(values_out)
        if not (self._sorts or self._is_late):
            rows.append(row)
            return
        self._kept.append(
            WaitingGroup(
                row,
                tuple((0,) if sort.is_late else sort.of(key, values) for sort in self._sorts),
            )
        )
        self._kept_bytes += len(row) + KEPT_BYTES

    def _average(self, place: int) -> bytes | None:
        accumulator = self._accumulators[place]
        assert isinstance(accumulator, Average)
        return accumulator.cut()


def sorted_in_bites(
    kept: list[WaitingGroup], directions: Sequence[bool]
) -> Iterator[list[WaitingGroup]]:
    """Give *kept* in order, in bites of bounded work; empty ones while no place is sure.

    The last component of their order is sorted by first. *directions*: is it descending.
    """
    # One stable sort for each component, the least important first, as a single key could not
    # mix ascending with descending components of any type.
    for component, down in enumerate(directions):

        def component_of(each: WaitingGroup, at: int = component) -> Component:
            return each.order[at]

        runs = []
        for start in range(0, len(kept), _SORTED_AT_ONCE):
            runs.append(
                sorted(kept[start : start + _SORTED_AT_ONCE], key=component_of, reverse=down)
            )
            yield []
        # Equal ones stay in the order of the runs, so sorting by one component after the other
        # sorts by all of them.
        merged = merge(*runs, key=component_of, reverse=down)
        kept = []
        while bite := list(islice(merged, BITE_GROUPS)):
            kept += bite
            yield []
    for start in range(0, len(kept), BITE_GROUPS):
        yield kept[start : start + BITE_GROUPS]
