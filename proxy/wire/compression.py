"""The stream between a compressing client and the framing: zlib or zstd.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html

    3 bytes size as sent   1 byte number   3 bytes size once unpacked, 0: sent as it is   data

The unpacked data is a piece of the ordinary stream: a part of a packet, or several packets. Pieces have their own
numbers, separate from those of the packets inside: a command begins with 0 and its answer continues the count. No server
or driver checks the numbers inside, because the client library of MySQL renumbers them.

A client may announce any size. Nothing is unpacked beyond the announced size, and the announced size must not exceed
the largest packet, which is refused before a byte of it is unpacked. Both directions are worked in small
portions: 15 KB may unpack to 16 MB, which took 60 ms at once, and packing 16 MB that hardly shrink takes 250 ms.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.errors import CannotUnpack, OutOfOrder, PacketTooLarge
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES, Capability


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    Packing = zlib._Compress | zstd.ZstdCompressor
    Unpacking = zlib._Decompress | zstd.ZstdDecompressor


_HEAD_BYTES: Final = 7
# Below this size MySQL sends data unpacked, because packing would make it larger.
_PACKED_BYTES_MIN: Final = 50
# All sessions wait while one answer is packed; this level takes half the time of zlib's default.
_ZLIB_LEVEL: Final = 3
# A client requests 1 to 22. From here on a slightly smaller result takes a lot more time.
_ZSTD_LEVEL_MAX: Final = 6
# How much is unpacked at once, and from how much: about 0.5 ms.
_BITE_BYTES: Final = 256 << 10
_PACKED_BITE_BYTES: Final = 64 << 10
# A packet of which this much has come is packed on the way.
_AHEAD_BYTES: Final = 64 << 10
# As much as the largest piece needs; a client must not make a server keep 128 MiB for it.
_ZSTD_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 24}


class Packer(NamedTuple):
    """An algorithm."""

    # Return the object that packs, or unpacks, one piece; every piece is packed separately.
    packing: Callable[[], Packing]
    unpacking: Callable[[], Unpacking]

    def unpack(self, data: bytes, size: int) -> Iterator[bytes]:
        """Yield the unpacked *data*, in bites. Raises CannotUnpack unless it is *size* bytes."""
        unpacking = self.unpacking()
        start = 0
        while start < len(data) and not unpacking.eof:
            packed = data[start : start + _PACKED_BITE_BYTES]
            start += len(packed)
            while not unpacking.eof:
                # One byte more than there may be, to notice a longer piece; it goes no further.
                wanted = min(size + 1, _BITE_BYTES)
                try:
                    found = unpacking.decompress(packed, wanted)
                except (zlib.error, zstd.ZstdError):
                    raise CannotUnpack from None
                size -= len(found)
                if size < 0:
                    raise CannotUnpack
                if found:
                    yield found
                # zlib hands back its unread input, and zstd keeps it.
                packed = getattr(unpacking, "unconsumed_tail", b"")
                if not packed and len(found) < wanted:
                    break
        if size or not unpacking.eof or unpacking.unused_data or start < len(data):
            raise CannotUnpack


# CLIENT_COMPRESS
ZLIB: Final = Packer(partial(zlib.compressobj, _ZLIB_LEVEL), zlib.decompressobj)


def zstd_packer(level: int) -> Packer:
    """Return the packer of CLIENT_ZSTD_COMPRESSION_ALGORITHM. *level* is the one that the client requested in its login."""
    kept = min(max(level, 1), _ZSTD_LEVEL_MAX)
    return Packer(
        partial(zstd.ZstdCompressor, kept), partial(zstd.ZstdDecompressor, options=_ZSTD_WINDOW)
    )


def packer_for(capabilities: int, zstd_level: int) -> Packer | None:
    """Return the packer for the flags in force; None if nothing is packed. zlib comes first, as in MySQL."""
    if capabilities & Capability.COMPRESS:
        return ZLIB
    return zstd_packer(zstd_level) if capabilities & Capability.ZSTD_COMPRESSION else None


@dataclass(slots=True, eq=False)
class Compression:
    """Both directions of one client's stream.

    ``feed`` bytes as they come, then call ``next_piece`` until it returns None.
    """

    _packer: Packer
    sequence: int = 0  # the number of the next piece that is packed
    next_sequence: int = 0  # the number that the next received piece must carry
    # The beginning of a packet to be packed, and how much of it is packed already.
    _unfinished: bytearray = field(default_factory=bytearray)
    _ahead: _Ahead | None = None
    # The piece that is being unpacked, and how many bytes of it are still to come.
    _unpacked: Iterator[bytes] | None = None
    _unpacked_left: int = 0
    # Received bytes, and where the next piece starts in them.
    _buffer: bytearray = field(default_factory=bytearray)
    _at: int = 0

    def pack_whole(self, data: bytes) -> bytes:
        """Return the bytes to send after *data*: the packets that it completes, packed.

        mysql-connector-python reads no packet that is spread over more than two pieces, as happens
        if an answer is forwarded as it comes.
        """
        start = end = 0
        first = b""
        if self._unfinished:
            self._unfinished += data
            wanted_bytes = HEADER_BYTES + int.from_bytes(self._unfinished[:3], "little")
            if len(self._unfinished) < wanted_bytes:
                # Packing 16 MB at their end would hold all clients up for 250 ms.
                if len(self._unfinished) >= _AHEAD_BYTES:
                    if self._ahead is None:
                        self._ahead = _Ahead(self._packer.packing())
                    self._ahead.pack_new(self._unfinished, wanted_bytes)
                return b""
            data = bytes(self._unfinished)
            if self._ahead is not None:
                self._ahead.pack_new(data, wanted_bytes)
                start, end = self._ahead.done_bytes, wanted_bytes
                first = self._piece(data[:start], self._ahead.whole())
                self._ahead = None
        while (payload_at := end + HEADER_BYTES) <= len(data):
            following = payload_at + int.from_bytes(data[end : end + 3], "little")
            if following > len(data):
                break
            end = following
        self._unfinished = bytearray(data[end:])
        return first + self.pack(data[start:end])

    def pack(self, data: bytes) -> bytes:
        """Return *data*, any part of the stream, packed for the wire."""
        pieces = []
        for start in range(0, len(data), FRAME_BYTES_MAX):
            piece = data[start : start + FRAME_BYTES_MAX]
            packed = piece
            if len(piece) >= _PACKED_BYTES_MIN:
                packing = self._packer.packing()
                packed = packing.compress(piece) + packing.flush()
            pieces.append(self._piece(piece, packed))
        return b"".join(pieces)

    def _piece(self, data: bytes, packed: bytes) -> bytes:
        """Return a piece as it goes on the wire: packed if that is smaller."""
        unpacked_bytes = len(data)
        # A length of 0 for the unpacked bytes means that the piece is not packed.
        if len(packed) >= len(data):
            packed, unpacked_bytes = data, 0
        head = (len(packed) | self.sequence << 24).to_bytes(HEADER_BYTES, "little")
        self.sequence = self.sequence + 1 & 0xFF
        return b"".join((head, unpacked_bytes.to_bytes(3, "little"), packed))

    def feed(self, data: bytes) -> None:
        """Accept bytes in pieces of any size."""
        # Cut once for each read from the socket, not for each piece, because a cut moves everything
        # that follows.
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    @property
    def held_bytes(self) -> int:
        """How many bytes wait to be unpacked."""
        return len(self._buffer) - self._at

    def take_rest(self) -> None:
        """Forget all bytes that were not unpacked."""
        self._buffer = bytearray()
        self._at = 0
        self._unpacked = None

    @property
    def is_mid_piece(self) -> bool:
        """True while a piece is given in bites, and some are still to come."""
        return self._unpacked is not None

    @property
    def has_piece(self) -> bool:
        """True while a bite or a whole piece waits."""
        if self._unpacked is not None:
            return True
        size = self._size_at(self._at)
        return size is not None and len(self._buffer) - self._at >= _HEAD_BYTES + size

    def _size_at(self, at: int) -> int | None:
        if len(self._buffer) - at < _HEAD_BYTES:
            return None
        return int.from_bytes(self._buffer[at : at + 3], "little")

    def next_piece(self, bytes_max: int) -> bytes | None:
        """Return the next piece, unpacked, or None if more bytes are needed.

        A large one comes in bites, a call for each. Raises OutOfOrder, CannotUnpack, and
        PacketTooLarge for more than *bytes_max* bytes, as soon as they are announced.
        """
        if self._unpacked is not None:
            return self._bite(self._unpacked)
        at = self._at
        size = self._size_at(at)
        if size is None:
            return None
        sequence = self._buffer[at + 3]
        if sequence != self.next_sequence:
            raise OutOfOrder
        self.next_sequence = sequence + 1 & 0xFF
        unpacked_bytes = int.from_bytes(self._buffer[at + 4 : at + _HEAD_BYTES], "little")
        # The piece is refused by its announced size, before a byte is unpacked.
        if max(size, unpacked_bytes) > bytes_max:
            raise PacketTooLarge
        end = at + _HEAD_BYTES + size
        if end > len(self._buffer):
            # The piece is not whole yet, so its number is expected again.
            self.next_sequence = sequence
            return None
        with memoryview(self._buffer) as view:
            piece = bytes(view[at + _HEAD_BYTES : end])
        self._at = end
        if not unpacked_bytes:
            return piece
        self._unpacked = self._packer.unpack(piece, unpacked_bytes)
        self._unpacked_left = unpacked_bytes
        return self._bite(self._unpacked)

    def _bite(self, unpacked: Iterator[bytes]) -> bytes:
        bite = next(unpacked, b"")
        self._unpacked_left -= len(bite)
        if not self._unpacked_left:
            # It raises here if the piece does not end at its announced size.
            next(unpacked, b"")
            self._unpacked = None
        return bite


@dataclass(slots=True, eq=False)
class _Ahead:
    """The first piece of a large packet, packed while the packet comes."""

    _packing: Packing
    done_bytes: int = 0  # the bytes of the packet that are packed already
    _packed: list[bytes] = field(default_factory=list)

    def pack_new(self, packet: bytes | bytearray, packet_bytes: int) -> None:
        """Pack the new bytes of *packet*, up to the size of one piece."""
        end = min(packet_bytes, len(packet), FRAME_BYTES_MAX)
        with memoryview(packet) as view:
            self._packed.append(self._packing.compress(bytes(view[self.done_bytes : end])))
        self.done_bytes = end

    def whole(self) -> bytes:
        """Return the piece, packed."""
        return b"".join((*self._packed, self._packing.flush()))
