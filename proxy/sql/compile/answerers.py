"""Choose the answerer of a statement: shards, or the proxy when a server would give another answer. Pure.

A server knows its databases but not the keyspaces, and its own connection ids but not those that KILL takes here. Texts, PREPARE in
either protocol, the hot path and SET STATEMENT all use `answerer`. To add an answer of the proxy, add a member to `Answerer`, a
row to `_BY_SHAPE`, and a row to `proxy.sql.own_answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from streamfrom.proxy.local_statements.show_keyspaces import (
    chooses_databases,
    is_show_databases,
    is_show_vitess,
    is_show_vschema,
)
from streamfrom.proxy.local_statements.show_processlist import is_processlist, is_session_status
from streamfrom.proxy.local_statements.show_queues import is_show_queues
from streamfrom.proxy.local_statements.vexplain import is_vexplain
from streamfrom.proxy.status.status_rows import is_status
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Kind, Shape
from streamfrom.sqlparse_ext.text.identifiers import quoted
from streamfrom.sqlparse_ext.text.lexer import Edit
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote
from streamfrom.sqlparse_ext.writes.insert_gaps import next_values


class Answerer(Enum):
    """The answerer of a statement that shards do not answer alone."""

    VEXPLAIN = auto()
    PROCESSLIST = auto()
    QUEUES = auto()
    VITESS = auto()
    VSCHEMA = auto()
    DATABASES = auto()
    CHOSEN_DATABASES = auto()  # a server evaluates the WHERE
    STATUS_TABLES = auto()  # a server evaluates the statement over the proxy's rows
    SESSION_STATUS = auto()  # a server's rows, some of them replaced
    TABLES = auto()  # a server's rows, in a column named after a keyspace
    SEQUENCE = auto()  # or a server, if `SELECT next value FROM t` reads a column


# A server answers, and the proxy changes the answer.
RETOLD: Final = frozenset({Answerer.SESSION_STATUS, Answerer.TABLES})
# Statements answered by shards or by these may have expressions. The client's user and connection id go into them.
HAS_EXPRESSIONS: Final = frozenset({None, Answerer.STATUS_TABLES, Answerer.SEQUENCE} | RETOLD)
# Statements that a shard prepares: the binary protocol needs the columns, and text PREPARE reports the shard's status.
PREPARED_BY_SHARDS: Final = RETOLD | {None}
_KINDS: Final = frozenset({Kind.SELECT, Kind.SHOW, Kind.EXPLAIN})


def _asks_sequence(shape: Shape) -> bool:
    return next_values(shape) is not None


def lists_tables(shape: Shape) -> bool:
    """Return whether a statement is a SHOW TABLES."""
    if shape.kind is not Kind.SHOW:
        return False
    words = (word for word in shape.words if word not in {"EXTENDED", "FULL"})
    return next(words, "") == "TABLES"


def tables_column(database: str | None) -> str:
    """Return the name of the column of SHOW TABLES."""
    return f"Tables_in_{database}"


def tables_column_edits(shape: Shape, shown: str, database: str | None) -> list[Edit]:
    """Return the edits of a SHOW TABLES that name its column after *database* instead of *shown*."""
    name, template = tables_column(shown).lower(), shape.template
    return [
        Edit(token.start, token.end, quoted(tables_column(database)))
        for token in statement_tokens(template)
        if token.is_name and unquote(token, template).lower() == name
    ]


# The statements that replace former forms of SHOW.
_GONE: Final = {
    ("QUEUE", "PARTITIONS"): "SELECT … FROM information_schema.partitions",
    ("KEYSPACES",): "SHOW VSCHEMA KEYSPACES",
    ("VITESS_KEYSPACES",): "SHOW VSCHEMA KEYSPACES",
    ("VITESS_TARGET",): "SELECT DATABASE()",
}
# The first that takes a shape answers it.
_BY_SHAPE: Final[tuple[tuple[Callable[[Shape], bool], Answerer], ...]] = (
    (is_vexplain, Answerer.VEXPLAIN),
    (_asks_sequence, Answerer.SEQUENCE),
    (is_processlist, Answerer.PROCESSLIST),
    (is_show_queues, Answerer.QUEUES),
    (is_show_vitess, Answerer.VITESS),
    (is_show_vschema, Answerer.VSCHEMA),
    (chooses_databases, Answerer.CHOSEN_DATABASES),
    (is_show_databases, Answerer.DATABASES),
    (is_session_status, Answerer.SESSION_STATUS),
    (lists_tables, Answerer.TABLES),
)


def answerer(shape: Shape, schema: str | None) -> Answerer | None:
    """Return the answerer of a statement of *shape*; None for shards. Raises Unsupported for a SHOW that no longer exists.

    schema: the session's target if that is no keyspace.
    """
    if shape.kind not in _KINDS:
        return None
    if shape.kind is Kind.SHOW:
        for words in (shape.words[:2], shape.words[:1]):
            if words in _GONE:
                raise Unsupported(f"SHOW {' '.join(words)}; use {_GONE[words]}")
    if is_status(shape, schema):
        return Answerer.STATUS_TABLES
    return next((found for takes, found in _BY_SHAPE if takes(shape)), None)
