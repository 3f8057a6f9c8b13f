"""One connection to one database server, as the relay uses it.

A `Backend` is a `wire.ClientConnection` on a `Link`. Statements go out as packets; whoever
sends one leaves a `Reader` that consumes its answer. Readers are served in the order of the
packets, so several may be under way at once (pipelining).

The connection remembers what it is: which session variables it has, which database it is in,
whose session used it last and whether that session left anything behind. `adopt` turns it into
a connection of another session, resetting it where that session could notice the last one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

from proxy import net
from proxy.backends.control import tls_context
from proxy.backends.readers import Collected, Login, Prepared
from proxy.backends.remains import Left
from proxy.backends.settings import Settings, tracking
from proxy.backends.statement_ids import StatementIds, StatementKey
from proxy.config.dsn import SslMode
from proxy.errors import BackendError, BackendLost, BackendUnavailable, WireError
from proxy.wire.client_connection import ClientConnection, Ready, StartTls
from proxy.wire.commands import (
    init_db,
    query,
    quit_,
    reset_connection,
    stmt_close,
    stmt_prepare,
)
from proxy.wire.constants import Capability, TrackerKind
from proxy.wire.resultset import parse_text_row


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from proxy.backends.readers import Answer, Reader
    from proxy.config.dsn import Dsn
    from proxy.wire.prepare import PrepareReader
    from proxy.wire.resultset import Tracker


CONNECT_TIMEOUT_S = 5.0

# From left to right: what the last two say is the value before and the one from now on.
_WHAT_IS_LEFT = query(b"SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID(), LAST_INSERT_ID(0)")


class Tenant(Protocol):
    """Who uses a connection for a while: a client's session, or the engine."""

    settings: Settings
    variant: int

    def evicted(self, backend: Backend, last_insert_id: int) -> None:
        """Learn that *backend* goes to somebody else, and what LAST_INSERT_ID() was on it."""

    def leaves(self, backend: Backend, left: Left) -> bool:
        """Take *left*, to be filled, for what the last statement left on *backend*.

        False if nobody will ask: another connection has run something since.
        """


class Backend:
    """One connection to one shard's server.

    Attributes:
        thread_id: the server's own connection id, for KILL.
        variant: the capability bits it was opened with that change what statements mean.
        settings: the session variables it is known to have.
        database: its current database.
        owner: the session that used it last.
        has_residue: the owner may have left something that another session could notice.
        has_insert_id: that is so of LAST_INSERT_ID(), which is taken away without a reset.
        in_transaction: as the last answer said.
        found_rows, row_count: what these functions would say now, None where only the server
            knows.
        has_warnings: so does SHOW WARNINGS.
        on_writable: called once when the server has caught up with what it was sent.
        statements: what is prepared on it, for whichever session comes.
        takes_bulk: it understands COM_STMT_BULK_EXECUTE.
        awaits_kill: a KILL QUERY is on its way, which must not meet another session's statement.
    """

    __slots__ = (
        "_dsn",
        "_keyspace",
        "_on_lost",
        "_readers",
        "_shard",
        "_tracking",
        "_wire",
        "awaits_kill",
        "database",
        "found_rows",
        "has_insert_id",
        "has_residue",
        "has_warnings",
        "in_transaction",
        "link",
        "on_writable",
        "owner",
        "row_count",
        "settings",
        "statements",
        "takes_bulk",
        "thread_id",
        "variant",
    )

    def __init__(self, keyspace: str, shard: str, dsn: Dsn, variant: int) -> None:
        self._keyspace = keyspace
        self._shard = shard
        self._dsn = dsn
        self._readers: deque[Reader] = deque()
        self._on_lost: Callable[[Backend], None] | None = None
        self._tracking = b""
        self._wire: ClientConnection
        self.link: net.Link
        self.thread_id = 0
        self.variant = variant
        self.settings = Settings()
        self.database: str | None = None
        self.owner: Tenant | None = None
        self.has_residue = False
        self.has_insert_id = False
        self.in_transaction = False
        self.awaits_kill = False
        self.found_rows: int | None = None
        self.row_count: int | None = None
        self.has_warnings = False
        self.on_writable: Callable[[], None] | None = None
        self.statements = StatementIds()
        self.takes_bulk = False

    @property
    def is_closed(self) -> bool:
        """True once nothing can be sent any more."""
        return self.link.closed

    @property
    def is_busy(self) -> bool:
        """True while an answer is under way."""
        return bool(self._readers)

    # --- opening and closing --------------------------------------------------------------

    @classmethod
    async def open(
        cls, keyspace: str, shard: str, dsn: Dsn, *, database: str | None, variant: int = 0
    ) -> Backend:
        """Connect and log in.

        Raises:
            BackendUnavailable: it cannot be reached, or goes away meanwhile.
            BackendError: it refuses the login, in its own words.
        """
        backend = cls(keyspace, shard, dsn, variant)
        backend._wire = ClientConnection(
            dsn.user,
            dsn.password.reveal(),
            database=database,
            options=variant,
            wants_tls=dsn.ssl_mode is not SslMode.DISABLED,
            requires_tls=dsn.ssl_mode not in {SslMode.DISABLED, SslMode.PREFERRED},
            is_secure=dsn.unix_socket is not None,
        )
        login = Login(asyncio.get_running_loop().create_future())
        backend._readers.append(login)

        def owner_of(link: net.Link) -> Backend:
            backend.link = link
            return backend

        try:
            link = await net.connect(
                owner_of,
                host=dsn.host,
                port=dsn.port,
                unix_socket=dsn.unix_socket,
                timeout_s=CONNECT_TIMEOUT_S,
            )
        except TimeoutError:
            raise BackendUnavailable(keyspace, shard, f"{dsn}: no answer") from None
        except OSError as error:
            raise BackendUnavailable(keyspace, shard, f"{dsn}: {error}") from None
        login.conversation = lambda data: backend._log_in(login, data)
        if login.early:
            login.conversation(login.early)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await login.finished
                greeting = backend._wire.greeting
                backend.thread_id = greeting.connection_id
                backend.database = database
                backend.takes_bulk = bool(
                    backend._wire.capabilities & Capability.STMT_BULK_OPERATIONS
                )
                backend._tracking = tracking(
                    greeting.server_version,
                    ignores_space=bool(variant & Capability.IGNORE_SPACE),
                )
                await backend.run(backend._tracking)
        except TimeoutError:
            link.abort()
            raise BackendUnavailable(keyspace, shard, f"{dsn}: login timed out") from None
        except BackendLost:
            raise BackendUnavailable(keyspace, shard, f"{dsn}: gone in the login") from None
        except (WireError, OSError) as error:
            link.abort()
            raise BackendUnavailable(keyspace, shard, f"{dsn}: {error}") from None
        except BaseException:
            link.abort()
            raise
        return backend

    def _log_in(self, login: Login, data: bytes) -> None:
        wire = self._wire
        try:
            events = wire.receive(data)
            answer = wire.data_to_send()
            if answer:
                self.link.write(answer)
            for event in events:
                match event:
                    case StartTls():
                        self._start_tls()
                    case Ready():
                        login.succeed(None)
        except (WireError, BackendError, OSError) as error:
            login.fail(error)

    def _start_tls(self) -> None:
        """Go on in TLS. Raises OSError if the authorities to trust cannot be read."""
        context = tls_context(self._dsn)
        assert context is not None
        hostname = self._dsn.host if context.check_hostname else None
        self.link.start_tls(context, server_side=False, hostname=hostname, early=b"")
        self._wire.tls_started()
        self.link.write(self._wire.data_to_send())

    def on_lost(self, call: Callable[[Backend], None]) -> None:
        """Have *call* made once when the connection goes away by itself or by `close`."""
        self._on_lost = call

    def close(self) -> None:
        """Say goodbye and close. Whatever is under way is lost."""
        if not self.link.closed:
            self.link.write(quit_())
            self.link.close()

    def abort(self) -> None:
        """Close at once."""
        self.link.abort()

    # --- statements -----------------------------------------------------------------------

    def send(self, packet: bytes, reader: Reader) -> None:
        """Send a framed command; *reader* gets its answer."""
        if self.link.closed:
            # Maybe everybody has been told that it is lost: this one would wait for ever.
            failure = BackendLost(self._keyspace, self._shard)
            asyncio.get_running_loop().call_soon(reader.lost, failure)
            return
        self._readers.append(reader)
        self.link.write(packet)

    async def run(self, sql: bytes) -> Answer:
        """Run one of the proxy's own statements and return its decoded-enough answer.

        Raises:
            BackendError: the server refused it.
            BackendLost: the connection went away.
        """
        return await self.command(query(sql))

    async def command(self, packet: bytes) -> Answer:
        """Send one framed command and return its answer. Raises as `run`."""
        (answer,) = await self.pipeline([packet])
        return answer

    async def pipeline(self, packets: list[bytes]) -> list[Answer]:
        """Send several commands in one write and return all answers. Raises as `run`.

        The first refusal is raised after the last answer is in; later commands have run.
        """
        answers = await self.answers(packets)
        for answer in answers:
            if answer.error is not None:
                raise answer.error.exception()
        return answers

    async def answers(self, packets: list[bytes]) -> list[Answer]:
        """Send several commands in one write and return all answers, refusals too.

        Raises BackendLost.
        """
        if self.link.closed:
            raise BackendLost(self._keyspace, self._shard)
        loop = asyncio.get_running_loop()
        readers = [Collected(loop.create_future()) for _ in packets]
        self._readers.extend(readers)
        self.link.write(b"".join(packets))
        try:
            # Every future is awaited before anything is raised: the answers stay in step.
            await asyncio.wait([reader.finished for reader in readers])
        except BaseException:
            # Nobody will read the rest: the connection cannot be used again.
            for reader in readers:
                reader.finished.cancel()
            self.abort()
            raise
        # All are looked at before one is raised: a failure that nobody retrieves is logged.
        failures = [reader.finished.exception() for reader in readers]
        for failure in failures:
            if failure is not None:
                raise failure
        return [reader.finished.result() for reader in readers]

    async def prepare(self, key: StatementKey) -> PrepareReader:
        """Prepare a statement under this connection's variables; keep its id in `statements`.

        The connection's database must be *key*'s. Raises as `run`.
        """
        answer = await self.prepare_apart(key.text)
        self.statements.put(key, answer.statement_id)
        return answer

    async def prepare_apart(self, sql: bytes) -> PrepareReader:
        """Prepare a statement that is the caller's alone, who closes it. Raises as `run`."""
        if self.link.closed:
            raise BackendLost(self._keyspace, self._shard)
        reader = Prepared(asyncio.get_running_loop().create_future())
        self._readers.append(reader)
        closes = map(stmt_close, self.statements.take_stale())
        self.link.write(b"".join((*closes, stmt_prepare(sql))))
        try:
            answer = await reader.finished
        except asyncio.CancelledError:
            # Nobody will read the rest: the connection cannot be used again.
            self.abort()
            raise
        if answer.error is not None:
            raise answer.error.exception()
        return answer

    def fits(self, owner: Tenant, settings: Settings, database: str | None) -> bool:
        """True when `adopt` would have nothing to do."""
        return (
            self.settings is settings
            and self.database == database
            and (self.owner is owner or not (self.has_residue or self.has_insert_id))
        )

    async def adopt(self, owner: Tenant, settings: Settings, database: str | None) -> None:
        """Make this the connection of *owner*: reset, variables, database as needed.

        Raises:
            BackendError: the server refuses, for example because the database is gone; the
                connection is closed then.
            BackendLost: it went away.
        """
        foreign = self.owner is not owner
        if foreign:
            await self.take_leave(self.owner)
        if self.fits(owner, settings, database):
            self.owner = owner
            return
        packets = []
        if (foreign and self.has_residue) or not settings.fits(self.settings):
            # A reset forgets the tracking too, and takes the server's default character set
            # rather than the one of the login, so everything is said again.
            packets += [reset_connection(), query(self._tracking)]
            self.settings = Settings()
            self.statements.clear()
            self.found_rows = None
            self.has_residue = self.has_insert_id = False
        change = settings.statement_from(self.settings)
        if change is not None:
            packets.append(query(change))
        if database != self.database and database is not None:
            packets.append(init_db(database.encode()))
        try:
            if packets:
                await self.pipeline(packets)
        except BackendError:
            self.close()
            raise
        self.owner = owner
        self.settings = settings
        if database is not None:
            self.database = database

    async def last_insert_id(self) -> int:
        """Return LAST_INSERT_ID() of this connection. Raises as `run`.

        The OK of an INSERT does not tell it: for a row that names its own id it tells that one.
        """
        answer = await self.run(b"SELECT LAST_INSERT_ID()")
        (value,) = parse_text_row(answer.rows[0])
        return int(value or 0)

    async def take_leave(self, owner: Tenant | None) -> None:
        """Tell *owner* what it left here, before others come; take LAST_INSERT_ID() away.

        One round trip, and mostly one statement: with more clients than connections every
        INSERT into a table with AUTO_INCREMENT pays for it. Raises as `run`.
        """
        left = Left(asyncio.get_running_loop().create_future())
        asks = owner is not None and owner.leaves(self, left)
        shows_warnings = asks and self.has_warnings
        counts = asks and (self.found_rows is None or self.row_count is None)
        packets = []
        # In this order: on both servers SHOW WARNINGS leaves FOUND_ROWS() as it is.
        if shows_warnings:
            packets.append(query(b"SHOW WARNINGS"))
        if counts or self.has_insert_id or (self.has_residue and owner is not None):
            packets.append(_WHAT_IS_LEFT)
        if self.found_rows is not None:
            left.found_rows = self.found_rows
        if self.row_count is not None:
            left.row_count = self.row_count
        try:
            answers = await self.pipeline(packets) if packets else []
            if shows_warnings:
                left.columns, left.rows = answers[0].columns, answers[0].rows
            if len(answers) > shows_warnings:
                values = parse_text_row(answers[-1].rows[0])
                found, counted, insert_id, _ = (int(value or 0) for value in values)
                if self.found_rows is None:
                    left.found_rows = found
                if self.row_count is None:
                    left.row_count = counted
                if owner is not None:
                    owner.evicted(self, insert_id)
                self.has_insert_id = False
                # What that SELECT itself has found.
                self.found_rows = 1
        finally:
            left.known.set_result(None)

    def note(self, trackers: Iterable[Tracker]) -> None:
        """Follow what an answer says about the session: database and variables."""
        changes = []
        for tracker in trackers:
            if tracker.kind == TrackerKind.SYSVAR:
                changes.append((tracker.name, tracker.value))
            elif tracker.kind == TrackerKind.SCHEMA:
                self.database = tracker.value or None
        if changes:
            self.settings = self.settings.with_changes(changes)

    # --- what the link calls --------------------------------------------------------------

    def connected(self) -> None:
        """Wait: the server speaks first."""

    def received(self, data: bytes) -> None:
        """Give bytes to the reader whose answer they are."""
        rest: bytes | None = data
        while rest:
            if not self._readers:
                # A server speaks unasked only to say why it hangs up.
                self.abort()
                return
            reader = self._readers[0]
            try:
                rest = reader.feed(rest)
            except WireError:
                self.abort()
                return
            if rest is not None:
                self._readers.popleft()
                reader.ended()

    def lost(self, error: Exception | None) -> None:
        """Tell everybody who waits."""
        self.writable()
        readers, self._readers = self._readers, deque()
        failure = BackendLost(self._keyspace, self._shard)
        for reader in readers:
            reader.lost(failure)
        if self._on_lost is not None:
            self._on_lost(self)

    def writable(self) -> None:
        """Let who waits go on: only the sender of a file does, statements are bounded."""
        if self.on_writable is not None:
            self.on_writable()
            self.on_writable = None
