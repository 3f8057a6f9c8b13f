"""Commands: reading a client's command packets, and making those for backends.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html

Statement text stays bytes: its character set is the session's business. The session looks at
``payload[0]`` itself for COM_QUERY, the one command that comes thousands of times a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES, Command
from streamfrom.proxy.wire.framing import frame, frame_parts


@dataclass(frozen=True, slots=True)
class Query:
    """COM_QUERY: one or, if the client may, several statements."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class InitDb:
    """COM_INIT_DB: like USE."""

    name: bytes


@dataclass(frozen=True, slots=True)
class FieldList:
    """COM_FIELD_LIST: the columns of *table* whose names match *wildcard* (empty: all)."""

    table: bytes
    wildcard: bytes


@dataclass(frozen=True, slots=True)
class Refresh:
    """COM_REFRESH: like FLUSH, of MariaDB and old MySQL. *payload* is the whole command."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class ProcessKill:
    """COM_PROCESS_KILL: like KILL CONNECTION."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class ChangeUser:
    """COM_CHANGE_USER, unread: its layout depends on flags, see ``handshake``."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class SetOption:
    """COM_SET_OPTION: whether COM_QUERY may hold several statements."""

    multi_statements: bool


@dataclass(frozen=True, slots=True)
class StmtPrepare:
    """COM_STMT_PREPARE."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class StmtExecute:
    """COM_STMT_EXECUTE. *body* is what follows the iteration count: parameters, undecoded."""

    statement_id: int
    flags: int
    body: bytes


@dataclass(frozen=True, slots=True)
class StmtBulkExecute:
    """COM_STMT_BULK_EXECUTE of MariaDB. *body* is what follows the flags: types and rows."""

    statement_id: int
    flags: int
    body: bytes


@dataclass(frozen=True, slots=True)
class StmtSendLongData:
    """COM_STMT_SEND_LONG_DATA: a piece of one parameter, of up to 64 MB. Never answered."""

    statement_id: int
    parameter: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class StmtClose:
    """COM_STMT_CLOSE. Never answered."""

    statement_id: int


@dataclass(frozen=True, slots=True)
class StmtReset:
    """COM_STMT_RESET: forget long data and close the cursor."""

    statement_id: int


@dataclass(frozen=True, slots=True)
class StmtFetch:
    """COM_STMT_FETCH: *rows* more rows of an open cursor."""

    statement_id: int
    rows: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """A command byte that is not served."""

    code: int


ClientCommand = (
    Command
    | Query
    | InitDb
    | FieldList
    | Refresh
    | ProcessKill
    | ChangeUser
    | SetOption
    | StmtPrepare
    | StmtExecute
    | StmtBulkExecute
    | StmtSendLongData
    | StmtClose
    | StmtReset
    | StmtFetch
    | Unknown
)


def parse_command(payload: bytes) -> ClientCommand:
    """Return the command in a packet; for a command that is nothing but its code, that `Command`.

    Raises WireError if the packet is empty or cut. A code that is not served gives Unknown.
    """
    if not payload:
        raise WireError("empty command packet")
    parse = _PARSERS.get(payload[0])
    if parse is None:
        return Unknown(payload[0])
    return parse(PacketReader(payload, pos=1))


def _field_list(cursor: PacketReader) -> FieldList:
    return FieldList(cursor.until_nul(), cursor.rest())


def _set_option(cursor: PacketReader) -> SetOption | Unknown:
    option = cursor.uint(2)
    if option > 1:
        return Unknown(Command.SET_OPTION)
    return SetOption(multi_statements=option == 0)


def _stmt_execute(cursor: PacketReader) -> StmtExecute:
    statement_id = cursor.uint(4)
    flags = cursor.uint(1)
    cursor.read(4)  # the iteration count, always 1
    return StmtExecute(statement_id, flags, cursor.rest())


_PARSERS: dict[int, Callable[[PacketReader], ClientCommand]] = {
    Command.QUERY: lambda cursor: Query(cursor.rest()),
    Command.QUIT: lambda _: Command.QUIT,
    Command.INIT_DB: lambda cursor: InitDb(cursor.rest()),
    Command.FIELD_LIST: _field_list,
    Command.REFRESH: lambda cursor: Refresh(b"\x07" + cursor.rest()),
    # Like SHOW FULL PROCESSLIST; MariaDB and old MySQL have it.
    Command.PROCESS_INFO: lambda _: Command.PROCESS_INFO,
    # Answered by one packet of bare text.
    Command.STATISTICS: lambda _: Command.STATISTICS,
    Command.PROCESS_KILL: lambda cursor: ProcessKill(cursor.uint(4)),
    # Asks a server to write to its log.
    Command.DEBUG: lambda _: Command.DEBUG,
    Command.PING: lambda _: Command.PING,
    Command.CHANGE_USER: lambda cursor: ChangeUser(b"\x11" + cursor.rest()),
    # A fresh session without a new login.
    Command.RESET_CONNECTION: lambda _: Command.RESET_CONNECTION,
    Command.SET_OPTION: _set_option,
    Command.STMT_PREPARE: lambda cursor: StmtPrepare(cursor.rest()),
    Command.STMT_EXECUTE: _stmt_execute,
    Command.STMT_BULK_EXECUTE: lambda cursor: StmtBulkExecute(
        cursor.uint(4), cursor.uint(2), cursor.rest()
    ),
    Command.STMT_SEND_LONG_DATA: lambda cursor: StmtSendLongData(
        cursor.uint(4), cursor.uint(2), cursor.rest_view()
    ),
    Command.STMT_CLOSE: lambda cursor: StmtClose(cursor.uint(4)),
    Command.STMT_RESET: lambda cursor: StmtReset(cursor.uint(4)),
    Command.STMT_FETCH: lambda cursor: StmtFetch(cursor.uint(4), cursor.uint(4)),
}


def query(sql: bytes) -> bytes:
    """Return a COM_QUERY as it goes on the wire."""
    size = len(sql) + 1
    if size < FRAME_BYTES_MAX:
        # One copy of the text, and not two.
        return size.to_bytes(HEADER_BYTES, "little") + b"\x03" + sql
    return frame_parts((b"\x03", sql), 0)


def init_db(name: bytes) -> bytes:
    """Return a COM_INIT_DB as it goes on the wire."""
    return frame(b"\x02" + name, 0)


def stmt_prepare(sql: bytes) -> bytes:
    """Return a COM_STMT_PREPARE as it goes on the wire."""
    return frame_parts((b"\x16", sql), 0)


def stmt_execute(statement_id: int, flags: int, body: bytes) -> bytes:
    """Return a COM_STMT_EXECUTE as it goes on the wire; *body* as in `StmtExecute`."""
    head = b"\x17%s%c\x01\0\0\0" % (statement_id.to_bytes(4, "little"), flags)
    return frame(head + body, 0)


def stmt_bulk_execute(statement_id: int, flags: int, body: bytes) -> bytes:
    """Return a COM_STMT_BULK_EXECUTE as it goes on the wire; *body* as in `StmtBulkExecute`."""
    head = b"\xfa" + statement_id.to_bytes(4, "little") + flags.to_bytes(2, "little")
    return frame(head + body, 0)


def stmt_send_long_data(statement_id: int, parameter: int, data: bytes) -> bytes:
    """Return a COM_STMT_SEND_LONG_DATA as it goes on the wire. Never answered."""
    head = b"\x18" + statement_id.to_bytes(4, "little") + parameter.to_bytes(2, "little")
    return frame(head + data, 0)


def stmt_close(statement_id: int) -> bytes:
    """Return a COM_STMT_CLOSE as it goes on the wire. Never answered."""
    return frame(b"\x19" + statement_id.to_bytes(4, "little"), 0)


def stmt_fetch(statement_id: int, rows: int) -> bytes:
    """Return a COM_STMT_FETCH as it goes on the wire."""
    head = b"\x1c" + statement_id.to_bytes(4, "little")
    return frame(head + rows.to_bytes(4, "little"), 0)


# Commands without arguments, as they go on the wire. The server closes after QUIT without an answer.
QUIT: Final = frame(b"\x01", 0)
PING: Final = frame(b"\x0e", 0)
RESET_CONNECTION: Final = frame(b"\x1f", 0)
