"""Compare and write values of the text protocol exactly as the server does.

A server compares values, not texts. So the compared value is often not the column itself but
an expression made from it (`ColumnKey.sql`): the weight string of its collation, the exact value of a
FLOAT (whose text has only six digits), the number of an ENUM. The column definition
that the server gives for the expression decides which one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.wire.constants import BINARY_CHARSET, STRING_TYPES, FieldFlag, FieldType
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.wire.resultset import ColumnDefinition


# One part of a comparison: (0,) is NULL, which comes first; in descending order it is (2,) and last.
Component = tuple[object, ...]

NOT_FIXED: Final = 31  # decimals of a float without a fixed number of digits


class Comparison(Enum):
    """The property of a column's values that decides a comparison."""

    NUMBER = auto()  # integers and decimals, exactly
    DOUBLE = auto()
    FLOAT = auto()
    TEXT = auto()  # dates: their text is in order
    TIME = auto()
    INSTANT = auto()  # TIMESTAMP: its text repeats when clocks are set back
    ORDINAL = auto()  # ENUM and SET: the number of the value
    STRING = auto()
    BYTES = auto()


INTEGER_TYPES: Final = frozenset(
    {FieldType.TINY, FieldType.SHORT, FieldType.INT24, FieldType.LONG, FieldType.LONGLONG}
)
_BY_TYPE: Final[dict[int, Comparison]] = {
    **dict.fromkeys(INTEGER_TYPES, Comparison.NUMBER),
    **dict.fromkeys(STRING_TYPES, Comparison.STRING),
    FieldType.YEAR: Comparison.NUMBER,
    FieldType.DECIMAL: Comparison.NUMBER,
    FieldType.NEWDECIMAL: Comparison.NUMBER,
    FieldType.NULL: Comparison.NUMBER,
    FieldType.DOUBLE: Comparison.DOUBLE,
    FieldType.FLOAT: Comparison.FLOAT,
    FieldType.DATE: Comparison.TEXT,
    FieldType.DATETIME: Comparison.TEXT,
    FieldType.TIMESTAMP: Comparison.INSTANT,
    FieldType.TIME: Comparison.TIME,
    FieldType.BIT: Comparison.BYTES,
    FieldType.ENUM: Comparison.ORDINAL,
    FieldType.SET: Comparison.ORDINAL,
}
_ORDINAL_FLAGS: Final = int(FieldFlag.ENUM | FieldFlag.SET)


def comparison_of(column: ColumnDefinition) -> Comparison:
    """Return how values of *column* compare. Raises Unsupported for JSON and other types without a rule."""
    found = _BY_TYPE.get(column.type)
    if found is Comparison.STRING:
        if column.flags & _ORDINAL_FLAGS:
            return Comparison.ORDINAL
        if column.charset == BINARY_CHARSET:
            return Comparison.BYTES
    if found is None:
        raise Unsupported(
            f"comparing values of '{column.name}', of type {column.type}, over several shards"
        )
    return found


# --- collations --------------------------------------------------------------------------------

# Character sets whose weights are all as wide as that of a space.
_EVEN_CHARSETS: Final = frozenset(
    {"utf8", "utf8mb3", "utf8mb4", "ascii", "ucs2", "cp1250", "cp1251", "cp1252", "cp850"}
    | {"latin1", "latin2", "latin5", "latin7", "greek", "hebrew", "koi8r", "koi8u"}
)
# Weights on several levels, each of which is padded.
_SEVERAL_LEVELS: Final = ("_czech_cs", "_w2", "_as_ci", "_as_cs", "_ai_cs")


def padding(collation: str, space: bytes, *, is_char: bool = False) -> bytes:
    """Return the weight that shorter strings are padded with; empty for NO PAD collations.

    *space* is the weight of a space, in hex. *is_char*: the value is of a CHAR column.
    Raises Unsupported if the padding cannot be done on weight strings.
    """
    # The collations of Unicode 9.0 are NO PAD in MySQL: 'a' and 'a ' differ. Source: the column
    # PAD_ATTRIBUTE of information_schema.COLLATIONS.
    if "_0900_" in collation or collation == "binary":
        return b""
    # MariaDB sorts a CHAR with the blanks that fill it up, and groups without them.
    if "nopad" in collation and not is_char:
        return b""
    charset, _, rest = collation.partition("_")
    is_padded = charset in _EVEN_CHARSETS and not f"_{rest}".endswith(_SEVERAL_LEVELS)
    if "nopad" in collation or not (is_padded and space):
        raise Unsupported(f"comparing values of collation {collation} over several shards")
    return space


def padded(weight: bytes, space: bytes) -> bytes:
    """Return *weight* in a form that compares as if both sides were padded with *space*.

    A mark after each space shows whether the text after the run of spaces is below (0) or above (2) a space, or
    the end (1): padding can matter for nothing else. Trailing spaces are removed.
    """
    step = len(space)
    # Hex digits may end like a space across two units, so the length must be whole units.
    while weight.endswith(space) and not len(weight) % step:
        weight = weight[:-step]
    if space not in weight:
        return weight + space + b"1"
    units = [weight[i : i + step] for i in range(0, len(weight), step)]
    parts = [space + b"1"]
    mark = b"1"
    # From the end: the unit after a run of spaces decides the mark of each space in it.
    for unit in reversed(units):
        if unit == space:
            parts.append(space + mark)
        else:
            parts.append(unit)
            mark = b"0" if unit < space else b"2"
    parts.reverse()
    return b"".join(parts)


# --- keys --------------------------------------------------------------------------------------

# For ASCII texts: the reversed order. The text that ends first must come last, hence the terminator.
_MIRROR: Final = bytes(max(0x7F - code, 0) for code in range(256))
_MIRROR_END: Final = b"\xff"
_NULL: Final = (0,)
_NULL_LAST: Final = (2,)


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """How the values of one expression compare."""

    comparison: Comparison  # the rule, by the column's type and collation
    space: bytes = b""  # the weight that pads strings, in hex; empty for no padding

    def sql(self, expression: bytes) -> bytes:
        """Return the expression that the server computes and whose values `decoder` reads."""
        match self.comparison:
            case Comparison.STRING:
                # The server's own collation decides. Hex, because the text protocol would
                # convert bytes to the client's character set.
                return b"HEX(WEIGHT_STRING(%b))" % expression
            case Comparison.FLOAT:
                return exactly(expression)
            case Comparison.INSTANT:
                # In the hour in which clocks are set back, two moments have one text.
                return b"UNIX_TIMESTAMP(%b)" % expression
            case Comparison.ORDINAL:
                # Servers sort an ENUM by the number of its value, not by its text.
                return b"(%b)+0" % expression
            case _:
                return expression

    @property
    def is_plain(self) -> bool:
        """True if the values themselves are compared."""
        return self.sql(b"x") == b"x"

    def decoder(self, *, descending: bool = False) -> Callable[[bytes | None], Component]:
        """Return a function from a value of `sql` to an object that sorts as on the server."""
        value: Callable[[bytes], object]
        match self.comparison:
            case Comparison.NUMBER | Comparison.INSTANT | Comparison.ORDINAL:
                value = (lambda text: -_number(text)) if descending else _number
            case Comparison.DOUBLE | Comparison.FLOAT:
                value = (lambda text: -float(text)) if descending else float
            case Comparison.TIME:
                value = (lambda text: -microseconds(text)) if descending else microseconds
            case Comparison.TEXT:
                value = _mirrored if descending else bytes
            case Comparison.BYTES:
                value = _bytes_down if descending else bytes
            case Comparison.STRING:
                value = self._string(descending=descending)
        null = _NULL_LAST if descending else _NULL

        def decode(text: bytes | None) -> Component:
            return null if text is None else (1, value(text))

        return decode

    def _string(self, *, descending: bool) -> Callable[[bytes], bytes]:
        space = self.space
        if descending:
            if space:
                return lambda weight: _mirrored(padded(weight, space))
            return _mirrored
        return (lambda weight: padded(weight, space)) if space else bytes


def _number(text: bytes) -> int | Decimal:
    return Decimal(text.decode("ascii")) if b"." in text or b"e" in text else int(text)


def _mirrored(text: bytes) -> bytes:
    return text.translate(_MIRROR) + _MIRROR_END


def _bytes_down(value: bytes) -> bytes:
    return _mirrored(value.hex().encode())


def microseconds(text: bytes) -> int:
    """Return the length of a TIME such as b"-838:59:59.000000"."""
    hours, minutes, rest = text.lstrip(b"-").split(b":")
    seconds, _, fraction = rest.partition(b".")
    total = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    total = total * 1_000_000 + int(fraction.ljust(6, b"0"))
    return -total if text[:1] == b"-" else total


# --- writing numbers ---------------------------------------------------------------------------


def scaled(text: bytes) -> int:
    """Return a decimal of known scale as an integer: b"-1.50" is -150."""
    return int(text.replace(b".", b""))


def unscaled(value: int, scale: int) -> bytes:
    """Return the text of a decimal: (-150, 2) is b"-1.50"."""
    if not scale:
        return b"%d" % value
    digits = str(abs(value)).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}".encode()


# Doubles with up to this many digits before the point, or zeros behind it, are written without exponent.
_FIXED_DIGITS_MAX: Final = 15


def loses_digits(column: ColumnDefinition) -> bool:
    """Return whether the texts of *column* have fewer digits than its values."""
    return column.type == FieldType.FLOAT or (
        column.type == FieldType.DOUBLE and column.decimals < NOT_FIXED
    )


def exactly(text: bytes) -> bytes:
    """Return the expression whose text has all digits of the value of *text*."""
    return b"(%b)+0e0" % text


def double_text(value: float, decimals: int = NOT_FIXED) -> bytes:
    """Return the text that a server gives for a DOUBLE with *decimals* decimals."""
    if decimals < NOT_FIXED:
        return b"%.*f" % (decimals, value)
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if not number or -_FIXED_DIGITS_MAX <= exponent < _FIXED_DIGITS_MAX:
        return f"{number:f}".encode()
    return f"{number.scaleb(-exponent):f}e{exponent}".encode()


# --- kinds of values ---------------------------------------------------------------------------


class Sort(Enum):
    """The kind of a column's values, regardless of its width."""

    INTEGER = auto()
    UNSIGNED = auto()
    DECIMAL = auto()
    DOUBLE = auto()
    DATE = auto()
    DATETIME = auto()  # TIMESTAMP too: without literals of its own, same results
    TIME = auto()
    TEXT = auto()
    BYTES = auto()


_SORTS: Final[dict[int, Sort]] = {
    **dict.fromkeys(INTEGER_TYPES, Sort.INTEGER),
    **dict.fromkeys(STRING_TYPES, Sort.TEXT),
    FieldType.NEWDECIMAL: Sort.DECIMAL,
    FieldType.DOUBLE: Sort.DOUBLE,
    FieldType.DATE: Sort.DATE,
    FieldType.DATETIME: Sort.DATETIME,
    FieldType.TIMESTAMP: Sort.DATETIME,
    FieldType.TIME: Sort.TIME,
}
# ZEROFILL shows in a text that is made from a number.
_NO_VALUES: Final = int(FieldFlag.ENUM | FieldFlag.SET | FieldFlag.ZEROFILL)
_SCALED: Final = frozenset({Sort.DECIMAL, Sort.DOUBLE, Sort.DATETIME, Sort.TIME})


def sort_of(column: ColumnDefinition) -> Sort | None:
    """Return the kind of *column*'s values; None if their text does not show them."""
    found = _SORTS.get(column.type)
    if column.flags & _NO_VALUES:
        return None
    if found is Sort.TEXT and column.charset == BINARY_CHARSET:
        return Sort.BYTES
    if found is Sort.INTEGER and column.flags & FieldFlag.UNSIGNED:
        return Sort.UNSIGNED
    return found


def are_alike(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    """Return whether the values of both columns are of one kind, with the same digits."""
    sort = sort_of(one)
    return (
        sort is sort_of(other)
        and one.charset == other.charset
        and (sort not in _SCALED or one.decimals == other.decimals)
        and (sort is not None or one.type == other.type)
    )
