"""Control work on one server through asyncmy: discovery, polls, health, KILL, recovery.

These are the proxy's own statements, few and small, so a driver that decodes rows is fast enough.
Statements of clients, and messages, use the connections of `proxy.backends.backend` instead.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from asyncmy.connection import Connection
from asyncmy.cursors import Cursor
from asyncmy.errors import Error as DriverError

from streamfrom.proxy.backends.session_variables import own_statement
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.errors import (
    BackendError,
    BackendUnavailable,
    NoDescriptor,
    connect_refused,
)
from streamfrom.proxy.net import is_out_of_descriptors
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition


CONNECTIONS_MAX = 4
CONNECT_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 60.0

_NUMBERS = frozenset(
    {FieldType.TINY, FieldType.SHORT, FieldType.LONG, FieldType.INT24, FieldType.LONGLONG}
    | {FieldType.FLOAT, FieldType.DOUBLE, FieldType.NEWDECIMAL}
)
NO_SUCH_THREAD = 1094
# CR_MIN_ERROR and CR_MAX_ERROR of errmsg.h: errors that the client side itself reports.
_FIRST_CLIENT_ERROR, _LAST_CLIENT_ERROR = 2000, 2999
# ER_SERVER_SHUTDOWN, MariaDB's ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED, ER_CLIENT_INTERACTION_TIMEOUT.
_SERVER_GOING_AWAY = frozenset({1053, 1927, 3169, 4031})


class _SocketlessConnection(Connection):
    """A connection whose socket may be gone before it is set up, while the server's last packet is still unread: a full server's refusal."""

    def _set_keep_alive(self) -> None:
        with suppress(RuntimeError):
            super()._set_keep_alive()  # type: ignore[misc]  # the stub leaves it out

    def _set_nodelay(self, value: bool) -> None:  # noqa: FBT001 - the driver's
        with suppress(RuntimeError):
            super()._set_nodelay(value)  # type: ignore[misc]


class _Warned(Cursor):
    """A cursor that notes whether the server's answer had warnings, and does not fetch them."""

    was_warned = False

    async def _show_warnings(self, _connection: Any) -> None:
        self.was_warned = True


class Control:
    """A handful of administrative connections to one server, opened when needed.

    Every method raises BackendUnavailable when the server cannot be reached or goes away, and
    BackendError with the server's own code and text when it refuses a statement.
    """

    def __init__(self, keyspace: str, shard: str, dsn: Dsn) -> None:
        self._keyspace = keyspace
        self._shard = shard
        self._dsn = dsn
        self._idle: list[Any] = []
        self._times_left = 0  # how often `leave` was called
        self._slots = asyncio.Semaphore(CONNECTIONS_MAX)
        self._closed = False
        self._is_without_tls = False

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of *sql*."""
        return (await self._described(sql))[1]

    async def _described(self, sql: str) -> tuple[Any, list[tuple[Any, ...]]]:
        """Return the columns, as the driver describes them, and all rows of *sql*."""
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.execute(sql)
            return cursor.description, list(await cursor.fetchall())

    async def rows_unlocked(
        self, sql: str, *, on_mariadb: bool
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """Return the rows of a query of information_schema, without those of locked tables.

        The second value is whether a table was left out: MariaDB opens each table, waits while another
        session locks its definition, and then warns. MySQL reads its dictionary and never waits.
        """
        if not on_mariadb:
            return await self.rows(sql), False
        async with self._connection() as connection, connection.cursor(_Warned) as cursor:
            await cursor.execute(f"SET STATEMENT lock_wait_timeout = 0 FOR {sql}")
            return list(await cursor.fetchall()), cursor.was_warned

    async def rows_uncommitted(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of *sql*, including those of open transactions."""
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            await cursor.execute(sql)
            return list(await cursor.fetchall())

    async def records(self, sql: str) -> list[dict[str, Any]]:
        """Return all rows of *sql*, their values by column."""
        columns, rows = await self._described(sql)
        names = [column[0] for column in columns]
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def table(
        self, sql: str
    ) -> tuple[list[ColumnDefinition], list[tuple[bytes | None, ...]]]:
        """Return the columns and all rows of *sql*, as a client's result set."""
        columns, rows = await self._described(sql)
        return [
            ColumnDefinition(name, type=kind if kind in _NUMBERS else FieldType.VAR_STRING)
            for name, kind, *_ in columns
        ], [tuple(None if each is None else str(each).encode() for each in row) for row in rows]

    async def execute(self, sql: str) -> int:
        """Run *sql* in its own transaction and return the affected rows."""
        async with self._connection() as connection, connection.cursor() as cursor:
            return int(await cursor.execute(sql))

    async def change(
        self, sql: str, update: Callable[[list[tuple[Any, ...]]], str]
    ) -> list[tuple[Any, ...]]:
        """Run *sql* and the statement that *update* makes from its rows in one transaction.

        Return the rows. An error of *update* rolls the transaction back.
        """
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.execute("START TRANSACTION")
            try:
                await cursor.execute(sql)
                rows = list(await cursor.fetchall())
                await cursor.execute(update(rows))
                await cursor.execute("COMMIT")
            except DriverError:
                # Refused, for example by a lock wait: reuse the connection, but not its transaction.
                with suppress(DriverError):
                    await cursor.execute("ROLLBACK")
                raise
            return rows

    async def kill(self, thread_id: int, *, query_only: bool = False) -> None:
        """End the thread *thread_id*, or only its statement; a thread that is gone already is no error."""
        try:
            await self.execute(kill_statement(thread_id, query_only=query_only))
        except BackendError as error:
            if error.code != NO_SUCH_THREAD:
                raise

    async def close(self) -> None:
        """Close all connections; later calls raise BackendUnavailable."""
        self._closed = True
        self.leave()

    def move(self, dsn: Dsn) -> None:
        """Switch to the server at *dsn*."""
        self._dsn, self._is_without_tls = dsn, False
        self.leave()

    def leave(self) -> None:
        """Close the connections, those in use after their statements: there may soon be another server at the address."""
        self._times_left += 1
        self._drop_idle()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        # Callers without a place wait here: control work must not take a busy server's last
        # connections.
        async with self._slots:
            times_left = self._times_left
            connection = self._idle.pop() if self._idle else await self._connect()
            is_usable = False
            try:
                async with asyncio.timeout(STATEMENT_TIMEOUT_S):
                    yield connection
                is_usable = True
            except DriverError as error:
                failure = self._translate(error)
                is_usable = isinstance(failure, BackendError)
                if not is_usable:
                    # The server has restarted: other idle connections are just as dead.
                    self._drop_idle()
                raise failure from error
            except TimeoutError:
                reason = f"{self._dsn}: no answer within {STATEMENT_TIMEOUT_S:g} s"
                raise BackendUnavailable(self._keyspace, self._shard, reason) from None
            finally:
                # Where it was cancelled or broke half way, no caller reads the answer that is under way.
                if is_usable and times_left == self._times_left:
                    self._idle.append(connection)
                else:
                    connection.close()

    async def _connect(self) -> Any:
        if self._closed:
            raise BackendUnavailable(self._keyspace, self._shard, "the proxy is shutting down")
        try:
            connection = await self._log_in()
        except (DriverError, OSError, TimeoutError) as error:
            self._is_without_tls = False
            if _is_cancelled():
                raise asyncio.CancelledError from error
            failure = self._translate(error)
            if isinstance(failure, BackendError):
                failure = connect_refused(
                    self._keyspace, self._shard, self._dsn.server, failure
                )
            raise failure from error
        if _is_cancelled():
            connection.close()
            raise asyncio.CancelledError
        return connection

    async def _log_in(self) -> Any:
        """Return a new connection, without TLS if that is only preferred and the server has none.

        The driver begins TLS without checking whether the greeting offers it.
        """
        context = None if self._is_without_tls else tls_context(self._dsn)
        try:
            return await self._open(context)
        except DriverError as error:
            is_required = self._dsn.ssl_mode is not SslMode.PREFERRED
            if is_required or not isinstance(error.__cause__, ssl.SSLError):
                raise
        connection = await self._open(None)
        # Remembered, because each attempt costs the server a connection that breaks off.
        self._is_without_tls = True
        return connection

    async def _open(self, context: ssl.SSLContext | None) -> Any:
        dsn = self._dsn
        connection = _SocketlessConnection(  # type: ignore[no-untyped-call]
            host=dsn.host,
            port=dsn.port,
            unix_socket=dsn.unix_socket,
            user=dsn.user,
            # The driver takes text for latin1.
            password=dsn.password.reveal().encode(),
            db=dsn.database,
            charset="utf8mb4",
            autocommit=None,  # `init_command` says it
            # A proxy passes it on to a server, and shall answer where there is none.
            init_command=own_statement() if self._keyspace else None,
            connect_timeout=CONNECT_TIMEOUT_S,
            ssl=context,
        )
        await connection.connect()
        return connection

    def _translate(self, error: BaseException) -> BackendError | BackendUnavailable:
        if is_out_of_descriptors(error) or is_out_of_descriptors(error.__cause__):
            return NoDescriptor(self._keyspace, self._shard)
        args = error.args
        code = args[0] if args and isinstance(args[0], int) else 0
        text = str(args[1]) if len(args) > 1 else str(error) or type(error).__name__
        # 2000 to 2999 are the client's own errors (CR_…): they come from no server, so it was
        # not reached.
        from_driver = code == 0 or _FIRST_CLIENT_ERROR <= code <= _LAST_CLIENT_ERROR
        cause = error.__cause__
        if isinstance(cause, TimeoutError):
            text = "no answer"  # the driver's text ends where that of the cause would be
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            text = f"the server offers no TLS, and ssl_mode={self._dsn.ssl_mode} requires it"
        if from_driver or code in _SERVER_GOING_AWAY or not isinstance(error, DriverError):
            return BackendUnavailable(self._keyspace, self._shard, f"{self._dsn}: {text}")
        return BackendError(code, "HY000", text)


def kill_statement(thread_id: int, *, query_only: bool) -> str:
    """Return the KILL of a thread, as text: MySQL 9 no longer has the protocol's command (error 1047)."""
    return f"KILL {'QUERY ' if query_only else ''}{thread_id}"


def _is_cancelled() -> bool:
    """True when a cancellation was lost, and the task that waits for it would wait forever.

    `asyncio.wait_for`, with which the driver connects, prefers a result of the same moment
    (https://github.com/python/cpython/issues/86296, fixed in 3.12).
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def tls_context(dsn: Dsn) -> ssl.SSLContext | None:
    """Return how to speak TLS to the server, None for plain text. Raises OSError if the file of the authorities cannot be used."""
    if dsn.ssl_mode is SslMode.DISABLED:
        return None
    is_verified = dsn.ssl_mode not in {SslMode.PREFERRED, SslMode.REQUIRED}
    path = dsn.ssl_ca or ssl.get_default_verify_paths().cafile
    try:
        changed_ns = Path(path).stat().st_mtime_ns if is_verified and path else 0
        return _context(dsn.ssl_mode, dsn.ssl_ca if is_verified else None, changed_ns)
    except OSError as error:
        raise OSError(f"ssl_ca {dsn.ssl_ca}: {error}") from error


# To load the system's authorities takes the loop some 20 ms, and each connection would.
@lru_cache
def _context(mode: SslMode, ssl_ca: str | None, _changed_ns: int) -> ssl.SSLContext:
    if mode in {SslMode.PREFERRED, SslMode.REQUIRED}:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context = ssl.create_default_context(cafile=ssl_ca)
    context.check_hostname = mode is SslMode.VERIFY_IDENTITY
    return context
