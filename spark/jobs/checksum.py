"""A checksum of rows that a server and Arrow compute alike, so that rows are compared where they are.

A row's text is each value with its length in front, `N` for NULL; a row's hash is the first eight
bytes of that text's SHA-256; rows have the XOR of their hashes and their count. No order changes it, and
rows with a primary key have no equals that would cancel out.

Measured with server and proxy next to it: a server does 350,000 rows a second and more, Arrow 250,000 on a
core, where reading the rows again for comparison made 19,000.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamfrom.spark.endpoint import ask, quoted


if TYPE_CHECKING:
    from streamfrom.spark.table_schema import Field


@dataclass(frozen=True, slots=True)
class Checksum:
    """How many rows, and the XOR of their hashes, 64 bits."""

    rows: int = 0
    bits: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        """Return the checksum of both sets of rows."""
        return Checksum(self.rows + other.rows, self.bits ^ other.bits)


def total(parts: Iterable[Checksum]) -> Checksum:
    """Return the checksum of all rows of *parts*."""
    return sum(parts, Checksum())


def is_exact(columns: Sequence[Field]) -> bool:
    """Say whether a server writes all *columns* as Arrow does; `DOUBLE` it does not."""
    return all(column.spark_type != "double" for column in columns)


def statement(table: str, columns: Sequence[Field], condition: str) -> str:
    """Return the SELECT by which a server computes the checksum of the rows of *condition*."""
    parts = ", ".join(_netstring(column) for column in columns)
    hashed = f"CONV(LEFT(SHA2(CONCAT({parts}), 256), 16), 16, 10)"
    return (
        f"SELECT COUNT(*), BIT_XOR(CAST({hashed} AS UNSIGNED)) FROM {quoted(table)}"  # noqa: S608  quoted
        f" WHERE {condition}"
    )


def of_server(
    connection: Any, table: str, columns: Sequence[Field], condition: str
) -> Checksum:
    """Return the checksum of a table's rows, computed by the server that *connection* reaches.

    It may be another than that of `of_batch` for equal rows, where a row passes the server's
    max_allowed_packet or a type is rare: compare the rows themselves then.
    """
    ((rows, bits),) = ask(connection, statement(table, columns, condition))
    return Checksum(int(rows), int(bits))


def of_batch(batch: pa.RecordBatch, columns: Sequence[Field]) -> Checksum:
    """Return the checksum of the rows of an Arrow batch that has *columns*."""
    if not batch.num_rows:
        return Checksum()
    parts = [_netstrings(batch.column(column.name)) for column in columns]
    texts = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    hashes = b"".join([hashlib.sha256(text).digest()[:8] for text in texts.to_pylist()])
    bits = int(np.bitwise_xor.reduce(np.frombuffer(hashes, ">u8")))
    return Checksum(batch.num_rows, bits)


def _netstring(column: Field) -> str:
    name = quoted(column.name)
    text = name
    if column.spark_type == "string":
        text = f"CONVERT({name} USING utf8mb4)"
    elif column.spark_type in {"bigint", "decimal(20,0)"}:
        text = f"({name} + 0)"  # without the zeros of ZEROFILL and YEAR
    return f"IF({name} IS NULL, 'N', CONCAT(LENGTH({text}), ':', {text}))"


def _netstrings(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        # Arrow itself would write 1E-7.
        plain = [None if v is None else format(v, "f") for v in values.to_pylist()]
        values = pa.array(plain, pa.string())
    elif not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)):
        values = values.cast(pa.string())
    values = values.cast(pa.large_binary())
    lengths = pc.binary_length(values).cast(pa.string()).cast(pa.large_binary())
    colon, nothing, null = (pa.scalar(text, pa.large_binary()) for text in (b":", b"", b"N"))
    return pc.fill_null(pc.binary_join_element_wise(lengths, colon, values, nothing), null)
