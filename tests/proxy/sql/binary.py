"""What tests of prepared statements send and read."""

from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import parse_text_row


def stmt_reset(statement: int) -> bytes:
    """Return a COM_STMT_RESET."""
    return frame(b"\x1a" + statement.to_bytes(4, "little"), 0)


def told(server, *kinds):
    """Return what the relay connections of *server* were told, of these kinds."""
    return [text for text in server.heard if text.startswith(kinds)]


def value(row):
    """Return the one VAR_STRING of a binary row."""
    (payload,) = row
    assert payload[:2] == b"\0\0"
    return parse_text_row(payload[2:])[0]
