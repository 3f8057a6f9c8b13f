"""A message table as Spark sees it: the exact type of each column, and its values as Arrow.

| MySQL | Spark |
|---|---|
| integers, YEAR | bigint; BIGINT UNSIGNED decimal(20,0) |
| DECIMAL up to 38 digits | the same |
| FLOAT, DOUBLE | float, double |
| BIT(1), BIT(n), BIT(64) | boolean, bigint, decimal(20,0) |
| DATE, DATETIME, TIMESTAMP | date, timestamp_ntz, timestamp |
| BINARY, BLOB and similar types | binary |
| all others, JSON and TIME among them | string, as the server writes it |

A date that no calendar has (0000-00-00, 2024-02-00) is NULL. A schema that the user gives reads these columns only, which is
the column pruning that there is; any column but binary ones may be read as string, and a whole
number as bigint, which fails where a value does not fit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streamfrom.spark.endpoint import Endpoint, declared, quoted, spark_type
from streamfrom.spark.errors import RequestError


if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_UNSIGNED: Final = "decimal(20,0)"
_DATES: Final = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_LONG_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the table and the Spark type that it is read as.

    name: the column's name in the DataFrame.
    column: the column's name in the table.
    """

    name: str
    column: str
    mysql_type: str
    spark_type: str

    @property
    def base(self) -> str:
        """The MySQL type without length and sign."""
        return re.split(r"[ (]", self.mysql_type.lower(), maxsplit=1)[0]

    @property
    def is_text(self) -> bool:
        """Whether the column holds text, which a server compares by a collation."""
        return self.base in _TEXTS

    @property
    def sql(self) -> str:
        """The expression to select: a FLOAT as a DOUBLE, since servers round a FLOAT to six digits."""
        return f"{quoted(self.column)} + 0e0" if self.base == "float" else quoted(self.column)


def exact_type(mysql_type: str) -> str:
    """Return the Spark type for a MySQL type as `SHOW COLUMNS` writes it.

    Raises:
        RequestError: it is a DECIMAL with more digits than Spark holds.
    """
    name = re.split(r"[ (]", mysql_type.lower(), maxsplit=1)[0]
    if name in _DATES:
        return _DATES[name]
    if name == "float":
        return "float"
    if name == "bit":
        bits = int(re.sub(r"\D", "", mysql_type) or 1)
        return "boolean" if bits == 1 else _UNSIGNED if bits == _LONG_BITS else "bigint"
    return spark_type(mysql_type)


def fields_of(endpoint: "Endpoint", shards: "Sequence[str]", table: str) -> tuple[Field, ...]:
    """Return the columns of a message table that has the same on all *shards*.

    Raises:
        RequestError: it is missing somewhere, is no message table, or differs between shards.
    """
    columns = declared(endpoint, shards[0], table)
    for shard in shards[1:]:
        if declared(endpoint, shard, table) != columns:
            raise RequestError(
                f"{table} has other columns on {shard} than on {shards[0]}: alter it"
            )
    return tuple(Field(name, name, kind, exact_type(kind)) for name, kind in columns)


def ddl_of(fields: "Sequence[Field]") -> str:
    """Return the Spark schema of *fields*."""
    return ", ".join(f"{quoted(one.name)} {one.spark_type}" for one in fields)


def asked_for(fields: "Sequence[Field]", schema: "StructType") -> tuple[Field, ...]:
    """Return the columns that *schema* names, as the types that it wants.

    Raises:
        RequestError: the table lacks one, or cannot give it as that type.
    """
    known = {one.name.lower(): one for one in fields}
    found = []
    for wanted in schema.fields:
        own = known.get(wanted.name.lower())
        if own is None:
            raise RequestError(
                f"the schema's column {wanted.name!r} is not in the table, which has"
                f" {', '.join(one.name for one in fields)}"
            )
        kind = wanted.dataType.simpleString()
        whole = own.spark_type in {"bigint", _UNSIGNED}
        as_text = kind == "string" and own.spark_type not in {"binary", "boolean"}
        if own.base == "bit":
            as_text = False
        if not (kind == own.spark_type or as_text or (whole and kind == "bigint")):
            raise RequestError(
                f"the schema's column {wanted.name!r} is {kind}, the table's {own.mysql_type}:"
                f" read it as {own.spark_type} and cast it"
            )
        found.append(Field(wanted.name, own.column, own.mysql_type, kind))
    return tuple(found)


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type that Spark wants for one of the Spark types above."""
    if kind.startswith("decimal"):
        digits, fraction = kind[8:-1].split(",")
        return pa.decimal128(int(digits), int(fraction))
    return {
        "bigint": pa.int64(),
        "double": pa.float64(),
        "float": pa.float32(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "binary": pa.binary(),
        "string": pa.string(),
    }[kind]


def read_as(field: Field) -> pa.DataType | None:
    """Return the numbers that a column's text is to be read as, or None if it is to come as it is."""
    kind = arrow_type("double" if field.base == "float" else field.spark_type)
    is_number = (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
    return kind if is_number and field.base != "bit" else None


def arrow_batch(fields: "Sequence[Field]", columns: "Sequence[pa.Array]") -> pa.RecordBatch:
    """Return one batch with what the server sent for *fields*, each read as `read_as` says."""
    arrays = [_array(field, sent) for field, sent in zip(fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])


def _array(field: Field, sent: pa.Array) -> pa.Array:
    kind = arrow_type(field.spark_type)
    if field.base == "bit":
        return _bits(sent, kind)
    if field.spark_type in {"date", "timestamp", "timestamp_ntz"}:
        return _moments(sent.cast(pa.string()), kind)
    return sent.cast(kind)


def _bits(sent: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the numbers that big-endian bytes are."""
    numbers = [None if raw is None else int.from_bytes(raw) for raw in sent.to_pylist()]
    if pa.types.is_decimal(kind):
        return pa.array([None if n is None else Decimal(n) for n in numbers], kind)
    return pa.array(numbers, pa.int64()).cast(kind)


def _moments(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    naive = kind if kind == pa.date32() else pa.timestamp("us")
    return _known_moments(texts, naive).cast(kind)


def _known_moments(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return NULL for dates that no calendar has, which are found by halving, since few have any."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind)
        half = len(texts) // 2
        return pa.concat_arrays(
            [_known_moments(texts[:half], kind), _known_moments(texts[half:], kind)]
        )
