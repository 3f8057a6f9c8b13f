"""Reads CREATE, ALTER, DROP, RENAME and TRUNCATE as far as they name tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.queues import name_queue
from streamfrom.sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape
    from streamfrom.sqlparse_ext.text.tokens import Cursor

OBJECTS: Final = frozenset(
    {"TABLE", "TABLES", "INDEX", "VIEW", "TRIGGER", "DATABASE", "SCHEMA"}
    | {"PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "SEQUENCE", "SERVER"}
    | {"TABLESPACE", "LOGFILE", "PACKAGE", "UNDO", "RESOURCE", "INSTANCE", "SPATIAL"}
)
_OF_QUEUES: Final = frozenset({"CREATE", "ALTER", "DROP"})
_TABLE_LIKE: Final = frozenset({"TABLE", "TABLES", "VIEW", "SEQUENCE"})
STORED_PROGRAMS: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
# Verbs that answer with rows, behind ALTER TABLE … and before PARTITION too.
_MAINTAINS: Final = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"})


def read_ddl(shape: Shape, cursor: Cursor) -> None:
    """Read CREATE, ALTER, DROP, RENAME and TRUNCATE as far as they name tables."""
    verb = shape.verb
    if verb in _OF_QUEUES and cursor.key == "QUEUE":
        name_queue(shape, cursor)
        return
    shape.kind = Kind.DDL
    if verb == "TRUNCATE":
        cursor.accept("TABLE")
        shape.uses |= Uses.IMPLICIT_COMMIT
        shape.tables = cursor.only_table()
        return
    before = cursor.tokens[cursor.at : (at := cursor.find(OBJECTS))]
    cursor.at = at
    what = cursor.take().key
    if what == "SPATIAL" and cursor.accept("INDEX"):
        what = "INDEX"
    cursor.accept("BODY")  # of a package
    if any(token.key == "TEMPORARY" for token in before):
        shape.uses |= Uses.TEMPORARY_TABLE
    else:
        shape.uses |= Uses.IMPLICIT_COMMIT
    if cursor.accept("IF", "EXISTS"):
        shape.options = frozenset({"IF EXISTS"})
    elif cursor.accept("IF", "NOT", "EXISTS"):
        shape.options = frozenset({"IF NOT EXISTS"})
    is_unqualified = cursor.peek(1).key != "."
    if what in _TABLE_LIKE:
        _ddl_tables(shape, cursor)
    elif what in ("INDEX", "TRIGGER"):
        if verb != "DROP" or what == "INDEX":
            cursor.at = cursor.find({"ON"}) + 1
            shape.tables = cursor.only_table()
    elif what in ("DATABASE", "SCHEMA"):
        shape.target = cursor.name()
    if what in STORED_PROGRAMS:
        if is_unqualified:
            shape.options |= {"UNQUALIFIED"}
        # What the body uses is used when it runs, not now.
        shape.uses = Uses.IMPLICIT_COMMIT | shape.uses & Uses.MULTIPLE


def _ddl_tables(shape: Shape, cursor: Cursor) -> None:
    verb, tables = shape.verb, []
    while (table := cursor.table()) is not None:
        tables.append(table)
        if verb == "RENAME":
            cursor.accept_any({"WAIT", "NOWAIT"})
            cursor.accept("TO")
            cursor.accept(",")
        elif verb != "DROP" or not cursor.accept(","):
            break
    if verb == "CREATE":
        cursor.accept("(", "LIKE")
        if (cursor.accept("LIKE") or cursor.peek(-1).key == "LIKE") and (
            like := cursor.table()
        ):
            tables.append(like)
    elif verb == "ALTER" and cursor.key in _MAINTAINS and cursor.peek(1).key == "PARTITION":
        shape.kind = Kind.OTHER  # it answers with rows, like CHECK TABLE
    elif verb == "ALTER":
        cursor.at = cursor.find({"RENAME"})
        while cursor.accept("RENAME"):
            cursor.accept_any({"TO", "AS", "="})
            is_part = cursor.key in ("COLUMN", "INDEX", "KEY", "CONSTRAINT")
            if not is_part and (renamed := cursor.table()):
                tables.append(renamed)
            cursor.at = cursor.find({"RENAME"})
    shape.tables = tuple(tables)
    _ddl_query(shape, cursor)


def _ddl_query(shape: Shape, cursor: Cursor) -> None:
    """Add the tables of CREATE … SELECT."""
    keys = [token.key for token in cursor.tokens]
    start = next((at for at, key in enumerate(keys) if key in ("SELECT", "WITH")), len(keys))
    if shape.verb != "CREATE" or "SELECT" not in keys[start:]:
        return
    while keys[start - 1] == "(":
        start -= 1
    end = len(keys)
    if keys[-2:] == ["CHECK", "OPTION"]:
        end = max(at for at, key in enumerate(keys) if key == "WITH")
    from streamfrom.sqlparse_ext.reading.structure import query_tables  # loads sqlglot

    tables = query_tables(cursor.tokens[start:end], shape.template)
    if tables is None:
        shape.uses |= Uses.UNPARSED
    else:
        shape.tables = tuple(dict.fromkeys(shape.tables + tables))
