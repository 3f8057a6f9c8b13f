"""The statements that a restricted user may send: a list of what is allowed, and a check of every name. Pure.

A user with a role other than admin or readwrite, with keyspaces, or with tables is restricted. A statement of such a
user is understood to its last token, or refused with a sentence that says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.proxy.config.file import Role
from streamfrom.proxy.errors import DatabaseAccessDenied, StatementRefused
from streamfrom.proxy.local_statements.show_vitess import TABLETS
from streamfrom.proxy.sql.privileges import READS
from streamfrom.proxy.status.status_rows import SCHEMA as STATUS_SCHEMA
from streamfrom.sqlparse_ext.reading.reach import reach
from streamfrom.sqlparse_ext.session.described_schemas import (
    INFORMATION_SCHEMA,
    SCHEMA_COLUMNS,
    TABLE_COLUMNS,
    described,
)
from streamfrom.sqlparse_ext.session.dynamic_sql import Step, dynamic
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.session.locks import lock_calls
from streamfrom.sqlparse_ext.session.sequence_calls import asks_sequence
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import Kind, SetKind, Slot, Uses
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from streamfrom.sqlparse_ext.writes.state_ack import STATE, sets_state


if TYPE_CHECKING:
    from streamfrom.proxy.sql.privileges import Privileges
    from streamfrom.sqlparse_ext.reading.reach import Reach
    from streamfrom.sqlparse_ext.statements import Shape, Statement


class NameResolution(Protocol):
    """The session's target, as far as the meaning of names depends on it."""

    @property
    def schema(self) -> str | None:
        """The session's target where it is a system schema or another database that is no keyspace; else None."""

    def home(self, schema: str | None) -> str | None:
        """Return the keyspace that *schema* means; None where the user may use no such keyspace.

        *schema* None is the session's target.
        """

    def is_message_table(self, keyspace: str, table: str) -> bool:
        """Tell whether a table is a message table."""

    def has_state(self, keyspace: str, table: str) -> bool:
        """Tell whether a table is a queue with a column `state`, a write of which only acknowledges."""


# Kinds for every restricted user; what each role adds stands below.
_SESSION: Final = READS - {Kind.EXPLAIN}
_WRITER: Final = READS | {
    *(Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.STREAM),
    *(Kind.DDL, Kind.QUEUE, Kind.CALL, Kind.LOCK, Kind.PREPARE, Kind.XA, Kind.OTHER),
}
KINDS: Final = {
    Role.READWRITE: _WRITER,
    Role.ADMIN: _WRITER,
    Role.READONLY: READS,
    Role.CONSUMER: READS | {Kind.STREAM, Kind.UPDATE},
    Role.PRODUCER: _SESSION | {Kind.INSERT},
}
_EXPLAINED: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.STREAM}
)
# Verbs of Kind.OTHER and Kind.LOCK, and the words that must follow each.
_MAINTAINS: Final = frozenset({"ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM"})
_LOCKS: Final = frozenset({"LOCK", "UNLOCK"})
_DEFINED: Final = frozenset({"TABLE", "INDEX", "VIEW", "SEQUENCE", "DATABASE", "SCHEMA"})
_BEFORE_DEFINED: Final = frozenset(
    {
        "OR",
        "REPLACE",
        "TEMPORARY",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "IGNORE",
        "ONLINE",
        "OFFLINE",
    }
    | {"ALGORITHM", "MERGE", "TEMPTABLE", "UNDEFINED", "SQL", "SECURITY", "INVOKER"}
)
# Words of a definition with which a literal, which is not checked here, can lead out of the keyspace.
_LEADS_OUT: Final = frozenset(
    {"CONNECTION", "DIRECTORY", "TABLESPACE", "DEFINER", "SERVER", "WRAPPER", "DBNAME"}
)
_ENGINES: Final = frozenset(
    {"INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP", "ROCKSDB", "ARCHIVE", "TOKUDB", "CSV"}
)
_READS_FILES: Final = frozenset({"LOAD_FILE"})
_SHOW_OPTIONS: Final = frozenset({"FULL", "EXTENDED", "GLOBAL", "SESSION", "LOCAL", "STORAGE"})
_SHOWS_TABLE: Final = frozenset({"COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"})
_SHOWS_SCHEMA: Final = frozenset({"TABLES", "TABLE", "TRIGGERS", "EVENTS"})
_SHOWS_SERVER: Final = frozenset(
    {"VARIABLES", "STATUS", "WARNINGS", "ERRORS", "COUNT", "CHARACTER", "CHARSET", "COLLATION"}
    | {"ENGINES", "DATABASES", "SCHEMAS", "PROCESSLIST", "GRANTS", "PLUGINS", "PRIVILEGES"}
    | {"VITESS_SHARDS", "VITESS_TARGET", "VITESS_KEYSPACES", "KEYSPACES", "VSCHEMA"}
    | {"BINARY", "QUEUES", "QUEUE"}
)
_SHOWS_CREATE: Final = frozenset(
    {"TABLE", "VIEW", "DATABASE", "SCHEMA", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"}
    | {"SEQUENCE", "QUEUE"}
)
_SHOWS_ROUTINES: Final = frozenset({"PROCEDURE", "FUNCTION", "PACKAGE"})
_EXPLAIN_OPTIONS: Final = frozenset(
    {"EXTENDED", "PARTITIONS", "FORMAT", "=", "JSON", "TREE", "TRADITIONAL", "ANALYZE", "PLAN"}
)
_OWN_LOCK: Final = b"streamfrom"
_OF_A_MESSAGE: Final = frozenset({"time_acked", "time_next", "priority", "epoch"})


def confine(
    guard: Privileges,
    statement: Statement,
    around: NameResolution,
    *,
    is_explained: bool = False,
    are_values_seen: bool = True,
) -> bool:
    """Raise StatementRefused or DatabaseAccessDenied for a statement that a restricted user may not send.

    The caller checks the statement in EXPLAIN or PREPARE as well.

    are_values_seen: the caller checks the statement again, with the values of its `?`s in their places.

    Return whether the result is the same for all texts of the shape.
    """
    confinement = _Confinement(guard, statement, around, is_explained=is_explained)
    confinement.are_values_seen = are_values_seen
    return confinement.check()


class _Confinement:
    def __init__(
        self,
        guard: Privileges,
        statement: Statement,
        around: NameResolution,
        *,
        is_explained: bool,
    ) -> None:
        self.is_explained = is_explained
        self.are_values_seen = True
        self.guard = guard
        self.user = guard.user
        self.statement = statement
        self.shape: Shape = statement.shape
        self.around = around
        self.keys: list[str] = []

    def refuse(self, why: str) -> StatementRefused:
        return StatementRefused(self.shape.verb, self.user.name, self.guard.host, why)

    def check(self) -> bool:
        shape = self.shape
        # UNLOCK TABLES gives up the session's own locks, so every role may send it.
        if shape.verb == "UNLOCK" and shape.words[:1] == ("TABLES",):
            return True
        if shape.kind not in (_EXPLAINED if self.is_explained else KINDS[self.user.role]):
            raise self.refuse(f"the role {self.user.role} does not allow it")
        if shape.kind is Kind.SET and [item.name for item in shape.set] == ["statement"]:
            return self._set_statement()
        found = reach(shape)
        # A statement that was not understood to its end may name anything, so it is refused.
        if found.fault:
            raise self.refuse(f"{found.fault}; this user may send what is")
        if found.has_wide_names and self.statement.mode & SqlMode.OTHER_CHARSET:
            raise self.refuse("a bare name beyond ASCII in another character set than UTF-8")
        self.keys = [token.key for token in statement_tokens(shape.template)]
        self._check_calls()
        if not self.is_explained:
            self._check_kind(found)
        is_certain = self._check_names(found)
        return is_certain and not shape.uses & Uses.ADVISORY_LOCK

    def _set_statement(self) -> bool:
        keys = [token.key for token in statement_tokens(self.shape.template)]
        if (
            "FOR" not in keys
            or "(" in keys[: keys.index("FOR")]
            or "." in keys[: keys.index("FOR")]
        ):
            raise self.refuse("SET STATEMENT takes literals only")
        return True

    def _check_calls(self) -> None:
        if (self.guard.reads_only or self.user.tables is not None) and asks_sequence(self.keys):
            raise self.refuse("a sequence's value")
        for place, key in enumerate(self.keys):
            after = self.keys[place + 1] if place + 1 < len(self.keys) else ""
            if key in _READS_FILES and after == "(":
                raise self.refuse(key)
            if key == "GET_LOCK" and after == "(":
                self._check_lock()

    def _check_lock(self) -> None:
        # The names of locks are shared by all keyspaces of a server, and the proxy's own processes use such locks.
        calls = lock_calls(self.statement)
        if calls.has_others or any(_OWN_LOCK in name.lower() for name in calls.names):
            raise self.refuse("GET_LOCK takes a literal without 'streamfrom' in it")

    # --- by kind --------------------------------------------------------------------------

    def _check_kind(self, found: Reach) -> None:
        shape = self.shape
        match shape.kind:
            case Kind.SELECT:
                if self.guard.reads_only and shape.uses & (Uses.INTO | Uses.LOCKING_READ):
                    raise self.refuse("the role allows no lock and no INTO")
                if self.user.role is Role.PRODUCER and shape.tables:
                    raise self.refuse("the role producer reads no table")
            case Kind.SET:
                self._check_set()
            case Kind.SHOW:
                self._check_show()
            case Kind.EXPLAIN:
                self._check_explain()
            case Kind.INSERT if self.user.role is Role.PRODUCER:
                self._check_production(found)
            case Kind.UPDATE if self.user.role is Role.CONSUMER:
                self._check_consumption()
            case Kind.DDL:
                self._check_definition()
            case Kind.CALL if self.user.tables is not None:
                raise self.refuse("a procedure may name any table")
            case Kind.XA if not self._is_open:
                # Whoever knows the name of a prepared transaction can end it, whatever tables it has written.
                raise self.refuse("names of XA transactions are of the whole server")
            case Kind.LOCK:
                if shape.verb not in _LOCKS or shape.words[:1] not in (("TABLES",), ("TABLE",)):
                    raise self.refuse("this lock reaches further than the user's tables")
            case Kind.OTHER:
                if shape.verb not in _MAINTAINS or "TABLE" not in shape.words[:2]:
                    raise self.refuse("this statement is not one that is understood here")
            case Kind.PREPARE:
                self._check_dynamic()
            case _:
                pass

    def _check_set(self) -> None:
        if self.shape.uses & Uses.GLOBAL_SCOPE:
            raise self.refuse("a setting of the whole server")
        for item in self.shape.set:
            if item.kind is SetKind.OTHER:
                raise self.refuse("this form of SET is not understood")
            if item.kind is SetKind.SYSTEM and "storage_engine" in item.name:
                raise self.refuse(f"{item.name} decides what CREATE TABLE reaches")
        if self.user.role is Role.PRODUCER and "SELECT" in self.keys:
            raise self.refuse("the role producer reads no table")

    def _check_show(self) -> None:
        words = list(self.shape.words)
        while words and words[0] in _SHOW_OPTIONS:
            words.pop(0)
        what = words[0] if words else ""
        if "SELECT" in self.keys:
            raise self.refuse("SHOW with a query in it")
        if what == "GRANTS" and len(self.keys) > 2 and "CURRENT_USER" not in self.keys:
            raise self.refuse("the rights of somebody else")
        if what in _SHOWS_SERVER:
            return
        if self.user.role is Role.PRODUCER:
            raise self.refuse("the role producer reads no table")
        if what == "CREATE" and words[1:2] and words[1] in _SHOWS_CREATE:
            if self.user.tables is not None and words[1] not in ("TABLE", "VIEW", "QUEUE"):
                raise self.refuse("it tells of more than the user's tables")
            return
        if what in _SHOWS_TABLE or what == TABLETS:
            return
        if what in _SHOWS_SCHEMA and self.user.tables is None:
            return
        if what in _SHOWS_ROUTINES and words[1:2] == ["STATUS"] and self._is_open:
            return
        if what in _SHOWS_ROUTINES and words[1:4] == ["STATUS", "WHERE", "DB"]:
            value = self.shape.template.rstrip()[-1:]
            slots = statement_tokens(self.shape.template)
            if value and len(slots) == 7 and isinstance(slots[-1].slot, Slot):
                name = self.statement.text(slots[-1].slot)
                if name and self.around.home(name) is not None and self.user.tables is None:
                    return
        if not self._is_open or what not in ("OPEN", "ENGINE", "PROFILES", *_SHOWS_ROUTINES):
            raise self.refuse("it tells of more than what the user may see")

    @property
    def _is_open(self) -> bool:
        """Tell whether the user may see all keyspaces and tables."""
        return self.user.keyspaces is None and self.user.tables is None

    def _check_explain(self) -> None:
        for key in self.keys[1:]:
            if key in ("FOR", "INTO"):
                raise self.refuse(f"{self.shape.verb} {key}")
            if key not in _EXPLAIN_OPTIONS:
                break

    def _check_production(self, found: Reach) -> None:
        shape = self.shape
        target = shape.tables[0] if shape.tables else None
        insert = shape.insert
        if target is None or insert is None or len(found.tables) != 1:
            raise self.refuse("the role producer inserts rows of its own into one table")
        if insert.on_duplicate:
            raise self.refuse("the role producer changes no row")
        self._check_message_table(target.schema, target.name)

    def _check_consumption(self) -> None:
        shape = self.shape
        assigned = set(shape.assignments)
        if sets_state(shape) and len(shape.tables) == 1:
            target = shape.tables[0]
            keyspace = self.around.home(target.schema)
            if keyspace is not None and self.around.has_state(keyspace, target.name):
                assigned = assigned - {STATE} | {"time_acked"}
        if not assigned or not assigned <= _OF_A_MESSAGE or len(shape.tables) != 1:
            raise self.refuse(
                "the role consumer sets time_acked, time_next, priority and epoch of one table"
            )
        self._check_message_table(shape.tables[0].schema, shape.tables[0].name)

    def _check_message_table(self, schema: str | None, name: str) -> None:
        keyspace = self.around.home(schema)
        if keyspace is None or not self.around.is_message_table(keyspace, name):
            raise self.refuse(f"'{name}' is no message table")

    def _check_definition(self) -> None:
        if self.user.tables is not None and self.shape.verb != "TRUNCATE":
            raise self.refuse("definitions may name any table")
        if self.shape.verb in ("TRUNCATE", "RENAME"):
            return
        place = 1
        while self.keys[place : place + 1] and (
            self.keys[place] in _BEFORE_DEFINED or self.keys[place] == "="
        ):
            place += 1
        what = self.keys[place] if place < len(self.keys) else ""
        # A stored program runs as its definer, which is the proxy's own account.
        if what not in _DEFINED:
            raise self.refuse(
                "a stored program, an account or what belongs to the whole server"
            )
        for index, key in enumerate(self.keys):
            after = [each for each in self.keys[index + 1 : index + 3] if each != "="]
            if key in _LEADS_OUT:
                raise self.refuse(f"{key} leads out of the keyspace")
            if key == "ENGINE" and after and after[0].strip('`"').upper() not in _ENGINES:
                raise self.refuse("an engine that may lead out of the keyspace")

    def _check_dynamic(self) -> None:
        asked = dynamic(self.shape)
        if asked is None or (
            asked.step in (Step.PREPARE, Step.IMMEDIATE) and not isinstance(asked.text, Slot)
        ):
            raise self.refuse(
                "a statement to prepare must be a literal, and its values variables"
            )
        # Servers convert the text; half of a character, in euckr for example, takes the quote behind it into the
        # character.
        is_other = self.statement.mode & SqlMode.OTHER_CHARSET
        if is_other and isinstance(asked.text, Slot):
            text = self.statement.text(asked.text) or ""
            if not (text.isascii() and self.statement.raw(asked.text)[0].isascii()):
                raise self.refuse(
                    "a statement to prepare beyond ASCII in another character set than UTF-8"
                )

    # --- names ----------------------------------------------------------------------------

    def _check_names(self, found: Reach) -> bool:
        """Check all names; return whether the literals did not matter."""
        shape = self.shape
        tables = set(found.tables) if shape.kind is not Kind.SHOW else set()
        tables |= {(table.schema, table.name) for table in shape.tables}
        schemas = set(found.schemas) | {schema for schema, _ in tables if schema is not None}
        if shape.kind in (Kind.SHOW, Kind.DDL) and shape.target is not None:
            schemas.add(shape.target)
        is_certain = True
        here = (self.around.schema or "").lower()
        if here in SYSTEM_SCHEMAS and any(schema is None for schema, _ in tables):
            schemas.add(here)
        for schema in sorted(schemas):
            lower = schema.lower()
            if lower in SYSTEM_SCHEMAS:
                is_certain = False
                self._check_system(lower)
            elif lower == STATUS_SCHEMA and shape.kind in (Kind.SELECT, Kind.SHOW):
                # What the statement shows is the user's own.
                if self.user.role is Role.PRODUCER:
                    raise self.refuse("the role producer reads no table")
            elif self.around.home(schema) is None and self.user.keyspaces is not None:
                raise DatabaseAccessDenied(self.user.name, self.guard.host, schema)
        if self.user.tables is not None:
            if found.has_qualified_calls:
                raise self.refuse("a stored function may read any table")
            self._check_tables(tables)
        return is_certain

    def _check_system(self, schema: str) -> None:
        shape = self.shape
        if schema == "mysql":
            raise DatabaseAccessDenied(self.user.name, self.guard.host, schema)
        if self.user.role is Role.PRODUCER:
            raise self.refuse("the role producer reads no table")
        if self._is_open:
            return
        if schema != INFORMATION_SCHEMA:
            raise DatabaseAccessDenied(self.user.name, self.guard.host, schema)
        if shape.kind in (Kind.SHOW, Kind.EXPLAIN):
            return
        names = described(self.statement, SCHEMA_COLUMNS)
        if names is None or not all(self._is_own(name) for name in names):
            raise self.refuse(
                "information_schema is for a user's own keyspaces, so a condition must name one:"
                " WHERE TABLE_SCHEMA = DATABASE()"
            )
        if self.user.tables is not None and names:
            tables = described(self.statement, TABLE_COLUMNS)
            allowed = {table for _, table in self.user.tables}
            if tables is None or any(
                name.decode("utf-8", "replace") not in allowed for name in tables
            ):
                raise self.refuse(
                    "information_schema is for a user's own tables, so a condition must name one:"
                    " AND TABLE_NAME = '…'"
                )

    def _is_own(self, name: bytes) -> bool:
        if name == b"?":
            return self.are_values_seen
        if not name:  # DATABASE()
            return True
        text = name.decode("utf-8", "replace")
        return text.lower() == INFORMATION_SCHEMA or self.around.home(text) is not None

    def _check_tables(self, tables: set[tuple[str | None, str]]) -> None:
        allowed = self.user.tables or frozenset()
        exempt = self._ctes()
        for schema, name in sorted(tables, key=str):
            if (schema or "").lower() in SYSTEM_SCHEMAS or (
                schema is None and (name.upper() == "DUAL" or name in exempt)
            ):
                continue
            if schema is None and (self.around.schema or "").lower() == INFORMATION_SCHEMA:
                continue
            if (
                self.shape.kind is Kind.SELECT
                and (schema or self.around.schema or "").lower() == STATUS_SCHEMA
            ):
                continue
            keyspace = self.around.home(schema)
            if (None, name) not in allowed and (keyspace, name) not in allowed:
                raise self.refuse(f"table '{name}' is not one of the user's")

    def _ctes(self) -> frozenset[str]:
        """Return names that `reach` takes for tables and the tree of the query does not."""
        if not self.shape.uses & Uses.CTE:
            return frozenset()
        real = {table.name for table in self.shape.tables if table.schema is None}
        return frozenset(
            name for schema, name in reach(self.shape).tables if schema is None
        ) - frozenset(real)
