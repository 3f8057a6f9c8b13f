"""A lean MySQL client over asyncio: text protocol, root without password.

Both sides of every ratio use it. A general driver costs about 100 µs of Python per statement, which
would hide the proxy's cost and the opponent's. It supports just what the workloads
need: replies of less than 16 MiB per packet, several statements in one text, and a result set that
does not end.
"""

import asyncio
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self, cast

from bench.fleet import LabError
from streamfrom.proxy.wire.codec import read_lenenc_int
from streamfrom.proxy.wire.resultset import parse_text_row


HOST: Final = "127.0.0.1"
Row = list[bytes | None]

# LONG_PASSWORD, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
# MULTI_STATEMENTS, MULTI_RESULTS, PLUGIN_AUTH: the flags of the usual Python drivers.
CAPABILITIES: Final = 0x1 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x10000 | 0x20000 | 0x80000
PACKET_BYTES_MAX: Final = 0xFFFFFF
UTF8MB4: Final = 45
MORE_RESULTS: Final = 0x8


class QueryError(LabError):
    """An ERR packet from the server or the proxy."""


@dataclass(slots=True)
class ServerAnswer:
    """The reply to one text: the rows of all its results, the affected rows of all its OK packets."""

    rows: list[Row] = field(default_factory=list)
    affected: int = 0


class Connection(asyncio.Protocol):
    """One connection, for one task at a time; `open` returns it logged in."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._read: Callable[[int, bytes], None] = self._read_login
        self._answer = ServerAnswer()
        self._columns = 0
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._streaming = False
        self._batches: list[tuple[int, list[Row]]] = []
        self._database = b""

    @classmethod
    async def open(cls, port: int, database: str) -> Self:
        """Connect to 127.0.0.1:*port* and log in."""
        loop = asyncio.get_running_loop()
        self = cls()
        self._database = database.encode()
        done = self._wait()
        await loop.create_connection(lambda: self, HOST, port)
        await done
        return self

    async def query(self, sql: str) -> ServerAnswer:
        """Run *sql*, one statement or several, and return their combined reply.

        Raises:
            QueryError: the server refused one of them.
            ConnectionError: the connection broke.
        """
        self._answer = answer = ServerAnswer()
        done = self._wait()
        self._read = self._read_first
        self._send(b"\x03" + sql.encode())
        await done
        return answer

    async def stream(self, sql: str) -> None:
        """Run a statement whose result does not end; return when its columns have arrived."""
        self._streaming = True
        await self.query(sql)

    async def batches(self) -> list[tuple[int, list[Row]]]:
        """Return the rows that arrived on the stream since the last call; wait for at least one.

        Each batch holds the rows that one read of the socket completed, with the wall clock in nanoseconds at
        that read.
        """
        if not self._batches:
            await self._wait()
        batches, self._batches = self._batches, []
        return batches

    def close(self) -> None:
        """Close the connection without a goodbye, even in the middle of a stream."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionError(f"the connection was closed: {exc}"))

    def data_received(self, data: bytes) -> None:
        now_ns = time.time_ns()
        if self._rest:
            data = self._rest + data
        position, size = 0, len(data)
        while size - position >= 4:
            end = position + 4 + int.from_bytes(data[position : position + 3], "little")
            if end > size:
                break
            self._read(data[position + 3], data[position + 4 : end])
            position = end
        self._rest = data[position:]
        if self._streaming and self._answer.rows:
            self._batches.append((now_ns, self._answer.rows))
            self._answer.rows = []
            self._done()

    def _wait(self) -> "asyncio.Future[None]":
        if self._error is not None:
            raise self._error
        assert self._waiter is None, "one task at a time"
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _done(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, ConnectionError) or self._streaming:
            self._error = error
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _send(self, payload: bytes, sequence: int = 0) -> None:
        assert self._transport is not None
        assert len(payload) < PACKET_BYTES_MAX
        self._transport.write(
            len(payload).to_bytes(3, "little") + sequence.to_bytes(1, "little") + payload
        )

    def _read_login(self, sequence: int, payload: bytes) -> None:
        match payload[0]:
            case 0x0A:
                plugin = payload.rstrip(b"\0").rpartition(b"\0")[2]
                # The salt does not matter, because root has no password.
                head = struct.pack("<IIB23x", CAPABILITIES, PACKET_BYTES_MAX, UTF8MB4)
                login = head + b"root\0\0" + self._database + b"\0" + plugin + b"\0"
                self._send(login, sequence + 1)
            case 0xFE:
                self._send(b"", sequence + 1)
            case 0x00:
                self._done()
            case 0xFF:
                self._read_error(payload)
            case 0x01:
                pass  # caching_sha2_password: an empty password needs no further step
            case other:
                self._fail(ConnectionError(f"unexpected packet {other:#x} at login"))

    def _read_first(self, _sequence: int, payload: bytes) -> None:
        first = payload[0]
        if first == 0x00:
            affected, position = read_lenenc_int(payload, 1)
            _, position = read_lenenc_int(payload, position)
            self._answer.affected += affected
            self._end(payload[position] | payload[position + 1] << 8)
        elif first == 0xFF:
            self._read_error(payload)
        else:
            self._columns = read_lenenc_int(payload, 0)[0] + 1  # and the EOF packet after them
            self._read = self._read_column

    def _read_column(self, _sequence: int, _payload: bytes) -> None:
        self._columns -= 1
        if self._columns == 0:
            self._read = self._read_row
            if self._streaming:
                self._done()

    def _read_row(self, _sequence: int, payload: bytes) -> None:
        first = payload[0]
        if first == 0xFE and len(payload) < 9:
            self._end(payload[3] | payload[4] << 8)
        elif first == 0xFF:
            self._read_error(payload)
        else:
            self._answer.rows.append(parse_text_row(payload))

    def _end(self, status: int) -> None:
        if self._streaming:
            self._fail(ConnectionError("the stream came to an end"))
        elif status & MORE_RESULTS:
            self._read = self._read_first
        else:
            self._done()

    def _read_error(self, payload: bytes) -> None:
        code = payload[1] | payload[2] << 8
        self._fail(QueryError(f"{code}: {payload[3:].decode(errors='replace')}"))
