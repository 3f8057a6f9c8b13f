"""Query attributes: named values that a client of MySQL sends with a statement.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query.html
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html

With the capability QUERY_ATTRIBUTES the layout of two commands is another one, also without attributes. Everywhere else
in the proxy the two commands have the layout without the capability: `from_query` and `from_execute` take the
attributes out of what a client sent, `into_query` and `into_execute` put them into what a server is sent.

    COM_QUERY          count   1   NULL bitmap   1   type, flag, name of each   values   text
    COM_STMT_EXECUTE   head   count   NULL bitmap   1 or 0   type, flag, name of each   values

In an execution the statement's parameters come first and have no names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.binary_parameters import Parameter, read_value, write_value
from streamfrom.proxy.wire.codec import PacketReader, lenenc_bytes, lenenc_int
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES
from streamfrom.proxy.wire.framing import frame, frame_parts


# A flag of COM_STMT_EXECUTE: the count is there, even if the statement has no parameters.
COUNT_FOLLOWS: Final = 0x08
_UNSIGNED: Final = 0x80
_NONE: Final = b"\0\1"
_QUERY: Final = b"\x03"
# A larger command is copied once and not three times: each copy of 16 MB takes 5 ms of the loop.
_COPIED_BYTES_MAX: Final = 256 << 10
# Code, id, flags, iteration count.
_EXECUTE_HEAD_BYTES: Final = 10


class Attribute(NamedTuple):
    """One attribute. *name* is in the client's character set."""

    name: bytes
    parameter: Parameter


def from_query(payload: bytes) -> tuple[bytes, tuple[Attribute, ...]]:
    """Return a COM_QUERY without its attributes, and the attributes. Raises WireError if it is malformed."""
    if payload[1:3] == _NONE:
        return _QUERY + payload[3:], ()
    cursor = PacketReader(payload, 1)
    count = cursor.lenenc_int()
    if cursor.lenenc_int() != 1:
        raise WireError("more than one set of query attributes")
    if not count:
        return _QUERY + cursor.rest(), ()
    bitmap = cursor.read((count + 7) // 8)
    if cursor.uint(1) != 1:
        raise WireError("query attributes without types")
    types, names = _described(cursor, count)
    attributes = _values(cursor, bitmap, types, names, range(count))
    return _QUERY + cursor.rest(), attributes


def from_execute(
    payload: bytes, count: int, long_data: Collection[int] = ()
) -> tuple[bytes, tuple[Attribute, ...]]:
    """Return a COM_STMT_EXECUTE without its attributes, and the attributes.

    count: the number of the statement's parameters.
    long_data: the parameters that were sent as long data.

    Raises:
        WireError: the command is malformed, or has fewer values than there are parameters.
    """
    cursor = PacketReader(payload)
    head = bytearray(cursor.read(_EXECUTE_HEAD_BYTES))
    if not count and not head[5] & COUNT_FOLLOWS:
        return payload, ()
    head[5] &= ~COUNT_FOLLOWS
    total = cursor.lenenc_int()
    if total < count:
        raise WireError("fewer values than parameters")
    if not total:
        return bytes(head), ()
    bitmap = cursor.read((total + 7) // 8)
    if not cursor.uint(1):
        if total > count:
            raise WireError("query attributes without types")
        return bytes(head) + bitmap + b"\0" + cursor.rest(), ()
    types, names = _described(cursor, total)
    start = cursor.pos
    for place in range(count):
        if place not in long_data and not _is_null(bitmap, place):
            read_value(cursor, types[2 * place], types[2 * place + 1])
    values = payload[start : cursor.pos]
    attributes = _values(cursor, bitmap, types, names, range(count, total))
    if cursor.remaining:
        raise WireError("values that were not announced")
    if not count:
        return bytes(head), attributes
    own = bytearray(bitmap[: (count + 7) // 8])
    if count % 8:
        # The first attributes have their bits in the last byte of the parameters.
        own[-1] &= (1 << count % 8) - 1
    return b"".join((head, own, b"\1", types[: 2 * count], values)), attributes


def into_query(framed: bytes, attributes: Sequence[Attribute]) -> bytes:
    """Return a framed command in the layout for a server with QUERY_ATTRIBUTES.

    Only COM_QUERY changes; `into_execute` does the same where a COM_STMT_EXECUTE is made.
    """
    if framed[HEADER_BYTES : HEADER_BYTES + 1] != _QUERY:
        return framed
    if len(framed) <= _COPIED_BYTES_MAX:
        payload = b"".join((_QUERY, _block(attributes), framed[HEADER_BYTES + 1 :]))
        return frame(payload, 0)
    view, step = memoryview(framed), FRAME_BYTES_MAX + HEADER_BYTES
    first, *others = (
        view[start + HEADER_BYTES : start + step] for start in range(0, len(framed), step)
    )
    return frame_parts((_QUERY, _block(attributes), first[1:], *others), 0)


def into_execute(body: bytes, count: int, attributes: Sequence[Attribute]) -> bytes:
    """Return the bytes after the iteration count of a COM_STMT_EXECUTE with the flag COUNT_FOLLOWS.

    body: the same without attributes, its types included, of *count* parameters.
    """
    if not count:
        return _described_block(b"", b"", b"", 0, attributes)
    bitmap_bytes = (count + 7) // 8
    types_end = bitmap_bytes + 1 + 2 * count
    types = body[bitmap_bytes + 1 : types_end]
    return _described_block(body[:bitmap_bytes], types, body[types_end:], count, attributes)


def _described(cursor: PacketReader, count: int) -> tuple[bytes, list[bytes]]:
    """Return the types, two bytes each, and the names."""
    types = bytearray()
    names = []
    for _ in range(count):
        types += cursor.read(2)
        names.append(cursor.lenenc_bytes())
    return bytes(types), names


def _values(
    cursor: PacketReader, bitmap: bytes, types: bytes, names: Sequence[bytes], places: range
) -> tuple[Attribute, ...]:
    attributes = []
    for place in places:
        kind, flags = types[2 * place], types[2 * place + 1]
        if _is_null(bitmap, place):
            parameter = Parameter(kind, bool(flags & _UNSIGNED), None)
        else:
            parameter = read_value(cursor, kind, flags)
        attributes.append(Attribute(names[place], parameter))
    return tuple(attributes)


def _is_null(bitmap: bytes, place: int) -> bool:
    return bool(bitmap[place // 8] & 1 << place % 8)


def _block(attributes: Sequence[Attribute]) -> bytes:
    """Return the bytes before the text of a COM_QUERY."""
    if not attributes:
        return _NONE
    block = _described_block(b"", b"", b"", 0, attributes)
    count = lenenc_int(len(attributes))
    return count + b"\1" + block[len(count) :]


def _described_block(
    bitmap: bytes, types: bytes, values: bytes, count: int, attributes: Sequence[Attribute]
) -> bytes:
    """Return count, NULL bitmap, types with names, and values of parameters and attributes."""
    total = count + len(attributes)
    if not total:
        return b"\0"
    nulls = bytearray(bitmap.ljust((total + 7) // 8, b"\0"))
    described = bytearray()
    for place in range(count):
        described += types[2 * place : 2 * place + 2] + b"\0"
    written = [values]
    for place, (name, parameter) in enumerate(attributes, count):
        described += bytes((parameter.type, _UNSIGNED if parameter.unsigned else 0))
        described += lenenc_bytes(name)
        if parameter.data is None:
            nulls[place // 8] |= 1 << place % 8
        else:
            written.append(write_value(parameter.type, parameter.data))
    return b"".join((lenenc_int(total), nulls, b"\1", described, *written))
