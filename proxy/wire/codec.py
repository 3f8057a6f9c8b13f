"""Length-encoded integers and strings, and a cursor that never reads past its packet.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_data_types.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamfrom.proxy.errors import WireError


if TYPE_CHECKING:
    from struct import Struct


def lenenc_int(value: int) -> bytes:
    """Encode an unsigned integer below 2**64 in 1, 3, 4 or 9 bytes."""
    # 0xFB itself is NULL in a text row, 0xFF begins an ERR: neither is ever a length.
    if value < 0xFB:
        return bytes((value,))
    if value < 1 << 16:
        return b"\xfc" + value.to_bytes(2, "little")
    if value < 1 << 24:
        return b"\xfd" + value.to_bytes(3, "little")
    return b"\xfe" + value.to_bytes(8, "little")


def lenenc_bytes(value: bytes) -> bytes:
    """Encode a string with its length in front."""
    return lenenc_int(len(value)) + value


def read_lenenc_int(payload: bytes, pos: int) -> tuple[int, int]:
    """Return the integer at *pos* and the position behind it; WireError if it is cut or NULL."""
    try:
        first = payload[pos]
        if first < 0xFB:
            return first, pos + 1
        size = _EXTRA_BYTES[first]
    except (IndexError, KeyError):
        raise WireError("length-encoded integer expected") from None
    end = pos + 1 + size
    if end > len(payload):
        raise WireError("length-encoded integer is cut short")
    return int.from_bytes(payload[pos + 1 : end], "little"), end


_EXTRA_BYTES = {0xFC: 2, 0xFD: 3, 0xFE: 8}


class PacketReader:
    """Reads one packet from front to back; WireError instead of a step past its end."""

    __slots__ = ("_end", "_payload", "pos")

    def __init__(self, payload: bytes, pos: int = 0) -> None:
        self._payload = payload
        self._end = len(payload)
        self.pos = pos

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return self._end - self.pos

    def read(self, size: int) -> bytes:
        """Return the next *size* bytes."""
        end = self.pos + size
        if end > self._end:
            raise WireError(f"{size} bytes expected, {self.remaining} left")
        taken = self._payload[self.pos : end]
        self.pos = end
        return taken

    def uint(self, size: int) -> int:
        """Return the next *size* bytes as a little-endian unsigned integer."""
        return int.from_bytes(self.read(size), "little")

    def unpack(self, fields: Struct) -> tuple[Any, ...]:
        """Return the next *fields*, of fixed sizes."""
        return fields.unpack(self.read(fields.size))

    def lenenc_int(self) -> int:
        """Return a length-encoded integer."""
        value, self.pos = read_lenenc_int(self._payload, self.pos)
        return value

    def lenenc_bytes(self) -> bytes:
        """Return a string with its length in front."""
        return self.read(self.lenenc_int())

    def until_nul(self) -> bytes:
        """Return a string that ends with NUL, without the NUL. An unended one is an error."""
        end = self._payload.find(b"\0", self.pos)
        if end < 0:
            raise WireError("string without its final NUL")
        taken = self._payload[self.pos : end]
        self.pos = end + 1
        return taken

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self.read(self.remaining)

    def rest_view(self) -> memoryview:
        """Return everything that is left, uncopied."""
        return memoryview(self._payload)[self.pos :]
