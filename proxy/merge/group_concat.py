"""GROUP_CONCAT of a group, from its values one by one.

The shards group by what it is ordered by and by its values, so that these come in its own order, each
with the number of rows that have it. Rows that are equal in the order are in none: unless their
values are the same bytes, what a server answers is up to its plan, and nothing is said. Nor where
a NULL is ordered by: servers compare what its place in memory happens to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.aggregates import Row
    from streamfrom.proxy.merge.comparison import Component
    from streamfrom.proxy.merge.shard_texts import Texts
    from streamfrom.sqlparse_ext.selects.select_ast import AggregateCall

_NULLS: Final = ((0,), (2,))  # as they are compared, in either direction


class Listed:
    """The list of a GROUP_CONCAT and its order, as expressions for the shards.

    Attributes:
        order: the expressions of its ORDER BY. directions: whether each is descending.
        bytes: an expression that differs for texts that compare as equal.
        parts: expressions for a text, its length, and the number of its rows.

    Raises:
        Unsupported: there is no ORDER BY, or one that the merge cannot follow.
    """

    def __init__(self, call: AggregateCall, texts: Texts) -> None:
        if not call.order:
            raise Unsupported("GROUP_CONCAT without ORDER BY over several shards")
        for each in call.order:
            if each.position is not None or each.expression.has_aggregate:
                raise Unsupported.computing(
                    texts.of(each.expression),
                    "GROUP_CONCAT ordered by a position or an aggregate",
                )
            texts.check_steady(each.expression)
        arguments = [texts.words(each) for each in call.arguments]
        order = [texts.words(each.expression) for each in call.order]
        if call.distinct and arguments != order:
            raise Unsupported("GROUP_CONCAT(DISTINCT …) in another order over several shards")
        self.directions = [each.descending for each in call.order]
        self._words = arguments, order, self.directions
        self.order = [texts.of(each.expression) for each in call.order]
        value = b"CONCAT(%b)" % b", ".join(map(texts.of, call.arguments))
        self.bytes = b"CAST(%b AS BINARY)" % value
        self.parts = [b"MIN(%b)" % value, b"MIN(LENGTH(%b))" % value, b"COUNT(*)"]

    @property
    def ordered(self) -> list[bytes]:
        """The order as it stands in ORDER BY."""
        return [
            text + (b" DESC" if down else b"")
            for text, down in zip(self.order, self.directions, strict=True)
        ]

    def is_same(self, other: Listed) -> bool:
        """Whether both list the same, in the same order."""
        return self._words == other._words


def separator_of(call: AggregateCall, texts: Texts) -> bytes:
    """Return what stands between the values. Raises Unsupported where it may be other bytes."""
    separator = b"," if call.separator is None else texts.string(call.separator)
    if separator is None or not separator.isascii():
        raise Unsupported("GROUP_CONCAT with such a SEPARATOR over several shards")
    return separator


class GroupConcat:
    """One GROUP_CONCAT.

    column: the place of its value in a row; after it come the value's length in the server's own
        bytes, the number of rows, and the values of ORDER BY.
    decoders: read the values of ORDER BY.
    bytes_max: group_concat_max_len.
    """

    def __init__(
        self,
        column: int,
        decoders: Sequence[Callable[[bytes | None], Component]],
        separator: bytes,
        *,
        distinct: bool,
        bytes_max: int,
    ) -> None:
        self._column = column
        self._decoders = decoders
        self._separator = separator
        self._distinct = distinct
        self._bytes_max = bytes_max
        self._values: list[bytes] = []
        self._bytes = 0
        self._order: tuple[Component, ...] | None = None
        self._has_null = False
        self._differ = False

    def add(self, row: Row, *, is_new: bool) -> None:
        """Take one shard's value.

        Raises:
            Unsupported: its place is not determined, or a server would cut the text.
        """
        start = self._column + 3
        value, length, count = row[self._column : start]
        if value is None:
            return
        order = tuple(
            decode(text) for decode, text in zip(self._decoders, row[start:], strict=False)
        )
        is_same = order == self._order
        self._has_null |= any(component in _NULLS for component in order)
        is_apart = bool(self._values) and value != self._values[-1]
        self._differ |= is_apart
        if (is_same and is_apart) or (self._has_null and self._differ):
            raise Unsupported("GROUP_CONCAT whose order is not determined over several shards")
        self._order = order
        times = 1 if self._distinct else int(count or 0)
        if self._distinct and is_same:
            return
        self._bytes += times * (int(length or 0) + len(self._separator))
        if self._bytes - len(self._separator) > self._bytes_max:
            raise Unsupported(
                "GROUP_CONCAT longer than group_concat_max_len or merge_memory over several shards"
            )
        self._values += [value] * times

    def finish(self) -> bytes | None:
        """Return the group's value."""
        values, self._values = self._values, []
        self._bytes, self._order = 0, None
        self._has_null = self._differ = False
        return self._separator.join(values) if values else None
