"""The session state in an OK packet, cut to what a client has asked for.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html

A server reports many more variables to the proxy than the client has asked for, and the name of a
database where the client knows a keyspace.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from streamfrom.proxy.wire.codec import PacketReader, lenenc_bytes
from streamfrom.proxy.wire.constants import TrackerKind


# What servers report of every session by default.
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


STATE_CHANGED: Final = bytes((TrackerKind.STATE, 1)) + b"1"


def shown_to(
    session_state: bytes, variables: AbstractSet[str] | None, *, changes: bool = False
) -> bytes:
    """Return the part of a server's session state that a client is shown.

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
