"""Reads the statements that are no queries: transactions, SET, KILL, SHOW, DDL, locks and the rest.

sqlglot takes several of these for something else without an error, and knows others not at all,
so they are read here, word by word, as far as somebody needs them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sqlparse_ext.reading.session_settings import read_set
from sqlparse_ext.reading.structure import query_tables
from sqlparse_ext.statements import OPAQUE, KillBy, KillScope, KillTarget, Kind, Slot, Uses
from sqlparse_ext.text.lexer import locate
from sqlparse_ext.text.tokens import Cursor, statement_tokens, unquote


if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlparse_ext.reading.draft import Draft
    from sqlparse_ext.statements import Opaque, Statement, TableRef

_KILL_WORDS: Final = frozenset({"HARD", "SOFT", "CONNECTION", "QUERY"})
STATEMENT_VERBS: Final = frozenset(
    [
        "ALTER",
        "ANALYZE",
        "BACKUP",
        "BEGIN",
        "BINLOG",
        "CACHE",
        "CALL",
        "CHANGE",
        "CHECK",
        "CHECKSUM",
        "CLONE",
        "COMMIT",
        "CREATE",
        "DEALLOCATE",
        "DELETE",
        "DESC",
        "DESCRIBE",
        "DO",
        "DROP",
        "EXECUTE",
        "EXPLAIN",
        "FLUSH",
        "GET",
        "GRANT",
        "HANDLER",
        "HELP",
        "IMPORT",
        "INSERT",
        "INSTALL",
        "KILL",
        "LOAD",
        "LOCK",
        "OPTIMIZE",
        "PREPARE",
        "PURGE",
        "RELEASE",
        "RENAME",
        "REPAIR",
        "REPLACE",
        "RESET",
        "RESIGNAL",
        "RESTART",
        "REVOKE",
        "ROLLBACK",
        "SAVEPOINT",
        "SELECT",
        "SET",
        "SHOW",
        "SHUTDOWN",
        "SIGNAL",
        "START",
        "STOP",
        "STREAM",
        "TABLE",
        "TRUNCATE",
        "UNINSTALL",
        "UNLOCK",
        "UPDATE",
        "USE",
        "VALUES",
        "VEXPLAIN",
        "WITH",
        "XA",
    ]
)
"""What a statement of MySQL or MariaDB may begin with, parentheses apart."""

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
_OBJECTS: Final = frozenset(
    {
        "TABLE",
        "TABLES",
        "INDEX",
        "VIEW",
        "TRIGGER",
        "DATABASE",
        "SCHEMA",
        "PROCEDURE",
        "FUNCTION",
    }
    | {
        "EVENT",
        "USER",
        "ROLE",
        "SEQUENCE",
        "SERVER",
        "TABLESPACE",
        "LOGFILE",
        "PACKAGE",
        "UNDO",
    }
    | {"RESOURCE", "INSTANCE", "SPATIAL"}
)
# Verbs that answer with rows, behind ALTER TABLE … and before PARTITION too.
_MAINTAINS: Final = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"})
_TABLE_LIKE: Final = frozenset({"TABLE", "TABLES", "VIEW", "SEQUENCE"})
# What MariaDB takes outside of stored programs too; no other statement begins so.
_COMPOUND: Final = frozenset({"IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR", "DECLARE"})
# What may follow the BEGIN of a transaction. Else it is an anonymous block of MariaDB's: NOT ATOMIC,
# or in its Oracle mode the first statement in it.
_BEHIND_BEGIN: Final = frozenset({"", ";", "WORK"})
_STORED_PROGRAMS: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
_VINDEXES_ON: Final = ("VSCHEMA", "VINDEXES", "ON")
_SHOW_OF_TABLE: Final = frozenset({"COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"})


def read_transaction(draft: Draft, cursor: Cursor, verb: str) -> None:
    """Read BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT and RELEASE SAVEPOINT."""
    if verb == "BEGIN" and cursor.key not in _BEHIND_BEGIN:
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
    """Read USE name."""
    draft.kind = Kind.USE
    draft.target = cursor.name()


def read_kill(draft: Draft, cursor: Cursor) -> None:
    """Read KILL, MariaDB's forms included: https://mariadb.com/kb/en/kill/."""
    draft.kind = Kind.KILL
    hard = cursor.accept_any({"HARD", "SOFT"}) != "SOFT"
    scope = KillScope.CONNECTION
    if cursor.accept_any({"CONNECTION", "QUERY"}) == "QUERY":
        scope = KillScope.QUERY
    by = KillBy.ID
    operand: Slot | str | Opaque = OPAQUE
    if cursor.accept("USER"):
        by = KillBy.USER
        token = cursor.peek()
        if isinstance(token.slot, Slot):
            operand = token.slot
        elif token.is_name:
            operand = unquote(token, cursor.template)
    else:
        if scope is KillScope.QUERY and cursor.accept("ID"):
            by = KillBy.QUERY_ID
        slot = cursor.take().slot
        if isinstance(slot, Slot) and not cursor.key:
            operand = slot
    draft.kill = KillTarget(scope, by, operand, hard)


def killed_expression(statement: Statement) -> bytes:
    """Return the text behind KILL, which names a connection; empty where there is none."""
    template = statement.shape.template
    tokens = statement_tokens(template)
    at = 1
    while at < len(tokens) and tokens[at].key in _KILL_WORDS:
        at += 1
    if at >= len(tokens):
        return b""
    borders = tokens[at].start, tokens[-1].end
    start, end = locate(statement.sql, statement.mode, borders)
    return statement.sql[start:end]


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
            _one_table(draft, cursor)
        return
    if words[:3] == _VINDEXES_ON:
        cursor.at += 3
        _one_table(draft, cursor)
        return
    cursor.at = cursor.find({"FROM", "IN"}) + 1
    if _SHOW_OF_TABLE & set(words[:3]):
        _one_table(draft, cursor)
        if cursor.accept_any({"FROM", "IN"}):
            draft.target = cursor.name()
    else:
        draft.target = cursor.name()


def _one_table(draft: Draft, cursor: Cursor) -> None:
    table = cursor.table()
    draft.tables = () if table is None else (table,)


def read_explain(draft: Draft, cursor: Cursor) -> None:
    """Read EXPLAIN, DESCRIBE, VEXPLAIN, MariaDB's ANALYZE; a table when one is described."""
    draft.kind = Kind.EXPLAIN
    if explained_at(cursor) < len(cursor.tokens) or "FOR" in draft.words:
        return
    cursor.accept_any({"EXTENDED", "PARTITIONS"})
    _one_table(draft, cursor)


def explained_at(cursor: Cursor) -> int:
    """Return the index of the token with which the explained statement begins, or the end."""
    for place in range(cursor.at, len(cursor.tokens)):
        if cursor.tokens[place].key in _EXPLAINABLE:
            return place
    return len(cursor.tokens)


def holds_statements(cursor: Cursor) -> bool:
    """Whether a `;` may stand inside this statement: it has a body of statements."""
    if cursor.key == "BEGIN":
        return cursor.peek(1).key not in _BEHIND_BEGIN
    if cursor.key == "SET" and cursor.peek(1).key == "STATEMENT":
        behind = cursor.find({"FOR"}) + 1
        return holds_statements(Cursor(cursor.tokens, cursor.template, behind))
    if cursor.key in _COMPOUND:
        return True
    if cursor.key not in ("CREATE", "ALTER"):
        return False
    place = cursor.find(_OBJECTS | {";"})
    return place < len(cursor.tokens) and cursor.tokens[place].key in _STORED_PROGRAMS


def read_ddl(draft: Draft, cursor: Cursor, verb: str) -> None:
    """Read CREATE, ALTER, DROP, RENAME and TRUNCATE as far as they name tables."""
    draft.kind = Kind.DDL
    if verb == "TRUNCATE":
        cursor.accept("TABLE")
        draft.uses |= Uses.IMPLICIT_COMMIT
        _one_table(draft, cursor)
        return
    if verb == "DROP" and cursor.accept("PREPARE"):
        _prepared(draft, cursor)
        return
    before = cursor.tokens[cursor.at : (at := cursor.find(_OBJECTS))]
    cursor.at = at
    what = cursor.take().key
    if any(token.key == "TEMPORARY" for token in before):
        draft.uses |= Uses.TEMPORARY_TABLE
    else:
        draft.uses |= Uses.IMPLICIT_COMMIT
    options = set()
    if cursor.accept("IF", "EXISTS"):
        options.add("IF EXISTS")
    elif cursor.accept("IF", "NOT", "EXISTS"):
        options.add("IF NOT EXISTS")
    draft.options = frozenset(options)
    if what in _TABLE_LIKE:
        _ddl_tables(draft, cursor, verb)
    elif what in ("INDEX", "TRIGGER"):
        if verb != "DROP" or what == "INDEX":
            cursor.at = cursor.find({"ON"}) + 1
            _one_table(draft, cursor)
    elif what in ("DATABASE", "SCHEMA"):
        draft.target = cursor.name()
    if what in _STORED_PROGRAMS:
        # What the body uses is used when it runs, not now.
        draft.uses = Uses.IMPLICIT_COMMIT | draft.uses & Uses.MULTIPLE


def _ddl_tables(draft: Draft, cursor: Cursor, verb: str) -> None:
    tables = []
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
        draft.kind = Kind.OTHER  # it answers with rows, like CHECK TABLE
    elif verb == "ALTER":
        cursor.at = cursor.find({"RENAME"})
        while cursor.accept("RENAME"):
            cursor.accept_any({"TO", "AS", "="})
            is_part = cursor.key in ("COLUMN", "INDEX", "KEY", "CONSTRAINT")
            if not is_part and (renamed := cursor.table()):
                tables.append(renamed)
            cursor.at = cursor.find({"RENAME"})
    draft.tables = tuple(tables)
    _ddl_query(draft, cursor)


def _ddl_query(draft: Draft, cursor: Cursor) -> None:
    """Add the tables of CREATE … SELECT."""
    keys = [token.key for token in cursor.tokens]
    start = next((at for at, key in enumerate(keys) if key in ("SELECT", "WITH")), len(keys))
    if draft.verb != "CREATE" or "SELECT" not in keys[start:]:
        return
    while keys[start - 1] == "(":
        start -= 1
    end = len(keys)
    if keys[-2:] == ["CHECK", "OPTION"]:
        end = max(at for at, key in enumerate(keys) if key == "WITH")
    tables = query_tables(cursor.tokens[start:end], draft.template)
    if tables is None:
        draft.uses |= Uses.UNPARSED
    else:
        draft.tables = tuple(dict.fromkeys(draft.tables + tables))


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


def _load(draft: Draft, cursor: Cursor) -> None:
    if cursor.key not in ("DATA", "XML"):
        draft.uses |= Uses.IMPLICIT_COMMIT  # LOAD INDEX INTO CACHE
        return
    draft.kind = Kind.LOAD
    if "LOCAL" in draft.words:
        draft.uses |= Uses.LOCAL_INFILE
    cursor.at = cursor.find({"INTO"}) + 1
    cursor.accept("TABLE")
    _one_table(draft, cursor)


def _call(draft: Draft, cursor: Cursor) -> None:
    draft.kind = Kind.CALL
    table = cursor.table()
    if table is not None:
        draft.target = f"{table.schema}.{table.name}" if table.schema else table.name


def _xa(draft: Draft, _cursor: Cursor) -> None:
    draft.kind = Kind.XA


def _handler(draft: Draft, cursor: Cursor) -> None:
    draft.uses |= Uses.HANDLER
    _one_table(draft, cursor)


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


# What reads a statement behind its verb. Verbs that are not here are Kind.OTHER.
def read_compound(draft: Draft, cursor: Cursor) -> None:
    """Read nothing of MariaDB's IF, CASE, LOOP and their kin: what is in them decides."""
    draft.uses |= Uses.UNPARSED


READERS: Final[dict[str, Callable[[Draft, Cursor], None]]] = {
    **{
        verb: partial(read_transaction, verb=verb)
        for verb in ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    },
    **{
        verb: partial(read_ddl, verb=verb)
        for verb in ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
    },
    **{verb: partial(read_lock, verb=verb) for verb in ("LOCK", "UNLOCK")},
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "DESC", "VEXPLAIN"), read_explain),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _prepare),
    **dict.fromkeys(("OPTIMIZE", "REPAIR", "CHECK", "FLUSH"), _maintain),
    **dict.fromkeys(
        ("GRANT", "REVOKE", "CACHE", "RESET", "INSTALL", "UNINSTALL", "STOP", "CHANGE"),
        _commits,
    ),
    **dict.fromkeys(_COMPOUND, read_compound),
    "ANALYZE": _analyze,
    "CALL": _call,
    "GET": _diagnostics,
    "HANDLER": _handler,
    "KILL": read_kill,
    "LOAD": _load,
    "SET": read_set,
    "SHOW": read_show,
    "USE": read_use,
    "XA": _xa,
}
