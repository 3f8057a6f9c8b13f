"""Groups whose values a shard has still to compute, kept until it is asked for them.

The shards' connections are busy until all groups are merged, so nothing leaves before; what is
kept is bounded by `merge_memory`. With a LIMIT, only the groups that it lets through are kept and
computed, unless what is computed decides which these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge.comparison import Sort, scaled, sort_of, unscaled
from streamfrom.proxy.merge.group_merge import KEPT_BYTES, WaitingGroup, sorted_in_bites
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.aggregate_expressions import Computation, Computed
    from streamfrom.proxy.merge.group_merge import GroupsMerge, GroupSort, Test
    from streamfrom.proxy.merge.ordered_merge import LimitWindow


# What a shard is asked to compute at once.
_BATCH_GROUPS: Final = 500
_BATCH_BYTES: Final = 256 << 10


class ComputedMerge:
    """The groups of the shards, with values that are computed after the merge.

    width: the number of the answer's columns.
    tests: HAVING's conditions on computed values.
    order: the final order where a computed value is in it; else empty.

    Attributes:
        waiting_bytes: the size of each shard's rows that wait.
    """

    def __init__(
        self,
        groups: GroupsMerge,
        computation: Computation,
        window: LimitWindow,
        *,
        width: int,
        tests: Sequence[Test],
        order: Sequence[GroupSort],
        memory_bytes: int,
    ) -> None:
        self._groups = groups
        self._computation = computation
        self._window = window
        self._width = width
        self._tests = tests
        self._order = order
        self._memory_bytes = memory_bytes
        self._held: list[WaitingGroup] = []
        self._held_bytes = 0
        self._sorted: list[WaitingGroup] = []
        self.waiting_bytes = groups.waiting_bytes
        self.feed = groups.feed
        self.end = groups.end

    @property
    def is_complete(self) -> bool:
        """Nothing of what may still come from the shards is needed."""
        return self._groups.is_complete

    @property
    def has_more(self) -> bool:
        """Another `next_rows` goes on without further news."""
        return self._groups.has_more

    def next_rows(self) -> list[bytes]:
        """Keep what is sure; no row can leave.

        Raises:
            MergeTooLarge: more groups must be kept than there may be.
        """
        rows = self._groups.next_rows()
        self._held += [WaitingGroup(row, ()) for row in rows]
        self._held_bytes += sum(map(len, rows)) + KEPT_BYTES * len(rows)
        if self._held_bytes > self._memory_bytes:
            raise MergeTooLarge(self._memory_bytes)
        return []

    def batches(self) -> Iterator[list[WaitingGroup]]:
        """Give the groups in pieces of which each is one question, while any can be wanted."""
        # Late: a computed value decides which groups leave, so all of them are computed.
        waiting = self._groups.take_kept() if self.is_late else self._held
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

    @property
    def is_late(self) -> bool:
        """All groups are computed, whatever the answer has of them."""
        return bool(self._tests or self._order)

    def question(self, batch: Sequence[WaitingGroup]) -> bytes:
        """Return what a shard is asked to compute for these groups."""
        return self._computation.question([parse_text_row(kept.row) for kept in batch])

    def answer(
        self,
        batch: Sequence[WaitingGroup],
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
            if not self._order:
                found.append(row)
                continue
            order = [
                sort.of((), values) if sort.is_late else known
                for sort, known in zip(self._order, kept.order, strict=True)
            ]
            self._sorted.append(WaitingGroup(row, tuple(order)))
        return self._window.cut(found) if self._tests and not self._order else found

    def rest(self) -> Iterator[list[bytes]]:
        """Give what can leave when all is computed, in bites; an empty one while it is sorted."""
        for bite in sorted_in_bites(self._sorted, [sort.descending for sort in self._order]):
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
