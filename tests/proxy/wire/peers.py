"""Encodings and parsers that only the proxy's peers need, not the proxy itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from streamfrom.proxy.wire.binary_parameters import FLOATS, INTEGER_BYTES, Parameter
from streamfrom.proxy.wire.codec import PacketReader, lenenc_bytes
from streamfrom.proxy.wire.constants import (
    NATIVE_PASSWORD,
    Capability,
    Command,
    TrackerKind,
)
from streamfrom.proxy.wire.framing import Framer, frame, frames
from streamfrom.proxy.wire.login.handshake import LoginRequest
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    Tracker,
    column_definition,
    end_of_rows,
    resultset_head,
    text_row,
)


PING: Final = frame(bytes((Command.PING,)), 0)
_WITH_LENGTH: Final = frozenset((TrackerKind.SCHEMA, TrackerKind.TXCHAR, TrackerKind.TXSTATE))


def unframed(data: bytes, sequence: int = 1) -> list[bytes]:
    """Return the payloads of whole packets that are numbered from *sequence* on."""
    framer = Framer(1 << 30)
    framer.next_sequence = sequence
    framer.feed(data)
    found = list(iter(framer.next_packet, None))
    assert framer.take_rest() == b""
    return found


def write_parameters(parameters: Sequence[Parameter]) -> bytes:
    """Return the body that encodes these parameters, with their types."""
    if not parameters:
        return b""
    bitmap = bytearray((len(parameters) + 7) // 8)
    types = bytearray()
    values = []
    for place, (kind, unsigned, data) in enumerate(parameters):
        types += bytes((kind, 0x80 if unsigned else 0))
        if data is None:
            bitmap[place // 8] |= 1 << place % 8
        else:
            is_fixed = kind in INTEGER_BYTES or kind in FLOATS
            values.append(data if is_fixed else lenenc_bytes(data))
    return b"".join((bitmap, b"\x01", types, *values))


def encode_change_user(login: LoginRequest) -> bytes:
    """Return the payload of a COM_CHANGE_USER, laid out by ``login.capabilities``."""
    pieces = [
        bytes((Command.CHANGE_USER,)),
        login.user.encode() + b"\0",
        bytes((len(login.response),)) + login.response,
        (login.database or "").encode() + b"\0",
        login.charset.to_bytes(2, "little"),
    ]
    if login.capabilities & Capability.PLUGIN_AUTH:
        plugin = NATIVE_PASSWORD if login.plugin is None else login.plugin
        pieces.append(plugin.encode() + b"\0")
    if login.capabilities & Capability.CONNECT_ATTRS:
        pairs = b"".join(
            lenenc_bytes(name.encode()) + lenenc_bytes(value.encode())
            for name, value in login.attributes.items()
        )
        pieces.append(lenenc_bytes(pairs))
    return b"".join(pieces)


def encode_trackers(trackers: Iterable[Tracker]) -> bytes:
    """Return the session state of an OK packet for these changes."""
    pieces = []
    for tracker in trackers:
        value = tracker.value.encode()
        if tracker.kind == TrackerKind.SYSVAR:
            value = lenenc_bytes(tracker.name.encode()) + lenenc_bytes(value)
        elif tracker.kind == TrackerKind.GTIDS:
            value = b"\0" + lenenc_bytes(value)
        elif tracker.kind in _WITH_LENGTH:
            value = lenenc_bytes(value)
        pieces.append(bytes((tracker.kind,)) + lenenc_bytes(value))
    return b"".join(pieces)


def parse_column_definition(payload: bytes) -> ColumnDefinition:
    """Read a column definition (ColumnDefinition41)."""
    cursor = PacketReader(payload)
    cursor.lenenc_bytes()  # the catalog, always "def"
    schema, table, org_table, name, org_name = (
        cursor.lenenc_bytes().decode() for _ in range(5)
    )
    cursor.lenenc_int()  # the size of the fixed fields
    charset, length, kind, flags, decimals = (cursor.uint(size) for size in (2, 4, 1, 2, 1))
    return ColumnDefinition(
        name, table, schema, org_table, org_name, charset, length, kind, flags, decimals
    )


def text_resultset(
    columns: Sequence[ColumnDefinition],
    rows: Iterable[Sequence[bytes | None]],
    *,
    capabilities: int,
    status: int,
) -> bytes:
    """Return a whole reply of the text protocol, framed."""
    definitions = [column_definition(column) for column in columns]
    head, sequence = resultset_head(definitions, capabilities=capabilities, status=status)
    end = end_of_rows(capabilities, status=status)
    body = [*map(text_row, rows), end]
    return head + frames(body, sequence)[0]
