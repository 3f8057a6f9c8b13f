"""How many rows an answer has that shards give together: the merge of these rows, seen only as a number.

`SELECT COUNT(*) FROM (SELECT DISTINCT country FROM orders LIMIT 100) d` is merged as the inner SELECT
is, in the memory that this takes, and no row of it leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamfrom.proxy.merge.expression_merge import ComputedMerge
from streamfrom.proxy.wire.resultset import ColumnDefinition, text_row


if TYPE_CHECKING:
    from streamfrom.proxy.merge.group_merge import GroupsMerge
    from streamfrom.proxy.merge.group_query import GroupsQuery
    from streamfrom.proxy.merge.row_merge import RowsMerge, RowsQuery


class CountedQuery:
    """How the rows of *rows* are asked for and counted."""

    def __init__(self, rows: RowsQuery | GroupsQuery) -> None:
        self._rows = rows
        self.asks_columns = rows.asks_columns
        self.describe = rows.describe
        self.resolve = rows.resolve
        self.sql = rows.sql

    @property
    def expressions(self) -> Sequence[tuple[bytes, bool]]:
        """What is compared, and whether an aggregate is in it."""
        return self._rows.expressions

    def merger(self, count: int, definitions: Sequence[ColumnDefinition]) -> CountedMerge:
        """Return what counts the rows of *count* shards, which have these *definitions*."""
        merge = self._rows.merger(count, definitions)
        assert not isinstance(merge, ComputedMerge), "what is counted is not computed"
        return CountedMerge(merge)

    def definitions(self, described: Sequence[bytes], shard: Sequence[bytes]) -> list[bytes]:
        """Return the answer's column definitions: *described*, whatever rows a *shard* gives."""
        return list(described)


class CountedMerge:
    """The number of the rows of a merge, as the one row of an answer.

    Attributes:
        waiting_bytes: the size of each shard's rows that wait.
    """

    def __init__(self, rows: RowsMerge | GroupsMerge) -> None:
        self._rows = rows
        self._count = 0
        self.is_complete = False
        self.waiting_bytes = rows.waiting_bytes
        self.feed = rows.feed
        self.end = rows.end

    @property
    def has_more(self) -> bool:
        """Another `next_rows` goes on without further news."""
        return self._rows.has_more

    def next_rows(self) -> list[bytes]:
        """Return the row as soon as all others are known.

        Raises:
            MergeTooLarge: they cannot be merged.
        """
        self._count += len(self._rows.next_rows())
        if self.is_complete or not self._rows.is_complete:
            return []
        self.is_complete = True
        return [text_row([b"%d" % self._count])]
