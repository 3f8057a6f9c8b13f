"""A message table as Spark sees it: the type of each column, and its values as Arrow.

The data source has exact types:

| MySQL | Spark |
|---|---|
| integers, YEAR | bigint; BIGINT UNSIGNED decimal(20,0) |
| DECIMAL up to 38 digits | the same |
| FLOAT, DOUBLE | float, double |
| BIT(1), BIT(n), BIT(64) | boolean, bigint, decimal(20,0) |
| DATE, DATETIME, TIMESTAMP | date, timestamp_ntz, timestamp |
| BINARY, BLOB and similar types | binary |
| all others, JSON, TIME and longer DECIMALs among them | string, as the server writes it |

A date that no calendar has (0000-00-00, 2024-02-00) is NULL. A schema given by the user reads only its columns, which is
the only column pruning. Any column except binary ones may be read as string, and a whole
number as bigint, which fails if a value does not fit.

Jobs keep values unchanged: they handle dates, times and bits as the server sends them, and a FLOAT as the exact DOUBLE.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pymysql

from streamfrom.spark.endpoint import IN_UTC, Endpoint, ask, quoted, text_of
from streamfrom.spark.errors import RequestError
from streamfrom.spark.fetching import fetch_columns


if TYPE_CHECKING:
    from pyspark.sql.types import StructType


# Types with an exact equivalent in Spark, by MySQL's name. All others are passed on as the text or bytes from the
# server, which loses nothing: dates may be zero, times may exceed a day, JSON has no type.
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_BYTES: Final = frozenset(
    {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "vector"}
    | {"geometry", "point", "linestring", "polygon", "geometrycollection"}
    | {"multipoint", "multilinestring", "multipolygon", "geomcollection"}
)
_DIGITS_MAX: Final = 38
_UNSIGNED: Final = "decimal(20,0)"
_DATES: Final = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
_LONG_BITS: Final = 64
_NUMBER_OF: Final = {"float": " + 0e0", "bit": " + 0"}


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a message table and the Spark type in which to read it.

    name: the column's name in the DataFrame.
    column: the column's name in the table.
    mysql_type: the type from `SHOW COLUMNS`; `json` also for MariaDB's text with a check.
    is_required: the column takes no NULL and has no default.
    is_generated: the server computes the column.
    """

    name: str
    column: str
    mysql_type: str = field(compare=False)  # servers format one type in several ways
    spark_type: str
    takes_null: bool = field(default=True, compare=False)
    is_required: bool = field(default=False, compare=False)
    is_generated: bool = field(default=False, compare=False)

    @property
    def base(self) -> str:
        """The MySQL type without length and sign."""
        return base_of(self.mysql_type)

    @property
    def sql(self) -> str:
        """The expression to select: a FLOAT as a DOUBLE, since servers round a FLOAT to six digits, and bits as a number."""
        is_number = self.spark_type != "binary"
        return quoted(self.column) + (_NUMBER_OF.get(self.base, "") if is_number else "")


def base_of(mysql_type: str) -> str:
    """Return a MySQL type without length and sign."""
    return re.split(r"[ (]", mysql_type.lower(), maxsplit=1)[0]


def kept_type(mysql_type: str) -> str:
    """Return the Spark type in which a job keeps values of a MySQL type from `SHOW COLUMNS`."""
    name = base_of(mysql_type)
    if name in _INTEGERS:
        wide = name == "bigint" and "unsigned" in mysql_type.lower()
        return _UNSIGNED if wide else "bigint"
    if name == "decimal":
        digits, fraction = re.findall(r"\d+", mysql_type)
        return f"decimal({digits},{fraction})" if int(digits) <= _DIGITS_MAX else "string"
    if name in {"double", "float"}:
        return "double"
    return "binary" if name in _BYTES else "string"


def exact_type(mysql_type: str) -> str:
    """Return the Spark type that corresponds to a MySQL type from `SHOW COLUMNS`."""
    name = base_of(mysql_type)
    if name in _DATES:
        return _DATES[name]
    if name == "float":
        return name
    if name == "bit":
        bits = int(re.sub(r"\D", "", mysql_type) or 1)
        return "boolean" if bits == 1 else _UNSIGNED if bits == _LONG_BITS else "bigint"
    return kept_type(mysql_type)


def fields_of(
    endpoint: "Endpoint",
    shards: "Sequence[str]",
    table: str,
    type_of: "Callable[[str], str]" = exact_type,
) -> tuple[Field, ...]:
    """Return the columns of a message table, which must be the same on all *shards*, with types by `exact_type` or `kept_type`.

    Raises:
        RequestError: the table is missing on a shard, is no message table, or differs between shards.
    """
    fields, *others = (declared(endpoint, shard, table, type_of) for shard in shards)
    for shard, there in zip(shards[1:], others, strict=True):
        # The source checks what it writes against the types of one shard, so these must match literally.
        is_exact = [one.mysql_type for one in there] == [one.mysql_type for one in fields]
        if there != fields or (type_of is exact_type and not is_exact):
            raise RequestError(
                f"{table} has other columns on {shard} than on {shards[0]}: alter it"
            )
    return fields


def declared(
    endpoint: Endpoint, shard: str, table: str, type_of: "Callable[[str], str]" = exact_type
) -> tuple[Field, ...]:
    """Return the columns of a message table on one shard.

    Raises:
        RequestError: the table is missing there, or is no message table.
    """
    where = f"{endpoint.keyspace}.{table} on shard {shard}"
    try:
        with endpoint.connect(shard) as connection:
            columns = ask(connection, f"SHOW COLUMNS FROM {quoted(table)}")
            created = text_of(ask(connection, f"SHOW CREATE TABLE {quoted(table)}")[0][1])
    except pymysql.err.MySQLError as error:
        raise RequestError(f"cannot read {where}: {error}; check the table's name") from error
    # The comment is among the options after the columns, which a view does not have.
    if "vitess_message" not in created.partition("\n) ")[2]:
        raise RequestError(f"{where} is no message table: its comment lacks vitess_message")
    checked = re.findall(r"json_valid\(`([^`]+)`\)", created)
    found = []
    for name, written, null, _, default, extra in (map(text_of, column) for column in columns):
        kind = "json" if name in checked else written
        has_default = default != "None" or "auto_increment" in extra
        found.append(
            Field(
                name,
                name,
                kind,
                type_of(kind),
                takes_null=null == "YES",
                is_required=null != "YES" and not has_default,
                is_generated=" GENERATED" in extra.upper(),
            )
        )
    return tuple(found)


def ddl_of(fields: "Sequence[Field]") -> str:
    """Return the Spark schema of *fields*."""
    return ", ".join(f"{quoted(one.name)} {one.spark_type}" for one in fields)


def asked_for(fields: "Sequence[Field]", schema: "StructType") -> tuple[Field, ...]:
    """Return the columns of *schema*, with its types.

    Raises:
        RequestError: the table lacks a column, or cannot provide it in that type.
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
        as_text = kind == "string" and own.spark_type != "binary"
        if not (kind == own.spark_type or as_text or (whole and kind == "bigint")):
            raise RequestError(
                f"the schema's column {wanted.name!r} is {kind}, the table's {own.mysql_type}:"
                f" read it as {own.spark_type} and cast it"
            )
        found.append(Field(wanted.name, own.column, own.mysql_type, kind))
    return tuple(found)


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type for one of the Spark types above."""
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
    """Return the number type in which to read a column's text, or None to leave it unchanged."""
    as_number = {"float": "double", "boolean": "bigint"}.get
    kind = arrow_type(as_number(field.base) or as_number(field.spark_type) or field.spark_type)
    is_number = (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
    return kind if is_number else None


def fetch_rows(
    endpoint: Endpoint,
    shard: str,
    table: str,
    fields: "Sequence[Field]",
    condition: str = "",
    values: "Sequence[Any]" = (),
) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of *shard* that match *condition*, which has a `%s` placeholder for each of *values*, in batches.

    Raises:
        MySQLError: the proxy or the shard broke off.
    """
    columns = ", ".join(one.sql for one in fields) or "1"
    where = f" WHERE {condition}" if condition else ""
    selected = f"SELECT {columns} FROM {quoted(table)}"  # noqa: S608  quoted
    selected = selected.replace("%", "%%")  # escape % in names
    connection = endpoint.connect(shard, IN_UTC, streams=True)
    try:
        for sent in fetch_columns(
            connection, selected + where, values, list(map(read_as, fields))
        ):
            yield arrow_batch(fields, sent)
    finally:
        # A reader that stops early must not fetch the rest first.
        connection._force_close()


def arrow_batch(fields: "Sequence[Field]", columns: "Sequence[pa.Array]") -> pa.RecordBatch:
    """Return one batch of the server's values for *fields*, each read by `read_as`."""
    arrays = [_array(one, sent) for one, sent in zip(fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[one.name for one in fields])


def _array(field: Field, sent: pa.Array) -> pa.Array:
    kind = arrow_type(field.spark_type)
    if field.spark_type in {"date", "timestamp", "timestamp_ntz"}:
        return _moments(sent.cast(pa.string()), kind)
    return sent.cast(kind)


def _moments(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    naive = kind if kind == pa.date32() else pa.timestamp("us")
    return _known_moments(texts, naive).cast(kind)


def _known_moments(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert texts to dates, with NULL for those that no calendar has. They are rare, so find them by halving."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind)
        half = len(texts) // 2
        return pa.concat_arrays(
            [_known_moments(texts[:half], kind), _known_moments(texts[half:], kind)]
        )
