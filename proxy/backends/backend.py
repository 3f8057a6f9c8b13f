"""One connection to one database server, as the relay uses it.

`proxy.backends.connect` turns a `Link` into a `Backend`. Statements are sent as packets; with each comes an `AnswerReader` that
consumes its answer. Readers are served in the order of the packets, so several may be waiting at once (pipelining).

The connection remembers its session variables, its default database, the session that used it last, and whether that session
left other state there. From these `proxy.backends.pooling.connection_handover` works out how it becomes a connection of another
session.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.proxy.backends.answer_readers import (
    AnswerCollector,
    Awaited,
    DiscardedAnswer,
    PrepareAnswerReader,
)
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.backends.statement_ids import StatementIds, StatementKey
from streamfrom.proxy.errors import BackendLost, WireError
from streamfrom.proxy.wire.commands import PING, QUIT, query, stmt_close, stmt_prepare
from streamfrom.proxy.wire.constants import TrackerKind


if TYPE_CHECKING:
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.answer_readers import AnswerReader, BufferedAnswer
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.wire.prepare_response import PrepareReader
    from streamfrom.proxy.wire.resultset import Tracker


@dataclass(slots=True, eq=False)
class LastDiagnostics:
    """The diagnostics area of one statement."""

    # The values of FOUND_ROWS() and ROW_COUNT().
    found_rows: int = 0
    row_count: int = -1
    # The answer to SHOW WARNINGS, as payloads; empty without a warning.
    columns: Sequence[bytes] = ()
    rows: Sequence[bytes] = ()
    # Done once the rest is final, even if the connection broke before; None if no server is queried.
    asked: asyncio.Future[None] | None = None

    @property
    def is_known(self) -> bool:
        """True once all of it is final."""
        return self.asked is None or self.asked.done()

    async def known(self) -> None:
        """Wait until all of it is final."""
        if self.asked is not None:
            await asyncio.wait([self.asked])


# The server has max_prepared_stmt_count statements already, on all connections together.
TOO_MANY_STATEMENTS: Final = 1461
ASK_ROLE: Final = query(b"SELECT CURRENT_ROLE() LIMIT 1")


class ConnectionOwner(Protocol):
    """The user of a connection until its handover: a client's session, or the engine."""

    account: Account
    settings: Settings
    variant: int
    began_s: float  # when the session logged in, by time.monotonic()

    def handed_over(self, backend: Backend, last_insert_id: int) -> None:
        """Keep the *last_insert_id* of *backend*, which has another owner now."""
        return  # An owner without insert ids has nothing to keep.

    def keeps_diagnostics(self, backend: Backend, diagnostics: LastDiagnostics) -> bool:
        """Keep *diagnostics*, which the server's answer will fill, for the last statement on *backend*.

        Returns False if the owner keeps none, or has run a later statement on another connection.
        """
        return False


def checked(answers: list[BufferedAnswer]) -> list[BufferedAnswer]:
    """Return *answers*; raise the first error among them, as BackendError."""
    for answer in answers:
        if answer.error is not None:
            raise answer.error.exception()
    return answers


@dataclass(eq=False)
class ProxyItself(ConnectionOwner):
    """The owner of a connection that the proxy has borrowed for its own statements."""

    account: Account
    settings: Settings
    variant: int = 0
    began_s: float = 0.0  # it takes the rights of any login


@dataclass(slots=True, eq=False, repr=False)
class Backend:
    """One connection to one shard's server."""

    _keyspace: str
    _shard: str
    account: Account  # the account that it has logged in with
    variant: int  # the capability bits of the login that change the meaning of statements
    link: Link = field(init=False)
    thread_id: int = 0  # the server's own connection id, for KILL
    # The session variables that the server is known to have on this connection.
    settings: Settings = field(default_factory=Settings)
    tracking: bytes = b""  # the SET that makes the server report changes by sessions
    database: str | None = None  # the current database
    owner: ConnectionOwner | None = None  # the session that used the connection last
    # The owner may have left something that another session could notice.
    has_residue: bool = False
    # The diagnostics of the last owner, until the server has sent them.
    leaving: LastDiagnostics | None = None
    # LAST_INSERT_ID() may be the owner's; a SELECT sets it to 0 without a reset.
    has_insert_id: bool = False
    in_transaction: bool = False  # the last answer had the flag SERVER_STATUS_IN_TRANS
    # The current values of FOUND_ROWS() and ROW_COUNT(); None if only the server knows them. The owner's last SELECT may have run
    # on another connection, which left its FOUND_ROWS() in diagnostics; the server would return another number.
    found_rows: int | LastDiagnostics | None = None
    row_count: int | None = None
    has_warnings: bool = False  # the server may hold warnings of the owner's last statement
    is_spent: bool = False  # the owner left something that outlives a reset
    # A session that began later than this must find the global variables and rights of another login.
    outdated_s: float = math.inf
    is_left: bool = False  # there may be another server at the shard's address
    login_role: Sequence[bytes] = ()  # the answer to ASK_ROLE after the login
    may_have_role: bool = (
        False  # the owner ran a statement that may have changed CURRENT_ROLE()
    )
    # Called once when the connection is lost or closed.
    on_lost: Callable[[Backend], None] | None = None
    # Called when the server has too many prepared statements and none of them is this connection's; closes some
    # elsewhere and returns futures of their end.
    on_crowded: Callable[[], Sequence[asyncio.Future[object]]] | None = None
    # Called once when the server has read the bytes waiting to be sent.
    on_writable: Callable[[], None] | None = None
    # The prepared statements of the connection, for any later session.
    statements: StatementIds = field(default_factory=StatementIds)
    # The version of the owner's user variables that is set on the connection; None for none.
    variables: object = None
    keeps_kinds: bool = False  # MySQL: see `StatementIds`
    # Returns whether another shard responds that can run the current statement; None if no other can.
    has_other: Callable[[], bool] | None = None
    # A KILL QUERY is under way, which must not meet another session's statement.
    awaits_kill: bool = False
    _readers: deque[AnswerReader] = field(default_factory=deque)

    def may_serve(self, owner: ConnectionOwner) -> bool:
        """Return whether *owner* may have it without another login."""
        return self.owner is owner or not (self.is_spent or owner.began_s > self.outdated_s)

    @property
    def is_closed(self) -> bool:
        """True once nothing can be sent any more."""
        return self.link.closed

    def check_open(self) -> None:
        """Raise BackendLost if nothing can be sent any more."""
        if self.link.closed:
            raise BackendLost(self._keyspace, self._shard)

    @property
    def is_busy(self) -> bool:
        """True while an answer is under way."""
        return bool(self._readers)

    # --- closing --------------------------------------------------------------------------

    def close(self) -> None:
        """Send COM_QUIT and close. Every answer under way is lost."""
        if not self.link.closed:
            self.link.write(QUIT)
            self.link.close()

    def abort(self) -> None:
        """Close at once."""
        self.link.abort()

    # --- statements -----------------------------------------------------------------------

    def send(self, packet: bytes, reader: AnswerReader, *, ahead: bool = False) -> None:
        """Send a framed command, or *ahead* in one write with the next one in this turn of the loop; *reader* gets its answer."""
        if self.link.closed:
            self._fail(reader)
            return
        self._readers.append(reader)
        (self.link.write_ahead if ahead else self.link.write)(packet)

    def _fail(self, reader: AnswerReader) -> None:
        # All readers may have had their `connection_lost` already, and this one would wait forever.
        failure = BackendLost(self._keyspace, self._shard)
        asyncio.get_running_loop().call_soon(reader.connection_lost, failure)

    def leave_to_first(self) -> AnswerReader | None:
        """Return the reader that is being served; the connection is lost to all later ones.

        The connection can be used for nothing else afterwards, because the other answers still come.
        """
        if not self._readers:
            return None
        first, *others = self._readers
        if others:
            # One reader takes all remaining answers, because their statements cannot be recalled.
            self._readers = deque((first, DiscardedAnswer()))
            for reader in others:
                self._fail(reader)
        return first

    def expect(self, reader: AnswerReader) -> None:
        """Make *reader* take the greeting, which the server sends without a command."""
        self._readers.append(reader)

    def ending(self, sql: bytes) -> bytes:
        """Return COMMIT or ROLLBACK with clauses that override completion_type."""
        if "completion_type" in self.settings.values:
            return sql + b" AND NO CHAIN NO RELEASE"
        return sql

    async def query(self, sql: bytes) -> BufferedAnswer:
        """Run one of the proxy's own statements and return its whole answer, with rows as payloads.

        Raises BackendError if the server refuses it, BackendLost if the connection goes away.
        """
        return await self.command(query(sql))

    async def command(self, packet: bytes) -> BufferedAnswer:
        """Send one framed command and return its answer. Raises as `query`."""
        (answer,) = await self.pipeline([packet])
        return answer

    async def pipeline(
        self, packets: list[bytes], bytes_max: int = sys.maxsize
    ) -> list[BufferedAnswer]:
        """Send several commands in one write and return all answers. Raises as `query`.

        The first error is raised after the last answer has come, so later commands have run.

        bytes_max: how many bytes of rows are kept of each answer; of a longer answer no row is kept.
        """
        return checked(await self.answers(packets, bytes_max))

    async def answers(
        self, packets: list[bytes], bytes_max: int = sys.maxsize
    ) -> list[BufferedAnswer]:
        """Send several commands in one write and return all answers, including errors.

        Raises BackendLost.
        """
        self.check_open()
        if not packets:
            return []
        found: list[BufferedAnswer] = []
        # One for all: answers come in order.
        outcome: Awaited[list[BufferedAnswer]] = Awaited()

        def heard(answer: BufferedAnswer) -> None:
            found.append(answer)
            if len(found) == len(packets):
                outcome.succeed(found)

        for _ in packets:
            self._readers.append(AnswerCollector(heard, outcome.fail, bytes_max))
        self.link.write(b"".join(packets))
        try:
            return await outcome.future
        except asyncio.CancelledError:
            # The rest will not be read: the connection cannot be used again.
            self.abort()
            raise

    async def prepare(self, key: StatementKey) -> PrepareReader:
        """Prepare a statement under this connection's variables; keep its id in `statements`.

        The connection's database must be *key*'s. Raises as `query`.
        """
        answer = await self.prepare_apart(key.text)
        self.statements.put(key, answer.statement_id)
        return answer

    async def prepare_apart(self, sql: bytes) -> PrepareReader:
        """Prepare a statement for the caller only, which must close it. Raises as `query`."""
        answer = await self._prepare(sql)
        error = answer.error
        if error is not None and error.code == TOO_MANY_STATEMENTS and await self.make_room():
            answer = await self._prepare(sql)
        if answer.error is not None:
            raise answer.error.exception()
        return answer

    async def make_room(self) -> bool:
        """Close prepared statements that only the proxy keeps, because the server has too many.

        The statements are those of this connection, else of other connections that are idle. Return False if there are
        none.
        """
        if self.release_statements():
            return True
        closing = () if self.on_crowded is None else self.on_crowded()
        if not closing:
            return False
        await asyncio.wait(closing)
        return True

    def caught_up(self) -> asyncio.Future[object]:
        """Return a future that is done when the server has carried out all commands, or is gone."""
        outcome: Awaited[object] = Awaited()
        self.send(PING, AnswerCollector(outcome.succeed, outcome.succeed))
        return outcome.future

    def release_statements(self) -> bool:
        """Close every prepared statement of the connection; False if there is none."""
        if not self.statements.release() or self.link.closed:
            return False
        self.link.write(b"".join(map(stmt_close, self.statements.take_stale())))
        return True

    async def _prepare(self, sql: bytes) -> PrepareReader:
        self.check_open()
        reader = PrepareAnswerReader(self.link)
        self._readers.append(reader)
        # COM_STMT_CLOSE has no answer, so it travels free with the next command.
        closes = map(stmt_close, self.statements.take_stale())
        self.link.write(b"".join((*closes, stmt_prepare(sql))))
        try:
            return await reader.future
        except asyncio.CancelledError:
            # The rest will not be read, so the connection cannot be used again.
            self.abort()
            raise

    def was_reset(self) -> None:
        """Note that COM_RESET_CONNECTION has ended the owner's state, and the tracking too."""
        self.settings = Settings()
        self.variables = self.found_rows = None
        self.statements.clear()
        self.has_residue = self.has_insert_id = False

    async def has_login_role(self) -> bool:
        """Return False if the last owner may have changed the roles, which COM_RESET_CONNECTION does not undo. Raises BackendLost."""
        if not self.may_have_role:
            return True
        (answer,) = await self.answers([ASK_ROLE])
        self.may_have_role = False
        return bool(answer.rows) and answer.rows == self.login_role

    def note(self, trackers: Iterable[Tracker]) -> None:
        """Apply the changes of database and variables that an answer reports."""
        changes = []
        for tracker in trackers:
            if tracker.kind == TrackerKind.SYSVAR:
                changes.append((tracker.name, tracker.value))
            elif tracker.kind == TrackerKind.SCHEMA:
                self.database = tracker.value or None
        if changes:
            self.settings = self.settings.with_changes(changes)

    # --- called by the link --------------------------------------------------------------------

    def connection_made(self) -> None:
        """Wait: the server sends first."""

    def data_received(self, data: bytes) -> None:
        """Give bytes to the reader whose answer they are."""
        rest: bytes | None = data
        while rest:
            if not self._readers:
                # A server sends a packet without a command, or after the last answer, only to explain why it closes the
                # connection.
                self.abort()
                return
            reader = self._readers[0]
            try:
                rest = reader.data_received(rest)
            except WireError:
                self.abort()
                return
            if rest is not None:
                self._readers.popleft()
                if rest and not self._readers:
                    # Before the next session's statement is sent here, and answered by it.
                    self.abort()
                    rest = None
                reader.answer_completed()
                if rest and self.link.closed:
                    return  # the reader has aborted: the answers behind its own count for nothing

    def connection_lost(self, error: Exception | None) -> None:
        """Notify every reader and the pool."""
        self.resume_writing()
        # The readers are exchanged first: a reader that learns of the loss may send again at once, which must fail.
        readers, self._readers = self._readers, deque()
        failure = BackendLost(self._keyspace, self._shard)
        for reader in readers:
            reader.connection_lost(failure)
        if self.on_lost is not None:
            self.on_lost(self)

    def resume_writing(self) -> None:
        """Let the sender of a LOAD DATA LOCAL file continue; statements never wait here."""
        if self.on_writable is not None:
            self.on_writable()
            self.on_writable = None
