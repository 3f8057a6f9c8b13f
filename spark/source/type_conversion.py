"""Which Spark type may be written into which MySQL type, and what the server is sent: pure.

A type is taken only if the server cuts and rounds none of its values silently. What a value alone can show (too large, too long,
no such enum member) the server refuses by itself, since it is asked to be strict.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.table_schema import base_of


if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_WHOLE: Final = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
_INTEGERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"}
)
_NO_TEXT: Final = frozenset({"decimal", "double", "float", "date", "datetime", "timestamp"})
_IN_DOUBLE: Final = frozenset({"float", "double", "tinyint", "smallint", "int"})
_BYTES: Final = re.compile("binary|blob|geometry|vector")
_MICROS_DIGITS: Final = 6


def _same(value: Any) -> Any:
    return value


def converter(name: str, given: "DataType", mysql_type: str) -> "Callable[[Any], Any]":
    """Return what makes of a value of the Spark type *given* the one to send; NULL is not asked about.

    Raises:
        RequestError: *mysql_type* does not hold all its values as they are.
    """
    kind = given.simpleString()
    base = base_of(mysql_type)
    sizes = [int(size) for size in re.findall(r"\d+", mysql_type)]
    scale = int(kind[:-1].split(",")[1]) if kind.startswith("decimal") else 0
    is_whole = kind in _WHOLE or (kind.startswith("decimal") and scale == 0)
    if base in {"datetime", "timestamp"} and kind in {"timestamp", "timestamp_ntz"}:
        if (base == "timestamp") == (kind == "timestamp"):
            return _moment_writer(name, mysql_type, sizes[0] if sizes else 0)
    elif (
        (base in _INTEGERS and is_whole)
        or (base == "decimal" and (is_whole or scale) and scale <= sizes[1])
        or (base == "double" and kind in _IN_DOUBLE)
        or (base == "float" and kind == "float")
        or (base == "date" and kind == "date")
    ):
        return int if kind == "boolean" else _same
    elif kind == "binary" and base == "binary":
        return _whole_bytes_writer(name, sizes[0])
    elif kind == "binary" and _BYTES.search(base):
        return bytes
    elif kind == "string" and base not in _INTEGERS | _NO_TEXT and not _BYTES.search(base):
        return _same
    raise RequestError(
        f"column {name!r} is {kind} and the table's {mysql_type} would not hold that exactly: cast it"
    )


def _whole_bytes_writer(name: str, size: int) -> "Callable[[Any], bytes]":
    def written(value: Any) -> bytes:
        if len(value) < size:
            raise JobError(
                f"column {name!r}: binary({size}) would add zeros to {bytes(value)!r}: bring all {size} bytes"
            )
        return bytes(value)

    return written


def _moment_writer(name: str, mysql_type: str, digits: int) -> "Callable[[Any], str]":
    unit = 10 ** (_MICROS_DIGITS - digits)

    def written(moment: datetime) -> str:
        utc = moment.astimezone(UTC) if moment.tzinfo else moment
        if utc.microsecond % unit:
            raise JobError(
                f"column {name!r}: {mysql_type} cannot hold {utc.isoformat()}: cut it to"
                f" {digits} digits of a second first"
            )
        return utc.strftime("%Y-%m-%d %H:%M:%S") + (
            f".{utc.microsecond // unit:0{digits}d}" if digits else ""
        )

    return written
