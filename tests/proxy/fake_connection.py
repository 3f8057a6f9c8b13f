"""One client of a `FakeServer`: logs it in through `proxy.wire` and answers its commands.

Replies set by the test come first (`fake_answers`), then those of its session
(`fake_session`). It prepares statements, keeps cursors and supports COM_RESET_CONNECTION.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from streamfrom.proxy.wire.binary_parameters import read_parameters, value_of
from streamfrom.proxy.wire.binary_rows import BinaryRows
from streamfrom.proxy.wire.constants import PROXY_OFFER, Command, Status
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.login.auth import Authenticated, nonce_from
from streamfrom.proxy.wire.login.handshake import Greeting, offer_as
from streamfrom.proxy.wire.prepare_response import PARAMETER, prepare_answer
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_definition,
    end_of_rows,
    err_packet,
)
from streamfrom.proxy.wire.server_connection import CommandReceived
from tests.proxy.fake_answers import (
    Bytes,
    Error,
    HangUp,
    Ok,
    Rows,
    Silence,
    payloads_of,
    rows_of,
)
from tests.proxy.fake_session import ServerSession
from tests.proxy.wire.accounts import PromptConnection


if TYPE_CHECKING:
    from tests.proxy.fake_answers import Answer
    from tests.proxy.fake_server import FakeServer


NONCE = nonce_from(bytes(range(20)))
_OPENS_TRANSACTION = ("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE")


class Connection(ServerSession, asyncio.Protocol):
    """One client of the server.

    Attributes:
        user: the account that it has logged in with.
        heard: the commands on this connection, as in `FakeServer`.
    """

    def __init__(self, server: FakeServer) -> None:
        super().__init__(server)
        self.id = next(server.ids)
        self.user = ""
        self.heard: list[str] = []
        self.is_control = False
        self.is_election = False
        self.is_stalled = False
        self.was_killed = asyncio.Event()
        # Prepared statements by id: the text, and the long data of its next execution.
        self.prepared: dict[int, tuple[str, dict[int, bytearray]]] = {}
        self.cursors: dict[int, list[bytes]] = {}
        self.last_id = 100 * self.id
        self.is_binary = False
        self._commands: asyncio.Queue[CommandReceived] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport

    def abort(self) -> None:
        self._transport.abort()

    def say(self, data: bytes) -> None:
        """Send bytes unprompted."""
        self._transport.write(data)

    # --- asyncio ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        server = self._server
        server.connections[self.id] = self
        self._wire = PromptConnection(
            Greeting(server.version, self.id, NONCE, offer_as(server.version, PROXY_OFFER)),
            server.authenticator,
            host="client",
        )
        greeting = self._wire.data_to_send()
        if server.greets:
            transport.write(greeting)

    def data_received(self, data: bytes) -> None:
        for event in self._wire.receive_data(data):
            match event:
                case Authenticated():
                    self._logged_in()
                case CommandReceived():
                    self._commands.put_nowait(event)
                case _:
                    pass
        self._transport.write(self._wire.data_to_send())

    def pause_writing(self) -> None:
        self.is_stalled = True

    def resume_writing(self) -> None:
        self.is_stalled = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.pop(self.id, None)
        if self._worker is not None:
            self._worker.cancel()

    def _logged_in(self) -> None:
        server = self._server
        login = self._wire.login
        assert login is not None
        self.is_control = bool(login.attributes)
        self.is_election = login.attributes.get("program_name") == "streamfrom-election"
        self.user, self.database = login.user, login.database
        if server.refusal is not None:
            refusal = server.refusal
            packet = err_packet(
                refusal.code, refusal.sqlstate, refusal.message, self._wire.capabilities
            )
            self._transport.write(frame(packet, 2))
            self._transport.close()
            return
        if not self.is_control:
            server.logins += 1
        self._wire.accept()
        self._worker = asyncio.ensure_future(self._work())
        self.data_received(b"")

    # --- commands -------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            payload, sequence, _ = await self._commands.get()
            await self._command(payload, sequence)

    async def _command(self, payload: bytes, sequence: int) -> None:
        rest = payload[1:].decode("utf-8", "surrogateescape")
        match payload[0]:
            case Command.QUERY:
                self._note(rest)
                answer = self._server.answer_to(rest, is_election=self.is_election)
                await self._answer(answer or self.own_answer(rest), rest)
            case Command.INIT_DB:
                self._note(f"INIT_DB {rest}")
                answer = self._server.answer_to(f"INIT_DB {rest}")
                if answer is None:
                    self.database = rest
                    answer = Ok(trackers=self.schema_trackers())
                await self._answer(answer, "")
            case Command.RESET_CONNECTION:
                self._note("RESET")
                self.variables.clear()
                self.user_variables.clear()
                self.in_transaction = False
                self.last_insert_id = 0
                self.prepared.clear()
                await self._answer(self._server.answer_to("RESET") or Ok(), "")
            case Command.STMT_PREPARE:
                self._note(f"PREPARE {rest}")
                await self._prepare(rest)
            case Command.STMT_EXECUTE:
                await self._execute(payload)
            case Command.STMT_SEND_LONG_DATA:
                number = int.from_bytes(payload[5:7], "little")
                self._note(f"LONG_DATA {number} {len(payload) - 7}")
                _, long_data = self.prepared[int.from_bytes(payload[1:5], "little")]
                long_data.setdefault(number, bytearray()).extend(payload[7:])
            case Command.STMT_CLOSE:
                if found := self.prepared.pop(int.from_bytes(payload[1:5], "little"), None):
                    self._note(f"CLOSE {found[0]}")
            case Command.STMT_FETCH:
                await self._fetch(payload)
            case Command.FIELD_LIST:
                self._note("FIELD_LIST " + rest.rstrip("\0"))
                end = end_of_rows(self._wire.capabilities, status=self.status)
                body = [column_definition(ColumnDefinition("id")), end]
                self._transport.write(frames(body, sequence)[0])
            case Command.QUIT:
                self._note("QUIT")
                self._transport.close()
            case Command.PING:
                self._note("PING")
                await self._answer(Ok(), "")
            case other:
                self._note(f"COMMAND {other}")
                await self._answer(Error(1047, "Unknown command", "08S01"), "")

    async def _prepare(self, sql: str) -> None:
        answer = self._server.answer_to(f"PREPARE {sql}")
        if isinstance(answer, Error | HangUp | Silence):
            await self._answer(answer, "")
            return
        self.last_id += 1
        self.prepared[self.last_id] = sql, {}
        rows = self._server.answer_to(sql) or self._own_prepared(sql)
        names = rows.columns if isinstance(rows, Rows) else ()
        columns = [column_definition(ColumnDefinition(name)) for name in names]
        payloads = prepare_answer(
            self.last_id,
            [column_definition(PARAMETER)] * sql.count("?"),
            columns,
            capabilities=self._wire.capabilities,
            status=self.status,
        )
        self._transport.write(frames(payloads, 1)[0])

    def _own_prepared(self, sql: str) -> Answer:
        return rows_of(1) if sql.lstrip().upper().startswith("SELECT") else Ok()

    async def _execute(self, payload: bytes) -> None:
        found = self.prepared.get(int.from_bytes(payload[1:5], "little"))
        if found is None:
            await self._answer(Error(1243, "Unknown prepared statement handler"), "")
            return
        sql, long_data = found
        parameters = read_parameters(payload[10:], sql.count("?"), b"", long_data)
        values = [value_of(parameter) for parameter in parameters]
        self._note(f"EXECUTE {sql} {values}" if values else f"EXECUTE {sql}")
        long_data.clear()
        answer = self._server.answer_to(sql) or self.own_answer(sql)
        if payload[5] and isinstance(answer, Rows):
            self.cursors[int.from_bytes(payload[1:5], "little")] = [
                BinaryRows(
                    [column_definition(ColumnDefinition(name)) for name in answer.columns]
                ).encode(row)
                for row in answer.rows
            ]
            head = payloads_of(
                Rows(answer.columns), status=self.status, flags=self._wire.capabilities
            )[:-1]
            end = end_of_rows(
                self._wire.capabilities, status=self.status | Status.CURSOR_EXISTS
            )
            self._transport.write(frames([*head, end], 1)[0])
            return
        self.is_binary = True
        await self._answer(answer, sql)
        self.is_binary = False

    async def _fetch(self, payload: bytes) -> None:
        statement_id = int.from_bytes(payload[1:5], "little")
        count = int.from_bytes(payload[5:9], "little")
        self._note(f"FETCH {count}")
        rows = self.cursors[statement_id]
        batch, self.cursors[statement_id] = rows[:count], rows[count:]
        status = self.status | (Status.LAST_ROW_SENT if len(rows) < count else 0)
        end = end_of_rows(self._wire.capabilities, status=status)
        self._transport.write(frames([*batch, end], 1)[0])

    def _note(self, text: str) -> None:
        if text == "SELECT CURRENT_ROLE() LIMIT 1":
            return  # a part of each login
        self.heard.append(text)
        (self._server.controlled if self.is_control else self._server.heard).append(text)

    # --- replies --------------------------------------------------------------------------

    async def _answer(self, answer: Answer, sql: str) -> None:
        if sql.upper().startswith(_OPENS_TRANSACTION) and not self.autocommit:
            self.in_transaction = True
        match answer:
            case Silence(gate, then):
                then = await self._silence(gate, then)
                self._transport.write(self._encoded(then))
            case HangUp(cut, after_bytes):
                self._transport.write(self._encoded(cut)[:after_bytes])
                # Written data goes out first: abort would drop it.
                self._transport.close()
            case Bytes(data):
                self._transport.write(data)
            case _:
                self._transport.write(self._encoded(answer))

    async def _silence(
        self, gate: asyncio.Event | None, answer: Ok | Error | Rows
    ) -> Ok | Error | Rows:
        self.was_killed.clear()
        killed = asyncio.ensure_future(self.was_killed.wait())
        opened = asyncio.ensure_future((gate or asyncio.Event()).wait())
        try:
            await asyncio.wait({killed, opened}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            was_killed = killed.done()
            killed.cancel()
            opened.cancel()
        return Error(1317, "Query execution was interrupted", "70100") if was_killed else answer

    def _encoded(self, answer: Ok | Error | Rows) -> bytes:
        if isinstance(answer, Ok) and not answer.names_its_id:
            self.last_insert_id = answer.last_insert_id or self.last_insert_id
        payloads = payloads_of(
            answer,
            status=int(self.status),
            flags=self._wire.capabilities,
            is_binary=self.is_binary,
        )
        return frames(payloads, 1)[0]
