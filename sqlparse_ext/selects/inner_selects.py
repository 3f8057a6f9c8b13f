"""The SELECTs inside a statement, each as a separate statement.

These are the SELECTs between UNION, EXCEPT and INTERSECT, the derived tables of a FROM, and the
bodies of WITH. None of them refers to the rest. So the proxy can answer each separately,
put its rows in its place, and let one server answer the rest.

A SELECT from one derived table can be read like one from a table (`read_derived`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from streamfrom.sqlparse_ext.reading.parser import parse
from streamfrom.sqlparse_ext.reading.queries import read_factor
from streamfrom.sqlparse_ext.reading.statement_features import VOLATILE
from streamfrom.sqlparse_ext.selects.select_reader import FOREIGN, read_select_from
from streamfrom.sqlparse_ext.statements import Param, Shape, Statement, TableRef
from streamfrom.sqlparse_ext.text.identifiers import quoted
from streamfrom.sqlparse_ext.text.lexer import Edit, fingerprint, locate, replace, splice
from streamfrom.sqlparse_ext.text.tokens import (
    Cursor,
    Token,
    is_balanced,
    outside_parens,
    statement_tokens,
    unquote,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.select_ast import Select

    Range: TypeAlias = tuple[int, int]  # of tokens


OPERATORS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_TAIL: Final = frozenset({"ORDER", "LIMIT"})
_FACTORS: Final = frozenset({"FROM", "JOIN", "STRAIGHT_JOIN", ","})
_FROM_ENDS: Final = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW"})
_COUNT: Final = ["SELECT", "COUNT", "(", "*", ")"]
_ONE_ROW: Final = ["FROM", "(", "SELECT", "1", ")"]
# Constructs that may refer to the outside of a SELECT, lock its rows, or are read elsewhere.
_FOREIGN: Final = frozenset(
    {"INTO", "PROCEDURE", "FETCH", "FOR", "LOCK", "LATERAL", "RECURSIVE", ":=", ";"}
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A range of a template that is a separate statement. parameters: the range of its `?`s."""

    start: int
    end: int
    parameters: tuple[int, int] = (0, 0)

    def statement(self, statement: Statement, before: bytes = b"") -> Statement:
        """Return it as a statement after the text *before*, with the values that *statement* is bound to."""
        start, end = locate(statement.sql, statement.mode, (self.start, self.end))
        sql = before + statement.sql[start:end]
        template, literals, runs = fingerprint(sql, statement.mode)
        found = Statement(sql, statement.mode, _parse(template), literals, runs)
        if statement.arguments is None:
            return found
        first, stop = self.parameters
        return found.bind(statement.arguments[first:stop], _shifted(statement.spell, first))


@dataclass(frozen=True, slots=True)
class InnerSelects:
    """The SELECTs within one template."""

    excerpts: tuple[Excerpt, ...]
    # The operators (UNION etc.) between the SELECTs; empty for derived tables and WITH.
    operators: tuple[str, ...]
    names: frozenset[str]  # the names that WITH gives to its bodies, in lower case
    outside: Shape  # the shape of the statement with `SELECT 1` in the place of each SELECT
    union_end: int  # the place after the last SELECT of a UNION

    @property
    def counts_rows(self) -> bool:
        """True if the statement is `SELECT COUNT(*) FROM (…) AS alias`, with at most an alias for the count."""
        keys = [token.key for token in statement_tokens(self.outside.template)]
        at = keys.index("FROM") if "FROM" in keys else 0
        behind = len(keys) - at - len(_ONE_ROW)
        return (
            keys[: len(_COUNT)] == _COUNT
            and at - len(_COUNT) in (0, 1 + ("AS" in keys[:at]))
            and keys[at : len(keys) - behind] == _ONE_ROW
            and behind == 1 + ("AS" in keys[at:])
        )

    def body(self, statement: Statement, texts: Mapping[int, bytes]) -> bytes:
        """Return the SELECTs of a UNION like `with_parts`, without the clauses that sort and limit them."""
        (end,) = locate(statement.sql, statement.mode, (self.union_end,))
        behind = len(statement.sql) - end
        sql = self.with_parts(statement, texts)
        return sql[: len(sql) - behind]

    def with_parts(self, statement: Statement, texts: Mapping[int, bytes]) -> bytes:
        """Return *statement* with *texts*, by the numbers of the SELECTs that they replace."""
        places = ((self.excerpts[number], text) for number, text in texts.items())
        edits = [Edit(each.start, each.end, text) for each, text in places]
        return splice(statement.sql, statement.mode, edits)


def read_inner_selects(template: bytes) -> InnerSelects | None:
    """Return the SELECTs within a statement; None if there are none, or in doubt."""
    tokens = statement_tokens(template)
    if not tokens or any(token.key in _FOREIGN for token in tokens):
        return None
    outer = list(outside_parens(tokens, 0, len(tokens)))
    places = [place for place in outer if tokens[place].key in OPERATORS]
    names: frozenset[str] = frozenset()
    operators: tuple[str, ...] = ()
    ranges: list[Range] | None
    union_end = len(template)
    if tokens[0].key == "WITH":
        found = _bodies(tokens, template)
        if found is None:
            return None
        names, ranges = found
    elif places:
        last = next(
            (p for p in outer if p > places[-1] and tokens[p].key in _TAIL), len(tokens)
        )
        ranges = _between(tokens, places, last)
        union_end = tokens[last - 1].end
        operators = tuple(
            tokens[place].key + (" ALL" if tokens[place + 1].key == "ALL" else "")
            for place in places
            if place + 1 < len(tokens)
        )
    else:
        ranges = _derived(tokens, outer, template)
    if not ranges or not all(_begins_select(tokens, start) for start, _ in ranges):
        return None
    return InnerSelects(
        tuple(excerpt(tokens, *each) for each in ranges),
        operators,
        names,
        _parse(
            replace(
                template,
                [Edit(tokens[a].start, tokens[b - 1].end, b"SELECT 1") for a, b in ranges],
            )
        ),
        union_end,
    )


def without_rows(statement: Statement) -> bytes:
    """Return a SELECT or UNION changed so that it has its columns and no rows."""
    tokens = statement_tokens(statement.shape.template)
    outer = outside_parens(tokens, 0, len(tokens))
    limits = [place for place in outer if tokens[place].key == "LIMIT"]
    end = tokens[limits[-1]].start if limits else tokens[-1].end
    (stop,) = locate(statement.sql, statement.mode, (end,))
    return statement.sql[:stop].rstrip() + b" LIMIT 0"


def _between(tokens: list[Token], operators: list[int], end: int) -> list[Range] | None:
    """Return the SELECTs of a UNION, without the parentheses around them."""
    found = []
    start = 0
    for stop in [*operators, end]:
        first, last = start, stop
        while last - first > 2 and tokens[first].key == "(" and tokens[last - 1].key == ")":
            first, last = first + 1, last - 1
        inside = outside_parens(tokens, first, last)
        if (
            last <= first
            or not is_balanced(tokens[first:last])
            or any(tokens[place].key in OPERATORS for place in inside)
        ):
            return None
        found.append((first, last))
        start = stop + 1
        if start < len(tokens) and tokens[start].key in ("ALL", "DISTINCT"):
            start += 1
    return found


def _derived(tokens: list[Token], outer: list[int], template: bytes) -> list[Range] | None:
    """Return the derived tables of a SELECT."""
    starts = [place for place in outer if tokens[place].key == "FROM"]
    if len(starts) != 1 or tokens[0].key != "SELECT":
        return None
    end = next((p for p in outer if p > starts[0] and tokens[p].key in _FROM_ENDS), len(tokens))
    found = []
    for place in outer:
        if starts[0] <= place < end - 2 and tokens[place].key in _FACTORS:
            cursor = Cursor(tokens, template, place + 1)
            if cursor.key == "(" and cursor.skip_parens():
                found.append((place + 2, cursor.at - 1))
    return [each for each in found if _begins_select(tokens, each[0])]


def _begins_select(tokens: list[Token], start: int) -> bool:
    """Return whether a SELECT begins there, perhaps that of a UNION in parentheses."""
    return next(token.key for token in tokens[start:] if token.key != "(") == "SELECT"


def _bodies(tokens: list[Token], template: bytes) -> tuple[frozenset[str], list[Range]] | None:
    """Return the names and the bodies of WITH."""
    cursor = Cursor(tokens, template, 1)
    names = set()
    found = []
    while True:
        name = cursor.name()
        if name is None:
            return None
        names.add(name.lower())
        if cursor.key == "(" and not cursor.skip_parens():
            return None
        start = cursor.at + 2
        if not cursor.accept("AS") or not cursor.skip_parens():
            return None
        found.append((start, cursor.at - 1))
        if not cursor.accept(","):
            return frozenset(names), found


def excerpt(tokens: list[Token], start: int, end: int) -> Excerpt:
    """Return the excerpt of a range of a template's tokens."""
    before = sum(isinstance(token.slot, Param) for token in tokens[:start])
    inside = sum(isinstance(token.slot, Param) for token in tokens[start:end])
    return Excerpt(tokens[start].start, tokens[end - 1].end, (before, before + inside))


def _shifted(spell: Callable[[int], bytes] | None, by: int) -> Callable[[int], bytes] | None:
    return None if spell is None else lambda place: spell(place + by)


# Shapes are compared by identity: plans are kept for each.
_parse = lru_cache(maxsize=2048)(parse)


# Constructs that lock the rows, leave something behind, read other rows, or need the table itself.
_NOT_OF_ROWS: Final = frozenset(
    {"INTO", "PROCEDURE", "FETCH", "FOR", "LOCK", "SQL_CALC_FOUND_ROWS", ":=", ";"}
    | {"UNION", "EXCEPT", "INTERSECT", "QUALIFY", "EXAMINED", "DEFAULT", "_ROWID"}
)
_JOINS: Final = frozenset({"JOIN", "STRAIGHT_JOIN", ","})
_MADE_ONE: Final = frozenset({"USING", "NATURAL"})  # with these, two tables have one column


class QualifiedColumn(NamedTuple):
    """`alias.column` in a template. end: the place after it."""

    start: int
    end: int
    table: str  # the alias as FROM has it
    column: str  # in lower case


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of the FROM and WHERE of a SELECT.

    `SELECT STD(a) FROM t WHERE b > 1` is `SELECT STD(a) FROM (SELECT a FROM t WHERE b > 1) AS t`. So a result that cannot be merged from the
    answers of several shards can be computed from their rows, by one of them.
    """

    source: Excerpt  # FROM and WHERE
    tables: tuple[str, ...]  # the names of its tables
    name: str  # the name of the rows in the rest
    # The unqualified names in the rest, in lower case; some are columns. None for all columns.
    wanted: frozenset[str] | None
    qualified: tuple[QualifiedColumn, ...] = ()  # the qualified columns in the rest
    shared: frozenset[str] = frozenset()  # their names that several tables have
    operators: tuple[str, ...] = ()  # none, as for all parts except a UNION's

    def ask_columns(self) -> list[bytes]:
        """Return a query for each table; its rows begin with the names of the columns, including invisible ones."""
        return [b"SHOW COLUMNS FROM " + quoted(table) for table in self.tables]

    def statement(self, statement: Statement, columns: Iterable[str] = ()) -> Statement:
        """Return the SELECT of the rows, with the values that *statement* is bound to.

        columns: those of all tables, from which the wanted ones are selected.
        """
        if self.wanted is None:
            return self.source.statement(statement, b"SELECT * ")
        items = {
            self._named(each): b"%b.%b AS %b"
            % (quoted(each.table), quoted(each.column), quoted(self._named(each)))
            for each in self.qualified
        }
        # A name that several tables have is no column without its table.
        counts = Counter(name.lower() for name in columns)
        for name in sorted(self.wanted - items.keys()):
            if counts[name] == 1:
                items[name] = quoted(name)
        text = b", ".join(items.values()) or b"1"
        return self.source.statement(statement, b"SELECT %b " % text)

    def _named(self, column: QualifiedColumn) -> str:
        """Return the name of a column in the rows."""
        is_shared = column.column in self.shared
        return f"{column.table}.{column.column}" if is_shared else column.column

    def with_parts(self, statement: Statement, texts: Mapping[int, bytes]) -> bytes:
        """Return *statement*, changed to read the rows that the first of *texts* returns."""
        edits = [
            Edit(
                self.source.start,
                self.source.end,
                b"FROM (%b) AS %b" % (texts[0], quoted(self.name)),
            )
        ]
        edits += [
            Edit(
                each.start, each.end, b"%b.%b" % (quoted(self.name), quoted(self._named(each)))
            )
            for each in self.qualified
        ]
        return splice(statement.sql, statement.mode, edits)


def read_table_rows(template: bytes) -> TableRows | None:
    """Return the rows that a SELECT from tables reads; None for any other, and in doubt."""
    tokens = statement_tokens(template)
    if not tokens or tokens[0].key != "SELECT":
        return None
    if any(token.key in _NOT_OF_ROWS or token.is_variable for token in tokens):
        return None
    if sum(token.key == "SELECT" for token in tokens) > 1:
        return None
    cursor = Cursor(tokens, template, 1)
    start = cursor.at = cursor.find({"FROM"})
    if not cursor.accept("FROM"):
        return None
    tables: dict[str, TableRef] = {}
    while True:
        table = read_factor(cursor)
        if table is None or table.schema is not None:
            return None
        tables[(table.alias or table.name).lower()] = table
        cursor.at = cursor.find(_FROM_ENDS | _JOINS | _MADE_ONE)
        if cursor.key in _MADE_ONE:
            return None
        if not cursor.accept_any(_JOINS):
            break
    if cursor.accept("WHERE"):
        cursor.at = cursor.find(_FROM_ENDS)
    rest = [*range(start), *range(cursor.at, len(tokens))]
    # An operand follows the sign of a multiplication.
    has_star = any(
        tokens[place].key == "*" and tokens[place + 1].key in (",", "FROM")
        for place in range(start)
    )
    qualified = tuple(_qualified(tokens, template, rest, tables))
    bare = frozenset(
        unquote(tokens[place], template).lower()
        for place in rest
        if tokens[place].is_name and tokens[place - 1].key != "."
    )
    columns = Counter(column for _, column in {(each.table, each.column) for each in qualified})
    shared = frozenset(column for column, count in columns.items() if count > 1)
    # Without its table such a name is the label of an item, which the rows do not have.
    if (has_star and len(tables) > 1) or shared & bare:
        return None
    (first, *others) = tables.values()
    return TableRows(
        excerpt(tokens, start, cursor.at),
        tuple(table.name for table in tables.values()),
        "streamfrom" if others else first.alias or first.name,
        None if has_star else bare,
        qualified,
        shared,
    )


def _qualified(
    tokens: list[Token], template: bytes, places: Iterable[int], tables: Mapping[str, TableRef]
) -> Iterator[QualifiedColumn]:
    """Yield each `alias.column` at *places*, the places of tokens."""
    for place in places:
        cursor = Cursor(tokens, template, place)
        before = tokens[place - 1].key
        table = cursor.table()
        if before == "." or table is None or table.schema is None or cursor.key in ("(", "."):
            continue
        found = tables.get(table.schema.lower())
        if found is not None:
            end = tokens[cursor.at - 1].end
            yield QualifiedColumn(
                tokens[place].start, end, found.alias or found.name, table.name.lower()
            )


_STARTS: Final = frozenset({"SELECT", "("})


def read_derived(template: bytes) -> Select | None:
    """Return the parts of a SELECT from one derived table; None for any other statement."""
    tokens = statement_tokens(template)
    found = _find(tokens, template)
    return None if found is None else _select(tokens, template, *found)


def _find(tokens: list[Token], template: bytes) -> tuple[int, int] | None:
    """Return where the derived table of a SELECT begins and ends, including its parentheses."""
    if not tokens or tokens[0].key != "SELECT":
        return None
    cursor = Cursor(tokens, template, 1)
    cursor.at = cursor.find({"FROM"})
    if not cursor.accept("FROM") or cursor.key != "(" or cursor.peek(1).key not in _STARTS:
        return None
    start = cursor.at
    return (start, cursor.at) if cursor.skip_parens() else None


def _select(tokens: list[Token], template: bytes, start: int, end: int) -> Select | None:
    # One token for the derived table, which is not read further.
    table = Token("`", tokens[start].start, tokens[end - 1].end)
    seen = [*tokens[:start], table, *tokens[end:]]
    if any(token.key in FOREIGN for token in seen):
        return None
    if any(token.key in VOLATILE or token.is_variable for token in tokens[start:end]):
        return None  # its columns may differ at each evaluation
    select = read_select_from(seen, template)
    return None if select is None or select.table.alias is None else select
