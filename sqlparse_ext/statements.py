"""The facts of a statement, shared by all texts of one shape.

A *shape* is a text without its literals, comments and layout; it is parsed once.
A `Statement` is one concrete text: its shape and its own literals, which
are decoded only on request. `parser` makes shapes, `cache` makes statements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntFlag, StrEnum
from typing import Final

from streamfrom.sqlparse_ext.literal_values import Number, decode_literal, is_converted
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode


class Kind(StrEnum):
    """The kind of a statement, by its first keywords."""

    SELECT = "SELECT"  # also WITH … SELECT, (SELECT …), TABLE t, VALUES ROW(…)
    INSERT = "INSERT"
    REPLACE = "REPLACE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    STREAM = "STREAM"
    BEGIN = "BEGIN"  # also START TRANSACTION
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SAVEPOINT = "SAVEPOINT"  # also ROLLBACK TO and RELEASE SAVEPOINT: see Shape.verb
    SET = "SET"
    USE = "USE"
    SHOW = "SHOW"
    EXPLAIN = "EXPLAIN"  # also DESC, DESCRIBE, VEXPLAIN, ANALYZE <statement>
    KILL = "KILL"
    DDL = "DDL"  # CREATE, ALTER, DROP, RENAME, TRUNCATE
    QUEUE = "QUEUE"  # CREATE, ALTER, DROP QUEUE, our own
    CALL = "CALL"
    LOCK = "LOCK"  # also UNLOCK, FLUSH … WITH READ LOCK
    PREPARE = "PREPARE"  # also EXECUTE, DEALLOCATE PREPARE, DROP PREPARE
    LOAD = "LOAD"
    XA = "XA"
    OTHER = "OTHER"
    EMPTY = "EMPTY"


class Uses(IntFlag):
    """Features that no tracker of the server shows, and that routing must know.

    The flags are found by tokens, anywhere in the statement. So a flag may be set although a closer
    reading would not set it (an ORDER BY inside a subquery sets ORDER), but no flag is missing.
    """

    USER_VARIABLE = 1 << 0
    LAST_INSERT_ID = 1 << 1  # reads it: LAST_INSERT_ID(), @@identity, @@last_insert_id
    SETS_LAST_INSERT_ID = 1 << 2  # LAST_INSERT_ID(expression)
    FOUND_ROWS = 1 << 3
    CALC_FOUND_ROWS = 1 << 4
    ROW_COUNT = 1 << 5
    ADVISORY_LOCK = 1 << 6
    DIAGNOSTICS = 1 << 7  # SHOW WARNINGS, GET DIAGNOSTICS, @@warning_count
    TEMPORARY_TABLE = 1 << 8
    HANDLER = 1 << 9
    LOCKING_READ = 1 << 10
    SUBQUERY = 1 << 11
    JOIN = 1 << 12
    AGGREGATE = 1 << 13
    GROUP = 1 << 14  # GROUP BY or HAVING
    DISTINCT = 1 << 15
    ORDER = 1 << 16
    LIMIT = 1 << 17
    SETOP = 1 << 18
    WINDOW = 1 << 19
    INTO = 1 << 20  # SELECT … INTO a variable or a file
    TRACKER_SETTING = 1 << 21  # SET session_track_…
    GLOBAL_SCOPE = 1 << 22  # SET GLOBAL, PERSIST
    LOCAL_INFILE = 1 << 23
    CTE = 1 << 24
    IMPLICIT_COMMIT = 1 << 25
    RETURNING = 1 << 26
    MULTIPLE = 1 << 27  # more text after a `;`
    IDENTITY = (
        1 << 29
    )  # CURRENT_USER, USER(), CONNECTION_ID(): the proxy's own knowledge of the client
    UNPARSED = 1 << 28  # the structure is not known: trust no field but kind, verb and uses

    def __and__(self, other: int) -> int:  # type: ignore[override]
        """Return the common bits as a number: finding the member for them takes ten times as long, and an ack needs this six times."""
        return int.__and__(self, other)

    __rand__ = __and__  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table as the statement names it, without quotes."""

    schema: str | None
    name: str
    alias: str | None = None


class Slot(int):
    """A literal of the text, by its place among the literals of the shape."""

    __slots__ = ()


class ListSlot(int):
    """All literals of one IN list."""

    __slots__ = ()


class Param(int):
    """A `?` of a statement to be prepared, by its place among all `?`s.

    A shape does not count VALUES rows, so after them places count from the end: -1 is the last.
    """

    __slots__ = ()


class Opaque(Enum):
    """The type of OPAQUE: an expression that is not a literal."""

    OPAQUE = "OPAQUE"


OPAQUE: Final = Opaque.OPAQUE

Operand = Slot | ListSlot | Param | Opaque | None  # None is NULL


Value = int | bytes | Number | None


class InsertSource(StrEnum):
    """The source of an INSERT's rows."""

    VALUES = "VALUES"
    SELECT = "SELECT"
    SET = "SET"


@dataclass(slots=True)
class InsertShape:
    """The form of an INSERT or REPLACE."""

    table: TableRef
    ignore: bool
    # The column list in lower case; None if the statement has none.
    columns: tuple[str, ...] | None
    columns_at: int  # where in the template the list takes more names, or would begin
    source: InsertSource
    # The tokens of the rows of VALUES, the assignments of SET, or the SELECT.
    source_at: tuple[int, int]
    row_alias: str | None
    # The tokens of the assignments of ON DUPLICATE KEY UPDATE, which are in `Shape.assignments`.
    duplicate_at: tuple[int, int] | None
    is_whole: bool  # every token of the statement belongs to one of these parts
    # The assignments of the SET form, and the places of their values in the template.
    set: dict[str, Operand] = field(default_factory=dict)
    set_at: dict[str, tuple[int, int]] = field(default_factory=dict)
    # The tables of subqueries other than the SELECT of the rows: among the values, in ON DUPLICATE KEY UPDATE or
    # RETURNING.
    read_beside: tuple[TableRef, ...] = ()

    @property
    def on_duplicate(self) -> bool:
        """True if it has ON DUPLICATE KEY UPDATE."""
        return self.duplicate_at is not None

    @property
    def set_end(self) -> int:
        """The place in the template after the last assignment of the SET form."""
        return max(end for _, end in self.set_at.values())


class SetKind(StrEnum):
    """The target of one item of SET."""

    SYSTEM = "SYSTEM"
    USER = "USER"
    NAMES = "NAMES"
    CHARACTER_SET = "CHARACTER SET"
    TRANSACTION = "TRANSACTION"
    OTHER = "OTHER"  # SET PASSWORD, ROLE, STATEMENT …


class SetScope(StrEnum):
    """The scope of one item of SET."""

    SESSION = "SESSION"
    GLOBAL = "GLOBAL"  # also PERSIST and PERSIST_ONLY
    NEXT = "NEXT"  # the next transaction only: SET TRANSACTION, SET @@transaction_isolation


@dataclass(frozen=True, slots=True)
class SetItem:
    """One assignment of a SET."""

    kind: SetKind
    scope: SetScope
    # The variable in lower case, without `@`s and scope; "isolation level" or "access mode" for SET TRANSACTION.
    name: str
    # A Slot, a bare word as written (OFF, utf8mb4, DEFAULT), None for NULL, OPAQUE for any other expression; words such as
    # "READ COMMITTED" for SET TRANSACTION.
    value: Slot | str | Opaque | None
    # The collation of SET NAMES … COLLATE; None without one.
    collation: Slot | str | None = None


@dataclass(frozen=True, slots=True)
class KillTarget:
    """The connection that a KILL names by its id; OPAQUE without one."""

    query_only: bool
    operand: Slot | Opaque


@dataclass(frozen=True, slots=True)
class StreamShape:
    """The parts of a STREAM."""

    columns: tuple[str, ...] | None  # the columns it names; None for `*`
    table: TableRef
    # The operands of LIMIT and WAIT; OPAQUE if absent.
    limit: Operand = OPAQUE
    wait: Operand = OPAQUE
    key: str | None = None  # the column that WHERE names; None without WHERE
    key_values: tuple[Operand, ...] = ()  # the values in its condition


@dataclass(slots=True, eq=False, weakref_slot=True)
class Shape:
    """The facts shared by all texts that differ only in literals, comments and blanks.

    Filled field by field while its template is read, and never changed afterwards. Compared by identity, so it is a cheap key for
    values that a caller derives from it.
    """

    kind: Kind
    uses: Uses
    template: bytes  # the text from which the facts were read, see `lexer`
    verb: str = ""  # the first keyword in upper case; "" for EMPTY
    words: tuple[str, ...] = ()  # up to six bare words after the verb, in upper case
    # The options of BEGIN, COMMIT, ROLLBACK ("READ ONLY", "CHAIN", …), DDL ("IF EXISTS", …) and LOAD ("REPLACE").
    options: frozenset[str] = frozenset()
    # The target first, then all other tables, also of subqueries, but no CTEs and no DUAL. With Uses.UNPARSED, the tables that
    # could be found.
    tables: tuple[TableRef, ...] = ()
    # The top-level `col = literal` and `col IN (literals)` of the WHERE of a single-table SELECT, UPDATE or DELETE, by
    # lower-case column without qualifier. Of two conditions on one column the first counts, since each alone already bounds the
    # rows.
    conditions: Mapping[str, tuple[Operand, ...]] = field(default_factory=dict)
    condition_only: bool = False  # the WHERE has only *conditions* and *guards*
    guards: frozenset[str] = frozenset()  # the lower-case columns of top-level `col IS NULL`
    # The assignments of UPDATE … SET or ON DUPLICATE KEY UPDATE, by lower-case column.
    assignments: dict[str, Operand] = field(default_factory=dict)
    insert: InsertShape | None = None
    set: tuple[SetItem, ...] = ()
    # The user variables in the text, without `@` and quotes, ASCII in lower case.
    variables: frozenset[str] = frozenset()
    # The name in USE, SAVEPOINT, PREPARE, CALL, CREATE DATABASE, SHOW … FROM <database>.
    target: str | None = None
    kill: KillTarget | None = None
    # The pairs of `/*vt+ K=V K2 */`; keys in lower case, "true" for a missing value.
    directives: Mapping[str, str] = field(default_factory=dict)
    stream: StreamShape | None = None


@dataclass(slots=True)
class Statement:
    """One concrete text: its shape and its own literals. Shared and never changed."""

    sql: bytes
    mode: SqlMode
    shape: Shape
    # The raw literals outside VALUES rows, in order; those of IN lists one after another.
    literals: Sequence[bytes] = ()
    # (slot, place of the first literal, number of literals) of each IN list.
    runs: tuple[tuple[int, int, int], ...] = ()
    # The values bound to the `?`s, by place; None if nothing is bound.
    arguments: tuple[Value | Opaque, ...] | None = None
    # Returns the SQL text of an argument by its place, for a prepared statement that is sent as text after all.
    spell: Callable[[int], bytes] | None = None
    # The values of its only VALUES row as written, if they were known without reading it.
    row: tuple[bytes, ...] | None = None

    def bind(
        self, arguments: tuple[Value | Opaque, ...], spell: Callable[[int], bytes] | None = None
    ) -> Statement:
        """Return the statement with values for all its `?`s, OPAQUE for unknown ones."""
        return Statement(
            self.sql, self.mode, self.shape, self.literals, self.runs, arguments, spell
        )

    def raw(self, slot: int) -> Sequence[bytes]:
        """Return the literal or, for a list's slot, the literals, as written."""
        runs = self.runs
        at = bisect_right(runs, slot, key=_slot_of)
        if not at:
            return self.literals[slot : slot + 1]
        place, first, count = runs[at - 1]
        if place == slot:
            return self.literals[first : first + count]
        first += count + slot - place - 1
        return self.literals[first : first + 1]

    def value(self, operand: Operand) -> Value:
        """Return the value of a Slot or of NULL; for a Param see `argument`. Raises TypeError for a list or OPAQUE."""
        if operand is None:
            return None
        if not isinstance(operand, Slot):
            raise TypeError(f"no single value: {operand!r}")
        return decode_literal(self.raw(operand)[0], self.mode)

    def values(self, operands: Iterable[Operand]) -> list[Value] | None:
        """Return all values, including those of lists; None if any is OPAQUE."""
        found: list[Value] = []
        for operand in operands:
            if operand is OPAQUE:
                return None
            if operand is None:
                found.append(None)
            elif isinstance(operand, Param):
                value = self.argument(operand)
                if isinstance(value, Opaque):
                    return None
                found.append(value)
            else:
                raws = self.raw(operand)
                if self.mode is not DEFAULT_MODE and any(
                    is_converted(raw, self.mode) for raw in raws
                ):
                    return None
                found.extend(decode_literal(raw, self.mode) for raw in raws)
        return found

    def known(self, operand: Operand) -> Value | Opaque:
        """Return the value of one operand that is no list; OPAQUE if it is not known."""
        values = self.values((operand,))
        return OPAQUE if values is None else values[0]

    def argument(self, place: int) -> Value | Opaque:
        """Return the value bound to a `?`; OPAQUE if there is none."""
        arguments = self.arguments
        if arguments is None or not -len(arguments) <= place < len(arguments):
            return OPAQUE
        return arguments[place]

    def text(self, value: Slot | str | Opaque | None) -> str | None:
        """Return a `SetItem.value` as text; None for NULL and for expressions."""
        if isinstance(value, Slot):
            decoded = self.value(value)
            if isinstance(decoded, bytes):
                return decoded.decode("utf-8", "surrogateescape")
            return decoded.text if isinstance(decoded, Number) else str(decoded)
        return value if isinstance(value, str) else None


def _slot_of(run: tuple[int, int, int]) -> int:
    return run[0]
