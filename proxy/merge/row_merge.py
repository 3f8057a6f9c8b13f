"""A SELECT of rows over several shards: each sorts and limits its own, the merge interleaves them.

The statement goes to the shards nearly unchanged. The values that ORDER BY compares come before the
select list, so that a row for the client is the tail of the shard's row. For rows of the binary
protocol, numbers with all their digits come there too: the text of a FLOAT has six, that of
DOUBLE(12,3) three after the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import Comparison, comparison_of, exactly, loses_digits
from streamfrom.proxy.merge.group_by import EXTREMES
from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Slot
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.merge.comparison import ColumnKey
    from streamfrom.proxy.merge.shard_texts import Texts
    from streamfrom.sqlparse_ext.selects.select_ast import Expression, OrderItem


# An alias that no client's ORDER BY can mean by accident.
_HIDDEN: Final = b" AS `streamfrom:%d`"


class RowsQuery:
    """The query for one SELECT of rows, and the merge of its answers.

    exact: the texts must keep all digits.

    Attributes:
        expressions: the expressions whose types must be known, such as those compared, and whether
            each has an aggregate; set by `describe`.
        asks_columns, computation: as in `GroupsQuery`.
    """

    asks_columns = False
    computation = None

    def __init__(self, texts: Texts, *, exact: bool = False) -> None:
        self._texts = texts
        self._exact = exact
        self._floats: dict[int, bytes] = {}  # by the column of the answer
        self.expressions: list[tuple[bytes, bool]] = []
        self._down: list[bool] = []
        self._arguments: list[tuple[bytes, bool]] = []  # of MIN and MAX
        self._keys: Sequence[ColumnKey] = ()
        self._columns: Sequence[ColumnDefinition] = ()

    def describe(
        self, definitions: Sequence[ColumnDefinition], table_columns: frozenset[str]
    ) -> None:
        """Take the answer's definitions. Raises Unsupported for an order that the merge cannot reproduce."""
        self._columns = definitions
        for order in self._texts.select.order:
            found = self._resolve(order)
            if found is not None:
                self.expressions.append(found)
                self._down.append(order.descending)
        self.expressions += self._arguments
        if self._exact:
            for place, column in enumerate(definitions):
                found = self._at(place + 1) if loses_digits(column) else None
                if found is not None:
                    self._floats[place] = exactly(found[0])

    def _resolve(self, order: OrderItem) -> tuple[bytes, bool] | None:
        texts = self._texts
        if order.position is not None:
            place = texts.integer(order.position)
            return None if place is None else self._at(place)
        expression = order.expression
        if expression.is_constant:
            return None
        name = expression.column
        if name is not None and not expression.is_qualified:
            item = texts.with_alias(name)
            if item is not None and item.expression is not None:
                expression = item.expression
                return None if expression.is_constant else self._known(expression, in_list=True)
            if item is None and texts.select.joined and texts.ends_item(name):
                # It means that item's column, and before the list it would be ambiguous.
                raise Unsupported(f"ORDER BY '{name}' without its table over several shards")
        return self._known(expression)

    def _at(self, place: int) -> tuple[bytes, bool] | None:
        """Return the expression of the select list's column number *place*."""
        items = self._texts.select.items
        stars = [index for index, item in enumerate(items) if item.expression is None]
        index = place - 1
        if stars and index >= stars[0]:
            if len(stars) > 1 or self._texts.select.joined:
                raise Unsupported("ORDER BY a position in or behind * over several shards")
            # All columns of the answer that are no other item's belong to the star.
            width = len(self._columns) - len(items) + 1
            if index < stars[0] + width:
                return quote_identifier(self._columns[index].name).encode(), False
            index -= width - 1
        expression = items[index].expression
        assert expression is not None
        if expression.is_constant:
            return None
        return self._known(expression, in_list=True)

    def _known(self, expression: Expression, *, in_list: bool = False) -> tuple[bytes, bool]:
        # In the list, where it is put, a name is a column and no alias.
        known = expression.names if in_list else frozenset()
        self._texts.check_repeatable(expression, known)
        call = expression.call
        if call is not None and call.function in EXTREMES:
            # MIN of an ENUM is sometimes a string and sometimes not, depending on the server's plan.
            self._arguments.append((self._texts.of(call.arguments[0]), False))
        return self._texts.of(expression), expression.has_aggregate

    def resolve(self, keys: Sequence[ColumnKey], types: Sequence[ColumnDefinition]) -> None:
        """Take the rules by which the `expressions` compare."""
        count = len(self._down)
        if any(comparison_of(column) is Comparison.ORDINAL for column in types[count:]):
            raise Unsupported("ORDER BY MIN or MAX of an ENUM or SET over several shards")
        self._keys = keys[:count]

    def sql(self) -> bytes:
        """Return the query for each shard."""
        texts, select = self._texts, self._texts.select
        edits = []
        hidden = [
            key.sql(text) for key, (text, _) in zip(self._keys, self.expressions, strict=False)
        ]
        hidden += self._floats.values()
        if hidden:
            front = b", ".join(text + _HIDDEN % number for number, text in enumerate(hidden, 1))
            first = select.items[0]
            start = first.span[0]
            if first.is_bare_star:
                edits.append((first.span, front + b", " + texts.star()))
            else:
                edits.append(((start, start), front + b", "))
            positions = [(order.position, order.expression.span) for order in select.order]
            for group in select.group:
                word = group.words[0] if len(group.words) == 1 else None
                positions.append((word if isinstance(word, Slot) else None, group.span))
            # The hidden columns come first, so every position that the client wrote
            # shifts.
            for slot, span in positions:
                place = None if slot is None else texts.integer(slot)
                if place is not None:
                    edits.append((span, b"%d" % (place + len(hidden))))
        if texts.reach is not None:
            # OFFSET plus LIMIT rows of each: the rows that OFFSET skips may all be on one shard.
            edits.append(texts.limit_edit(b"LIMIT %d" % texts.reach))
        return texts.edited(edits)

    def definitions(self, described: Sequence[bytes], shard: Sequence[bytes]) -> list[bytes]:
        """Return the answer's column definitions: those of a shard, which ran the same text."""
        if self._texts.select.is_derived:
            return list(described)
        return list(shard[len(self._keys) + len(self._floats) :])

    def merger(self, count: int, definitions: Sequence[ColumnDefinition]) -> RowsMerge:
        """Return the merger of the answers of *count* shards, which have these *definitions*."""
        decoders = [
            key.decoder(descending=down)
            for key, down in zip(self._keys, self._down, strict=True)
        ]
        return RowsMerge(
            OrderedMerge(count, decoders),
            LimitWindow(self._texts.offset, self._texts.count),
            tuple(self._floats),
        )


class RowsMerge:
    """The rows of the shards as one answer.

    floats: the columns whose exact values come before the row, in their order.
    """

    computed = None  # after the merge, as `GroupsMerge.computed`

    def __init__(
        self, rows: OrderedMerge, window: LimitWindow, floats: Sequence[int] = ()
    ) -> None:
        self._rows = rows
        self._window = window
        self._floats = floats
        self.waiting_bytes = rows.waiting_bytes  # the size of each shard's waiting rows
        self.feed = rows.add_rows
        self.end = rows.end_source

    @property
    def is_complete(self) -> bool:
        """True if no later rows are needed."""
        return self._window.is_shut or self._rows.is_complete

    @property
    def has_more(self) -> bool:
        """True if another `next_rows` has rows without new input."""
        return self._rows.has_more

    def next_rows(self) -> list[bytes]:
        """Return rows that are final, some at a time."""
        _, rows = self._rows.next_rows()
        rows = self._window.cut(rows)
        return [self._restored(row) for row in rows] if self._floats else rows

    def _restored(self, row: bytes) -> bytes:
        values = list(parse_text_row(row))
        floats = values[: len(self._floats)]
        del values[: len(self._floats)]
        for place, value in zip(self._floats, floats, strict=True):
            values[place] = value
        return text_row(values)
