"""Reads the statements that are no queries: transactions, SHOW, EXPLAIN, locks and the rest; says who reads which verb.

sqlglot takes several of these for something else without an error, and knows others not at all,
so they are read here, word by word, as far as somebody needs them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.definitions import read_ddl
from streamfrom.sqlparse_ext.reading.killing import read_kill
from streamfrom.sqlparse_ext.reading.session_settings import read_set
from streamfrom.sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.sqlparse_ext.reading.draft import Draft
    from streamfrom.sqlparse_ext.statements import TableRef
    from streamfrom.sqlparse_ext.text.tokens import Cursor

_EXPLAINABLE: Final = frozenset(
    {
        "SELECT",
        "INSERT",
        "REPLACE",
        "UPDATE",
        "DELETE",
        "WITH",
        "TABLE",
        "VALUES",
        "STREAM",
        "(",
    }
)
# What MariaDB takes outside of stored programs too; no other statement begins so.
COMPOUND: Final = frozenset({"IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR", "DECLARE"})
# What may follow the BEGIN of a transaction. Else it is an anonymous block of MariaDB's: NOT ATOMIC,
# or in its Oracle mode the first statement in it.
BEHIND_BEGIN: Final = frozenset({"", ";", "WORK"})
_VINDEXES_ON: Final = ("VSCHEMA", "VINDEXES", "ON")
_SHOW_OF_TABLE: Final = frozenset({"COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"})


def read_transaction(draft: Draft, cursor: Cursor, verb: str) -> None:
    """Read BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT and RELEASE SAVEPOINT."""
    if verb == "BEGIN" and cursor.key not in BEHIND_BEGIN:
        read_compound(draft, cursor)
        return
    if verb == "START" and not cursor.accept("TRANSACTION"):
        draft.uses |= Uses.IMPLICIT_COMMIT  # START REPLICA
        return
    cursor.accept("WORK")
    if verb in ("SAVEPOINT", "RELEASE") or (verb == "ROLLBACK" and cursor.accept("TO")):
        draft.kind = Kind.SAVEPOINT
        cursor.accept("SAVEPOINT")
        draft.target = cursor.name()
    else:
        draft.kind = Kind.BEGIN if verb in ("BEGIN", "START") else Kind(verb)
        draft.options = _transaction_options(cursor)


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


def read_use(draft: Draft, cursor: Cursor) -> None:
    """Read USE name; there is no target where anything else stands behind it."""
    draft.kind = Kind.USE
    draft.target = cursor.name()
    if cursor.key not in ("", ";"):
        draft.target = None


def read_show(draft: Draft, cursor: Cursor) -> None:
    """Read SHOW as far as it names tables, a database or the diagnostics area."""
    draft.kind = Kind.SHOW
    words = draft.words
    if "WARNINGS" in words[:2] or "ERRORS" in words[:2]:
        draft.uses |= Uses.DIAGNOSTICS
    if words[:1] == ("CREATE",):
        cursor.at += 2
        cursor.accept("IF", "NOT", "EXISTS")
        if words[1:2] in (("DATABASE",), ("SCHEMA",)):
            draft.target = cursor.name()
        else:
            draft.take_table(cursor)
        return
    if words[:3] == _VINDEXES_ON:
        cursor.at += 3
        draft.take_table(cursor)
        return
    cursor.at = cursor.find({"FROM", "IN"}) + 1
    if _SHOW_OF_TABLE & set(words[:3]):
        draft.take_table(cursor)
        if cursor.accept_any({"FROM", "IN"}):
            draft.target = cursor.name()
    else:
        draft.target = cursor.name()


def read_explain(draft: Draft, cursor: Cursor) -> None:
    """Read EXPLAIN, DESCRIBE, VEXPLAIN, MariaDB's ANALYZE; a table when one is described."""
    draft.kind = Kind.EXPLAIN
    if explained_at(cursor) < len(cursor.tokens) or "FOR" in draft.words:
        return
    cursor.accept_any({"EXTENDED", "PARTITIONS"})
    draft.take_table(cursor)


def explained_at(cursor: Cursor) -> int:
    """Return the index of the token with which the explained statement begins, or the end."""
    for place in range(cursor.at, len(cursor.tokens)):
        if cursor.tokens[place].key in _EXPLAINABLE:
            return place
    return len(cursor.tokens)


def read_lock(draft: Draft, cursor: Cursor, verb: str) -> None:
    """Read LOCK TABLES, UNLOCK TABLES, LOCK INSTANCE."""
    draft.kind = Kind.LOCK
    draft.uses |= Uses.IMPLICIT_COMMIT
    if verb == "LOCK" and cursor.accept_any({"TABLE", "TABLES"}):
        draft.tables = _listed_tables(cursor)


def _listed_tables(cursor: Cursor) -> tuple[TableRef, ...]:
    tables = []
    while (table := cursor.table()) is not None:
        tables.append(table)
        cursor.at = cursor.find({","})
        if not cursor.accept(","):
            break
    return tuple(tables)


def _prepared(draft: Draft, cursor: Cursor) -> None:
    draft.kind = Kind.PREPARE
    draft.target = cursor.name()


def _prepare(draft: Draft, cursor: Cursor) -> None:
    cursor.accept("PREPARE")  # DEALLOCATE PREPARE
    if cursor.accept("IMMEDIATE"):
        draft.kind = Kind.PREPARE
        return
    _prepared(draft, cursor)


def _drop(draft: Draft, cursor: Cursor) -> None:
    if cursor.accept("PREPARE"):
        _prepared(draft, cursor)
    else:
        read_ddl(draft, cursor, "DROP")


def _load(draft: Draft, cursor: Cursor) -> None:
    if cursor.key not in ("DATA", "XML"):
        draft.uses |= Uses.IMPLICIT_COMMIT  # LOAD INDEX INTO CACHE
        return
    draft.kind = Kind.LOAD
    if "LOCAL" in draft.words:
        draft.uses |= Uses.LOCAL_INFILE
    cursor.at = cursor.find({"INTO"}) + 1
    cursor.accept("TABLE")
    draft.take_table(cursor)


def _call(draft: Draft, cursor: Cursor) -> None:
    draft.kind = Kind.CALL
    table = cursor.table()
    if table is not None:
        draft.target = f"{table.schema}.{table.name}" if table.schema else table.name


def _xa(draft: Draft, _cursor: Cursor) -> None:
    draft.kind = Kind.XA


def _handler(draft: Draft, cursor: Cursor) -> None:
    draft.uses |= Uses.HANDLER
    draft.take_table(cursor)


def _diagnostics(draft: Draft, _cursor: Cursor) -> None:
    draft.uses |= Uses.DIAGNOSTICS


def _analyze(draft: Draft, cursor: Cursor) -> None:
    if "TABLE" in draft.words[:2]:
        _maintain(draft, cursor)
    else:
        read_explain(draft, cursor)


def _maintain(draft: Draft, cursor: Cursor) -> None:
    """Read OPTIMIZE, REPAIR, CHECK, ANALYZE and FLUSH, which may name tables."""
    draft.uses |= Uses.IMPLICIT_COMMIT
    keys = [token.key for token in cursor.tokens]
    if draft.verb == "FLUSH" and (keys[-3:] == ["WITH", "READ", "LOCK"] or "EXPORT" in keys):
        draft.kind = Kind.LOCK
    cursor.at = cursor.find({"TABLE", "TABLES"}) + 1
    if cursor.key != "WITH":
        draft.tables = _listed_tables(cursor)


def _commits(draft: Draft, _cursor: Cursor) -> None:
    draft.uses |= Uses.IMPLICIT_COMMIT


def read_compound(draft: Draft, cursor: Cursor) -> None:
    """Read nothing of MariaDB's IF, CASE, LOOP and their kin: what is in them decides."""
    draft.uses |= Uses.UNPARSED


# What reads a statement behind its verb. Verbs that are not here are Kind.OTHER.
READERS: Final[dict[str, Callable[[Draft, Cursor], None]]] = {
    **{
        verb: partial(read_transaction, verb=verb)
        for verb in ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    },
    **{
        verb: partial(read_ddl, verb=verb) for verb in ("CREATE", "ALTER", "RENAME", "TRUNCATE")
    },
    **{verb: partial(read_lock, verb=verb) for verb in ("LOCK", "UNLOCK")},
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "DESC", "VEXPLAIN"), read_explain),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _prepare),
    **dict.fromkeys(("OPTIMIZE", "REPAIR", "CHECK", "FLUSH"), _maintain),
    **dict.fromkeys(
        ("GRANT", "REVOKE", "CACHE", "RESET", "INSTALL", "UNINSTALL", "STOP", "CHANGE"),
        _commits,
    ),
    **dict.fromkeys(COMPOUND, read_compound),
    "ANALYZE": _analyze,
    "CALL": _call,
    "DROP": _drop,
    "GET": _diagnostics,
    "HANDLER": _handler,
    "KILL": read_kill,
    "LOAD": _load,
    "SET": read_set,
    "SHOW": read_show,
    "USE": read_use,
    "XA": _xa,
}
