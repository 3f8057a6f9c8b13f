"""OK, ERR, EOF, column definitions and text rows: written for clients, read from backends.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_response_packets.html

Two rules follow the servers, and not the manual:

* the text of an OK packet ("Rows matched: 1 …") has its length in front for every client,
  even one without SESSION_TRACK, for which the manual has "up to the end"; and it is left
  out altogether when it is empty and no session state follows;
* so an OK packet reads the same with and without SESSION_TRACK unless the flag
  SESSION_STATE_CHANGED is set in it. This lets ``response_reader`` forward most answers untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set as AbstractSet
from dataclasses import dataclass
from struct import Struct, error as StructError
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.errors import BackendError, WireError
from streamfrom.proxy.wire.codec import PacketReader, lenenc_bytes, lenenc_int, read_lenenc_int
from streamfrom.proxy.wire.constants import (
    EOF_HEADER,
    ERR_HEADER,
    HEADER_BYTES,
    OK_HEADER,
    UTF8MB4_CHARSET,
    Capability,
    FieldType,
    Status,
    TrackerKind,
)
from streamfrom.proxy.wire.framing import frame, frames


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.errors import StreamfromError


_STATE_CHANGED: Final = Status.SESSION_STATE_CHANGED
# At the end of a column definition: character set, length, type, flags, decimals.
_FIXED: Final = Struct("<HIBHBxx")
_STATUS_AND_WARNINGS: Final = Struct("<HH").unpack_from
EOF_BYTES: Final = 5
# Bytes that are no UTF-8 become surrogates, and bytes again.
_AS_IT_IS: Final = "surrogateescape"


@dataclass(frozen=True, slots=True)
class Tracker:
    """One change of session state. *name* is set for system variables only."""

    kind: int
    name: str
    value: str


class Ok(NamedTuple):
    """An OK packet, or the EOF packet that old clients get in its place.

    A tuple because one is made for every write: a third of the cost of a frozen dataclass.
    """

    affected_rows: int
    last_insert_id: int
    status: int
    warnings: int
    info: bytes
    session_state: bytes = b""

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """The changes of the session, in the server's order; WireError if they are malformed."""
        return parse_trackers(self.session_state) if self.session_state else ()


@dataclass(frozen=True, slots=True)
class Err:
    """An ERR packet. The message is in the connection's character set.

    Bytes in it that are not UTF-8 become surrogates in an exception, and bytes again.
    """

    code: int
    sqlstate: str
    message: bytes

    def exception(self) -> BackendError:
        """Return the exception for the server's error."""
        return BackendError(self.code, self.sqlstate, self.message.decode("utf-8", _AS_IT_IS))


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column definition. *length* is the display width in bytes."""

    name: str
    table: str = ""
    schema: str = ""
    org_table: str = ""
    org_name: str = ""
    charset: int = UTF8MB4_CHARSET
    length: int = 1024
    type: int = FieldType.VAR_STRING
    flags: int = 0
    decimals: int = 0


# --- written for clients ---------------------------------------------------------------


def ok_packet(
    affected_rows: int = 0,
    last_insert_id: int = 0,
    *,
    status: int,
    warnings: int = 0,
    info: bytes = b"",
    capabilities: int,
    session_state: bytes = b"",
    header: int = OK_HEADER,
) -> bytes:
    """Return an OK packet. Session state goes only to clients with SESSION_TRACK."""
    if session_state and capabilities & Capability.SESSION_TRACK:
        tail = lenenc_bytes(info) + lenenc_bytes(session_state)
        status |= _STATE_CHANGED
    else:
        tail = lenenc_bytes(info) if info else b""
        status &= ~_STATE_CHANGED
    return b"".join(
        (
            bytes((header,)),
            lenenc_int(affected_rows),
            lenenc_int(last_insert_id),
            status.to_bytes(2, "little"),
            _warnings(warnings),
            tail,
        )
    )


def with_insert_id(framed: bytes, insert_id: int) -> bytes:
    """Return an OK packet, header and all, with another insert id; anything else unchanged."""
    if framed[HEADER_BYTES : HEADER_BYTES + 1] != bytes((OK_HEADER,)):
        return framed
    _, start = read_lenenc_int(framed, HEADER_BYTES + 1)
    _, end = read_lenenc_int(framed, start)
    return frame(framed[HEADER_BYTES:start] + lenenc_int(insert_id) + framed[end:], framed[3])


def row_info(affected_rows: int, warnings: int) -> bytes:
    """Return the OK text for an INSERT of one row of several, or of one selected row; a server sends none for VALUES."""
    return b"Records: 1  Duplicates: %d  Warnings: %d" % (affected_rows != 1, warnings)


def with_row_info(framed: bytes) -> bytes:
    """Return an OK packet without a text, header and all, with that of `row_info`; anything else unchanged."""
    payload = framed[4:]
    if payload[:1] != bytes((OK_HEADER,)):
        return framed
    cursor = PacketReader(payload[1:])
    affected_rows = cursor.lenenc_int()
    cursor.lenenc_int()
    cursor.read(2)
    warnings = cursor.uint(2)
    rest = cursor.rest()
    if rest[:1] not in {b"", b"\0"}:
        return framed
    info = lenenc_bytes(row_info(affected_rows, warnings))
    return frame(payload[: len(payload) - len(rest)] + info + rest[1:], framed[3])


def eof_packet(status: int, warnings: int = 0) -> bytes:
    """Return an EOF packet, for clients without DEPRECATE_EOF."""
    status &= ~_STATE_CHANGED
    return bytes((EOF_HEADER,)) + _warnings(warnings) + status.to_bytes(2, "little")


def end_of_rows(capabilities: int, *, status: int, warnings: int = 0) -> bytes:
    """Return the packet that ends rows for this client: EOF, or an OK with the header of an EOF."""
    if not capabilities & Capability.DEPRECATE_EOF:
        return eof_packet(status, warnings)
    return ok_packet(
        status=status, warnings=warnings, capabilities=capabilities, header=EOF_HEADER
    )


def err_packet(code: int, sqlstate: str, message: str, capabilities: int) -> bytes:
    """Return an ERR packet; without PROTOCOL_41 (no login read yet) it has no SQLSTATE."""
    state = b"#" + sqlstate.encode() if capabilities & Capability.PROTOCOL_41 else b""
    return bytes((ERR_HEADER,)) + code.to_bytes(2, "little") + state + message_bytes(message)


def message_bytes(message: str) -> bytes:
    """Return an error's text as a client reads it; parts of its own text unchanged."""
    try:
        return message.encode("utf-8", _AS_IT_IS)
    except UnicodeEncodeError:  # surrogates of a configuration's JSON
        return message.encode("utf-8", "replace")


def error_packet(error: StreamfromError, capabilities: int) -> bytes:
    """Return the ERR packet of this error."""
    code, sqlstate = error.wire_code()
    return err_packet(code, sqlstate, str(error), capabilities)


def column_count(count: int) -> bytes:
    """Return the packet that begins a result set."""
    return lenenc_int(count)


def column_definition(column: ColumnDefinition, capabilities: int = 0) -> bytes:
    """Return a column definition (ColumnDefinition41).

    For each column, a client with EXTENDED_METADATA also reads details that MariaDB's types lack, here none:
    https://mariadb.com/kb/en/result-set-packets/#column-definition-packet
    """
    return b"".join(
        (
            b"\x03def",
            lenenc_bytes(column.schema.encode()),
            lenenc_bytes(column.table.encode()),
            lenenc_bytes(column.org_table.encode()),
            lenenc_bytes(column.name.encode()),
            lenenc_bytes(column.org_name.encode()),
            b"\0" if capabilities & Capability.EXTENDED_METADATA else b"",
            bytes((_FIXED.size,)),
            _FIXED.pack(
                column.charset, column.length, column.type, column.flags, column.decimals
            ),
        )
    )


# The columns and the rows of an answer that the proxy itself gives.
Table = tuple[Sequence[ColumnDefinition], list[tuple[bytes | None, ...]]]


def table_of_texts(names: Iterable[str], rows: Iterable[Iterable[str | None]]) -> Table:
    """Return a table whose columns are strings."""
    return [ColumnDefinition(name) for name in names], [
        tuple(None if value is None else value.encode() for value in row) for row in rows
    ]


def text_row(values: Sequence[bytes | None]) -> bytes:
    """Return a row of the text protocol; None is NULL."""
    pieces = []
    for value in values:
        if value is None:
            pieces.append(b"\xfb")
        else:
            size = len(value)
            pieces.append(bytes((size,)) if size < 0xFB else lenenc_int(size))
            pieces.append(value)
    return b"".join(pieces)


def resultset_head(
    definitions: Sequence[bytes], *, capabilities: int, status: int, sequence: int = 1
) -> tuple[bytes, int]:
    """Return everything before the first row, framed, and the sequence number that follows."""
    payloads = [column_count(len(definitions)), *definitions]
    if not capabilities & Capability.DEPRECATE_EOF:
        payloads.append(eof_packet(status))
    return frames(payloads, sequence)


# --- read from backends ----------------------------------------------------------------


def parse_ok(payload: bytes) -> Ok:
    """Read an OK packet, with either header, as a server writes it.

    Or the EOF of older clients, which has only warnings and flags. MySQL sends it behind the columns,
    whatever was negotiated, when a procedure's SELECT fails in a function whose handler has RESIGNAL;
    the error follows. Newer clients take it for the end of the rows.
    """
    if len(payload) == EOF_BYTES and payload[0] == EOF_HEADER:
        return Ok(0, 0, payload[3] | payload[4] << 8, payload[1] | payload[2] << 8, b"", b"")
    affected_rows, pos = read_lenenc_int(payload, 1)
    last_insert_id, pos = read_lenenc_int(payload, pos)
    try:
        status, warnings = _STATUS_AND_WARNINGS(payload, pos)
    except StructError:
        raise WireError("an OK packet is cut short") from None
    info = session_state = b""
    if len(payload) > pos + 4:
        cursor = PacketReader(payload, pos + 4)
        info = cursor.lenenc_bytes()
        if status & _STATE_CHANGED and cursor.remaining:
            session_state = cursor.lenenc_bytes()
    return Ok(affected_rows, last_insert_id, status, warnings, info, session_state)


def parse_err(payload: bytes) -> Err:
    """Read an ERR packet; a server that does not know our flags yet omits the SQLSTATE."""
    cursor = PacketReader(payload, pos=1)
    code = cursor.uint(2)
    if payload[3:4] == b"#" and cursor.remaining >= 6:
        state = cursor.read(6)[1:].decode("ascii", "replace")
        return Err(code, state, cursor.rest())
    return Err(code, "HY000", cursor.rest())


def parse_trackers(session_state: bytes) -> tuple[Tracker, ...]:
    """Read the session state of an OK packet."""
    trackers = []
    outer = PacketReader(session_state)
    while outer.remaining:
        kind = outer.uint(1)
        inner = PacketReader(outer.lenenc_bytes())
        if kind == TrackerKind.SYSVAR:
            # MariaDB puts several variables into one entry, MySQL one.
            while inner.remaining:
                name = _text(inner.lenenc_bytes())
                trackers.append(Tracker(kind, name, _text(inner.lenenc_bytes())))
        elif kind == TrackerKind.GTIDS:
            inner.read(1)  # the encoding, always 0
            trackers.append(Tracker(kind, "", _text(inner.lenenc_bytes())))
        elif kind == TrackerKind.STATE:
            # A bare "1" from MariaDB 10.11 and MySQL 9.7; the manual has a length before it.
            trackers.append(Tracker(kind, "", _text(inner.rest()[-1:])))
        elif kind in _TEXT_TRACKERS:
            trackers.append(Tracker(kind, "", _text(inner.lenenc_bytes())))
        else:
            # A kind of a newer server: its layout is unknown, its presence is not an error.
            trackers.append(Tracker(kind, "", _text(inner.rest())))
    return tuple(trackers)


STATE_CHANGED: Final = bytes((TrackerKind.STATE, 1)) + b"1"
# The variables that servers report of every session by default.
SHOWN_BY_DEFAULT: Final = frozenset(
    {
        "autocommit",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "time_zone",
    }
)

_PASSED_ON: Final = frozenset({TrackerKind.GTIDS, TrackerKind.TXCHAR, TrackerKind.TXSTATE})
_TEXT_TRACKERS = frozenset((TrackerKind.SCHEMA, TrackerKind.TXCHAR, TrackerKind.TXSTATE))


def shown_to(
    session_state: bytes, variables: AbstractSet[str] | None, *, changes: bool = False
) -> bytes:
    """Return the part of a server's session state that a client is shown.

    A server reports many more variables to the proxy than the client has requested, and the name of a database where the client
    knows a keyspace. https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html

    variables: the system variables that the client wants reported; None is all of them.
    changes: the client wants the bare report that something has changed (session_track_state_change).

    Raises:
        WireError: the session state is malformed.
    """
    pieces = []
    cursor = PacketReader(session_state)
    while cursor.remaining:
        kind = cursor.uint(1)
        entry = cursor.lenenc_bytes()
        if kind == TrackerKind.SYSVAR:
            pieces += _shown_variables(entry, variables)
        elif kind in _PASSED_ON or (changes and kind == TrackerKind.STATE):
            pieces.append(_entry(kind, entry))
    return b"".join(pieces)


def schema_state(name: str) -> bytes:
    """Return the session state that names the current database."""
    return _entry(TrackerKind.SCHEMA, lenenc_bytes(name.encode()))


def _shown_variables(entry: bytes, variables: AbstractSet[str] | None) -> list[bytes]:
    # MariaDB puts several variables into one entry, MySQL one.
    cursor = PacketReader(entry)
    shown = []
    while cursor.remaining:
        name, value = cursor.lenenc_bytes(), cursor.lenenc_bytes()
        if variables is None or name.decode("utf-8", "replace") in variables:
            shown.append(_entry(TrackerKind.SYSVAR, lenenc_bytes(name) + lenenc_bytes(value)))
    return shown


def _entry(kind: int, content: bytes) -> bytes:
    return bytes((kind,)) + lenenc_bytes(content)


def parse_column_definition(payload: bytes) -> ColumnDefinition:
    """Read a column definition (ColumnDefinition41), with or without extended metadata."""
    cursor = PacketReader(payload)
    cursor.lenenc_bytes()  # the catalog, always "def"
    schema, table, org_table, name, org_name = (_text(cursor.lenenc_bytes()) for _ in range(5))
    if cursor.remaining > 1 + _FIXED.size:
        cursor.lenenc_bytes()
    cursor.lenenc_int()  # the size of the fixed fields
    return ColumnDefinition(name, table, schema, org_table, org_name, *cursor.unpack(_FIXED))


def with_type_of(payload: bytes, other: bytes) -> bytes:
    """Return a column definition with its own names and the type of *other*, extended metadata too."""
    return payload[: skip_lenenc(payload, 0, 6)] + other[skip_lenenc(other, 0, 6) :]


def parse_text_row(payload: bytes, columns: int | None = None) -> list[bytes | None]:
    """Return the values of a text row; WireError if it is cut or does not have *columns* values."""
    values: list[bytes | None] = []
    pos = 0
    end = len(payload)
    # The usual value is shorter than 251 bytes; this loop costs 0.1 µs a column.
    while pos < end:
        size = payload[pos]
        pos += 1
        if size >= 0xFB:
            if size == 0xFB:
                values.append(None)
                continue
            size, pos = read_lenenc_int(payload, pos - 1)
        stop = pos + size
        values.append(payload[pos:stop])
        pos = stop
    if pos != end or (columns is not None and len(values) != columns):
        raise WireError("text row is cut short or has another number of columns")
    return values


def skip_lenenc(payload: bytes, pos: int, count: int) -> int:
    """Return the position behind *count* values of a text row that start at *pos*."""
    for _ in range(count):
        if pos >= len(payload):
            raise WireError("text row is cut short")
        size = payload[pos]
        if size < 0xFB:
            pos += 1 + size
        elif size == 0xFB:
            pos += 1
        else:
            size, pos = read_lenenc_int(payload, pos)
            pos += size
    if pos > len(payload):
        raise WireError("text row is cut short")
    return pos


def _warnings(count: int) -> bytes:
    # Two bytes on the wire; servers cap their own count the same way.
    return min(count, 0xFFFF).to_bytes(2, "little")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
