"""Rows of the binary protocol, made from rows of the text protocol.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html

A backend's answer to COM_STMT_EXECUTE is relayed unchanged. Only the answers that the proxy
makes (merges, STREAM, SHOW DATABASES) start from text: the engine reads messages with text
statements, whichever client they are for. The text of a FLOAT has only six digits, so a merge requests more
(`proxy.merge.comparison.exactly`); a STREAM has the digits of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import ValueOfOtherType
from streamfrom.proxy.wire.binary_parameters import DATES, FLOATS, INTEGER_BYTES
from streamfrom.proxy.wire.codec import lenenc_bytes
from streamfrom.proxy.wire.constants import BINARY_CHARSET, STRING_TYPES, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row


if TYPE_CHECKING:
    from struct import Struct


# A client reads all of these alike, whatever their length is. MySQL sends JSON as bytes, MariaDB as text.
_STRINGS: Final = STRING_TYPES | {FieldType.ENUM, FieldType.SET}
_UNSIGNED: Final = 0x80
# Which of the two a session of `character_set_results = binary` gets depends on the column's collation.
TEXT_OR_BYTES: Final = {FieldType.VAR_STRING, FieldType.BLOB}
# The first two bits of the bitmap are for a use that never came.
_BITMAP_SHIFT: Final = 2


def row_types(definitions: Sequence[bytes]) -> bytes:
    """Return a byte for each column: the part of its type that a client needs to read binary rows.

    It is the same from servers of both families, and for sessions of all character sets except `binary`, in which text is bytes.
    """
    return b"".join(map(_row_type, definitions))


# A claim of a single message pays only for a look-up.
@lru_cache(maxsize=4096)
def _row_type(definition: bytes) -> bytes:
    column = parse_column_definition(definition)
    kind = column.type
    if kind in _STRINGS:
        kind = FieldType.BLOB if column.charset == BINARY_CHARSET else FieldType.VAR_STRING
    elif kind == FieldType.JSON:
        kind = FieldType.VAR_STRING
    elif kind in INTEGER_BYTES and not _is_signed(kind, column.flags):
        kind |= _UNSIGNED
    return bytes((kind,))


class BinaryRows:
    """Encodes the rows of one result set.

    definitions: the column definitions, as payloads.
    """

    __slots__ = ("_encoders",)

    def __init__(self, definitions: Sequence[bytes]) -> None:
        columns = map(parse_column_definition, definitions)
        self._encoders = [_encoder(column.type, column.flags) for column in columns]

    def from_text(self, payload: bytes) -> bytes:
        """Return a text row as a binary one. Raises WireError, and the errors of `encode`."""
        return self.encode(parse_text_row(payload, len(self._encoders)))

    def encode(self, values: Sequence[bytes | None]) -> bytes:
        """Return the row of these values, each in its text-protocol form.

        Raises:
            ValueOfOtherType: a column's type has no such value.
        """
        bitmap = bytearray((len(values) + _BITMAP_SHIFT + 7) // 8)
        # The header, and the place of the bitmap, which is known when all values are.
        parts: list[bytes] = [b"\0", b""]
        for place, (encode, value) in enumerate(zip(self._encoders, values, strict=True)):
            if value is None:
                bit = place + _BITMAP_SHIFT
                bitmap[bit // 8] |= 1 << bit % 8
            else:
                try:
                    parts.append(encode(value))
                except (ValueError, OverflowError):
                    raise ValueOfOtherType(place) from None
        parts[1] = bytes(bitmap)
        return b"".join(parts)


def _encoder(kind: int, flags: int) -> Callable[[bytes], bytes]:
    """Return the encoder for a type. It raises ValueError or OverflowError for a text that is not of the type."""
    size = INTEGER_BYTES.get(kind)
    if size is not None:
        signed = _is_signed(kind, flags)
        return lambda text: int(text).to_bytes(size, "little", signed=signed)
    real = FLOATS.get(kind)
    if real is not None:
        return lambda text: _real(text, real)
    if kind == FieldType.DATE:
        return _day
    if kind in DATES:
        return _date
    return _time if kind == FieldType.TIME else lenenc_bytes


def _is_signed(kind: int, flags: int) -> bool:
    # A YEAR has no sign, but only some servers set the flag.
    return not flags & FieldFlag.UNSIGNED and kind != FieldType.YEAR


def _real(text: bytes, real: Struct) -> bytes:
    number = float(text)
    data = real.pack(number)
    (kept,) = real.unpack(data)
    if kept != number:
        # Only a rounding in the last digit shown is the column's own.
        shown = Decimal(text.decode())
        if abs(Decimal(kept) - shown) > Decimal((0, (1,), int(shown.as_tuple().exponent))):
            raise ValueError(text)
    return data


def _day(text: bytes) -> bytes:
    """Encode `2026-01-31`; with a time it is no DATE."""
    if b" " in text:
        raise ValueError(text)
    return _date(text)


def _date(text: bytes) -> bytes:
    """Encode `2026-01-31`, with any ` 12:30:00` and `.000001`."""
    day, _, clock = text.partition(b" ")
    year, month, date = map(int, day.split(b"-"))
    data = year.to_bytes(2, "little") + bytes((month, date))
    if clock:
        data += _clock(clock)
    # Zeroes at the end are left out: the time of midnight, all of 0000-00-00.
    while data and not any(data[_shorter(data) :]):
        data = data[: _shorter(data)]
    return bytes((len(data),)) + data


def _shorter(data: bytes) -> int:
    return {11: 7, 7: 4, 4: 0}[len(data)]


def _time(text: bytes) -> bytes:
    """Encode `-838:59:59.000001`."""
    clock = text.removeprefix(b"-")
    hours, _, rest = clock.partition(b":")
    # The text counts hours up to 838, the binary form days and hours.
    days, hour = divmod(int(hours), 24)
    tail = _clock(b"%d:%s" % (hour, rest))
    data = bytes((text[:1] == b"-",)) + days.to_bytes(4, "little") + tail
    if not any(data[1:]):
        return b"\0"
    if len(data) == 12 and not any(data[8:]):
        data = data[:8]
    return bytes((len(data),)) + data


def _clock(text: bytes) -> bytes:
    whole, _, fraction = text.partition(b".")
    data = bytes(map(int, whole.split(b":")))
    if len(data) != 3:
        raise ValueError(text)
    return data + int(fraction.ljust(6, b"0")).to_bytes(4, "little") if fraction else data
