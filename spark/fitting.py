"""Check whether rows fit a message table, and convert their values for sending.

A value fits if the table holds it exactly: nothing is cut, rounded or guessed. The source detects a value that does not fit when it
reaches its row, jobs detect it before they write anything. Times without a zone are in UTC, as are those of a DATETIME column.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, functions as F

from streamfrom.spark.endpoint import quoted
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.table_schema import Field, arrow_type


if TYPE_CHECKING:
    from pyspark.sql import Column


Sender = Callable[[Any], Any]
"""Returns what is sent of a value; raises ValueError or ArithmeticError if the table would hold another one."""

MISFITS: Final = "streamfrom_misfits"
NESTED: Final = ("struct", "array", "map", "variant")
_MISFIT: Final = pa.list_(pa.struct({"place": pa.int32(), "shown": pa.string()}))
_SHOWN_CHARS: Final = 80
# A new message was never sent and never acknowledged.
_NOT_NEW: Final = frozenset({"epoch", "time_acked"})
_INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
# The bytes of a text's or blob's length.
_LENGTH_BYTES: Final = {"tiny": 1, "": 2, "medium": 3, "long": 4}
_NUMBER: Final = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*", re.ASCII | re.IGNORECASE
)
_TIME: Final = re.compile(r"-?([0-7]?\d{1,2}|8[0-2]\d|83[0-8]):[0-5]\d:[0-5]\d(\.\d{1,6})?")
# The range of a TIMESTAMP. Older servers end in 2038, and report an error beyond.
_FIRST, _LAST = datetime(1970, 1, 1, 0, 0, 1), datetime(2106, 2, 7, 6, 28, 15)  # noqa: DTZ001  in UTC
_DIGITS_MAX: Final = 38  # of Spark's decimals
_DATE_CHARS: Final = len("2026-01-02")


def matched(
    names: "Sequence[str]", targets: "Sequence[Field]", given: "Sequence[str]"
) -> dict[str, "Field"]:
    """Return the table's column for each of the input's *names*, ignoring case.

    given: columns that the job itself fills.

    Raises:
        RequestError: the input has a column that the table lacks or that is not for new messages, or
            lacks one that the table requires.
    """
    by_name = {target.name.lower(): target for target in targets}
    found: dict[str, Field] = {}
    for name in names:
        target = by_name.get(name.lower())
        if target is None:
            raise RequestError(
                f"the input's column {name!r} is not in the table, which has"
                f" {', '.join(target.name for target in targets)}: drop or rename it"
            )
        if target.is_generated or target.name.lower() in _NOT_NEW:
            raise RequestError(f"the input's column {name!r} is not for new messages: drop it")
        if target in found.values():
            raise RequestError(f"the input has two columns for {target.name!r}: drop one")
        found[name] = target
    filled = {target.name for target in found.values()} | set(given)
    for target in targets:
        if target.is_required and target.name not in filled:
            raise RequestError(
                f"the table's column {target.name!r} takes no NULL and has no default: the input"
                " must have it"
            )
    return found


def sender(target: "Field") -> "Sender":
    """Return the function that converts values for the column *target*; it raises a JobError that names the fix.

    Raises:
        RequestError: messages cannot be fed into a column of this type.
    """
    _, send = _rule(target)

    def sent(value: Any) -> Any:
        try:
            return send(value)
        except (ValueError, ArithmeticError) as error:
            raise JobError(
                f"column {target.name!r}: {_kind_of(target)} cannot hold {_shown(value)!r} as it is: correct, cut or"
                " cast it first"
            ) from error

    return sent


def as_sent(frame: "DataFrame", found: "Mapping[str, Field]", fix: str) -> "DataFrame":
    """Return the columns of *frame* in *found*, converted for the table, and `MISFITS`, empty; computed once and persisted.

    Raises:
        RequestError: values do not fit; the text ends in *fix*.
    """
    targets = list(found.values())
    kinds, senders = zip(*map(_rule, targets), strict=True)
    types = [*map(arrow_type, kinds), _MISFIT]
    names = [*(target.name for target in targets), MISFITS]

    def convert(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            wrong: list[list[dict[str, Any]]] = [[] for _ in range(batch.num_rows)]
            each = zip(columns_of(batch), senders, strict=True)
            columns = [_fitted(place, *one, wrong) for place, one in enumerate(each)]
            arrays = list(map(pa.array, [*columns, wrong], types))
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, MISFITS])

    given = [_flat(frame, *one).alias(f"c{place}") for place, one in enumerate(found.items())]
    schema = [f"c{place} {kind}" for place, kind in enumerate(kinds)]
    schema.append(f"{MISFITS} array<struct<place: int, shown: string>>")
    sent = frame.select(*given).mapInArrow(convert, ", ".join(schema)).toDF(*names).persist()
    misfits = sent.select(F.explode(MISFITS).alias("one")).groupBy("one.place")
    wrong = [
        f"{many:,} values of {list(found)[place]!r} do not fit {_kind_of(targets[place])}, such as {shown!r}"
        for place, many, shown in sorted(
            misfits.agg(F.count("*"), F.first("one.shown")).collect()
        )
    ]
    if wrong:
        sent.unpersist()
        raise RequestError(f"{'; '.join(wrong)}. {fix}")
    return sent


def _flat(frame: "DataFrame", name: str, target: "Field") -> "Column":
    """Return the column *name*; structs, arrays and maps become JSON."""
    kind = next(kind for column, kind in frame.dtypes if column == name)
    if not kind.startswith(NESTED):
        return F.col(quoted(name))
    if target.mysql_type != "json":
        shown = f"the input's column {name!r} is {kind.partition('<')[0]}"
        raise RequestError(f"{shown}: only a json column holds that")
    return F.to_json(quoted(name))


def _fitted(
    place: int, values: "Sequence[Any]", send: "Sender", wrong: "Sequence[list[dict[str, Any]]]"
) -> list[Any]:
    """Return *values* converted for sending, and record in *wrong*, per row, those that do not fit."""
    sent: list[Any] = []
    for value, misfits in zip(values, wrong, strict=True):
        try:
            sent.append(send(value))
        except (ValueError, ArithmeticError):
            sent.append(None)
            misfits.append({"place": place, "shown": _shown(value)})
    return sent


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value)[:_SHOWN_CHARS]


def _kind_of(target: "Field") -> str:
    return target.mysql_type + ("" if target.takes_null else " NOT NULL")


def columns_of(batch: pa.RecordBatch) -> list[list[Any]]:
    """Return the values of a batch, column by column.

    Raises:
        JobError: a date has a year that no server supports.
    """
    try:
        return [column.to_pylist() for column in batch.columns]
    except (ValueError, OverflowError) as error:
        raise JobError(f"a date is not of the years 1 to 9999: {error}") from error


# --- conversion of values -------------------------------------------------------------------------


def _rule(target: "Field") -> tuple[str, "Sender"]:
    """Return the Spark type of the values sent to *target*, and the function that converts a value to it."""
    kind, of_value = _value_rule(target)

    def send(value: Any) -> Any:
        if value is None and not target.takes_null:
            raise ValueError("NULL")
        return None if value is None else of_value(value)

    return kind, send


def _value_rule(target: "Field") -> tuple[str, "Sender"]:
    """Return the same as `_rule`, for values that are not NULL."""
    base = target.base
    sizes = [int(size) for size in re.findall(r"\d+", target.mysql_type)]
    is_unsigned = "unsigned" in target.mysql_type
    low = 0 if is_unsigned else -math.inf
    match base:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            end = 1 << _INTEGER_BITS[base] - (not is_unsigned)
            within = range(0 if is_unsigned else -end, end)
            return "decimal(20,0)", lambda value: _integer(value, within)
        case "bit":
            return "decimal(20,0)", lambda value: _integer(value, range(1 << sizes[0]))
        case "year":
            return "decimal(20,0)", lambda value: _integer(value, (0, *range(1901, 2156)))
        case "decimal" if sizes[0] <= _DIGITS_MAX:
            kind = f"decimal({sizes[0]},{sizes[1]})"
            return kind, lambda value: _decimal(value, sizes, low)
        case "decimal":
            return "string", lambda value: format(_decimal(value, sizes, low), "f")
        case "double" | "float":
            return "double", lambda value: _double(value, f"<{base[0]}", sizes, low)
        case "json":
            return "string", _json
        case "binary":
            # A server pads a shorter value with zeros, and then no longer finds it by its own bytes.
            return "binary", lambda value: _sized(_raw(value), sizes[0], sizes[0])
        case "varbinary":
            return "binary", lambda value: _sized(_raw(value), sizes[0])
        case "char" | "varchar":
            return "string", lambda value: _sized(_text(value), sizes[0])
        case _ if base.endswith(("text", "blob")):
            most = 256 ** _LENGTH_BYTES[base[:-4]] - 1
            if base.endswith("blob"):
                return "binary", lambda value: _sized(_raw(value), most)
            return "string", lambda value: _sized(_raw(value), most).decode()
        case "enum" | "set":
            found = re.findall(r"'((?:[^']|'')*)'", target.mysql_type)
            members = {member.replace("''", "'").casefold() for member in found}
            return "string", lambda value: _member(_text(value), members, base)
        case "date" | "datetime" | "timestamp" | "time":
            # A server would silently round or cut digits beyond its column's precision.
            cut = re.compile(rf"\.\d{{{sum(sizes)}}}0*[1-9]")
            return "string", lambda value: _moment(value, base, cut)
        case "uuid" | "inet4" | "inet6":
            return "string", _text
        case _:
            raise RequestError(
                f"messages cannot be fed into {target.name!r}, which is {target.mysql_type}"
            )


def _number(value: Any) -> Decimal:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(value)
    number = Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite():
        raise ValueError(value)
    return number


def _integer(value: Any, within: "Sequence[int]") -> int:
    if isinstance(value, bytes):  # of a BIT
        value = int.from_bytes(value)
    number = value if isinstance(value, int) else _number(value)
    if number != int(number) or int(number) not in within:
        raise ValueError(value)
    return int(number)


def _decimal(value: Any, sizes: "Sequence[int]", low: float) -> Decimal:
    digits, fraction = sizes
    number = _number(value)
    with localcontext(Context(prec=1000)):
        held = round(number, fraction)
        if held != number or not low <= number or abs(number) >= 10 ** (digits - fraction):
            raise ValueError(value)
    return held


def _double(value: Any, form: str, sizes: "Sequence[int]", low: float) -> float:
    def held(number: float) -> float:
        return float(struct.unpack(form, struct.pack(form, number))[0])

    number = float(value if isinstance(value, float) else _number(value))
    fits = math.isfinite(number) and low <= number
    # A whole number must not be rounded. This also checks that it is in the range of a FLOAT.
    fits &= held(number) == value or not isinstance(value, int)
    if sizes:
        # Spark converts a FLOAT to the exact DOUBLE.
        rounded = round(number, sizes[1])
        fits &= number in {rounded, held(rounded)} and abs(rounded) < 10 ** (
            sizes[0] - sizes[1]
        )
    if not fits:
        raise ValueError(value)
    return number


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _raw(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _sized(value: Any, most: int, least: int = 0) -> Any:
    if not least <= len(value) <= most:
        raise ValueError(value)
    return value


def _member(text: str, members: set[str], base: str) -> str:
    parts = [text] if base == "enum" else text.split(",") if text else []
    if not members.issuperset(part.casefold() for part in parts):
        raise ValueError(text)
    return text


def _json(value: Any) -> str:
    text = _text(value)
    try:
        json.loads(text, parse_constant=_number)  # refuses NaN and Infinity
    except RecursionError as error:
        raise ValueError(value) from error
    return text


def _moment(value: Any, base: str, cut: "re.Pattern[str]") -> str:
    text = _text(value).strip()
    if cut.search(text) or (base == "time" and not _TIME.fullmatch(text)):
        raise ValueError(value)
    if base == "time":
        return text
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(text)
    if moment.tzinfo:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    if base == "timestamp" and not _FIRST <= moment <= _LAST:
        raise ValueError(value)
    if base != "date":
        return moment.isoformat(" ")
    if moment.time() != time() or (isinstance(value, str) and len(text) > _DATE_CHARS):
        raise ValueError(value)
    return moment.date().isoformat()
