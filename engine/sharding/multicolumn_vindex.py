"""Vindexes of several columns: all of them give a keyspace id, the first ones a range of ids.

`multicol` and `region_experimental` compute what Vitess computes, byte for byte
(`go/vt/vtgate/vindexes/multicol.go`, `region_experimental.go`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.engine.errors import VindexError
from streamfrom.engine.sharding.vindex import Vindex, make_vindex


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Value


_BYTES: Final = 8  # of a keyspace id of multicol
_COLUMNS_MAX: Final = 8
_DEFAULT_VINDEX: Final = "hash"


class MultiColumnVindex(Protocol):
    """Computes keyspace ids from *count* columns."""

    count: int

    def prefix(self, values: Sequence[Value]) -> bytes | None:
        """Return the first bytes of the ids of rows with these values in the first columns.

        Values for all columns give the whole id. None for values that no shard owns.
        """


def make_any_vindex(vindex_type: str, params: Mapping[str, str]) -> Vindex | MultiColumnVindex:
    """Return the vindex of this type, of one column or several; VindexError for an unknown type."""
    make = _TYPES.get(vindex_type)
    return make_vindex(vindex_type) if make is None else make(params)


def end_of_range(prefix: bytes) -> bytes:
    """Return the end of the range of ids that begin with *prefix*; empty for no end."""
    number = int.from_bytes(prefix, "big") + 1
    return b"" if number >> 8 * len(prefix) else number.to_bytes(len(prefix), "big")


class MultiCol:
    """``multicol``: some first bytes of each column's own vindex, one after another.

    params: ``column_count`` (1 to 8), ``column_bytes`` and ``column_vindex`` (both may leave
    columns out, as in ``2,,1``). The columns without a size share the rest of the 8 bytes, the first
    of them getting more.
    """

    def __init__(self, params: Mapping[str, str]) -> None:
        self.count = _number(params, "column_count", 1, _COLUMNS_MAX)
        names = _listed(params, "column_vindex", self.count)
        self._vindexes = [make_vindex(name or _DEFAULT_VINDEX) for name in names]
        self._sizes = _sizes(_listed(params, "column_bytes", self.count))

    def prefix(self, values: Sequence[Value]) -> bytes | None:
        """Return 8 bytes, or fewer for fewer columns."""
        keyspace_id, filled = b"", 0
        for value, vindex, size in zip(values, self._vindexes, self._sizes, strict=False):
            found = vindex.map(value)
            if found is None:
                return None
            # A part that is shorter than its size is filled up with zeros before the next column.
            keyspace_id = keyspace_id.ljust(filled, b"\0") + found[:size]
            filled += size
        return keyspace_id if len(values) == self.count else keyspace_id.ljust(filled, b"\0")


class RegionExperimental:
    """``region_experimental``: the region's number in one byte or two, then ``hash`` of the id."""

    count = 2

    def __init__(self, params: Mapping[str, str]) -> None:
        self._size = _number(params, "region_bytes", 1, 2)
        self._hash = make_vindex("hash")

    def prefix(self, values: Sequence[Value]) -> bytes | None:
        """Return the region's bytes, with an id the 8 of its hash behind them."""
        region, *rest = values
        if isinstance(region, bytes) and region.isdigit():
            region = int(region)
        if not isinstance(region, int) or region < 0:
            return None
        first = (region % (1 << 16)).to_bytes(2, "big")[-self._size :]
        if not rest:
            return first
        found = self._hash.map(rest[0])
        return None if found is None else first + found


_TYPES: Final[dict[str, Callable[[Mapping[str, str]], MultiColumnVindex]]] = {
    "multicol": MultiCol,
    "region_experimental": RegionExperimental,
}


def _number(params: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = params.get(name, "")
    if not text.isdigit() or not least <= int(text) <= most:
        raise VindexError(f"{name} must be a number from {least} to {most}, not '{text}'")
    return int(text)


def _listed(params: Mapping[str, str], name: str, count: int) -> list[str]:
    found = [each.strip() for each in params.get(name, "").split(",")]
    if len(found) > count:
        raise VindexError(f"{name} names {len(found)} columns, and there are {count}")
    return found + [""] * (count - len(found))


def _sizes(texts: Sequence[str]) -> list[int]:
    sizes = []
    for text in texts:
        if text and not (text.isdigit() and int(text)):
            raise VindexError(f"column_bytes must be numbers greater than 0, not '{text}'")
        sizes.append(int(text or 0))
    left, open_columns = _BYTES - sum(sizes), sizes.count(0)
    if left < open_columns:
        raise VindexError(f"column_bytes must leave each column a byte of {_BYTES}")
    for index, size in enumerate(sizes):
        if not size:
            # Rounded up, so the first columns get more: 8 bytes for 3 columns are 3, 3 and 2.
            sizes[index] = -(-left // open_columns)
            left -= sizes[index]
            open_columns -= 1
    return sizes
