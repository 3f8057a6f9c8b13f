"""Do rows fit a message table, and what do they look like there: pure.

A value fits if the table can hold it exactly: nothing is cut, rounded or guessed. What fits
is cast to what the server is sent; what does not is found before anything is written.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.endpoint import quoted
from streamfrom.spark.errors import RequestError
from streamfrom.spark.table_schema import base_of


if TYPE_CHECKING:
    from streamfrom.spark.endpoint import TableColumn

_INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
# Of the types without a length, in bytes.
_TEXT_BYTES: Final = {
    f"{size}{kind}": 256**width - 1
    for width, size in enumerate(("tiny", "", "medium", "long"), 1)
    for kind in ("text", "blob")
}
# A message that is new was never sent and never acknowledged.
_NOT_NEW: Final = frozenset({"epoch", "time_acked"})
_NESTED: Final = ("struct", "array", "map", "variant")
_DIGITS_MAX: Final = 38
_FLOAT_MAX: Final = 3.4028234663852886e38
_BIT_BYTES: Final = 8
_LAST_YEAR: Final = 9999
# Of a TIMESTAMP; older servers end in 2038, and say so.
_LAST_SECOND: Final = 2**32 - 1
_EXAMPLE_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class Fitted:
    """A column of the input as the table takes it; `fits` is false where it does not, never NULL."""

    target: "TableColumn"
    value: "Column"
    fits: "Column"


def matched(
    names: "Sequence[str]", targets: "Sequence[TableColumn]", given: "Sequence[str]"
) -> dict[str, "TableColumn"]:
    """Return the table's column for each of the input's *names*, which may differ in case.

    given: columns that the job itself fills.

    Raises:
        RequestError: the input has a column that the table lacks or that is not for new messages, or
            lacks one that the table requires.
    """
    by_name = {target.name.lower(): target for target in targets}
    found: dict[str, TableColumn] = {}
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


def fitted(frame: "DataFrame", name: str, target: "TableColumn") -> Fitted:
    """Return the column *name* of *frame* as *target* takes it.

    Raises:
        RequestError: the table's type is one that messages cannot be fed into.
    """
    given = F.col(quoted(name))
    kind = next(spark_type for column, spark_type in frame.dtypes if column == name)
    if kind.startswith(_NESTED):
        if target.mysql_type != "json":
            raise RequestError(
                f"the input's column {name!r} is {kind.partition('<')[0]}: only a json column holds that"
            )
        given = F.to_json(given)
    elif kind == "boolean":
        given = given.cast("int")
    value, fits = _cast(given, kind, target)
    known = F.coalesce(fits, F.lit(0).cast("boolean"))
    fits = F.when(given.isNull(), F.lit(target.takes_null)).otherwise(known)
    return Fitted(target, value, fits)


def misfits(frame: "DataFrame", columns: "Sequence[tuple[str, Fitted]]") -> list[str]:
    """Return a sentence for each of *columns* that has values which do not fit, with one of them."""
    if not columns:
        return []
    wrong = [
        F.when(~fit.fits, F.coalesce(F.col(quoted(name)).cast("string"), F.lit("NULL")))
        for name, fit in columns
    ]
    examples = (F.first(one, ignorenulls=True) for one in wrong)
    told = frame.agg(*map(F.count, wrong), *examples).collect()[0]
    return [
        f"{many:,} values of {name!r} do not fit {fit.target.mysql_type}"
        f"{'' if fit.target.takes_null else ' NOT NULL'}, such as {example[:_EXAMPLE_CHARS]!r}"
        for (name, fit), many, example in zip(columns, told, told[len(columns) :], strict=False)
        if many
    ]


def as_sent(
    frame: "DataFrame", found: "Mapping[str, TableColumn]", cure: str
) -> "list[Column]":
    """Return the columns of *frame* as the table takes them.

    Raises:
        RequestError: values do not fit; the text ends in *cure*.
    """
    columns = [(name, fitted(frame, name, target)) for name, target in found.items()]
    wrong = misfits(frame, columns)
    if wrong:
        raise RequestError(f"{'; '.join(wrong)}. {cure}")
    return [fit.value.alias(fit.target.name) for _, fit in columns]


def _cast(given: "Column", kind: str, target: "TableColumn") -> "tuple[Column, Column]":
    """Return the value to send, and whether it is the one that was given."""
    name = base_of(target.mysql_type)
    sizes = [int(size) for size in re.findall(r"\d+", target.mysql_type)]
    text = given.cast("string")
    raw = given if kind == "binary" else text.cast("binary")
    is_unsigned = "unsigned" in target.mysql_type
    if name in _INTEGER_BITS:
        return _integer(text, _INTEGER_BITS[name], is_unsigned=is_unsigned)
    if name == "decimal":
        value, fits = _decimal(text, *sizes)
        return value, fits & ~(text.startswith("-") & F.lit(is_unsigned))
    if name in {"double", "float"}:
        number = text.try_cast("double")
        most = _FLOAT_MAX if name == "float" else sys.float_info.max
        fits = number.between(0 if is_unsigned else -most, most)
        return number, fits & (F.round(number, sizes[1]) == number) if sizes else fits
    if name == "json":
        return text, F.try_parse_json(text).isNotNull()
    if name == "binary":
        # A server adds zeros to a shorter one, and finds it by its own bytes no more.
        return raw, F.octet_length(raw) == sizes[0]
    if name == "varbinary":
        return raw, F.octet_length(raw) <= sizes[0]
    if name in _TEXT_BYTES:
        value = raw if name.endswith("blob") else text
        return value, F.octet_length(value) <= _TEXT_BYTES[name]
    if name in {"char", "varchar"}:
        return text, F.char_length(text) <= sizes[0]
    if name == "enum":
        return text, text.isin(members_of(target.mysql_type))
    if name == "set":
        pattern = "|".join(re.escape(member) for member in members_of(target.mysql_type))
        return text, text.rlike(rf"\A(?:(?:{pattern})(?:,(?!\z)|\z))*\z")
    if name == "bit":
        if kind == "binary":
            text = F.when(F.octet_length(given) <= _BIT_BYTES, F.conv(F.hex(given), 16, 10))
        return _integer(text, sizes[0], is_unsigned=True)
    if name == "year":
        value, is_whole = _integer(text, 16, is_unsigned=True)
        return value, is_whole & (value.between(1901, 2155) | (value == 0))
    if name in _TIMES:
        value, fits = _TIMES[name](given, kind)
        # A server would round or cut what is behind the digits of its column, and says nothing.
        return value, fits & ~text.rlike(rf"\.\d{{{sum(sizes)}}}0*[1-9]")
    raise RequestError(
        f"messages cannot be fed into {target.name!r}, which is {target.mysql_type}"
    )


def members_of(mysql_type: str) -> list[str]:
    """Return the values that an enum or a set lists."""
    return [told.replace("''", "'") for told in re.findall(r"'((?:[^']|'')*)'", mysql_type)]


def _integer(text: "Column", bits: int, *, is_unsigned: bool) -> "tuple[Column, Column]":
    low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    whole = text.try_cast("decimal(20,0)")
    # Digits and fraction are 38 together, so the comparison rounds neither.
    exact = whole == text.try_cast("decimal(38,18)")
    inside = whole.between(F.lit(Decimal(low)), F.lit(Decimal(high)))
    return whole, exact & inside


def _decimal(text: "Column", digits: int, fraction: int) -> "tuple[Column, Column]":
    if digits > _DIGITS_MAX:  # Spark has no such number
        behind = rf"(\.\d{{1,{fraction}}})?" if fraction else ""
        return text, text.rlike(rf"\A-?\d{{1,{digits - fraction}}}{behind}\z")
    exact = text.try_cast(f"decimal({digits},{fraction})")
    # With all the digits that Spark has for a fraction it shows whether some were rounded away.
    return exact, exact == text.try_cast(f"decimal(38,{38 - digits + fraction})")


def _datetime(given: "Column", kind: str) -> "tuple[Column, Column]":
    wall = given if kind == "timestamp_ntz" else _moment(given, kind)
    return wall.cast("string"), F.year(wall).between(1, _LAST_YEAR)


def _timestamp(given: "Column", kind: str) -> "tuple[Column, Column]":
    moment = _moment(given, kind)
    seconds = (F.unix_micros(moment) / F.lit(Decimal(10**6))).try_cast("decimal(18,6)")
    # In UTC, as the connection is, whatever Spark's zone is.
    utc = F.expr("timestamp_ntz'1970-01-01'") + F.make_dt_interval(secs=seconds)
    return utc.cast("string"), F.unix_seconds(moment).between(1, _LAST_SECOND)


def _moment(given: "Column", kind: str) -> "Column":
    return F.try_to_timestamp(given) if kind == "string" else given.try_cast("timestamp")


def _time(given: "Column", _: str) -> "tuple[Column, Column]":
    text = given.cast("string")
    return text, text.rlike(
        r"\A-?([0-7]?\d{1,2}|8[0-2]\d|83[0-8]):[0-5]\d:[0-5]\d(\.\d{1,6})?\z"
    )


def _date(given: "Column", kind: str) -> "tuple[Column, Column]":
    day = given.try_cast("date")
    is_whole = F.char_length(given) <= len("2026-01-01") if kind == "string" else given == day
    return day.cast("string"), is_whole & F.year(day).between(1, _LAST_YEAR)


_TIMES: "Final[dict[str, Callable[[Column, str], tuple[Column, Column]]]]" = {
    "datetime": _datetime,
    "timestamp": _timestamp,
    "date": _date,
    "time": _time,
}
