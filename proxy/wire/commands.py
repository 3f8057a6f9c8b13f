"""Commands for backends, and those client commands that have more than one argument.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html

Statement text stays bytes: its character set is the session's business.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES
from streamfrom.proxy.wire.framing import frame, frame_parts


class StmtExecute(NamedTuple):
    """COM_STMT_EXECUTE."""

    statement_id: int
    flags: int
    body: bytes  # the part after the iteration count: the parameters


def read_execute(payload: bytes) -> StmtExecute:
    """Return a COM_STMT_EXECUTE. Raises WireError if it is cut."""
    cursor = PacketReader(payload, pos=1)
    statement_id, flags = cursor.uint(4), cursor.uint(1)
    cursor.read(4)  # the iteration count, always 1
    return StmtExecute(statement_id, flags, cursor.rest())


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
