"""The shards' parts of groups, put together group by group.

Only an order that is not the groups' own needs all of them in memory, and so do values that a shard has still to compute:
the shards' connections are busy until all groups are merged. `merge_memory` bounds that. With a LIMIT only the groups that
it lets through are kept and computed, unless what is computed decides which these are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sortedcontainers import SortedList

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge.aggregates import Accumulator, Average, Distinct, Row
from streamfrom.proxy.merge.comparison import (
    Comparison,
    Component,
)
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.aggregate_expressions import Computation
    from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge, SortKey


# What a kept group costs besides its row.
_KEPT_BYTES: Final = 300
# Kept groups that leave at once.
_BITE_GROUPS: Final = 250
# What a shard is asked to compute at once.
_BATCH_GROUPS: Final = 500
_BATCH_BYTES: Final = 256 << 10

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
        """Say whether a group stays whose values *accumulators* have just given. Raises Unsupported if servers do not agree."""
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
    """One component of the final order, reversed where that is descending."""

    of: Callable[[SortKey, Row], Component]  # returns it for a group's key and values
    is_late: bool = False  # the value is computed after the merge


class KeptGroup(NamedTuple):
    """A group that cannot leave yet: what it is sorted by, how many came before it, its row."""

    order: tuple[Component, ...]
    number: int
    row: bytes


class KeptGroups:
    """Groups in their final order; equal ones stay in the order in which they came.

    Each finds its place as it comes: to sort 450,000 in one go would hold all other clients up for 0.5 s.

    reach: how many of them can be in the answer, None for all.
    """

    def __init__(self, reach: int | None, memory_bytes: int) -> None:
        self.reach = reach
        self._memory_bytes = memory_bytes
        self._groups: SortedList[KeptGroup] = SortedList()
        self._bytes = 0
        self._number = 0

    @property
    def is_full(self) -> bool:
        """Another group takes the place of one of these."""
        return len(self._groups) == self.reach

    def add(self, order: tuple[Component, ...], row: bytes) -> None:
        """Keep a group, and drop the one that is beyond the reach then. Raises MergeTooLarge."""
        self._number += 1
        self._groups.add(KeptGroup(order, self._number, row))
        self._bytes += len(row) + _KEPT_BYTES
        if self.reach is not None and len(self._groups) > self.reach:
            self._bytes -= len(self._groups.pop().row) + _KEPT_BYTES
        if self._bytes > self._memory_bytes:
            raise MergeTooLarge(self._memory_bytes)

    def bites(self) -> Iterator[list[KeptGroup]]:
        """Give the groups in their order, some at a time."""
        for start in range(0, len(self._groups), _BITE_GROUPS):
            yield self._groups[start : start + _BITE_GROUPS]


class ComputedGroups:
    """The merged groups of the shards, with values that are still to be computed.

    groups: what the merge has kept.
    width: the number of the answer's columns.
    tests: HAVING's conditions on computed values.
    order: the final order where a computed value is in it; else empty.
    in_order: takes the groups in that order.
    """

    def __init__(
        self,
        groups: KeptGroups,
        computation: Computation,
        window: LimitWindow,
        *,
        width: int,
        tests: Sequence[Test],
        order: Sequence[GroupSort],
        in_order: KeptGroups,
    ) -> None:
        self._groups = groups
        self._computation = computation
        self._window = window
        self._width = width
        self._tests = tests
        self._order = order
        self._in_order = in_order

    def row(self, values: Row, accumulators: Sequence[Accumulator]) -> bytes:
        """Return what is kept of a group: all values, and the averages with all their digits."""
        averages = [accumulators[place] for place in self._computation.averages]
        return text_row(
            [*values, *(each.cut() for each in averages if isinstance(each, Average))]
        )

    @property
    def is_late(self) -> bool:
        """A computed value decides which groups leave, so all of them are computed."""
        return bool(self._tests or self._order)

    def batches(self) -> Iterator[list[KeptGroup]]:
        """Give the groups in pieces of which each is one question, while any can be wanted."""
        groups = list(chain.from_iterable(self._groups.bites()))
        waiting = groups if self.is_late else self._window.cut(groups)
        start = 0
        while start < len(waiting) and not (self._window.is_shut and self.is_late):
            stop = start
            size = 0
            # Many groups in one question, as each is a round trip; few enough that its text
            # stays small.
            while stop < min(len(waiting), start + _BATCH_GROUPS) and size < _BATCH_BYTES:
                size += len(waiting[stop].row)
                stop += 1
            yield waiting[start:stop]
            start = stop

    def question(self, batch: Sequence[KeptGroup]) -> bytes:
        """Return what a shard is asked to compute for these groups."""
        return self._computation.question([parse_text_row(kept.row) for kept in batch])

    def answer(
        self,
        batch: Sequence[KeptGroup],
        columns: Sequence[ColumnDefinition],
        rows: Sequence[bytes],
    ) -> list[bytes]:
        """Take what a shard computed for *batch*; return the rows that can leave now. Raises Unsupported."""
        groups = [parse_text_row(kept.row) for kept in batch]
        found: list[bytes] = []
        for kept, values, computed in zip(
            batch, groups, self._computation.answer(groups, columns, rows), strict=True
        ):
            for place, text in computed.items():
                values[place] = text
            if not all(test.passes(values) for test in self._tests):
                continue
            row = text_row(values[: self._width])
            if self._order:
                order = (
                    sort.of((), values) if sort.is_late else known
                    for sort, known in zip(self._order, kept.order, strict=True)
                )
                self._in_order.add(tuple(order), row)
            else:
                found.append(row)
        return self._window.cut(found) if self._tests else found

    def rest(self) -> Iterator[list[bytes]]:
        """Give what can leave when all is computed, some at a time."""
        for bite in self._in_order.bites():
            yield self._window.cut([kept.row for kept in bite])


class GroupsMerge:
    """The groups of the shards as one answer.

    distinct: the groups' width, and the lists of DISTINCT arguments.
    kept: takes the groups that cannot leave as they come, None where all can.
    sorts: their final order.
    """

    def __init__(
        self,
        parts: OrderedMerge,
        window: LimitWindow,
        accumulators: Sequence[Accumulator],
        distinct: Distinct,
        *,
        width: int,
        tests: Sequence[Test],
        sorts: Sequence[GroupSort],
        kept: KeptGroups | None,
        computed: ComputedGroups | None = None,
    ) -> None:
        self._parts = parts
        self._window = window
        self._accumulators = accumulators
        self._distinct = distinct
        self._lists = [distinct.list_of(place) for place in range(len(accumulators))]
        self._width = width
        self._tests = tests
        self._sorts = sorts
        self._kept = kept
        # Computes the rest of what is kept after the merge, and answers; else None.
        self.computed = computed
        self._key: SortKey | None = None
        # The kept groups on their way out, once all shards' rows are merged.
        self._leaving: Iterator[list[KeptGroup]] | None = None
        self._ended = False
        self.waiting_bytes = parts.waiting_bytes  # the size of each shard's rows that wait
        self.feed = parts.add_rows
        self.end = parts.end_source

    @property
    def is_complete(self) -> bool:
        """Nothing of what may still come is needed."""
        if self.computed is None or self._kept is None:
            return self._ended or self._window.is_shut
        return self._leaving is not None or (self._kept.is_full and not self._sorts)

    @property
    def has_more(self) -> bool:
        """Another `next_rows` goes on without further news."""
        return self._leaving is not None or self._parts.has_more

    def next_rows(self) -> list[bytes]:
        """Return rows that are sure, for the client, some at a time. Raises MergeTooLarge and DistinctTooLarge."""
        if self.is_complete:
            return []
        if self._leaving is not None:
            bite = next(self._leaving, None)
            self._ended = bite is None
            return self._window.cut([kept.row for kept in bite or ()])
        rows: list[bytes] = []
        width = self._distinct.width
        accumulators = list(zip(self._accumulators, self._lists, strict=True))
        for key, payload in zip(*self._parts.next_rows(), strict=True):
            before = self._key
            is_same = before is not None and before[:width] == key[:width]
            # The merge gives rows in the order of the groups, so another key says that the last
            # group has had all its rows, from all shards.
            if before is not None and not is_same:
                rows += self._finish(before)
            news = self._distinct.news(key, before if is_same else None)
            row = parse_text_row(payload)
            for accumulator, number in accumulators:
                accumulator.add(row, is_new=news[number])
            self._key = key
        if self._parts.is_complete:
            if self._key is not None or not width:
                # Without GROUP BY no rows are one group too.
                rows += self._finish(self._key or ())
            self._leaving = iter(()) if self._kept is None else self._kept.bites()
        return self._window.cut(rows)

    def _finish(self, key: SortKey) -> Sequence[bytes]:
        """Return the row of a group that can leave."""
        values = [accumulator.finish() for accumulator in self._accumulators]
        if not all(test.passes(values, self._accumulators) for test in self._tests):
            return ()
        row = (
            text_row(values[: self._width])
            if self.computed is None
            else self.computed.row(values, self._accumulators)
        )
        if self._kept is None:
            return (row,)
        order = ((0,) if sort.is_late else sort.of(key, values) for sort in self._sorts)
        self._kept.add(tuple(order), row)
        return ()
