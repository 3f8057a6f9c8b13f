"""The rows of COM_STMT_BULK_EXECUTE: MariaDB's way to execute one statement for many rows.

https://mariadb.com/kb/en/com_stmt_bulk_execute/

    flags, among them "types follow"   type and flag of each parameter   the rows

A row is, for each parameter, a byte that says what follows (`_VALUE`, or nothing: NULL, the
column's default, leave the column as it is) and then the value, as in `binary_parameters`. Types that a
client leaves out are those of the execution before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.binary_parameters import Parameter, read_value
from streamfrom.proxy.wire.codec import PacketReader


TYPES_FOLLOW: Final = 0x80

_VALUE: Final = 0
_NULL: Final = 1
_DEFAULT: Final = 2
_IGNORE: Final = 3


class Row(NamedTuple):
    """One row."""

    # None stands for DEFAULT and for IGNORE, which the server resolves.
    parameters: tuple[Parameter | None, ...]
    data: bytes  # the row as the client sent it


def bulk_types(flags: int, body: bytes, count: int, remembered: bytes) -> tuple[bytes, int]:
    """Return the types, two bytes each, and where the rows begin in *body*.

    *remembered* are the types of the execution before, empty if there was none.

    Raises:
        WireError: the body is cut, or the types were never sent.
    """
    if not flags & TYPES_FOLLOW:
        if len(remembered) != 2 * count:
            raise WireError("rows without types")
        return remembered, 0
    types = body[: 2 * count]
    if len(types) != 2 * count:
        raise WireError("the types of the parameters are cut short")
    return types, 2 * count


def bulk_rows(body: bytes, at: int, types: bytes) -> Iterator[Row]:
    """Read the rows from *at* on. Raises WireError where one is cut, or if there is none."""
    cursor = PacketReader(body, at)
    kinds = list(zip(types[::2], types[1::2], strict=True))
    if not kinds or not cursor.remaining:
        raise WireError("no rows")
    while cursor.remaining:
        start = cursor.pos
        parameters = tuple(_parameter(cursor, kind, flags) for kind, flags in kinds)
        yield Row(parameters, body[start : cursor.pos])


def _parameter(cursor: PacketReader, kind: int, flags: int) -> Parameter | None:
    indicator = cursor.uint(1)
    if indicator == _VALUE:
        return read_value(cursor, kind, flags)
    if indicator == _NULL:
        return Parameter(kind, unsigned=False, data=None)
    if indicator in (_DEFAULT, _IGNORE):
        return None
    raise WireError(f"unknown indicator {indicator} of a parameter")
