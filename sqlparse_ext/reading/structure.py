"""Parse a query with sqlglot, and find its tables at any depth. `join_equalities` reads the same tree.

sqlglot reads joins, derived tables, CTEs and their scopes, for which a cursor over tokens is not enough. It
is composed, never subclassed (the compiled build forbids that), and sees the template with stand-ins
for the literals. Its result is checked against `database_names`, because it silently misreads some
MySQL. It takes 30 MB and a tenth of a second to load, and a queue's own statements
never need it, so callers import this module only when they need it.
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from streamfrom.sqlparse_ext.reading.database_names import tables_read
from streamfrom.sqlparse_ext.statements import TableRef
from streamfrom.sqlparse_ext.text.lexer_patterns import CALL_ROWS, ROW_LITERAL, ROWS, STRING
from streamfrom.sqlparse_ext.text.tokens import Token, unquote


# sqlglot takes some 5 ms for a query of 2,000 tokens, during which nothing else runs.
_TOKENS_MAX: Final = 2_000
# It reads some texts repeatedly: `t JOIN t JOIN t …` twice as often for each additional JOIN. 10,000
# nodes take it 30 ms at most, and a query of 2,000 tokens that is read once has 3,000.
_NODES_MAX: Final = 10_000

_STAND_INS: Final = {
    STRING.decode(): "''",  # sqlglot reads a text as a name, and no table has this one
    ROWS.decode(): "(1)",
    CALL_ROWS.decode(): "(1)",
    ROW_LITERAL.decode(): "'s'",
}
# A literal of a marked tree begins with this; the place of its token follows.
_MARK: Final = "9000"


def parse_query(
    tokens: list[Token], template: bytes, *, marked: bool = False
) -> exp.Query | exp.Values | None:
    """Return the tree of a query; None if sqlglot cannot read it, or is not to be trusted.

    marked: every literal of the tree has the place of its token, see `marked_place`.
    """
    if len(tokens) > _TOKENS_MAX:
        return None
    try:
        tree = sqlglot.parse_one(
            _render(tokens, template, marked=marked), read="mysql", max_nodes=_NODES_MAX
        )
    except (SqlglotError, RecursionError, ValueError):
        return None
    if not isinstance(tree, exp.Query | exp.Values):
        return None
    names = {table.name.lower() for table in tree.find_all(exp.Table)}
    # A check of sqlglot by a second reading: a table that it lost would be a shard that
    # is not queried.
    if any(table.name.lower() not in names for table in tables_read(tokens, template)):
        return None
    return tree


def marked_place(node: exp.Expr) -> int | None:
    """Return the token place that a literal of a marked tree stands for; None for any other node."""
    if not isinstance(node, exp.Literal) or not node.this.startswith(_MARK):
        return None
    return int(node.this[len(_MARK) :])


def query_tables(tokens: list[Token], template: bytes) -> tuple[TableRef, ...] | None:
    """Return the tables that the query *tokens* reads, in order; None when in doubt.

    CTE names and DUAL are not tables. A table that is named twice is listed twice, once for each
    alias.
    """
    tree = parse_query(tokens, template)
    if tree is None:
        return None
    refs = []
    for table in tree.find_all(exp.Table, bfs=False):
        if table.catalog or not isinstance(table.this, exp.Identifier | exp.Func):
            return None
        if isinstance(table.this, exp.Identifier) and not table.name:
            return None
        if is_table(table):
            refs.append(TableRef(table.db or None, table.name, table.alias or None))
    return tuple(dict.fromkeys(refs))


def _render(tokens: list[Token], template: bytes, *, marked: bool) -> str:
    """Write *tokens* as text for sqlglot, with stand-ins for tokens that it need not see."""
    parts = []
    end = -1
    for place, token in enumerate(tokens):
        if token.start != end or token.start == token.end:
            parts.append(" ")
        end = token.end
        first = token.key[:1]
        if token.start == token.end:
            parts.append(token.key + " ")
        elif token.slot is not None or first < " ":
            stand_in = _STAND_INS.get(token.key, "1")
            if marked and token.slot is not None:
                stand_in = f"{_MARK}{place}" if stand_in == "1" else f"'{_MARK}{place}'"
            parts.append(stand_in)
        elif first == "@":
            parts.append("@v")
        elif first in ("`", '"'):
            parts.append("`" + unquote(token, template).replace("`", "``") + "`")
        elif token.is_word:
            parts.append(unquote(token, template))
        else:
            parts.append(token.key)
    return "".join(parts)


def is_table(node: exp.Table) -> bool:
    """Return whether it is a table of a database, and no CTE, no DUAL and no table function such as JSON_TABLE."""
    if not isinstance(node.this, exp.Identifier):
        return False
    return bool(node.db) or not (node.name.upper() == "DUAL" or _is_cte(node))


def _is_cte(table: exp.Table) -> bool:
    """Return whether a CTE in scope has exactly this name: for MySQL another case is another name."""
    name = table.name
    child: exp.Expr = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.With):
            # Among CTEs only the earlier ones are in scope, and with RECURSIVE also the own name.
            for cte in node.expressions:
                if cte is child and not node.args.get("recursive"):
                    break
                if cte.alias == name:
                    return True
                if cte is child:
                    break
        else:
            with_ = node.args.get("with_")
            others = () if with_ is None or with_ is child else with_.expressions
            if any(cte.alias == name for cte in others):
                return True
        child, node = node, node.parent
    return False
