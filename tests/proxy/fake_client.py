"""A handwritten client that checks every packet's number and parses every reply."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from streamfrom.proxy.passwords.scramble import sha2_proof
from streamfrom.proxy.wire.binary_parameters import Parameter
from streamfrom.proxy.wire.commands import (
    stmt_execute,
    stmt_fetch,
    stmt_prepare,
)
from streamfrom.proxy.wire.constants import (
    CACHING_SHA2,
    PROXY_OFFER,
    Capability,
    FieldType,
    Status,
)
from streamfrom.proxy.wire.framing import Framer, frame
from streamfrom.proxy.wire.login.handshake import (
    Greeting,
    LoginRequest,
    decode_auth_switch,
    decode_greeting,
    encode_login,
)
from streamfrom.proxy.wire.resultset import Err, Ok, parse_err, parse_ok, parse_text_row
from tests.proxy.fake_answers import HANG_S
from tests.proxy.wire.peers import encode_change_user, unframed, write_parameters


MODERN = PROXY_OFFER
MARIADB = PROXY_OFFER & ~int(Capability.LONG_PASSWORD)
OLD = PROXY_OFFER & ~int(Capability.DEPRECATE_EOF | Capability.SESSION_TRACK)


def parameter(value: int | bytes | None) -> Parameter:
    if value is None:
        return Parameter(FieldType.NULL, unsigned=False, data=None)
    if isinstance(value, int):
        data = value.to_bytes(8, "little", signed=value < 0)
        return Parameter(FieldType.LONGLONG, value >= 0, data)
    return Parameter(FieldType.VAR_STRING, unsigned=False, data=value)


class Refused(Exception):
    """The server sent ERR when only another reply is acceptable."""

    def __init__(self, error: Err) -> None:
        super().__init__(f"{error.code} {error.message.decode()}")
        self.error = error


@dataclass(slots=True)
class Result:
    """One result: rows, or an OK, or an ERR; *status* holds the flags of its end."""

    columns: int = 0
    rows: list[tuple[bytes | None, ...]] = field(default_factory=list)
    ok: Ok | None = None
    error: Err | None = None
    status: int = 0

    @property
    def values(self) -> list[bytes | None]:
        return [row[0] for row in self.rows]

    @property
    def message(self) -> str:
        assert self.error is not None
        return self.error.message.decode()

    @property
    def code(self) -> int:
        """The error's code, 0 without one."""
        return 0 if self.error is None else self.error.code


def read_result(data: bytes, capabilities: int) -> Result:
    """Parse the reply to one command, with every packet numbered from 1."""
    packets = unframed(data)
    result = Result()
    keeps_eof = not capabilities & Capability.DEPRECATE_EOF
    if packets[0][0] in (0x00, 0xFE, 0xFF):
        assert len(packets) == 1
    else:
        result.columns = packets[0][0]
        rows = packets[1 + result.columns + keeps_eof : -1]
        result.rows = [tuple(parse_text_row(row)) for row in rows]
    if packets[-1][0] == 0xFF:
        result.error = parse_err(packets[-1])
    elif packets[-1][0] == 0x00:
        result.ok = parse_ok(packets[-1])
    return result


class Client:
    """One connection to the proxy.

    Attributes:
        definitions: the last column definitions received, as payloads.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, capabilities: int
    ) -> None:
        self.capabilities = capabilities
        self.greeting: Greeting
        self._reader = reader
        self._writer = writer
        self._framer = Framer(1 << 30)
        self.definitions: list[bytes] = []

    @classmethod
    async def connect(
        cls,
        port: int,
        *,
        user: str = "root",
        password: str = "",
        database: str | None = None,
        capabilities: int = MODERN,
        charset: int = 45,
    ) -> Client:
        """Connect and log in. Raises Refused."""
        client = await cls.greeted(port, capabilities=capabilities)
        try:
            await client.log_in(user, password, database, charset=charset)
        except Refused:
            await client.close()
            raise
        return client

    @classmethod
    async def greeted(cls, port: int, *, capabilities: int = MODERN) -> Client:
        """Connect and read the greeting. Raises Refused."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
        client = cls(reader, writer, capabilities)
        try:
            payload = await client.packet()
        except Refused:
            await client.close()
            raise
        client.greeting = decode_greeting(payload)
        return client

    async def log_in(
        self, user: str, password: str = "", database: str | None = None, *, charset: int = 45
    ) -> None:
        """Log in. Raises Refused."""
        self.write(frame(encode_login(self.login(user, password, database, charset)), 1))
        self._framer.next_sequence = 2
        await self._finish_login(password)

    def login(
        self, user: str, password: str, database: str | None, charset: int = 45
    ) -> LoginRequest:
        flags = self.capabilities
        if database is None:
            flags &= ~int(Capability.CONNECT_WITH_DB)
        return LoginRequest(
            user,
            sha2_proof(password.encode(), self.greeting.nonce),
            database,
            int(flags),
            charset,
            plugin=CACHING_SHA2,
        )

    async def change_user(
        self, user: str, password: str = "", database: str | None = None
    ) -> None:
        """Log in again on the same connection. Raises Refused."""
        request = self.login(user, password, database)
        self.write(frame(encode_change_user(request), 0))
        self._framer.next_sequence = 1
        await self._finish_login(password)

    async def _finish_login(self, password: str) -> None:
        while True:
            payload = await self.packet()
            if payload[0] == 0xFE:
                _, nonce = decode_auth_switch(payload[:-1])
                sequence = self._framer.next_sequence
                self.write(frame(sha2_proof(password.encode(), nonce), sequence))
                self._framer.next_sequence = sequence + 1
            elif payload[0] == 0:
                return

    # --- commands -------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def send(self, sql: str | bytes) -> None:
        self.write(frame(b"\x03" + (sql.encode() if isinstance(sql, str) else sql), 0))

    async def query(self, sql: str | bytes) -> Result:
        """Run a statement and return its last result."""
        self.send(sql)
        return (await self.answer())[-1]

    async def command(self, payload: bytes) -> Result:
        self.write(frame(payload, 0))
        return (await self.answer())[-1]

    async def prepare(self, sql: str) -> tuple[int, int, int]:
        """Prepare a statement; return its id and the numbers of parameters and columns. Raises Refused."""
        self.write(stmt_prepare(sql.encode()))
        head = await self.packet(1)
        columns, parameters = struct.unpack_from("<HH", head, 5)
        for count in (parameters, columns):
            self.definitions = [await self.packet() for _ in range(count)]
            if count and not self.capabilities & Capability.DEPRECATE_EOF:
                assert (await self.packet())[0] == 0xFE
        return int.from_bytes(head[1:5], "little"), parameters, columns

    def send_execute(
        self, statement_id: int, *values: int | bytes | None, flags: int = 0
    ) -> None:
        self.write(
            stmt_execute(statement_id, flags, write_parameters(list(map(parameter, values))))
        )

    async def execute(
        self, statement_id: int, *values: int | bytes | None, flags: int = 0
    ) -> Result:
        """Execute a statement; its rows are payloads of one value."""
        self.send_execute(statement_id, *values, flags=flags)
        return await self.binary_answer()

    async def binary_answer(self) -> Result:
        self._framer.next_sequence = 1
        return await self._result(binary=True)

    async def fetch(self, statement_id: int, rows: int) -> Result:
        self.write(stmt_fetch(statement_id, rows))
        self._framer.next_sequence = 1
        result = Result()
        try:
            await self._rows(result, binary=True)
        except Refused as refused:
            result.error = refused.error
        return result

    async def answer(self) -> list[Result]:
        """Return all results of the reply to one command."""
        self._framer.next_sequence = 1
        results = []
        while True:
            result = await self._result()
            results.append(result)
            if not result.status & Status.MORE_RESULTS_EXISTS:
                return results

    async def head(self) -> int:
        """Read the beginning of an endless reply; return the number of its columns."""
        first = await self.packet(1)
        await self._definitions(first[0])
        return first[0]

    async def row(self) -> tuple[bytes | None, ...]:
        """Return the next row of an endless reply. Raises Refused if it ends."""
        return tuple(parse_text_row(await self.packet()))

    async def _result(self, *, binary: bool = False) -> Result:
        result = Result()
        try:
            first = await self.packet()
            if first[0] in (0, 0xFE):
                result.ok = parse_ok(first)
                result.status = result.ok.status
                return result
            result.columns = first[0]
            result.status = await self._definitions(first[0])
            if not result.status & Status.CURSOR_EXISTS:
                await self._rows(result, binary=binary)
        except Refused as refused:
            result.error = refused.error
        return result

    async def _rows(self, result: Result, *, binary: bool) -> None:
        while True:
            payload = await self.packet()
            if payload[0] == 0xFE and len(payload) < 0xFFFFFF:
                result.status = self._end(payload)
                return
            result.rows.append((payload,) if binary else tuple(parse_text_row(payload)))

    def _end(self, payload: bytes) -> int:
        if self.capabilities & Capability.DEPRECATE_EOF:
            return parse_ok(payload).status
        assert len(payload) == 5
        return int.from_bytes(payload[3:5], "little")

    async def _definitions(self, columns: int) -> int:
        self.definitions = [await self.packet() for _ in range(columns)]
        if self.capabilities & Capability.DEPRECATE_EOF:
            return 0
        return self._end(await self.packet())

    async def packet(self, sequence: int | None = None) -> bytes:
        """Return the next payload. Raises Refused for an ERR, EOFError at the end."""
        if sequence is not None:
            self._framer.next_sequence = sequence
        async with asyncio.timeout(HANG_S):
            while (payload := self._framer.next_packet()) is None:
                data = await self._reader.read(1 << 16)
                if not data:
                    raise EOFError("the proxy closed the connection")
                self._framer.feed(data)
        if payload[:1] == b"\xff":
            raise Refused(parse_err(payload))
        return payload

    # --- the end --------------------------------------------------------------------------

    async def farewell(self) -> Err:
        """Return the error that the other side sends unprompted."""
        self._framer.next_sequence = 0
        try:
            await self.packet()
        except Refused as refused:
            return refused.error
        raise AssertionError("not an error")

    async def is_closed(self) -> bool:
        """Wait for the other side to close; return False if it sends something instead."""
        async with asyncio.timeout(HANG_S):
            try:
                return not await self._reader.read(1)
            except ConnectionError:
                return True

    def vanish(self) -> None:
        self._writer.transport.abort()

    def stop_reading(self) -> None:
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def read_on(self) -> None:
        self._writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


def talk(
    port: int,
    work: Callable[[Client], Coroutine[Any, Any, Any]],
    *,
    database: str,
    capabilities: int = MARIADB,
) -> Any:
    """Run a coroutine with a new client, outside of any loop, and return its result."""

    async def all_of_it() -> Any:
        client = await Client.connect(port, database=database, capabilities=capabilities)
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(all_of_it())
