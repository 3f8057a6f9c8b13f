"""A checksum of rows, computed by Spark: their number, and the XOR of their hashes.

It does not depend on the order or on the division into tasks. Rows with a primary key are distinct, so none cancel out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from streamfrom.spark.endpoint import quoted


if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class Checksum:
    """A number of rows, and the XOR of their 64-bit hashes."""

    rows: int = 0
    bits: int = 0

    def __add__(self, other: "Checksum") -> "Checksum":
        """Return the checksum of both sets of rows."""
        return Checksum(self.rows + other.rows, self.bits ^ other.bits)


def row_hash(values: "Sequence[Column]") -> "Column":
    """Return a 64-bit hash of a row with *values*."""
    # NULLs do not change a hash, so the positions of NULLs are hashed as well.
    return F.xxhash64(*values, *(value.isNull() for value in values))


def checksums(frame: "DataFrame", by: str, leave_out: str = "") -> dict[Any, Checksum]:
    """Return the checksum of the rows of *frame* for each value of the column *by*, leaving out it and *leave_out*."""
    values = [F.col(quoted(name)) for name in frame.columns if name not in {by, leave_out}]
    sums = frame.groupBy(by).agg(F.count("*"), F.bit_xor(row_hash(values)))
    return {key: Checksum(rows, bits) for key, rows, bits in sums.collect()}


def total(parts: "dict[Any, Checksum]") -> Checksum:
    """Return the checksum of all rows of *parts*."""
    return sum(parts.values(), Checksum())
