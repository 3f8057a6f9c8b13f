"""`SHOW TABLES` without the tables that proxies keep beside a shard's own. Pure.

A dump of a keyspace asks by it, and would take the members of a fleet elsewhere, or fail: a vschema knows
nothing of them. A pattern or a WHERE still finds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.statements import Kind
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape


_SOURCES: Final = frozenset({"FROM", "IN"})
OWN_TABLES: Final = ("streamfrom_members", "streamfrom_decisions")
_HIDDEN: Final = ", ".join(f"'{name}'" for name in OWN_TABLES).encode()


def lists_tables(shape: Shape) -> bool:
    """True for SHOW TABLES of a keyspace, without LIKE and WHERE."""
    if shape.kind is not Kind.SHOW or "TABLES" not in shape.words[:2]:
        return False
    keys = [token.key for token in statement_tokens(shape.template)]
    if keys[1:2] == ["FULL"]:
        del keys[1]
    if shape.target is None:
        return keys == ["SHOW", "TABLES"]
    is_whole = keys[:2] == ["SHOW", "TABLES"] and keys[2] in _SOURCES and len(keys) == 4
    return is_whole and shape.target.lower() not in SYSTEM_SCHEMAS


def listed_tables(shape: Shape, database: str) -> bytes:
    """Return a statement that `lists_tables`, without the proxies' own. *database*: its name on the server."""
    full = b"FULL " if shape.words[0] == "FULL" else b""
    source = b"" if shape.target is None else b" FROM " + _quoted(shape.target)
    column = _quoted(f"Tables_in_{database}")
    return b"SHOW %bTABLES%b WHERE %b NOT IN (%b)" % (full, source, column, _HIDDEN)


def _quoted(name: str) -> bytes:
    return quote_identifier(name).encode("utf-8", "surrogateescape")
