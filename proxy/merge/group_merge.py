"""Merge the shards' parts of groups, group by group.

All groups stay in memory only for an order that is not their own, or for values that a shard still has to compute:
the shards' connections are busy until all groups are merged. `merge_memory` bounds this. With a LIMIT, only groups within
it are kept and computed, unless computed values decide which groups these are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sortedcontainers import SortedList

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row


if TYPE_CHECKING:
    from streamfrom.proxy.merge.aggregate_expressions import Computation
    from streamfrom.proxy.merge.aggregates import GroupFold, Row
    from streamfrom.proxy.merge.comparison import Component
    from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge, SortKey


# The memory of a kept group, without its row.
_KEPT_BYTES: Final = 300
# Kept groups that leave at once.
_BITE_GROUPS: Final = 250
# Groups that a shard computes at once.
_BATCH_GROUPS: Final = 500
_BATCH_BYTES: Final = 256 << 10

_NULL: Final = (0,)  # of a key

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Test(NamedTuple):
    """One condition of HAVING: the output at *place* compared with a number."""

    place: int
    operator: str
    number: int | str  # with its point and exponent
    is_float: bool  # servers compare it as a float

    def passes(self, values: Sequence[bytes | None]) -> bool:
        """Return whether a group with these *values* stays."""
        value = values[self.place]
        read = float if self.is_float else Decimal
        return value is not None and _OPERATORS[self.operator](
            read(value.decode()), read(self.number)
        )


class GroupSort(NamedTuple):
    """One component of the final order, reversed if that is descending."""

    # Returns it for a group's key, its values, and the states that these were made of.
    of: Callable[[SortKey, Row, Sequence[Any]], Component]
    is_late: bool = False  # the value is computed after the merge


class KeptGroup(NamedTuple):
    """A group that cannot leave yet: its sort key, the number of groups before it, its row."""

    order: tuple[Component, ...]
    number: int
    row: bytes


class KeptGroups:
    """Groups in their final order; equal ones keep the order in which they came.

    Each is inserted as it comes: sorting 450,000 at once would delay all other clients by 0.5 s.

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
        """True if another group would replace one of these."""
        return len(self._groups) == self.reach

    def add(self, order: tuple[Component, ...], row: bytes) -> None:
        """Keep a group, and drop the one that is then out of reach. Raises MergeTooLarge."""
        self._number += 1
        self._groups.add(KeptGroup(order, self._number, row))
        self._bytes += len(row) + _KEPT_BYTES
        if self.reach is not None and len(self._groups) > self.reach:
            self._bytes -= len(self._groups.pop().row) + _KEPT_BYTES
        if self._bytes > self._memory_bytes:
            raise MergeTooLarge(self._memory_bytes)

    def bites(self) -> Iterator[list[KeptGroup]]:
        """Yield the groups in order, some at a time."""
        for start in range(0, len(self._groups), _BITE_GROUPS):
            yield self._groups[start : start + _BITE_GROUPS]


class ComputedGroups:
    """The merged groups of the shards, with values still to be computed.

    groups: the groups that the merge has kept.
    width: the number of the answer's columns.
    conditions: the places of HAVING's conditions among the values.
    order: the final order if a computed value is in it; else empty.
    in_order: takes the groups in that order.
    """

    def __init__(
        self,
        groups: KeptGroups,
        computation: Computation,
        window: LimitWindow,
        *,
        width: int,
        conditions: Sequence[int],
        order: Sequence[GroupSort],
        in_order: KeptGroups,
    ) -> None:
        self._groups = groups
        self._computation = computation
        self._window = window
        self._width = width
        self._conditions = conditions
        self._order = order
        self._in_order = in_order

    @property
    def is_late(self) -> bool:
        """True if a computed value decides which groups leave, so that all of them are computed."""
        return bool(self._conditions or self._order)

    def batches(self) -> Iterator[list[KeptGroup]]:
        """Yield the groups in batches, one query each, while any can be wanted."""
        groups = list(chain.from_iterable(self._groups.bites()))
        waiting = groups if self.is_late else self._window.cut(groups)
        start = 0
        while start < len(waiting) and not (self._window.is_shut and self.is_late):
            stop = start
            size = 0
            # Many groups in one query, as each is a round trip; few enough that its text
            # stays small.
            while stop < min(len(waiting), start + _BATCH_GROUPS) and size < _BATCH_BYTES:
                size += len(waiting[stop].row)
                stop += 1
            yield waiting[start:stop]
            start = stop

    def question(self, batch: Sequence[KeptGroup]) -> bytes:
        """Return the query that computes these groups on a shard."""
        return self._computation.question([parse_text_row(kept.row) for kept in batch])

    def answer(
        self,
        batch: Sequence[KeptGroup],
        columns: Sequence[ColumnDefinition],
        rows: Sequence[bytes],
    ) -> list[bytes]:
        """Take a shard's results for *batch*; return the rows that can leave now. Raises Unsupported."""
        groups = [parse_text_row(kept.row) for kept in batch]
        found: list[bytes] = []
        for kept, values, computed in zip(
            batch, groups, self._computation.answer(columns, rows), strict=True
        ):
            for place, text in computed.items():
                values[place] = text
            if any(values[place] != b"1" for place in self._conditions):
                continue
            row = text_row(values[: self._width])
            if self._order:
                order = (
                    sort.of((), values, ()) if sort.is_late else known
                    for sort, known in zip(self._order, kept.order, strict=True)
                )
                self._in_order.add(tuple(order), row)
            else:
                found.append(row)
        return self._window.cut(found) if self._conditions else found

    def rest(self) -> Iterator[list[bytes]]:
        """Yield the rows that can leave only when all are computed, some at a time."""
        for bite in self._in_order.bites():
            yield self._window.cut([kept.row for kept in bite])


class GroupsMerge:
    """The groups of the shards as one answer.

    key_width: the number of key components that are the group's; those of DISTINCT arguments follow them.
    kept: takes the groups that cannot leave as they come, None if all can.
    sorts: their final order.
    """

    def __init__(
        self,
        parts: OrderedMerge,
        window: LimitWindow,
        folds: Sequence[GroupFold],
        *,
        key_width: int,
        width: int,
        tests: Sequence[Test],
        sorts: Sequence[GroupSort],
        kept: KeptGroups | None,
        computed: ComputedGroups | None = None,
    ) -> None:
        self._parts = parts
        self._window = window
        self._steps = [*enumerate(fold.step for fold in folds)]
        self._ends = [fold.end for fold in folds]
        self._starts = [fold.start for fold in folds]
        self._states = self._starts[:]  # of the group under way
        self._key_width = key_width
        self._width = width
        self._tests = tests
        self._sorts = sorts
        self._kept = kept
        # Computes the remaining values of kept groups after the merge, and answers; else None.
        self.computed = computed
        self._key: SortKey | None = None
        # The kept groups on their way out, once all shards' rows are merged.
        self._leaving: Iterator[list[KeptGroup]] | None = None
        self._ended = False
        self.waiting_bytes = parts.waiting_bytes  # the size of each shard's waiting rows
        self.feed = parts.add_rows
        self.end = parts.end_source

    @property
    def is_complete(self) -> bool:
        """True if no later rows are needed."""
        if self.computed is None or self._kept is None:
            return self._ended or self._window.is_shut
        return self._leaving is not None or (self._kept.is_full and not self._sorts)

    @property
    def has_more(self) -> bool:
        """True if another `next_rows` has work without new input."""
        return self._leaving is not None or self._parts.has_more

    def next_rows(self) -> list[bytes]:
        """Return rows that are final, some at a time. Raises MergeTooLarge."""
        if self.is_complete:
            return []
        if self._leaving is not None:
            bite = next(self._leaving, None)
            self._ended = bite is None
            return self._window.cut([kept.row for kept in bite or ()])
        rows: list[bytes] = []
        width, steps, states = self._key_width, self._steps, self._states
        for key, payload in zip(*self._parts.next_rows(), strict=True):
            before = self._key
            is_same = before is not None and before[:width] == key[:width]
            # The merge returns rows in the order of the groups, so another key means that the last
            # group has had all its rows, from all shards.
            if before is not None and not is_same:
                rows += self._finish(before)
            is_new = key != before and _NULL not in key[width:]
            row = parse_text_row(payload)
            for place, step in steps:
                states[place] = step(states[place], row, is_new)
            self._key = key
        if self._parts.is_complete:
            if self._key is not None or not width:
                # Without GROUP BY, no rows are also one group.
                rows += self._finish(self._key or ())
            self._leaving = iter(()) if self._kept is None else self._kept.bites()
        return self._window.cut(rows)

    def _finish(self, key: SortKey) -> Sequence[bytes]:
        """Return the row of a group that can leave."""
        states, self._states[:] = self._states[:], self._starts
        values = [end(state) for end, state in zip(self._ends, states, strict=True)]
        if not all(test.passes(values) for test in self._tests):
            return ()
        # A shard that computes further needs all values.
        row = text_row(values if self.computed is not None else values[: self._width])
        if self._kept is None:
            return (row,)
        order = ((0,) if sort.is_late else sort.of(key, values, states) for sort in self._sorts)
        self._kept.add(tuple(order), row)
        return ()
