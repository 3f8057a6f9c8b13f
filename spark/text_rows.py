"""Rows of the text protocol as Arrow columns, decoded many at a time: pure.

A row is a packet: three bytes of length, one of sequence, then each column as a length and so many bytes. Python finds where
packets begin; numpy finds a column's values in all of them at once, and Arrow copies them together. That is ten times as fast
as value by value. Formats: the MySQL client protocol, "ProtocolText::ResultsetRow" and "Sending more than 16 MB".
"""

import struct
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa


if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADER: Final = 4  # bytes before each packet's payload
_LONGEST: Final = 0xFFFFFF  # a packet of this length goes on in the next one
_LENGTH: Final = struct.Struct("<I").unpack_from
_NULL: Final = 251
# How many bytes of length follow these first bytes.
_WIDE_LENGTHS: Final = ((252, 2), (253, 3), (254, 8))
_END: Final = b"\xfe"  # of an EOF packet, or of the OK packet instead; of a row only if its first value is huge
_ERROR: Final = b"\xff"
_ERROR_BYTES: Final = 1024  # of a message, which is shorter
# A batch is half of it: enough that what numpy and Arrow take for a call at all does not count.
ROOM_BYTES: Final = 1 << 22
_WRONG: Final = "a row has other columns than its result has definitions"


class MalformedRowsError(Exception):
    """What came is no result of the text protocol with so many columns."""


class TextRows:
    """The packets of one result behind its column definitions.

    `received` takes bytes as they come, `take` gives whole rows and forgets them, so memory is what its caller lets
    come in between, or the longest row.
    """

    def __init__(self, columns: int, room_bytes: int = ROOM_BYTES) -> None:
        self._columns = columns
        self._buffer = bytearray(room_bytes)
        self._end = 0  # of what came
        self._walked = 0  # where the first packet begins that is not whole
        self._packets = array("q")  # where whole packets begin, those of rows alone
        self.error: bytes | None = None

    @property
    def packets(self) -> int:
        """How many packets there are to take: rows, but for those longer than a packet."""
        return len(self._packets)

    @property
    def bytes_held(self) -> int:
        """How many bytes have come and were not taken."""
        return self._end

    def received(self, data: bytes) -> bool:
        """Take in what comes next, and say whether it was the last.

        If it was, `error` is the packet that ended the result, or None if nothing went wrong.
        """
        missing = self._end + len(data) - len(self._buffer)
        if missing > 0:
            self._buffer = self._buffer + bytearray(max(missing, len(self._buffer)))
        self._buffer[self._end : self._end + len(data)] = data
        self._end += len(data)
        count = len(self._packets)
        self._walk()
        return len(self._packets) > count and self._has_ended()

    def _walk(self) -> None:
        """Note where packets begin. A loop in Python for each row: nothing else here costs as much."""
        buffer, place, note = self._buffer, self._walked, self._packets.append
        last = self._end - _HEADER  # where a header may begin
        before = place
        while place <= last:
            note(place)
            before, place = place, place + _HEADER + (_LENGTH(buffer, place)[0] & _LONGEST)
        if place > self._end:
            # Of the newest only a part has come.
            self._packets.pop()
            place = before
        self._walked = place

    def _has_ended(self) -> bool:
        """Nothing follows the end of a result, so only the newest packet may be it."""
        start = self._packets[-1]
        if len(self._packets) > 1 and start - self._packets[-2] == _HEADER + _LONGEST:
            return False  # the rest of a row, in which any byte may come first
        size = self._walked - start - _HEADER
        payload = bytes(memoryview(self._buffer)[start + _HEADER : self._walked][:_ERROR_BYTES])
        if payload[:1] == _ERROR:
            self.error = payload
        elif payload[:1] != _END or size == _LONGEST:
            return False
        self._walked = self._packets.pop()
        return True

    def take(self) -> list[pa.Array]:
        """Return the columns of the whole rows as binary, NULL where the server says so.

        Raises:
            MalformedRowsError: a row has more columns or fewer.
        """
        starts = np.array(self._packets)
        ends = np.append(starts[1:], self._walked)[: len(starts)]
        goes_on = ends - starts == _HEADER + _LONGEST
        count = len(starts)
        while count and goes_on[count - 1]:
            count -= 1
        data: bytes | bytearray = self._buffer
        taken = int(ends[count - 1]) if count else 0
        if goes_on[:count].any():
            data, starts, ends = _joined(memoryview(data), starts[:count], ends[:count])
        else:
            starts, ends = starts[:count] + _HEADER, ends[:count]
        columns = _columns(data, starts, ends, self._columns)
        self._forget(count, taken)
        return columns

    def _forget(self, packets: int, size: int) -> None:
        if not packets:
            return  # a long row is coming, and need not be moved with each of its parts
        left = self._end - size
        self._buffer[:left] = self._buffer[size : self._end]
        self._packets = array("q", (start - size for start in self._packets[packets:]))
        self._end, self._walked = left, self._walked - size


def _joined(
    data: memoryview, starts: "NDArray[np.int64]", ends: "NDArray[np.int64]"
) -> "tuple[bytes, NDArray[np.int64], NDArray[np.int64]]":
    """Return rows without the headers inside them, and where each begins and ends."""
    texts: list[bytes] = []
    sizes = [0]
    size = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        texts.append(bytes(data[start + _HEADER : end]))
        size += len(texts[-1])
        if end - start < _HEADER + _LONGEST:
            sizes.append(size)
    bounds = np.array(sizes, np.int64)
    return b"".join(texts), bounds[:-1], bounds[1:]


def _columns(
    buffer: bytes | bytearray,
    places: "NDArray[np.int64]",
    ends: "NDArray[np.int64]",
    columns: int,
) -> list[pa.Array]:
    """Return the values of rows that begin at *places*, column by column."""
    count = len(places)
    if not count:
        return [pa.array([], pa.binary())] * columns
    data = np.frombuffer(buffer, np.uint8)
    # In an array of values and what lies between them, the values are every other one.
    is_value = pa.array(np.arange(2 * count) % 2 == 0)
    result = []
    for _ in range(columns):
        if int(places.max()) >= len(data):
            raise MalformedRowsError(_WRONG)
        starts, places, nulls = _values(data, places)
        if (places > ends).any() or (places < starts).any():
            raise MalformedRowsError(_WRONG)
        bounds = np.empty(2 * count + 1, np.int32)
        bounds[:-1:2], bounds[1::2], bounds[-1] = starts, places, places[-1]
        both = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(buffer)]
        )
        values = both.filter(is_value)
        if nulls is not None:
            validity = pa.array(~nulls).buffers()[1]
            values = pa.Array.from_buffers(
                pa.binary(), count, [validity, *values.buffers()[1:]]
            )
        result.append(values)
    if (places != ends).any():
        raise MalformedRowsError(_WRONG)
    return result


def _values(
    data: "NDArray[np.uint8]", places: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]":
    """Return where values begin and end whose lengths are at *places*, and which are NULL, if any is."""
    first = data[places]
    lengths = first.astype(np.int64)
    starts = places + 1
    if first.max() < _NULL:
        return starts, starts + lengths, None
    nulls = first == _NULL
    lengths[nulls] = 0
    for mark, size in _WIDE_LENGTHS:
        wide = np.flatnonzero(first == mark)
        if len(wide) and int(starts[wide].max()) + size <= len(data):
            raw = data[starts[wide][:, None] + np.arange(size)].astype(np.int64)
            lengths[wide] = (raw << np.arange(0, 8 * size, 8)).sum(axis=1)
            starts[wide] += size
    return starts, starts + lengths, nulls if nulls.any() else None
