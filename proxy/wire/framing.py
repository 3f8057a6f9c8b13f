"""The stream as packets: three bytes of length, one of sequence, then the payload.

A payload of 16 MiB - 1 or more travels in several frames; the last is shorter than the
maximum, possibly empty. Sequence numbers count frames and wrap at 256.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from struct import Struct
from typing import Final

from streamfrom.proxy.errors import OutOfOrder, PacketTooLarge
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES


_word: Final = Struct("<I").unpack_from


def frame(payload: bytes, sequence: int) -> bytes:
    """Return *payload* as it goes on the wire, its first frame numbered *sequence* mod 256."""
    size = len(payload)
    if size < FRAME_BYTES_MAX:
        return (size | (sequence & 0xFF) << 24).to_bytes(4, "little") + payload
    return frame_parts((payload,), sequence)


def frame_parts(parts: Iterable[bytes | memoryview], sequence: int) -> bytes:
    """Return the same as `frame` for the payload of joined *parts*, in one copy.

    Each copy of 16 MB takes about 5 ms, in which all sessions wait.
    """
    views = [memoryview(part) for part in parts]
    left = sum(map(len, views))
    pieces: list[bytes | memoryview] = []
    room, is_full = 0, True
    for view in views:
        at = 0
        while at < len(view):
            if not room:
                room = min(left, FRAME_BYTES_MAX)
                is_full = room == FRAME_BYTES_MAX
                pieces.append((room | (sequence & 0xFF) << 24).to_bytes(4, "little"))
                sequence += 1
            piece = view[at : at + room]
            pieces.append(piece)
            at += len(piece)
            left -= len(piece)
            room -= len(piece)
    if is_full:
        pieces.append(((sequence & 0xFF) << 24).to_bytes(4, "little"))
    return b"".join(pieces)


def frames(payloads: Iterable[bytes], sequence: int) -> tuple[bytes, int]:
    """Return the payloads as one piece of wire, and the sequence number that follows it."""
    pieces = []
    for payload in payloads:
        size = len(payload)
        if size < FRAME_BYTES_MAX:
            pieces.append((size | sequence << 24).to_bytes(4, "little"))
            pieces.append(payload)
            sequence = sequence + 1 & 0xFF
        else:
            pieces.append(frame(payload, sequence))
            sequence = sequence + size // FRAME_BYTES_MAX + 1 & 0xFF
    return b"".join(pieces), sequence


@dataclass(slots=True, eq=False)
class Framer:
    """Turns received bytes into payloads, strict about sequence numbers and size.

    ``feed`` bytes as they come, then call ``next_packet`` until it returns None; ``feed_next`` does both once. One packet is
    taken at a time because the owner may have to change something between two packets: the sequence restarts with every
    command, and the bytes after a request for TLS are no packet.
    """

    # The largest payload, counted over all its frames; may be changed any time.
    packet_bytes_max: int
    next_sequence: int = 0  # the number that the next frame must carry
    is_numbered: bool = True  # the sequence numbers of frames are checked
    # Received bytes, and the start of the part that was not taken yet.
    _buffer: bytes | bytearray = b""
    _at: int = 0
    # The beginning of an incomplete payload. It grows in place and is returned without a copy,
    # because each copy of 16 MB takes about 5 ms, in which all clients wait.
    _gathered: BytesIO | None = None
    # How much of its frame is still to come, and whether another frame follows.
    _frame_left: int = 0
    _goes_on: bool = False

    def feed(self, data: bytes) -> None:
        """Accept bytes in pieces of any size."""
        if self._at == len(self._buffer):
            # The usual case: nothing waits. The piece itself becomes the buffer, uncopied.
            self._buffer = data
            self._at = 0
            return
        if isinstance(self._buffer, bytes):
            self._buffer = bytearray(self._buffer[self._at :])
            self._at = 0
        self._buffer += data

    def feed_next(self, data: bytes) -> bytes | None:
        """Do `feed`, then `next_packet`: one test if *data* is one packet and nothing waits."""
        size = len(data) - HEADER_BYTES
        if (
            0 <= size < FRAME_BYTES_MAX
            and _word(data)[0] == size | self.next_sequence << 24
            and self._at == len(self._buffer)
            and self._gathered is None
            and size <= self.packet_bytes_max
        ):
            self.next_sequence = self.next_sequence + 1 & 0xFF
            return data[HEADER_BYTES:]
        self.feed(data)
        return self.next_packet()

    def next_packet(self) -> bytes | None:
        """Return the next whole payload, or None if more bytes are needed.

        Raises OutOfOrder, and PacketTooLarge as soon as a header announces too much, so at
        most one chunk of a refused packet is ever held.
        """
        while True:
            gathered = self._gathered
            if self._frame_left and not self._gather():
                return None
            if gathered is not None and not self._goes_on:
                self._gathered = None
                return gathered.getvalue()
            buffer = self._buffer
            start = self._at + HEADER_BYTES
            if start > len(buffer):
                return None
            header = int.from_bytes(buffer[start - HEADER_BYTES : start], "little")
            size = header & 0xFFFFFF
            if header >> 24 != self.next_sequence and self.is_numbered:
                raise OutOfOrder
            if size + self._gathered_bytes > self.packet_bytes_max:
                raise PacketTooLarge
            end = start + size
            if gathered is not None or end > len(buffer) or size == FRAME_BYTES_MAX:
                self._gathered = gathered or BytesIO()
                self._frame_left, self._goes_on = size, size == FRAME_BYTES_MAX
                self._take(start)
                if not size:
                    self._frame_ended()
                continue
            # A slice of a bytearray would be a second copy.
            with memoryview(buffer) as view:
                payload = bytes(view[start:end])
            self._frame_ended()
            self._take(end)
            return payload

    def _gather(self) -> bool:
        """Take the received part of a frame; True if that is all of it."""
        assert self._gathered is not None
        with memoryview(self._buffer) as view:
            taken = self._gathered.write(view[self._at : self._at + self._frame_left])
        self._take(self._at + taken)
        self._frame_left -= taken
        if self._frame_left:
            return False
        self._frame_ended()
        return True

    def _frame_ended(self) -> None:
        self.next_sequence = self.next_sequence + 1 & 0xFF

    def _take(self, end: int) -> None:
        """Forget the received bytes up to *end*."""
        if end == len(self._buffer):
            self._buffer = b""
            self._at = 0
        elif isinstance(self._buffer, bytearray):
            del self._buffer[:end]
            self._at = 0
        else:
            self._at = end

    @property
    def _gathered_bytes(self) -> int:
        return 0 if self._gathered is None else self._gathered.tell()

    @property
    def held_bytes(self) -> int:
        """How many bytes wait for the rest of their packet, or to be taken."""
        header_bytes = HEADER_BYTES if self._frame_left else 0
        return len(self._buffer) - self._at + header_bytes + self._gathered_bytes

    @property
    def has_packet(self) -> bool:
        """True when the next frame is complete."""
        if self._frame_left:
            return self._at + self._frame_left <= len(self._buffer)
        start = self._at + HEADER_BYTES
        size = int.from_bytes(self._buffer[self._at : self._at + 3], "little")
        return start + size <= len(self._buffer)

    @property
    def is_empty(self) -> bool:
        """True when no part of a packet waits for its rest."""
        return self._at == len(self._buffer) and self._gathered is None

    def take_rest(self) -> bytes:
        """Remove and return all bytes that are in no packet yet."""
        rest = bytes(self._buffer[self._at :])
        self._buffer = b""
        self._at = 0
        self._gathered, self._frame_left = None, 0
        return rest
