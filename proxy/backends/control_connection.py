"""Control work on one server: discovery, polls, health, KILL, recovery.

These are the proxy's own statements, few and small. They have connections of their own, so that no client of a full pool
keeps them waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.errors import BackendError, BackendLost, BackendUnavailable
from streamfrom.proxy.wire.binary_parameters import DATES, FLOATS, INTEGER_BYTES
from streamfrom.proxy.wire.commands import PING, query
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    parse_column_definition,
    parse_text_row,
)


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.config.dsn import Dsn


CONNECTIONS_MAX: Final = 4
STATEMENT_TIMEOUT_S: Final = 60.0
# What the server shows of such a connection, in performance_schema.session_connect_attrs.
PROGRAM: Final = "streamfrom-control"

_NO_SUCH_THREAD: Final = 1094
# ER_SERVER_SHUTDOWN, MariaDB's ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED, ER_CLIENT_INTERACTION_TIMEOUT.
_SERVER_GOING_AWAY: Final = frozenset({1053, 1927, 3169, 4031})
_NUMBERS: Final[dict[int, Callable[[bytes], Any]]] = {
    **dict.fromkeys(INTEGER_BYTES, int),
    **dict.fromkeys(FLOATS, float),
    FieldType.NEWDECIMAL: lambda text: Decimal(text.decode()),
}
# Their columns say that they are bytes.
_TEXTS: Final = DATES | {FieldType.TIME, FieldType.JSON}


class Control:
    """A handful of administrative connections to one server, opened when needed.

    Every method raises BackendUnavailable when the server cannot be reached or goes away, and
    BackendError with the server's own code and words when it refuses a statement.
    """

    def __init__(self, keyspace: str, shard: str, dsn: Dsn) -> None:
        self._keyspace = keyspace
        self._shard = shard
        self._dsn = dsn
        self._idle: list[Backend] = []
        self._slots = asyncio.Semaphore(CONNECTIONS_MAX)
        self._closed = False

    async def ask(self, *statements: bytes) -> BufferedAnswer:
        """Run *statements* on one connection, and return the answer to the last one, with rows as payloads."""
        async with self._connection() as backend:
            return (await backend.pipeline(list(map(query, statements))))[-1]

    async def ask_unlocked(
        self, sql: bytes, *, on_mariadb: bool
    ) -> tuple[BufferedAnswer, bool]:
        """Return the answer to a query of information_schema, without the rows of locked tables.

        The second value is whether a table was left out: MariaDB opens each table, waits while another
        session locks its definition, and then warns. MySQL reads its dictionary and never waits.
        """
        if not on_mariadb:
            return await self.ask(sql), False
        answer = await self.ask(b"SET STATEMENT lock_wait_timeout = 0 FOR " + sql)
        return answer, answer.ok is not None and answer.ok.warnings > 0

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of *sql*."""
        return _rows(await self.ask(sql.encode()))

    async def rows_unlocked(
        self, sql: str, *, on_mariadb: bool
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """Return rows, and whether some were left out, as `ask_unlocked`."""
        answer, has_skipped = await self.ask_unlocked(sql.encode(), on_mariadb=on_mariadb)
        return _rows(answer), has_skipped

    async def rows_uncommitted(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of *sql*, those of transactions that are open among them."""
        return _rows(
            await self.ask(b"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", sql.encode())
        )

    async def records(self, sql: str) -> list[dict[str, Any]]:
        """Return all rows of *sql*, their values by column."""
        answer = await self.ask(sql.encode())
        names = [parse_column_definition(column).name for column in answer.columns]
        return [dict(zip(names, row, strict=True)) for row in _rows(answer)]

    async def table(self, sql: str) -> tuple[list[ColumnDefinition], list[list[bytes | None]]]:
        """Return the columns and all rows of *sql*, as a client's result set."""
        answer = await self.ask(sql.encode())
        columns = [
            ColumnDefinition(
                each.name, type=each.type if each.type in _NUMBERS else FieldType.VAR_STRING
            )
            for each in map(parse_column_definition, answer.columns)
        ]
        return columns, list(map(parse_text_row, answer.rows))

    async def execute(self, sql: str) -> int:
        """Run *sql* in its own transaction and return the affected rows."""
        ok = (await self.ask(sql.encode())).ok
        return 0 if ok is None else ok.affected_rows

    async def change(
        self, sql: str, update: Callable[[list[tuple[Any, ...]]], str]
    ) -> list[tuple[Any, ...]]:
        """Run *sql* and the statement that *update* makes of its rows in one transaction.

        Return the rows. An error of *update* rolls the transaction back.
        """
        async with self._connection() as backend:
            await backend.query(b"START TRANSACTION")
            try:
                rows = _rows(await backend.query(sql.encode()))
                await backend.query(update(rows).encode())
                await backend.query(b"COMMIT")
            except BackendError:
                # Refused, a lock wait say: the connection goes on to others, its transaction not.
                with suppress(BackendError):
                    await backend.query(b"ROLLBACK")
                raise
            return rows

    async def ping(self) -> None:
        """Ask for a sign of life. Raises BackendUnavailable."""
        async with self._connection() as backend:
            await backend.command(PING)

    async def kill(self, thread_id: int, *, query_only: bool = False) -> None:
        """End the thread *thread_id*, or only its statement; a thread that is gone already is no error."""
        # As text: the command of the protocol is gone from MySQL 9 (error 1047).
        try:
            await self.ask(b"KILL %b%d" % (b"QUERY " if query_only else b"", thread_id))
        except BackendError as error:
            if error.code != _NO_SUCH_THREAD:
                raise

    async def close(self) -> None:
        """Close all connections; later calls raise BackendUnavailable."""
        self._closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Backend]:
        # Who finds no place waits here: control work must not take a busy server's last connections.
        async with self._slots:
            backend = self._idle.pop() if self._idle else await self._connect()
            try:
                async with asyncio.timeout(STATEMENT_TIMEOUT_S):
                    yield backend
            except (BackendError, BackendLost) as error:
                if isinstance(error, BackendError) and error.code not in _SERVER_GOING_AWAY:
                    self._put_back(backend)
                    raise
                backend.abort()
                # The server has restarted: what else lies here is as dead.
                self._drop_idle()
                gone = isinstance(error, BackendLost)
                raise self._unavailable(
                    "it has closed the connection" if gone else str(error)
                ) from error
            except TimeoutError:
                backend.abort()
                reason = f"no answer within {STATEMENT_TIMEOUT_S:g} s"
                raise self._unavailable(reason) from None
            except BaseException:
                # Cancelled or broken half way: no caller reads the answer that is under way.
                backend.abort()
                raise
            self._put_back(backend)

    def _put_back(self, backend: Backend) -> None:
        if self._closed:
            backend.close()
        else:
            self._idle.append(backend)

    async def _connect(self) -> Backend:
        if self._closed:
            raise BackendUnavailable(self._keyspace, self._shard, "the proxy is shutting down")
        try:
            return await open_backend(
                self._keyspace,
                self._shard,
                self._dsn,
                database=self._dsn.database or None,
                program=PROGRAM,
            )
        except BackendError as error:
            if error.code in _SERVER_GOING_AWAY:
                raise self._unavailable(str(error)) from error
            raise

    def _unavailable(self, reason: str) -> BackendUnavailable:
        return BackendUnavailable(self._keyspace, self._shard, f"{self._dsn}: {reason}")


def _rows(answer: BufferedAnswer) -> list[tuple[Any, ...]]:
    """Return the rows of an answer: numbers, texts, and bytes where a column has these."""
    readers = list(map(_reader, answer.columns))
    return [
        tuple(
            None if value is None else read(value)
            for read, value in zip(readers, parse_text_row(row), strict=True)
        )
        for row in answer.rows
    ]


def _reader(definition: bytes) -> Callable[[bytes], Any]:
    column = parse_column_definition(definition)
    is_bytes = column.charset == BINARY_CHARSET and column.type not in _TEXTS
    return _NUMBERS.get(column.type, bytes if is_bytes else bytes.decode)
