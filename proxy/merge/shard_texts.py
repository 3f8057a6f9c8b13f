"""The pieces of one concrete SELECT, and the queries about its table that precede it.

Every text here is made from the client's own bytes: a piece is cut out at its place in the template,
and put where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.statement_features import VOLATILE
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, quoted
from streamfrom.sqlparse_ext.text.lexer import Edit, fingerprint, locate, replace
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.select_ast import (
        Expression,
        HavingCondition,
        Item,
        Select,
        Span,
    )
    from streamfrom.sqlparse_ext.statements import Slot, Statement


LIMIT_MAX: Final = (1 << 64) - 1


class Texts:
    """The texts of one statement's pieces."""

    def __init__(self, statement: Statement, select: Select) -> None:
        self.select = select  # the pieces of the SELECT
        self._statement = statement
        # The spans of all parts begin and end with a token.
        template = fingerprint(statement.sql, statement.mode).template
        borders = [place for token in statement_tokens(template) for place in token[1:3]]
        found = locate(statement.sql, statement.mode, borders)
        self._places = dict(zip(borders, found, strict=True))
        self.offset = 0  # the OFFSET, 0 without one
        self.count: int | None = None  # the LIMIT, None without one
        if select.limit is not None:
            self.count = self._operand(select.limit.count)
            if select.limit.offset is not None:
                self.offset = self._operand(select.limit.offset)

    def _operand(self, slot: Slot) -> int:
        value = self._statement.value(slot)
        if not isinstance(value, int):
            raise Unsupported("this form of LIMIT over several shards")
        return value

    @property
    def reach(self) -> int | None:
        """The most rows of each shard that can be in the answer; None for all."""
        return None if self.count is None else min(self.offset + self.count, LIMIT_MAX)

    def at(self, span: Span) -> bytes:
        """Return the text of a span of the template."""
        start, end = span
        return self._statement.sql[self._places[start] : self._places[end]]

    def of(self, expression: Expression) -> bytes:
        """Return an expression as the client wrote it."""
        return self.at(expression.span)

    def integer(self, slot: Slot) -> int | None:
        """Return the value of a literal; None if it is no integer."""
        value = self._statement.value(slot)
        return value if isinstance(value, int) else None

    def number(self, slot: Slot) -> int | str | None:
        """Return a literal's value if it is a number; one with a point or exponent as text."""
        value = self._statement.value(slot)
        if isinstance(value, bytes) or value is None:
            return None
        return value if isinstance(value, int) else value.text

    def tail(self, condition: HavingCondition) -> bytes:
        """Return the text after the left side of a condition of HAVING."""
        if condition.literal is None:
            return b""
        (literal,) = self._statement.raw(condition.literal)
        return b" %b %b" % (condition.operator.encode(), literal)

    def options(self) -> bytes:
        """Return the text between SELECT and the first item, without DISTINCT."""
        start, end = self.select.select_end, self.select.items[0].span[0]
        if self.select.distinct is None:
            return self.at((start, end)).strip()
        before = self.at((start, self.select.distinct[0]))
        return (before + self.at((self.select.distinct[1], end))).strip()

    def words(self, expression: Expression) -> tuple[object, ...]:
        """Return a key that is equal for two expressions if they are the same."""
        return tuple(
            word if isinstance(word, str) else self._statement.raw(word)
            for word in expression.words
        )

    def edited(self, edits: Iterable[tuple[Span, bytes]]) -> bytes:
        """Return the statement with spans replaced."""
        return replace(
            self._statement.sql,
            [Edit(self._places[span[0]], self._places[span[1]], text) for span, text in edits],
        )

    # --- queries ----------------------------------------------------------------------------

    def described(self) -> bytes:
        """Return the unchanged statement without rows: its definitions are the answer's."""
        return self.edited([self.limit_edit(b"LIMIT 0")])

    def limit_edit(self, text: bytes) -> tuple[Span, bytes]:
        """Return the edit that puts *text* in place of the LIMIT clause, or where one belongs."""
        limit = self.select.limit
        if limit is not None:
            return limit.span, text
        return (self.select.rows_end, self.select.rows_end), b" %b " % text

    def ask_columns(self) -> bytes:
        """Return the query whose definitions are the table's columns."""
        return b"SELECT * %b WHERE 1=0" % self.at(self.select.source)

    def ask_type(self, expression: bytes) -> bytes:
        """Return the query whose one definition is the expression's."""
        return b"SELECT %b %b LIMIT 0" % (expression, self.at(self.select.source))

    def ask_collation(self, expression: bytes, *, aggregate: bool) -> bytes:
        """Return the query for an expression's collation and, in hex, the weight of a space.

        MAX makes a row if there is none, and keeps the collation. COALESCE(MAX(a), 'x') still has
        a value, which LEFT shortens to nothing.
        """
        value = expression if aggregate else b"MAX(%b)" % expression
        return (
            b"SELECT COLLATION(%b), HEX(WEIGHT_STRING(CONCAT(LEFT(COALESCE(%b, ''), 0), ' ')))"
            b" %b WHERE 1=0" % (value, value, self.at(self.select.source))
        )

    # --- names ------------------------------------------------------------------------------

    def star(self) -> bytes:
        """Return `*` in a form that may come after other items."""
        if self.select.joined:
            return self._star_of_join()
        alias = self.select.table.alias
        if alias is not None:
            return quoted(alias) + b".*"
        return self.at(self.select.table_span) + b".*"

    def _star_of_join(self) -> bytes:
        source = self.at(self.select.source).upper()
        if any(word in source for word in (b"USING", b"NATURAL", b"RIGHT")):
            # Their columns come in another order, and some only once.
            raise Unsupported("ORDER BY with * of such a join over several shards")
        names = [
            quote_identifier(table.alias)
            if table.alias
            else ".".join(quote_identifier(part) for part in (table.schema, table.name) if part)
            for table in self.select.joined
        ]
        return ", ".join(f"{name}.*" for name in names).encode("utf-8", "surrogateescape")

    def with_alias(self, name: str) -> Item | None:
        """Return the item of this (lower-case) alias. Raises Unsupported if several have it."""
        found = [item for item in self.select.items if item.alias == name]
        if len(found) > 1:
            raise Unsupported(f"'{name}' for two items over several shards")
        return found[0] if found else None

    def ends_item(self, name: str) -> bool:
        """Return whether an item is a column of this name, qualified by its table."""
        return any(
            item.expression is not None and item.expression.words[-2:] == (".", name)
            for item in self.select.items
        )

    @staticmethod
    def check_steady(expression: Expression) -> None:
        """Raise Unsupported if two evaluations of an expression may give two values."""
        if expression.calls & VOLATILE or any(
            isinstance(word, str) and word.startswith("@") for word in expression.words
        ):
            raise Unsupported("sorting or grouping by a volatile function over several shards")

    def check_repeatable(
        self, expression: Expression, columns: frozenset[str] = frozenset()
    ) -> None:
        """Raise Unsupported if an expression cannot be evaluated twice, or may mean an alias.

        columns: names that mean columns here, whatever aliases there are.
        """
        self.check_steady(expression)
        for name in expression.names - columns:
            item = self.with_alias(name)
            if item is not None and (item.expression is None or item.expression.column != name):
                raise Unsupported(f"an expression of the alias '{name}' over several shards")
