"""The stream between a compressing client and the framing: zlib or zstd.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html

    3 bytes size as sent   1 byte number   3 bytes size once unpacked, 0: sent as it is   data

What is unpacked is a piece of the ordinary stream: half a packet, or several. Numbers run apart
from those of the packets inside: a command begins with 0 and its answer goes on counting. Those
inside are checked by no server and no driver, because the client library of MySQL renumbers them.

A client may announce any size. Nothing is unpacked beyond what it announced, and it may announce
no more than the largest packet, which is refused before a byte of it is unpacked.
"""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, Final, Protocol

from proxy.errors import CannotUnpack, OutOfOrder, PacketTooLarge
from proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES, Capability


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator


_COMPRESS: Final = int(Capability.COMPRESS)
_ZSTD: Final = int(Capability.ZSTD_COMPRESSION)

_HEAD_BYTES: Final = 7
# Below this MySQL sends as it is: packing would make it larger.
_PACKED_BYTES_MIN: Final = 50
# Everybody waits while one answer is packed: half the time of zlib's own default.
_ZLIB_LEVEL: Final = 3
# A client asks for 1 to 22. From here on a little less to send takes a lot more time.
_ZSTD_LEVEL_MAX: Final = 6
# As much as the largest piece needs; a client must not make a server keep 128 MiB for it.
_ZSTD_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 24}


class Packer(Protocol):
    """An algorithm. Every piece is packed by itself."""

    def pack(self, data: bytes) -> bytes:
        """Return *data*, packed."""

    def unpack(self, data: bytes, size: int) -> bytes:
        """Return *data*, unpacked, which are *size* bytes. Raises CannotUnpack."""


class Zlib:
    """CLIENT_COMPRESS."""

    __slots__ = ()

    def pack(self, data: bytes) -> bytes:
        """Return *data*, packed."""
        return zlib.compress(data, _ZLIB_LEVEL)

    def unpack(self, data: bytes, size: int) -> bytes:
        """Return *data*, unpacked. Raises CannotUnpack."""
        unpacker = zlib.decompressobj()
        try:
            found = unpacker.decompress(data, size + 1)
        except zlib.error:
            raise CannotUnpack from None
        if len(found) != size or not unpacker.eof or unpacker.unused_data:
            raise CannotUnpack
        return found


class Zstd:
    """CLIENT_ZSTD_COMPRESSION_ALGORITHM. *level* is what the client asked for in its login."""

    __slots__ = ("level",)

    def __init__(self, level: int) -> None:
        self.level = min(max(level, 1), _ZSTD_LEVEL_MAX)

    def pack(self, data: bytes) -> bytes:
        """Return *data*, packed."""
        return zstd.compress(data, self.level)

    def unpack(self, data: bytes, size: int) -> bytes:
        """Return *data*, unpacked. Raises CannotUnpack."""
        unpacker = zstd.ZstdDecompressor(options=_ZSTD_WINDOW)
        try:
            found = unpacker.decompress(data, size + 1)
        except zstd.ZstdError:
            raise CannotUnpack from None
        if len(found) != size or not unpacker.eof or unpacker.unused_data:
            raise CannotUnpack
        return found


def packer_for(capabilities: int, zstd_level: int) -> Packer | None:
    """Return what flags in force ask for; None: nothing is packed. MySQL prefers zlib too."""
    if capabilities & _COMPRESS:
        return Zlib()
    if capabilities & _ZSTD:
        return Zstd(zstd_level)
    return None


class Compression:
    """Both directions of one client's stream.

    ``feed`` bytes as they come, then call ``next_piece`` until it returns None.

    Attributes:
        sequence: the number of the next piece that is packed.
        next_sequence: the number that the next piece received must carry.
    """

    __slots__ = ("_at", "_buffer", "_packer", "_unfinished", "next_sequence", "sequence")

    def __init__(self, packer: Packer) -> None:
        self.sequence = 0
        self.next_sequence = 0
        self._packer = packer
        self._unfinished = bytearray()  # the beginning of a packet to be packed
        self._buffer = bytearray()
        self._at = 0  # where the next piece starts in the buffer

    def pack_whole(self, data: bytes) -> bytes:
        """Return what goes on the wire once *data* is there: the packets that it completes.

        mysql-connector-python reads no packet that is spread over more than two pieces, as those
        of an answer would be that is forwarded as it comes.
        """
        if self._unfinished:
            self._unfinished += data
            wanted_bytes = HEADER_BYTES + int.from_bytes(self._unfinished[:3], "little")
            if len(self._unfinished) < wanted_bytes:
                return b""
            data = bytes(self._unfinished)
        end = 0
        while (start := end + HEADER_BYTES) <= len(data):
            following = start + int.from_bytes(data[end : end + 3], "little")
            if following > len(data):
                break
            end = following
        self._unfinished = bytearray(data[end:])
        return self.pack(data[:end])

    def pack(self, data: bytes) -> bytes:
        """Return *data*, any part of the stream, as it goes on the wire."""
        return b"".join(self._pieces(data))

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), FRAME_BYTES_MAX):
            piece = data[start : start + FRAME_BYTES_MAX]
            packed, unpacked_bytes = piece, 0
            if len(piece) >= _PACKED_BYTES_MIN:
                smaller = self._packer.pack(piece)
                if len(smaller) < len(piece):
                    packed, unpacked_bytes = smaller, len(piece)
            yield (len(packed) | self.sequence << 24).to_bytes(HEADER_BYTES, "little")
            yield unpacked_bytes.to_bytes(3, "little")
            yield packed
            self.sequence = self.sequence + 1 & 0xFF

    def feed(self, data: bytes) -> None:
        """Accept bytes in pieces of any size."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    @property
    def has_piece(self) -> bool:
        """True while a whole piece waits."""
        size = self._size_at(self._at)
        return size is not None and len(self._buffer) - self._at >= _HEAD_BYTES + size

    def _size_at(self, at: int) -> int | None:
        if len(self._buffer) - at < _HEAD_BYTES:
            return None
        return int.from_bytes(self._buffer[at : at + 3], "little")

    def next_piece(self, bytes_max: int) -> bytes | None:
        """Return the next piece, unpacked, or None if more bytes are needed.

        Raises OutOfOrder, CannotUnpack, and PacketTooLarge for more than *bytes_max* bytes, as
        soon as they are announced.
        """
        at = self._at
        size = self._size_at(at)
        if size is None:
            return None
        sequence = self._buffer[at + 3]
        if sequence != self.next_sequence:
            raise OutOfOrder(sequence, self.next_sequence)
        self.next_sequence = sequence + 1 & 0xFF
        unpacked_bytes = int.from_bytes(self._buffer[at + 4 : at + _HEAD_BYTES], "little")
        if max(size, unpacked_bytes) > bytes_max:
            raise PacketTooLarge(bytes_max)
        end = at + _HEAD_BYTES + size
        if end > len(self._buffer):
            self.next_sequence = sequence
            return None
        piece = bytes(self._buffer[at + _HEAD_BYTES : end])
        self._at = end
        return self._packer.unpack(piece, unpacked_bytes) if unpacked_bytes else piece
