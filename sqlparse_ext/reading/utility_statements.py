"""Read the statements that are no queries: transactions, SHOW, EXPLAIN, definitions and the rest; list the reader of each verb.

sqlglot silently misreads several of these, and does not know others at all,
so they are read here, word by word, as far as needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.queues import name_queue
from streamfrom.sqlparse_ext.reading.session_settings import read_set
from streamfrom.sqlparse_ext.reading.statement_features import COMPOUND
from streamfrom.sqlparse_ext.statements import OPAQUE, KillTarget, Kind, Slot, Uses


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape, TableRef
    from streamfrom.sqlparse_ext.text.tokens import Cursor


OBJECTS: Final = frozenset(
    {"TABLE", "TABLES", "INDEX", "VIEW", "TRIGGER", "DATABASE", "SCHEMA"}
    | {"PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "SEQUENCE", "SERVER"}
    | {"TABLESPACE", "LOGFILE", "PACKAGE", "UNDO", "RESOURCE", "INSTANCE", "SPATIAL"}
)
_OF_QUEUES: Final = frozenset({"CREATE", "ALTER", "DROP"})
_TABLE_LIKE: Final = frozenset({"TABLE", "TABLES", "VIEW", "SEQUENCE"})
STORED_PROGRAMS: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
# Verbs that answer with rows, also after ALTER TABLE … and before PARTITION.
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
        # The features of the body are used when it runs, not now.
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
        end = max((at for at, key in enumerate(keys) if key == "WITH"), default=end)
    from streamfrom.sqlparse_ext.reading.structure import query_tables  # loads sqlglot

    tables = query_tables(cursor.tokens[start:end], shape.template)
    if tables is None:
        shape.uses |= Uses.UNPARSED
    else:
        shape.tables = tuple(dict.fromkeys(shape.tables + tables))


_EXPLAINABLE: Final = frozenset(
    {"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"}
    | {"WITH", "TABLE", "VALUES", "STREAM", "("}
)
# Words that may follow the BEGIN of a transaction. Otherwise it is an anonymous block of MariaDB's: NOT ATOMIC,
# or in its Oracle mode the first statement in it.
BEHIND_BEGIN: Final = frozenset({"", ";", "WORK"})
_VINDEXES_ON: Final = ("VSCHEMA", "VINDEXES", "ON")
_SHOW_OF_TABLE: Final = frozenset({"COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"})


def _transaction(shape: Shape, cursor: Cursor) -> None:
    """Read BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT and RELEASE SAVEPOINT."""
    verb = shape.verb
    if verb == "BEGIN" and cursor.key not in BEHIND_BEGIN:
        shape.uses |= Uses.UNPARSED
        return
    if verb == "START" and not cursor.accept("TRANSACTION"):
        shape.uses |= Uses.IMPLICIT_COMMIT  # START REPLICA
        return
    cursor.accept("WORK")
    if verb in ("SAVEPOINT", "RELEASE") or (verb == "ROLLBACK" and cursor.accept("TO")):
        shape.kind = Kind.SAVEPOINT
        cursor.accept("SAVEPOINT")
        shape.target = cursor.name()
    else:
        shape.kind = Kind.BEGIN if verb in ("BEGIN", "START") else Kind(verb)
        shape.options = _transaction_options(cursor)


def _transaction_options(cursor: Cursor) -> frozenset[str]:
    options = set()
    while cursor.key:
        if cursor.accept_any({"WITH", "AND", ","}):
            continue
        words = [cursor.take().key]
        if words[0] in ("NO", "READ", "CONSISTENT"):
            words.append(cursor.take().key)
        options.add(" ".join(words))
    return frozenset(options)


def _use(shape: Shape, cursor: Cursor) -> None:
    """Read USE name; without a target if anything else follows it."""
    shape.kind = Kind.USE
    name = cursor.name()
    shape.target = name if cursor.key in ("", ";") else None


def _show(shape: Shape, cursor: Cursor) -> None:
    """Read SHOW as far as it names tables, a database or the diagnostics area."""
    shape.kind = Kind.SHOW
    words = shape.words
    if "WARNINGS" in words[:2] or "ERRORS" in words[:2]:
        shape.uses |= Uses.DIAGNOSTICS
    if words[:1] == ("CREATE",):
        cursor.at += 2
        cursor.accept("IF", "NOT", "EXISTS")
        if words[1:2] in (("DATABASE",), ("SCHEMA",)):
            shape.target = cursor.name()
        else:
            shape.tables = cursor.only_table()
        return
    if words[:3] == _VINDEXES_ON:
        cursor.at += 3
        shape.tables = cursor.only_table()
        return
    cursor.at = cursor.find({"FROM", "IN"}) + 1
    if _SHOW_OF_TABLE & set(words[:3]):
        shape.tables = cursor.only_table()
        if cursor.accept_any({"FROM", "IN"}):
            shape.target = cursor.name()
    else:
        shape.target = cursor.name()


def _explain(shape: Shape, cursor: Cursor) -> None:
    """Read EXPLAIN, DESCRIBE, VEXPLAIN, MariaDB's ANALYZE; a table when one is described."""
    shape.kind = Kind.EXPLAIN
    if explained_at(cursor) < len(cursor.tokens) or "FOR" in shape.words:
        return
    cursor.accept_any({"EXTENDED", "PARTITIONS"})
    shape.tables = cursor.only_table()


def explained_at(cursor: Cursor) -> int:
    """Return the index of the token with which the explained statement begins, or the end."""
    places = range(cursor.at, len(cursor.tokens))
    found = (place for place in places if cursor.tokens[place].key in _EXPLAINABLE)
    return next(found, len(cursor.tokens))


def _lock(shape: Shape, cursor: Cursor) -> None:
    """Read LOCK TABLES, UNLOCK TABLES, LOCK INSTANCE."""
    shape.kind = Kind.LOCK
    shape.uses |= Uses.IMPLICIT_COMMIT
    if shape.verb == "LOCK" and cursor.accept_any({"TABLE", "TABLES"}):
        shape.tables = _listed_tables(cursor)


def _listed_tables(cursor: Cursor) -> tuple[TableRef, ...]:
    tables = []
    while (table := cursor.table()) is not None:
        tables.append(table)
        cursor.at = cursor.find({","})
        if not cursor.accept(","):
            break
    return tuple(tables)


def _prepare(shape: Shape, cursor: Cursor) -> None:
    shape.kind = Kind.PREPARE
    cursor.accept("PREPARE")  # DEALLOCATE PREPARE
    shape.target = None if cursor.key == "IMMEDIATE" else cursor.name()


def _drop(shape: Shape, cursor: Cursor) -> None:
    if cursor.key == "PREPARE":
        _prepare(shape, cursor)
    else:
        read_ddl(shape, cursor)


def _load(shape: Shape, cursor: Cursor) -> None:
    if cursor.key not in ("DATA", "XML"):
        shape.uses |= Uses.IMPLICIT_COMMIT  # LOAD INDEX INTO CACHE
        return
    shape.kind = Kind.LOAD
    if "LOCAL" in shape.words:
        shape.uses |= Uses.LOCAL_INFILE
    cursor.at = cursor.find({"INTO"}) + 1
    if cursor.tokens[cursor.at - 2].key == "REPLACE":
        shape.options = frozenset({"REPLACE"})
    cursor.accept("TABLE")
    shape.tables = cursor.only_table()


def _call(shape: Shape, cursor: Cursor) -> None:
    shape.kind = Kind.CALL
    table = cursor.table()
    if table is not None:
        shape.target = f"{table.schema}.{table.name}" if table.schema else table.name


def _xa(shape: Shape, _cursor: Cursor) -> None:
    shape.kind = Kind.XA


def _handler(shape: Shape, cursor: Cursor) -> None:
    shape.uses |= Uses.HANDLER
    shape.tables = cursor.only_table()


def _analyze(shape: Shape, cursor: Cursor) -> None:
    if "TABLE" in shape.words[:2]:
        _maintain(shape, cursor)
    else:
        _explain(shape, cursor)


def _maintain(shape: Shape, cursor: Cursor) -> None:
    """Read OPTIMIZE, REPAIR, CHECK, ANALYZE and FLUSH, which may name tables."""
    shape.uses |= Uses.IMPLICIT_COMMIT
    keys = [token.key for token in cursor.tokens]
    if shape.verb == "FLUSH" and (keys[-3:] == ["WITH", "READ", "LOCK"] or "EXPORT" in keys):
        shape.kind = Kind.LOCK
    cursor.at = cursor.find({"TABLE", "TABLES"}) + 1
    if cursor.key != "WITH":
        shape.tables = _listed_tables(cursor)


def _by_verb(shape: Shape, _cursor: Cursor) -> None:
    shape.uses |= _USES[shape.verb]


def _kill(shape: Shape, cursor: Cursor) -> None:
    """Read KILL of a connection id; every other form has none."""
    shape.kind = Kind.KILL
    cursor.accept_any({"HARD", "SOFT"})
    query_only = cursor.accept_any({"CONNECTION", "QUERY"}) == "QUERY"
    slot = cursor.take().slot
    operand = slot if isinstance(slot, Slot) and not cursor.key else OPAQUE
    shape.kill = KillTarget(query_only, operand)


# The features of statements that their verbs alone show.
_USES: Final = {
    **dict.fromkeys(
        ("GRANT", "REVOKE", "CACHE", "RESET", "INSTALL", "UNINSTALL", "STOP", "CHANGE"),
        Uses.IMPLICIT_COMMIT,
    ),
    # The contents of MariaDB's IF, CASE, LOOP and similar decide.
    **dict.fromkeys(COMPOUND, Uses.UNPARSED),
    "GET": Uses.DIAGNOSTICS,
}
# The reader of a statement after its verb. Verbs that are not here are Kind.OTHER.
READERS: Final[dict[str, Callable[[Shape, Cursor], None]]] = {
    **dict.fromkeys(
        ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"), _transaction
    ),
    **dict.fromkeys(("CREATE", "ALTER", "RENAME", "TRUNCATE"), read_ddl),
    **dict.fromkeys(("LOCK", "UNLOCK"), _lock),
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "DESC", "VEXPLAIN"), _explain),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _prepare),
    **dict.fromkeys(("OPTIMIZE", "REPAIR", "CHECK", "FLUSH"), _maintain),
    **dict.fromkeys(_USES, _by_verb),
    "ANALYZE": _analyze,
    "CALL": _call,
    "DROP": _drop,
    "HANDLER": _handler,
    "KILL": _kill,
    "LOAD": _load,
    "SET": read_set,
    "SHOW": _show,
    "USE": _use,
    "XA": _xa,
}
# The first words of MySQL's and MariaDB's statements, after parentheses, outside stored programs.
STATEMENT_VERBS: Final = (READERS.keys() - COMPOUND) | {
    *("SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE", "STREAM"),
    *("BACKUP", "BINLOG", "CHECKSUM", "CLONE", "DO", "HELP", "IMPORT", "PURGE", "RESIGNAL"),
    *("RESTART", "SHUTDOWN", "SIGNAL"),
}
