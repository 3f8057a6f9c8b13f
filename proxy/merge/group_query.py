"""A SELECT of groups over several shards: GROUP BY, DISTINCT and aggregates.

The shards return their parts of each group, in the order of the groups:

    [values that groups compare by] [values that DISTINCT arguments compare by] [parts of the output values]

so the parts of one group meet, are merged and leave before the next group begins.
`COUNT(DISTINCT x)` adds x to the groups: each shard returns each x once, and equal
ones of several shards are adjacent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.aggregate_expressions import Computation
from streamfrom.proxy.merge.aggregates import (
    COUNT_DISTINCT,
    NOTHING,
    GroupFold,
    average,
    count,
    extreme,
    first,
    total,
)
from streamfrom.proxy.merge.comparison import (
    NOT_FIXED,
    ColumnKey,
    Comparison,
    comparison_of,
    exactly,
    loses_digits,
)
from streamfrom.proxy.merge.group_by import EXTREMES, Grouping, Output
from streamfrom.proxy.merge.group_merge import (
    ComputedGroups,
    GroupsMerge,
    GroupSort,
    KeptGroups,
    Test,
)
from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge
from streamfrom.proxy.wire.resultset import ColumnDefinition, with_type_of
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.shard_texts import Texts


# Expressions of aggregates can be sorted by their values.
_SORTED: Final = frozenset(
    {Comparison.NUMBER, Comparison.DOUBLE, Comparison.TEXT, Comparison.TIME}
)


class GroupsQuery:
    """The query for one SELECT of groups, and the merge of its answers.

    exact: the texts must keep all digits.
    """

    def __init__(self, texts: Texts, memory_bytes: int, *, exact: bool = False) -> None:
        self._texts = texts
        self._exact = exact
        self._memory_bytes = memory_bytes
        # The expressions of aggregates, or None; set by `describe`.
        self.computation: Computation | None = None
        aliases = {item.alias for item in texts.select.items if item.alias is not None}
        # The table's columns are needed, because a name in GROUP BY means a column rather than an alias if there is such a
        # column.
        self.asks_columns = bool(aliases) and bool(texts.select.group)
        # The compared expressions, and whether each has an aggregate; set by `describe`.
        self.expressions: list[tuple[bytes, bool]] = []
        self._definitions: Sequence[ColumnDefinition] = ()
        self._grouping: Grouping
        self._keys: dict[bytes, ColumnKey] = {}
        self._types: dict[bytes, ColumnDefinition] = {}

    def describe(
        self, definitions: Sequence[ColumnDefinition], table_columns: frozenset[str]
    ) -> None:
        """Take the answer's definitions. Raises Unsupported if the rows cannot be merged."""
        self._definitions = definitions
        grouping = self._grouping = Grouping(self._texts, table_columns)
        wanted = [(group.text, False) for group in grouping.groups]
        wanted += [(self._texts.of(argument), False) for argument in grouping.distinct]
        for place, output in enumerate(grouping.outputs):
            if output.call is not None:
                if output.call.function in EXTREMES:
                    wanted.append((output.text, True))
                    wanted.append((self._texts.of(output.call.arguments[0]), False))
                elif place >= grouping.width:
                    wanted.append((output.text, True))
        self.expressions = list(dict.fromkeys(wanted))
        # Outputs such as SUM(a) / COUNT(*): the merge has the aggregates, and a shard does the
        # rest.
        if any(output.operands for output in grouping.outputs):
            self.computation = Computation(
                self._texts, grouping, definitions, exact=self._exact
            )

    def resolve(self, keys: Sequence[ColumnKey], types: Sequence[ColumnDefinition]) -> None:
        """Take the rules by which the `expressions` compare."""
        texts = [text for text, _ in self.expressions]
        self._keys = dict(zip(texts, keys, strict=True))
        self._types = dict(zip(texts, types, strict=True))

    # --- the query --------------------------------------------------------------------------

    def sql(self) -> bytes:
        """Return the query for each shard."""
        texts, grouping = self._texts, self._grouping
        columns = [self._compared(grouping.groups[place].text) for place, _ in grouping.order]
        more = [texts.of(argument) for argument in grouping.distinct]
        # A shard cannot count distinct values for all: the same value may be on two shards. So
        # it returns every distinct value, in order, and the merge counts.
        columns += map(self._compared, more)
        for place, output in enumerate(grouping.outputs):
            columns += self._parts(place, output)
        grouped = [grouping.groups[place].text for place, _ in grouping.order]
        order = [
            text + (b" DESC" if down else b"")
            for text, (_, down) in zip(grouped, grouping.order, strict=True)
        ]
        select = texts.select
        pieces = [b"SELECT", texts.options(), b", ".join(columns) or b"1"]
        pieces += [texts.at(select.source), texts.at(select.where)]
        if grouped or more:
            pieces += [b"GROUP BY", b", ".join(grouped + more)]
        if order or more:
            pieces += [b"ORDER BY", b", ".join(order + more)]
        # The LIMIT may go to the shards only if a shard's first groups are the answer's
        # first ones: no other order, and no removal of groups after the merge.
        is_final = not (grouping.final_order or grouping.tests or grouping.conditions or more)
        if grouped and is_final and texts.reach is not None:
            pieces.append(b"LIMIT %d" % texts.reach)
        return b" ".join(filter(None, pieces))

    def _compared(self, text: bytes) -> bytes:
        key = self._keys[text]
        # Any row of the group will do; every sql_mode allows MIN here.
        return text if key.is_plain else b"MIN(%b)" % key.sql(text)

    def _parts(self, place: int, output: Output) -> list[bytes]:
        """Return the columns that the shards return for one output value."""
        call = output.call
        if output.operands:
            return []
        is_exact = self._is_exact(place)
        if call is None:
            return [exactly(output.text) if is_exact else output.text]
        if call.function in EXTREMES:
            text = output.text
            key = self._keys[text]
            value = exactly(text) if is_exact else text
            return [value] if key.is_plain else [value, key.sql(text)]
        if call.function == "AVG":
            (argument,) = map(self._texts.of, call.arguments)
            text = b"SUM(%b)" % argument
            # Sum and count, not the average: averages of parts cannot be merged.
            return [exactly(text) if is_exact else text, b"COUNT(%b)" % argument]
        if call.function == "COUNT" and call.distinct:
            return []
        return [exactly(output.text) if is_exact else output.text]

    def _is_exact(self, place: int) -> bool:
        """Return whether a value needs all its digits, although its text has fewer."""
        is_shown = place < self._grouping.width
        return self._exact and is_shown and loses_digits(self._definitions[place])

    # --- the answer -------------------------------------------------------------------------

    def definitions(self, described: Sequence[bytes], shard: Sequence[bytes]) -> list[bytes]:
        """Return the answer's column definitions, as payloads.

        Names are those of the statement *described* without rows. Some flags and types depend
        on how a server runs it (MariaDB makes TEXT of an expression that goes through a
        temporary table): if a *shard* has run nearly the same query, they are taken from it.
        """
        grouping = self._grouping
        if self._texts.select.is_derived:
            return list(described)
        # One server sorts the groups of COUNT(DISTINCT) without a temporary table, unless they
        # need yet another order.
        is_direct = bool(grouping.distinct) and not grouping.final_order
        runs_alike = bool(grouping.groups) and not is_direct and self._texts.count != 0
        column = len(grouping.order) + len(grouping.distinct)
        found = []
        for place, (output, definition) in enumerate(
            zip(grouping.outputs, described, strict=False)
        ):
            parts = self._parts(place, output)
            if runs_alike and parts and parts[0] == output.text:
                found.append(with_type_of(definition, shard[column]))
            else:
                found.append(definition)
            column += len(parts)
        return found

    def merger(self, shards: int, definitions: Sequence[ColumnDefinition]) -> GroupsMerge:
        """Return the merge of the answers of this many *shards*, which have these *definitions*."""
        grouping = self._grouping
        decoders = [
            self._keys[grouping.groups[place].text].decoder(descending=down)
            for place, down in grouping.order
        ]
        decoders += [
            self._keys[self._texts.of(argument)].decoder() for argument in grouping.distinct
        ]
        parts = definitions[len(decoders) :]
        folds: list[GroupFold] = []
        column = 0
        for place, output in enumerate(grouping.outputs):
            folds.append(self._fold(place, output, column, parts))
            column += len(self._parts(place, output))
        tests = [
            Test(
                place,
                operator,
                number,
                self._comparison(place) is not Comparison.NUMBER
                or (isinstance(number, str) and "e" in number.lower()),
            )
            for place, operator, number in grouping.tests
        ]
        window = LimitWindow(self._texts.offset, self._texts.count)
        sorts = [self._sort(place, descending=down) for place, down in grouping.final_order]
        is_late = bool(grouping.conditions) or any(sort.is_late for sort in sorts)
        kept = computed = None
        if sorts or self.computation is not None:
            kept = KeptGroups(None if is_late else window.reach, self._memory_bytes)
        if kept is not None and self.computation is not None:
            computed = ComputedGroups(
                kept,
                self.computation,
                window,
                width=grouping.width,
                conditions=grouping.conditions,
                order=sorts if is_late else (),
                in_order=KeptGroups(window.reach, self._memory_bytes),
            )
        return GroupsMerge(
            OrderedMerge(shards, decoders),
            window,
            folds,
            key_width=len(grouping.groups),
            width=grouping.width,
            tests=tests,
            sorts=sorts,
            kept=kept,
            computed=computed,
        )

    def _sort(self, place: int, *, descending: bool) -> GroupSort:
        grouping = self._grouping
        found = grouping.outputs[place]
        if found.operands and self._comparison(place) not in _SORTED:
            raise Unsupported.computing(found.text, "ORDER BY a string made of aggregates")
        if found.group is not None:
            # The shards' order has its own direction (`Grouping.order`).
            component = [group for group, _ in grouping.order].index(found.group)
            return GroupSort(lambda key, *_: key[component])
        call = found.call
        if call is not None and call.function in EXTREMES:
            argument = self._texts.of(call.arguments[0])
            if comparison_of(self._types[argument]) is Comparison.ORDINAL:
                raise Unsupported("ORDER BY MIN or MAX of an ENUM or SET over several shards")
            decode = self._keys[found.text].decoder(descending=descending)
            return GroupSort(
                lambda _key, _row, states: decode(states[place] and states[place][2])
            )
        decode = ColumnKey(self._comparison(place)).decoder(descending=descending)
        return GroupSort(lambda _key, row, _states: decode(row[place]), bool(found.operands))

    def _comparison(self, place: int) -> Comparison:
        """Return how the values of an aggregate compare."""
        return comparison_of(self._type(place))

    def _type(self, place: int) -> ColumnDefinition:
        if place < self._grouping.width:
            return self._definitions[place]
        output = self._grouping.outputs[place]
        if output.operands and self.computation is not None:
            return self.computation.type_of(place)
        return self._types[output.text]

    def _fold(
        self, place: int, output: Output, column: int, parts: Sequence[ColumnDefinition]
    ) -> GroupFold:
        call = output.call
        if output.operands:
            return NOTHING
        if call is None:
            return first(column)
        if call.function == "COUNT":
            return COUNT_DISTINCT if call.distinct else count(column)
        if call.function == "SUM":
            return total(column, parts[column])
        if call.function == "AVG":
            decimals = NOT_FIXED if self._is_exact(place) else self._type(place).decimals
            return average(column, parts[column], decimals)
        key = self._keys[output.text]
        if key.comparison is Comparison.ORDINAL:
            raise Unsupported(f"{call.function} of an ENUM or SET over several shards")
        key_column = column if key.is_plain else column + 1
        return extreme(column, key_column, key.decoder(), largest=call.function == "MAX")
