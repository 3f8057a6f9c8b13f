"""The state of a session apart from its sockets: variables, target, transaction. Pure.

This module decides which state keeps a session on the same backend connection. The server's status flags and session
trackers show most of it. The text of a statement is read only for state that no tracker shows: user variables assigned
in a SELECT, advisory locks, `LOCK TABLES`, one-shot `SET TRANSACTION`, HANDLER, SQL_CALC_FOUND_ROWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.backends.session_variables import (
    TRACKED,
    UNLIMITED,
    Settings,
    mode_before,
)
from streamfrom.proxy.wire.constants import Capability, Status, TrackerKind
from streamfrom.proxy.wire.resultset import SHOWN_BY_DEFAULT, shown_to
from streamfrom.sqlparse_ext.reading.session_settings import (
    TRANSACTION_VARIABLES,
    passing_variables,
)
from streamfrom.sqlparse_ext.reading.statement_features import may_assign
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import InsertSource, Kind, SetKind, SetScope, Uses
from streamfrom.sqlparse_ext.writes.hidden_writes import WRITES, runs_unseen


if TYPE_CHECKING:
    from streamfrom.proxy.backends.backend import Backend, LastDiagnostics
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.user_variables import UserVariables
    from streamfrom.proxy.twophase.xid import GlobalId, Xid
    from streamfrom.proxy.wire.resultset import Ok, Tracker
    from streamfrom.sqlparse_ext.statements import SetItem, Shape, Statement


# State of the connection that no tracker shows and that a SET cannot rebuild.
_STICKY: Final = (
    Uses.USER_VARIABLE
    | Uses.SETS_LAST_INSERT_ID
    | Uses.ADVISORY_LOCK
    | Uses.TEMPORARY_TABLE
    | Uses.HANDLER
    | Uses.TRACKER_SETTING
    | Uses.CALC_FOUND_ROWS
)
_IN_TRANS: Final = int(Status.IN_TRANS)
_READS_ONLY: Final = int(Status.IN_TRANS | Status.IN_TRANS_READONLY)
_STICKY_KINDS: Final = frozenset({Kind.LOCK, Kind.XA})

# Statements that leave nothing for another session to notice, if their answer agrees.
_WRITES: Final = frozenset({Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE})
_CONTROL_KINDS: Final = frozenset({Kind.BEGIN, Kind.COMMIT, Kind.ROLLBACK, Kind.SAVEPOINT})
_TRACELESS_KINDS: Final = (
    _WRITES | _CONTROL_KINDS | {Kind.SELECT, Kind.SHOW, Kind.EXPLAIN, Kind.DDL, Kind.SET}
)
# LIMIT 1, 2 finds three rows, and MariaDB counts a UNION without its LIMIT.
_COUNTS_OTHERWISE: Final = (
    Uses.UNPARSED | Uses.LIMIT | Uses.SETOP | Uses.INTO | Uses.CALC_FOUND_ROWS | Uses.SUBQUERY
)
_READS_TOO: Final = (
    Uses.UNPARSED | Uses.SUBQUERY | Uses.JOIN | Uses.CTE | Uses.SETOP | Uses.RETURNING
)
# Of several statements only the last one's OK has an id, and a result with rows has none.
_SETS_INSERT_ID: Final = Uses.SETS_LAST_INSERT_ID | Uses.MULTIPLE | Uses.RETURNING
# Unless they contain a SELECT.
_SELECTS_NOTHING: Final = frozenset({Kind.SET, Kind.DDL, Kind.LOCK})
# MariaDB's BEGIN NOT ATOMIC, IF, LOOP and the like, and SET STATEMENT … FOR.
_MAY_HOLD_OTHERS: Final = frozenset({Kind.OTHER, Kind.SET})


class Footprint:
    """The effects of a statement on its connection, according to its text."""

    def __init__(self, shape: Shape) -> None:
        # The names that a SET assigns to. Code that walks over all of them does it once for each shape: a SET of 100 KB has 20,000.
        self.set_names = frozenset(item.name for item in shape.set)
        is_set = shape.kind is Kind.SET
        # A SET of a variable that no tracker reports and that cannot follow the session.
        self.sets_untracked = is_set and not all(map(_is_followed, shape.set))
        # A SET that changes a character set or a collation without a tracker's report: SET NAMES does not report the collation
        # that it chooses, and setting the connection's character set or its collation silently changes the other of the two.
        self.sets_collation = is_set and any(
            item.kind in {SetKind.NAMES, SetKind.CHARACTER_SET}
            or item.name in {"character_set_connection", "collation_connection"}
            for item in shape.set
        )
        # The names of variables that are set for this statement only.
        self.passing = passing_variables(shape)
        # The statement leaves state that only this connection has.
        self.is_sticky = (
            bool(shape.uses & _STICKY)
            or shape.kind in _STICKY_KINDS
            # One of its statements describes the format that the others are in.
            or shape.verb == "BINLOG"
            or self.sets_untracked
        )
        # The statement leaves nothing that another session could notice, unless its answer shows otherwise.
        self.is_traceless = shape.kind in _TRACELESS_KINDS and not shape.uses & Uses.UNPARSED
        # FOUND_ROWS() is afterwards the number of rows of the answer.
        self.finds_its_rows = shape.kind is Kind.SELECT and not shape.uses & _COUNTS_OTHERWISE
        is_write = shape.kind in _WRITES and not shape.uses & _READS_TOO
        is_select = shape.insert is not None and shape.insert.source is InsertSource.SELECT
        # The statement leaves FOUND_ROWS() as it was.
        self.keeps_found_rows = (
            shape.kind in _CONTROL_KINDS
            or (is_write and not is_select)
            or (shape.kind in _SELECTS_NOTHING and b"SELECT" not in shape.template.upper())
        )
        # ROW_COUNT() is afterwards the number of the statement's OK.
        self.counts_rows = is_write or shape.kind in {Kind.DDL, Kind.LOAD}
        self.variables = shape.variables  # the user variables that the text names
        # The statement may set the user variables that it names.
        self.assigns = may_assign(shape)
        # The statement may write to tables that it does not name, if the database has triggers, functions or the like that would.
        self.may_hide = shape.kind in WRITES or b"(" in shape.template or runs_unseen(shape)
        # The statement runs others that are not in its text, such as a procedure's.
        self.runs_unseen = shape.kind is Kind.CALL
        # The statement runs others that are not in its text and may leave a transaction open, or another role.
        self.may_begin = self.runs_unseen or (
            shape.kind in _MAY_HOLD_OTHERS and bool(shape.uses & Uses.UNPARSED)
        )
        # COM_RESET_CONNECTION does not undo the statement's effects.
        # MariaDB shows the texts of profiled statements, and continues as an applier of its binary log.
        self.outlives_reset = shape.verb == "BINLOG" or not self.set_names.isdisjoint(
            {"profiling", "role"}
        )
        names_insert_id = not self.set_names.isdisjoint({"last_insert_id", "identity"})
        # The statement reads or sets LAST_INSERT_ID(), perhaps only for rows it finds.
        self.needs_insert_id = names_insert_id or bool(
            shape.uses & (Uses.LAST_INSERT_ID | Uses.SETS_LAST_INSERT_ID)
        )
        # LAST_INSERT_ID() may have changed afterwards, whatever the OK shows.
        self.sets_insert_id = (
            names_insert_id
            or bool(shape.uses & _SETS_INSERT_ID)
            or self.runs_unseen
            or shape.kind is Kind.LOAD
        )


# Flags of an enumeration cost 1 µs to test; a shape's are tested once.
footprint_of = lru_cache(maxsize=8192)(Footprint)


def must_stay(shape: Shape, trackers: Sequence[Tracker]) -> bool:
    """True when a statement left its session's state in the connection that ran it."""
    return footprint_of(shape).is_sticky or (
        bool(trackers) and _changed_untracked(shape, trackers)
    )


def leaves_residue(shape: Shape, ok: Ok) -> bool:
    """True when another session could notice that this statement ran on the connection.

    LAST_INSERT_ID() does not count: see `Backend.has_insert_id`.
    """
    return not footprint_of(shape).is_traceless or ok.warnings > 0


def _changed_untracked(shape: Shape, trackers: Sequence[Tracker]) -> bool:
    kinds = {tracker.kind for tracker in trackers}
    if TrackerKind.STATE not in kinds or shape.kind is Kind.SET:
        return False
    # A change that no variable and no database explains: a temporary table, a prepared
    # statement, a user variable set by a routine. A routine may do both.
    return footprint_of(shape).runs_unseen or not kinds & {
        TrackerKind.SYSVAR,
        TrackerKind.SCHEMA,
    }


def _is_followed(item: SetItem) -> bool:
    if item.scope is SetScope.GLOBAL:
        return True
    match item.kind:
        case SetKind.SYSTEM:
            return item.scope is SetScope.SESSION and item.name in TRACKED
        case SetKind.TRANSACTION:
            return item.scope is SetScope.SESSION
        case SetKind.NAMES | SetKind.CHARACTER_SET | SetKind.USER:
            return True  # user variables have another way: proxy.execution.user_variable_sync
        case SetKind.OTHER:
            return False


@dataclass(slots=True)
class Transaction:
    """A transaction the client opened, which may span several shards."""

    begin: bytes  # the statement that opened it, sent to each shard when it is first touched
    # The savepoint statements so far, to be repeated on a shard that joins late.
    savepoints: list[bytes] = field(default_factory=list)
    broken: str = ""  # why only ROLLBACK is possible any more, empty while all is well
    reads_only: bool = False
    is_snapshot: bool = False
    is_plain: bool = True  # `begin` is a BEGIN that no server refuses
    # False while there are only savepoints without autocommit, which begin none.
    has_begun: bool = True
    is_xa: bool = False  # the client began it with XA START
    # The modes that it began with, by variable, as SET statements, if the session's have changed.
    modes: dict[str, str] = field(default_factory=dict)
    # The global id of the transaction, once it spans several shards and commits in two phases.
    whole: GlobalId | None = None
    # The XA ids of its branches, if it commits in two phases; the first branch has none.
    xids: dict[Backend, Xid] = field(default_factory=dict)

    @property
    def is_decided(self) -> bool:
        """True if it needs, or has begun, a commit in two phases: a server may report late that it only reads."""
        return self.whole is not None or not self.reads_only

    @classmethod
    def begun_by(cls, statement: Statement) -> Transaction:
        """Return the transaction that a BEGIN or START TRANSACTION opens."""
        options = statement.shape.options
        return cls(
            statement.sql,
            reads_only="READ ONLY" in options,
            is_snapshot="CONSISTENT SNAPSHOT" in options,
            is_plain=options <= {"READ ONLY"},
        )

    @classmethod
    def chained_to(cls, before: Transaction | None) -> Transaction:
        """Return the transaction that AND CHAIN opens after *before*, READ ONLY if that was."""
        if before is None:
            return cls(b"START TRANSACTION")
        begin = b"START TRANSACTION READ ONLY" if before.reads_only else b"START TRANSACTION"
        modes = before.modes
        return cls(begin, reads_only=before.reads_only, is_plain=not modes, modes=modes)

    def keep_modes(self, settings: Settings, changed: Iterable[str]) -> None:
        """Keep the modes of *settings* for shards that join late: those that have *changed* belong to the next transaction."""
        for name in TRANSACTION_VARIABLES.intersection(changed):
            self.modes.setdefault(name, mode_before(settings, name))
            self.is_plain = False

    @property
    def opening(self) -> list[bytes]:
        """The statements that open it on a shard, without savepoints."""
        modes = [f"SET {', '.join(self.modes.values())}".encode()] if self.modes else []
        return [*modes, self.begin]


class AskedLocks(NamedTuple):
    """The advisory locks that a session has requested on the connection it keeps to *shard*."""

    shard: ShardRuntime
    names: frozenset[bytes]  # the locks whose names were literals, as SQL text
    has_others: bool  # the session requested a lock by an expression, too


_VARIANTS: Final = int(
    Capability.FOUND_ROWS | Capability.IGNORE_SPACE | Capability.EXTENDED_METADATA
)


class SessionState:
    """One client's session, apart from its sockets and backend connections."""

    def __init__(
        self,
        capabilities: int,
        initial_settings: Settings,
        account: Account = SHARDS_ACCOUNT,
        began_s: float = 0.0,
    ) -> None:
        self.capabilities = capabilities
        self.began_s = began_s
        # The account under which the session's statements run on every server.
        self.account = account
        # Capability bits that change what a statement means on the backend connection.
        self.variant = capabilities & _VARIANTS
        if initial_settings.sql_mode and capabilities & Capability.IGNORE_SPACE:
            # A server adds IGNORE_SPACE to its own mode at the login; the proxy sets sql_mode later.
            mode = f"{initial_settings.sql_mode},IGNORE_SPACE"
            initial_settings = initial_settings.with_changes([("sql_mode", mode)])
        self.initial_settings = initial_settings
        # COM_SET_OPTION changes it for as long as the connection lasts, whatever is reset.
        self.multi_statements = bool(capabilities & Capability.MULTI_STATEMENTS)
        # The statement that runs was stopped, by KILL QUERY or a limit.
        self.is_stopped = False
        self.reset()

    def reset(self) -> None:
        """Return to the state of a fresh login, as COM_RESET_CONNECTION does."""
        self.use(self.initial_settings)
        # The system variables whose changes the client is shown; None for all.
        self.tracked: frozenset[str] | None = SHOWN_BY_DEFAULT
        # session_track_state_change is on, on the servers as well.
        self.tracks_changes = False
        # LAST_INSERT_ID() belongs to the session, but the connection of the last INSERT knows
        # it; the value moves here when that connection goes to another session.
        self.insert_id_at: Backend | None = None
        self.last_insert_id = 0
        # The value that still counts if that connection returns 0, because no INSERT on it made an id; an
        # OK also has the ids that rows name themselves. Another connection may know of one.
        self.id_before = 0
        self.id_before_at: Backend | None = None
        # Connections with a copy, because a statement over several shards read it. They
        # must forget it before it changes.
        self.insert_id_copies: set[Backend] = set()
        # The connection of the last statement, which knows its warnings and counts; once that
        # connection has gone to another session, the saved diagnostics.
        self.answered_at: Backend | None = None
        self.diagnostics: LastDiagnostics | None = None
        # Since then the proxy itself has answered a USE, a COMMIT or the like: ROW_COUNT() is 0.
        self.answered_since = False
        # The user variables since their last change; None before a statement has set one.
        self.variables: UserVariables | None = None
        # The advisory locks that the session may hold; None if only a stored program may hold one.
        self.locks: AskedLocks | None = None
        self.transaction: Transaction | None = None
        # After a SET timestamp, NOW() on the server is no longer the time.
        self.has_own_clock = False

    def use(self, settings: Settings) -> None:
        """Make *settings* the variables of every backend connection of this session."""
        self.settings = settings
        self.mode = SqlMode.parse(settings.sql_mode)
        if settings.charset_mode:
            self.mode |= settings.charset_mode
        self.unread = settings.unread
        # Older clients get the status with every answer, so it is worked out once.
        self._status = int(Status.AUTOCOMMIT) if settings.autocommit else 0
        if SqlMode.NO_BACKSLASH_ESCAPES in self.mode:
            # Drivers read the flag when they quote values.
            self._status |= int(Status.NO_BACKSLASH_ESCAPES)

    @property
    def own_select_limit(self) -> str:
        """The session's sql_select_limit."""
        return self.settings.values.get("sql_select_limit", UNLIMITED)

    @contextmanager
    def select_limit(self, limit: str = UNLIMITED) -> Iterator[str]:
        """Use another sql_select_limit meanwhile; yields the session's own."""
        own = self.own_select_limit
        if own == limit:
            yield own
            return
        self.use(self.settings.with_changes([("sql_select_limit", limit)]))
        try:
            yield own
        finally:
            self.use(self.settings.with_changes([("sql_select_limit", own)]))

    @property
    def status(self) -> int:
        """The status flags of the proxy's own OKs."""
        transaction = self.transaction
        if transaction is None or not transaction.has_begun:
            return self._status
        return self._status | (_READS_ONLY if transaction.reads_only else _IN_TRANS)

    def answered_by(self, backend: Backend) -> None:
        """Note where the last statement ran."""
        self.answered_at, self.answered_since = backend, False

    def shown(self, session_state: bytes) -> bytes:
        """Return the part of a server's session state that the client is shown."""
        return shown_to(session_state, self.tracked, changes=self.tracks_changes)

    def handed_over(self, backend: Backend, last_insert_id: int) -> None:
        """Keep the *last_insert_id* of *backend*, which has another owner now."""
        self.insert_id_copies.discard(backend)
        if self.insert_id_at is backend:
            self.insert_id_at = None
            self.last_insert_id = last_insert_id or self.id_before
            if last_insert_id:
                self.id_before_at = None
        elif self.id_before_at is backend:
            self.id_before_at = None
            self.id_before = last_insert_id or self.id_before
            if self.insert_id_at is None:
                self.last_insert_id = self.id_before

    def keeps_diagnostics(self, backend: Backend, diagnostics: LastDiagnostics) -> bool:
        """Keep *diagnostics* as the last statement's diagnostics; False if it did not run on *backend*."""
        if self.answered_at is not backend:
            return False
        self.answered_at = None
        self.diagnostics = diagnostics
        return True

    def note(self, trackers: Iterable[Tracker]) -> None:
        """Apply the changes of the session's variables that an answer reports."""
        changes = [(t.name, t.value) for t in trackers if t.kind == TrackerKind.SYSVAR]
        if changes:
            if self.transaction is not None and self.transaction.has_begun:
                self.transaction.keep_modes(self.settings, dict(changes))
            self.use(self.settings.with_changes(changes))
