"""Groups whose values a shard has still to compute, kept until it is asked for them.

The shards' connections are busy until all groups are merged, so nothing leaves before; what is
kept is bounded by `merge_memory`. With a LIMIT, only the groups that it lets through are kept and
computed, unless what is computed decides which these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.aggregates import Average
from streamfrom.proxy.merge.comparison import Sort, scaled, sort_of, unscaled
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.aggregate_expressions import Computation, Computed
    from streamfrom.proxy.merge.aggregates import Accumulator, Row
    from streamfrom.proxy.merge.group_merge import GroupSort, KeptGroup, KeptGroups, Test
    from streamfrom.proxy.merge.ordered_merge import LimitWindow


# What a shard is asked to compute at once.
_BATCH_GROUPS: Final = 500
_BATCH_BYTES: Final = 256 << 10


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
        """Take what a shard computed for *batch*; return the rows that can leave now.

        Raises:
            Unsupported: it is not sure that a server would have computed the same.
        """
        groups = [parse_text_row(kept.row) for kept in batch]
        found: list[bytes] = []
        for kept, values, computed in zip(
            batch, groups, self._computation.answer(groups, columns, rows), strict=True
        ):
            for place, each in computed.items():
                values[place] = each.text
            if not all(
                self._passes(test, values, computed[test.place]) for test in self._tests
            ):
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

    def _passes(self, test: Test, values: Sequence[bytes | None], computed: Computed) -> bool:
        answer = test.passes(values)
        column = self._computation.type_of(test.place)
        if not computed.is_cut or computed.text is None or sort_of(column) is not Sort.DECIMAL:
            return answer
        shown = scaled(computed.text)
        for near in (shown - 1, shown + 1):
            nearby = list(values)
            nearby[test.place] = unscaled(near, column.decimals)
            if test.passes(nearby) is not answer:
                raise Unsupported(
                    "HAVING an AVG that is so near to the number over several shards"
                )
        return answer
