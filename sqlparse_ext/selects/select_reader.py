"""Take a SELECT apart: its items, groups, order and limit, as places in its template.

The proxy rewrites a SELECT for several shards from these parts, so no part is ever guessed:
`read_select` returns None for every form that it does not read with certainty, even for a name that
may or may not be an alias. Expressions are compared by their `words`, in which names are unquoted and in
lower case, without the table's name if there is only one table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.queries import read_factor
from streamfrom.sqlparse_ext.reading.statement_features import AGGREGATES, NO_ALIAS, alias_at
from streamfrom.sqlparse_ext.selects.select_ast import (
    SUBQUERY,
    AggregateCall,
    Expression,
    HavingCondition,
    Item,
    Limit,
    OrderItem,
    Select,
)
from streamfrom.sqlparse_ext.statements import ListSlot, Param, Slot, TableRef
from streamfrom.sqlparse_ext.text.tokens import (
    Cursor,
    outside_parens,
    split_at,
    split_commas,
    statement_tokens,
    unquote,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.select_ast import Span
    from streamfrom.sqlparse_ext.text.tokens import Token


# Each takes some 40 µs to read and to merge, on the loop.
_TOKENS_MAX: Final = 2_000
_DISTINCT: Final = frozenset({"DISTINCT", "DISTINCTROW"})
_OPTIONS: Final = (
    _DISTINCT
    | {"ALL", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT"}
    | {"SQL_BUFFER_RESULT", "SQL_CACHE", "SQL_NO_CACHE"}
)
_CLAUSES: Final = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK"})
# Their meaning for some rows is not that for all rows, or they are read elsewhere.
FOREIGN: Final = frozenset(
    {"INTO", "PROCEDURE", "WINDOW", "OVER", "FETCH", "ROLLUP", "CUBE", "SQL_CALC_FOUND_ROWS"}
    | {"UNION", "EXCEPT", "INTERSECT", "QUALIFY", ":=", ";"}
)
# Words after which a name continues the expression, and words that end one themselves.
# Bare words that are no columns.
_NO_COLUMN: Final = (
    NO_ALIAS
    | {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}
    | {"UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "CURRENT_USER", "AS", "SIGNED", "UNSIGNED"}
)
_COMPARISONS: Final = frozenset({"=", "<", ">", "<=", ">=", "<>", "!="})
_LOOSER: Final = frozenset({"OR", "XOR", "||", "BETWEEN", "CASE", "NOT"})


def read_select(template: bytes, tables: tuple[TableRef, ...] = ()) -> Select | None:
    """Return the parts of a SELECT from one table, or from a join of *tables*; None for any other.

    A subquery in an item is one value; one in a group, an order or HAVING is not read.
    """
    tokens = statement_tokens(template)
    if not tokens or tokens[0].key != "SELECT":
        return None
    # One pass over all tokens instead of a case in each reader below.
    if any(token.key in FOREIGN for token in tokens):
        return None
    return _SelectReader(tokens, template, tables if len(tables) > 1 else ()).read()


def read_select_from(tokens: list[Token], template: bytes) -> Select | None:
    """Return the parts of a SELECT whose FROM is one token, which stands for a derived table with an alias."""
    found = _SelectReader(tokens, template, ()).read()
    return None if found is None else replace(found, is_derived=True)


class _SelectReader:
    def __init__(
        self, tokens: list[Token], template: bytes, joined: tuple[TableRef, ...]
    ) -> None:
        self.tokens = tokens
        self.template = template
        self.joined = joined
        self.cursor = Cursor(tokens, template, 1)
        self.qualifiers: tuple[str, ...] = ()

    def span(self, start: int, end: int) -> Span:
        return self.tokens[start].start, self.tokens[end - 1].end

    def read(self) -> Select | None:
        cursor, tokens = self.cursor, self.tokens
        if len(tokens) > _TOKENS_MAX:
            return None
        distinct = None
        while cursor.key in _OPTIONS:
            if cursor.key in _DISTINCT:
                distinct = self.span(cursor.at, cursor.at + 1)
            cursor.take()
        items_at = cursor.at
        cursor.at = from_at = cursor.find({"FROM"})
        if not cursor.accept("FROM"):
            return None
        table_at = cursor.at
        if self.joined and cursor.key == "(":
            table = self.joined[0]  # a derived table
        else:
            found = read_factor(cursor)
            if found is None:
                return None
            table = found
        name_end = table_at + (3 if table.schema is not None else 1)
        if self.joined:
            cursor.at = cursor.find(_CLAUSES)
        else:
            self.qualifiers = ((table.alias or table.name).lower(),)
        items = [self.item(*bounds) for bounds in split_commas(tokens, items_at, from_at)]
        source = self.span(from_at, cursor.at)
        where = self.clause("WHERE") or (source[1], source[1])
        group = tuple(self.expression(*self.bare(*each)) for each in self.listed("GROUP"))
        start = cursor.at + 1
        having = tuple(self.conditions(start, cursor.at)) if self.clause("HAVING") else ()
        order = tuple(self.order_item(*each) for each in self.listed("ORDER"))
        rows_end = tokens[cursor.at - 1].end
        limit = None
        if cursor.key == "LIMIT":
            limit = self.limit()
            if limit is None:
                return None
        # Unread tokens are left: such a SELECT is not read at all.
        if cursor.key not in ("", "FOR", "LOCK"):
            return None
        pieces = [item for item in items if item is not None]
        expressions = [*group, *(each.expression for each in order)]
        expressions += [each.left for each in having]
        expressions += [each.expression for each in pieces if each.expression is not None]
        if len(pieces) < len(items) or not all(each.words for each in expressions):
            return None
        return Select(
            tokens[0].end,
            distinct,
            tuple(pieces),
            table,
            self.span(table_at, name_end),
            self.joined,
            source,
            where,
            group,
            having,
            order,
            limit,
            rows_end,
        )

    def clause(self, *words: str) -> Span | None:
        """Move past the clause that begins with *words*, if it is here; return its place."""
        cursor, start = self.cursor, self.cursor.at
        if not cursor.accept(*words):
            return None
        cursor.at = cursor.find(_CLAUSES)
        return self.span(start, cursor.at)

    def listed(self, word: str) -> list[tuple[int, int]]:
        """Move past GROUP BY or ORDER BY, if it is here; return its parts in tokens."""
        start = self.cursor.at + 2
        is_here = self.clause(word, "BY")
        return split_commas(self.tokens, start, self.cursor.at) if is_here else []

    def item(self, start: int, end: int) -> Item | None:
        tokens = self.tokens
        if end <= start:
            return None
        span = self.span(start, end)
        if tokens[end - 1].key == "*" and (end - start == 1 or tokens[end - 2].key == "."):
            return Item(span, None, is_bare_star=end - start == 1)
        alias = None
        place = alias_at(tokens, start, end)
        if place is not None:
            if not tokens[place].is_name:
                return None
            alias = unquote(tokens[place], self.template).lower()
            end = place - (tokens[place - 1].key == "AS")
        if any(token.key == "SELECT" for token in tokens[start:end]):
            value = self.subquery(start, end)
        else:
            value = self.expression(*self.bare(start, end))
        return None if value is None else Item(span, value, alias)

    def subquery(self, start: int, end: int) -> Expression | None:
        """Read an expression with a subquery in it: a value that is compared with no other expression."""
        if self.has_aggregate_outside(start, end):
            return None
        return Expression(self.span(start, end), SUBQUERY)

    def has_aggregate_outside(self, start: int, end: int) -> bool:
        """Return whether an aggregate is called outside the subqueries."""
        tokens = self.tokens
        inside = Cursor(tokens, self.template, start)
        while inside.at < end:
            if inside.key == "(" and inside.peek(1).key in ("SELECT", "WITH"):
                inside.skip_parens()
            elif inside.take().key in AGGREGATES and inside.key == "(":
                return True
        return False

    def expression(self, start: int, end: int) -> Expression:
        """Read an expression; one without tokens, or with a subquery, has no words."""
        words: list[str | Slot | ListSlot] = []
        names = set()
        calls = set()
        is_qualified = False
        place = start
        while place < end:
            token = self.tokens[place]
            after = self.tokens[place + 1].key if place + 1 < end else ""
            if token.slot is not None:
                # Which `?` it is does not matter: merged statements have values in their place.
                words.append(token.key if isinstance(token.slot, Param) else token.slot)
            elif not token.is_name:
                words.append(token.key)
            else:
                name = unquote(token, self.template).lower()
                # With one table, `t.a` and `a` are the same column, and are compared as
                # such.
                if after == "." and name in self.qualifiers:
                    is_qualified = True
                    place += 2
                    continue
                words.append(name)
                if after == "(" and token.is_word:
                    calls.add(token.key)
                elif token.key not in _NO_COLUMN:
                    names.add(name)
            place += 1
        column = None
        if len(words) == 1 and len(names) == 1:
            (column,) = names
        if end <= start or any(token.key == "SELECT" for token in self.tokens[start:end]):
            return Expression((0, 0), ())
        call = self.call(start, end)
        return Expression(
            self.span(start, end),
            tuple(words),
            column,
            frozenset(names),
            frozenset(calls),
            call,
            is_qualified,
            () if call is not None or len(words) == 1 else self.leaves(start, end),
        )

    def leaves(self, start: int, end: int) -> tuple[Expression, ...]:
        """Return the calls of aggregates, and the names outside them that are no calls."""
        tokens = self.tokens
        found = []
        inside = Cursor(tokens, self.template, start)
        while inside.at < end:
            first = inside.at
            token = inside.take()
            if not token.is_name:
                continue
            if token.key in AGGREGATES and inside.skip_parens():
                found.append((first, inside.at))
            elif inside.key != "(":
                while inside.key == "." and inside.peek(1).is_name:
                    inside.at += 2
                found.append((first, inside.at))
        # An aggregate that is the whole expression has no leaves: it is a leaf.
        return tuple(self.expression(*bounds) for bounds in found if bounds != (start, end))

    def call(self, start: int, end: int) -> AggregateCall | None:
        tokens = self.tokens
        # The shortest is COUNT ( * ), four tokens.
        if end - start < 4 or tokens[start].key not in AGGREGATES:
            return None
        inside = Cursor(tokens, self.template, start + 1)
        if not inside.skip_parens() or inside.at != end:
            return None
        first = start + 2
        distinct = tokens[first].key == "DISTINCT"
        first += distinct or tokens[first].key == "ALL"
        if tokens[first].key == "*" and first == end - 2:
            return AggregateCall(tokens[start].key, distinct, ())
        last = end - 1
        arguments = tuple(
            self.expression(*bounds) for bounds in split_commas(tokens, first, last)
        )
        if not all(expression.words for expression in arguments):
            return None
        return AggregateCall(tokens[start].key, distinct, arguments)

    def bare(self, start: int, end: int) -> tuple[int, int]:
        """Return an expression's place without the parentheses around it: (2) is a position too."""
        tokens = self.tokens
        inside = Cursor(tokens, self.template, start)
        while inside.skip_parens() and inside.at == end:
            if len(split_commas(tokens, start + 1, end - 1)) > 1:
                break
            start, end = start + 1, end - 1
            inside.at = start
        return start, end

    def order_item(self, start: int, end: int) -> OrderItem:
        direction = self.tokens[end - 1].key if end > start else ""
        if direction in ("ASC", "DESC"):
            end -= 1
        expression = self.expression(*self.bare(start, end))
        position = expression.words[0] if len(expression.words) == 1 else None
        return OrderItem(
            expression, direction == "DESC", position if isinstance(position, Slot) else None
        )

    def conditions(self, start: int, end: int) -> list[HavingCondition]:
        """Read the operands of HAVING's AND; a condition that binds looser than AND is one operand."""
        tokens = self.tokens
        for place in outside_parens(tokens, start, end):
            key = tokens[place].key
            if key in _LOOSER and not (key == "NOT" and tokens[place - 1].key == "IS"):
                return [HavingCondition(self.expression(start, end))]
        ranges = split_at(tokens, start, end, {"AND", "&&"})
        return [self.condition(*bounds) for bounds in ranges]

    def condition(self, start: int, end: int) -> HavingCondition:
        tokens = self.tokens
        literal = tokens[end - 1].slot if end - start > 2 else None
        operator = tokens[end - 2].key
        if isinstance(literal, Slot) and operator in _COMPARISONS:
            return HavingCondition(self.expression(start, end - 2), operator, literal)
        return HavingCondition(self.expression(start, end))

    def limit(self) -> Limit | None:
        cursor = self.cursor
        start = cursor.at
        cursor.take()
        first = cursor.take().slot
        count, offset = first, None
        if cursor.accept(","):
            offset, count = first, cursor.take().slot
        elif cursor.accept("OFFSET"):
            offset = cursor.take().slot
        has_offset = cursor.at > start + 2
        if not isinstance(count, Slot) or (has_offset and not isinstance(offset, Slot)):
            return None
        return Limit(
            self.span(start, cursor.at), count, offset if isinstance(offset, Slot) else None
        )
