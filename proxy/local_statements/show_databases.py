"""`SHOW DATABASES`: a client's databases are the keyspaces that it may use. Pure. Also the patterns of LIKE."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.wire.resultset import ColumnDefinition, Table
from streamfrom.sqlparse_ext.statements import Kind, Shape, Slot, Statement
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace


_VERBS: Final = frozenset({("DATABASES",), ("SCHEMAS",)})
_CHOOSES: Final = frozenset({(), ("LIKE",), ("WHERE",)})
# Whatever the client's own collation is, servers compare names of schemas without case here.
_NAME: Final = b"SELECT CONVERT(%s USING utf8mb4) COLLATE utf8mb4_general_ci"


def is_show_databases(shape: Shape) -> bool:
    """True for SHOW DATABASES or SCHEMAS, alone, with LIKE or with WHERE."""
    words = shape.words
    return shape.kind is Kind.SHOW and words[:1] in _VERBS and words[1:2] in _CHOOSES


def show_databases(statement: Statement, keyspaces: Iterable[Keyspace]) -> Table:
    """Return the one column and its rows, all of them where a WHERE is to choose."""
    title, names = "Database", _names(keyspaces)
    if statement.shape.words[1:2] == ("LIKE",):
        pattern = like(statement)
        title += f" ({pattern_text(statement)})"
        names = [name for name in names if pattern.fullmatch(name)]
    return [ColumnDefinition(title, table="SCHEMATA")], [(name.encode(),) for name in names]


def chooses_databases(shape: Shape) -> bool:
    """True for SHOW DATABASES WHERE."""
    return is_show_databases(shape) and shape.words[1:2] == ("WHERE",)


def chosen_databases(statement: Statement, keyspaces: Iterable[Keyspace]) -> bytes:
    """Return a query by which a server answers a statement that `chooses_databases`.

    What stands behind WHERE may be any expression, and a server knows how to read it.
    """
    tokens = statement_tokens(statement.shape.template)
    where = next(token for token in tokens if token.key == "WHERE")
    (start,) = locate(statement.sql, statement.mode, (where.start,))
    first, *others = (_NAME % literal(name.encode()) for name in _names(keyspaces))
    rows = b" UNION ALL ".join((first + b" AS `Database`", *others))
    return b"SELECT `Database` FROM (%s) AS `SCHEMATA` %s" % (rows, statement.sql[start:])


def _names(keyspaces: Iterable[Keyspace]) -> list[str]:
    return sorted({*(keyspace.name for keyspace in keyspaces), "information_schema"})


def like(statement: Statement) -> re.Pattern[str]:
    """Return what the one literal of a LIKE matches."""
    return like_pattern(pattern_text(statement))


def like_pattern(text: str) -> re.Pattern[str]:
    """Return what *text* matches as LIKE reads it: % any characters, _ one, \\ takes that from the next."""
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    regex = {"%": ".*", "_": "."}
    return re.compile("".join(regex.get(p, re.escape(p[-1:])) for p in parts), re.DOTALL)


def pattern_text(statement: Statement) -> str:
    """Return that literal's own text, which servers repeat in the name of the column."""
    return (statement.text(Slot(0)) if statement.literals else "") or ""
