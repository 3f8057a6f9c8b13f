"""Read a SELECT of groups from its text: groups, output values, HAVING, order.

Everything is one list of `Output`s: first those of the select list, then those that only HAVING
or ORDER BY use. Values that cannot be merged from the shards' parts are Unsupported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.select_ast import SUBQUERY
from streamfrom.sqlparse_ext.statements import Slot


if TYPE_CHECKING:
    from streamfrom.proxy.merge.shard_texts import Texts
    from streamfrom.sqlparse_ext.selects.select_ast import (
        AggregateCall,
        Expression,
        HavingCondition,
        Item,
        Span,
    )


# The aggregates that HAVING may compare with a number here: servers agree on all of their digits.
_COMPARED: Final = frozenset({"COUNT", "SUM"})
EXTREMES: Final = frozenset({"MIN", "MAX"})  # DISTINCT does not change them

Words = tuple[object, ...]


class Group(NamedTuple):
    """One expression of GROUP BY. *column*: the expression is just this column."""

    text: bytes
    words: Words
    column: str | None


class Output(NamedTuple):
    """One value of a group: an aggregate, a group's own value, or an expression of these."""

    text: bytes
    words: Words
    call: AggregateCall | None = None
    group: int | None = None
    is_constant: bool = False
    # The places of outputs in an expression of aggregates, and their numbers.
    operands: tuple[tuple[Span, int], ...] = ()
    span: Span = (0, 0)
    tail: bytes = b""  # the rest of a condition, after its left side
    is_condition: bool = False


class Grouping:
    """The groups and outputs of one statement."""

    def __init__(self, texts: Texts, table_columns: frozenset[str]) -> None:
        self._texts = texts
        self._select = texts.select
        self._items = [each.expression for each in self._select.items if each.expression]
        if len(self._items) < len(self._select.items):
            raise Unsupported(
                "* together with DISTINCT, groups or aggregates over several shards"
            )
        self._table_columns = table_columns
        self._is_distinct = self._select.distinct is not None and not self._select.aggregates
        self.groups: list[Group] = []  # the expressions of GROUP BY
        # The values of a group; the first *width* are the select list.
        self.outputs: list[Output] = []
        # The arguments of COUNT(DISTINCT …), the same for all.
        self.distinct: tuple[Expression, ...] = ()
        # HAVING's conditions on aggregates: an output, an operator, and a number.
        self.tests: list[tuple[int, str, int | str]] = []
        self.conditions: list[int] = []  # the conditions that are outputs themselves
        # The groups in the order in which shards return them, and whether that is descending, as in the answer.
        self.order: list[tuple[int, bool]] = []
        # Outputs, and whether they are descending, if the answer has another order.
        self.final_order: list[tuple[int, bool]] = []
        self._read_groups()
        self._group_columns = {group.column for group in self.groups}
        self._read_items()
        self.width = len(self.outputs)
        # In a second pass: an expression may use aggregates that come later in the list.
        for place, expression in enumerate(self._items):
            if self._is_made(expression, in_list=True):
                self.outputs[place] = self._made(expression, in_list=True)
        for condition in self._select.having:
            self._read_condition(condition)
        self._read_order()

    # --- groups -----------------------------------------------------------------------------

    def _read_groups(self) -> None:
        select = self._select
        if select.distinct is not None and (
            select.group or (self._is_distinct and select.having)
        ):
            raise Unsupported("DISTINCT with GROUP BY or HAVING over several shards")
        if self._is_distinct:
            for expression in self._items:
                if not expression.is_constant:
                    self._texts.check_steady(expression)
                    self._add_group(expression)
            return
        for expression in select.group:
            resolved = self._meant(expression)
            # In an expression, servers look for a column first, and items have no aliases.
            known = self._table_columns if resolved is expression else resolved.names
            self._texts.check_repeatable(resolved, known)
            self._add_group(resolved)

    def _add_group(self, expression: Expression) -> None:
        # A number would be a position, and servers do not see that a subquery depends on the groups.
        if expression.is_constant or (not expression.names and expression.words == SUBQUERY):
            raise Unsupported("grouping by a constant or a subquery over several shards")
        # Given twice, as in GROUP BY a, a, it is sorted and compared once.
        words = self._texts.words(expression)
        if all(group.words != words for group in self.groups):
            self.groups.append(Group(self._texts.of(expression), words, expression.column))

    def _meant(self, expression: Expression) -> Expression:
        """Return the expression that an item of GROUP BY means: by position, by alias or itself."""
        word = expression.words[0]
        if len(expression.words) == 1 and isinstance(word, Slot):
            place = self._texts.integer(word)
            # A server has found the position in the list.
            return expression if place is None else self._items[place - 1]
        if expression.column is None or expression.is_qualified:
            return expression
        item = self._texts.with_alias(expression.column)
        if item is None or item.expression is None:
            return expression
        # Both servers read a name in GROUP BY as a column of the tables first, and as an
        # alias if there is no such column.
        if expression.column not in self._table_columns:
            return item.expression
        return expression  # the column, from which an alias of the same name may be made

    # --- outputs ----------------------------------------------------------------------------

    def _read_items(self) -> None:
        self.outputs = [self._output(each, in_list=True) for each in self._items]

    def _output(self, expression: Expression, *, in_list: bool = False) -> Output:
        texts = self._texts
        text, words = texts.of(expression), texts.words(expression)
        for place, group in enumerate(self.groups):
            if group.words == words:
                return Output(text, words, group=place)
        if expression.call is not None:
            self._check(expression.call, in_list=in_list)
            return Output(text, words, call=expression.call)
        if expression.has_aggregate:
            return Output(text, words)  # until all items are known: see `_made`
        if expression.is_constant:
            return Output(text, words, is_constant=True)
        texts.check_repeatable(expression, expression.names if in_list else frozenset())
        if _is_fixed(expression):
            return Output(text, words, is_constant=True)
        # Each row of a group may have another value, and which one a server shows is
        # undefined.
        if not expression.names or not expression.names <= self._group_columns:
            raise Unsupported("a column that is not grouped over several shards")
        return Output(text, words)

    def _check(self, call: AggregateCall, *, in_list: bool) -> None:
        if call.distinct and call.function == "COUNT":
            self._add_distinct(call)
        elif len(call.arguments) > 1 or (call.distinct and call.function not in EXTREMES):
            raise Unsupported(f"this form of {call.function} over several shards")
        for expression in call.arguments:
            # A name is a column here; outside the list it may be an alias if no column has its name.
            known = expression.names if in_list else self._table_columns
            self._texts.check_repeatable(expression, known)

    def _add_distinct(self, call: AggregateCall) -> None:
        known, words = (
            [self._texts.words(each) for each in arguments]
            for arguments in (self.distinct, call.arguments)
        )
        if not words or known not in ([], words):
            raise Unsupported("COUNT(DISTINCT …) of several lists over several shards")
        self.distinct = call.arguments

    def _find(self, expression: Expression) -> int:
        """Return the output that an expression of HAVING or ORDER BY means; add it if needed."""
        is_name = expression.column is not None and not expression.is_qualified
        if is_name and self._texts.with_alias(str(expression.column)):
            aliases = [item.alias for item in self._select.items]
            return aliases.index(expression.column)
        words = self._texts.words(expression)
        for place, output in enumerate(self.outputs):
            if output.words == words:
                return place
        if self._is_made(expression):
            return self._add(self._made(expression))
        return self._add(self._output(expression))

    def _add(self, output: Output) -> int:
        self.outputs.append(output)
        return len(self.outputs) - 1

    # --- expressions of aggregates ----------------------------------------------------------

    def _is_made(self, expression: Expression, *, in_list: bool = False) -> bool:
        """Return whether a value is made from aggregates; outside the list an alias may be."""
        if expression.call is not None:
            return False
        if expression.has_aggregate:
            return True
        if in_list:
            return False
        items = map(self._alias, _leaves(expression))
        return any(item and item.expression and item.expression.has_aggregate for item in items)

    def _made(
        self, expression: Expression, *, in_list: bool = False, tail: bytes | None = None
    ) -> Output:
        """Return an expression of aggregates. A token that is no operand is a keyword, or wrong."""
        texts = self._texts
        texts.check_steady(expression)
        operands = [
            (leaf.span, place)
            for leaf in _leaves(expression)
            if (place := self._operand(leaf, in_list=in_list)) is not None
        ]
        return Output(
            texts.of(expression),
            texts.words(expression) if tail is None else (),
            operands=tuple(operands),
            span=expression.span,
            tail=tail or b"",
            is_condition=tail is not None,
        )

    def _operand(self, leaf: Expression, *, in_list: bool) -> int | None:
        words = self._texts.words(leaf)
        item = None if in_list else self._alias(leaf)
        group = next((g for g, each in enumerate(self.groups) if each.words == words), None)
        if item is not None and (
            item.expression is None or item.expression.column != leaf.column
        ):
            place = self._select.items.index(item)
            output = self.outputs[place]
            is_sure = self.groups and leaf.column not in self._table_columns
            if not (is_sure and (output.call or output.group is not None or output.operands)):
                self._texts.check_repeatable(leaf)  # raises
            return place
        for place, output in enumerate(self.outputs):
            if output.words == words and (output.call or output.group is not None):
                return place
        if leaf.call is not None:
            self._check(leaf.call, in_list=in_list)
            return self._add(Output(self._texts.of(leaf), words, call=leaf.call))
        if leaf.has_aggregate:
            raise Unsupported.computing(self._texts.of(leaf), "no way to merge it")
        if group is None:
            return None
        return self._add(Output(self._texts.of(leaf), words, group=group))

    def _alias(self, leaf: Expression) -> Item | None:
        """Return the item that a name may mean outside the select list."""
        if leaf.column is None or leaf.is_qualified:
            return None
        return self._texts.with_alias(leaf.column)

    # --- HAVING -----------------------------------------------------------------------------

    def _read_condition(self, condition: HavingCondition) -> None:
        left = condition.left
        item = self._alias(left)
        value = left if item is None or item.expression is None else item.expression
        literal = condition.literal
        number = None if literal is None else self._texts.number(literal)
        is_group = left.column in self._group_columns
        if (
            number is not None
            and not is_group
            and value.call is not None
            and value.call.function in _COMPARED
        ):
            self.tests.append((self._find(left), condition.operator, number))
            return
        output = self._made(left, tail=self._texts.tail(condition))
        if not output.operands:
            raise Unsupported.computing(
                output.text + output.tail, "HAVING needs groups or their aggregates"
            )
        self.conditions.append(self._add(output))

    # --- ORDER BY ---------------------------------------------------------------------------

    def _read_order(self) -> None:
        wanted: list[tuple[int, bool]] = []
        for item in self._select.order:
            if item.position is not None:
                place = self._texts.integer(item.position)
                if place is not None:
                    wanted.append((place - 1, item.descending))
            elif not item.expression.is_constant:
                wanted.append((self._find(item.expression), item.descending))
        if self._is_distinct and len(self.outputs) > self.width:
            raise Unsupported("DISTINCT with ORDER BY of what is not selected")
        if not self.groups:
            if self.distinct and any(output.is_constant for output in self.outputs):
                # Without rows, no shard would return the constant.
                raise Unsupported(
                    "a constant and an aggregate with DISTINCT over several shards"
                )
            return
        wanted = [each for each in wanted if not self.outputs[each[0]].is_constant]
        leading: dict[int, bool] = {}
        for place, down in wanted:
            output = self.outputs[place]
            if output.group is not None:
                # The merge needs every group's rows together, and any order of all the groups'
                # columns gives that. So the client's own order comes first in it, at no extra
                # cost.
                leading.setdefault(output.group, down)
            elif output.call or output.operands:
                self.final_order = wanted
            else:
                raise Unsupported.computing(output.text, "ORDER BY needs groups or aggregates")
        rest = [(place, False) for place in range(len(self.groups)) if place not in leading]
        self.order = [*leading.items(), *rest]


# Calls that a connection answers itself, and words that may be columns even so.
_OWN: Final = frozenset({"LAST_INSERT_ID", "DATABASE", "SCHEMA", "IS_USED_LOCK", "DEFAULT"})
_MAY_BE_COLUMNS: Final = frozenset(
    {"unknown", "member", "array", "escape", "signed", "sounds", "of", "row", "end"}
)


def _is_fixed(expression: Expression) -> bool:
    """Return whether an expression is made only from literals: 5 + 5, CONCAT('a', 'b'), NOW()."""
    return (
        not (expression.names or expression.is_qualified)
        and expression.words != SUBQUERY
        and _OWN.isdisjoint(expression.calls)
        and _MAY_BE_COLUMNS.isdisjoint(
            word for word in expression.words if isinstance(word, str)
        )
    )


def _leaves(expression: Expression) -> tuple[Expression, ...]:
    return expression.leaves or (expression,)
