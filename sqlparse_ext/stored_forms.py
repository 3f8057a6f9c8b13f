"""The stored form of a value: how a server stores it in a column, and which values the server finds equal. Pure.

Two spellings of one value ('058' and 58 in a BIGINT, capitals in a UUID, blanks at the end of a CHAR) have one stored
form. It places a row on a shard, and it identifies a message. A value whose stored form cannot be
derived from its text has none here: a lookup then queries all shards, and a row is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID

from streamfrom.sqlparse_ext.literal_values import Bits, HexString, Number


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Value

Stored = int | bytes | Number


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type as information_schema has it: `decimal(20,0) unsigned`, and its collation, "" without one."""

    text: str
    collation: str = ""

    @property
    def kind(self) -> str:
        """Return the name of the type: `decimal`."""
        found = _TYPE.match(self.text.lower())
        return found[1] if found else self.text


class StoredForm:
    """The stored forms of the values of one column. This base class knows none.

    fault: why no value of the column can be placed; "" if values can.
    hint: the spelling whose stored form is known.
    """

    fault = ""
    hint = "write the value as the server stores it"

    def stored(self, value: Value) -> Stored | None:
        """Return the stored form of *value*, or the nearest one if the server's mode allows that; None if unknown."""
        return None

    def equal(self, value: Value) -> Stored | None:
        """Return the stored form of every row that the server finds equal to *value*; None if unknown."""
        return self.stored(value)


# Among printable ASCII, these find two texts equal only if they differ in case, or in blanks at the end. Others have
# their own rules: in Lithuanian y is an i.
_FOLDS_CASE: Final = re.compile(
    r"latin1_swedish_ci|(?:(?:ascii|latin1|utf8|utf8mb3|utf8mb4)_)?"
    r"(?:general|general_mysql500|unicode|unicode_520|0900|uca1400)(?:_nopad)?(?:_ai|_as)?_c[is]"
)
_BINARY_COLLATION: Final = re.compile(
    r"(?:ascii|latin1|utf8|utf8mb3|utf8mb4)_(?:0900_|nopad_)?bin|utf8mb4_0900_bin"
)
_PRINTABLE: Final = re.compile(rb"[ -~]*")
_NO_PAD: Final = re.compile(r"_nopad_|_0900_")
_TYPE: Final = re.compile(r"(\w+)\s*(?:\(([^)]*)\))?(.*)", re.DOTALL)
_MEMBER: Final = re.compile(r"'((?:[^']|'')*)'")


def stored_form(
    column: ColumnType | None, *, holds_strings: bool = False, folds: bool = False
) -> StoredForm:
    """Return the stored forms of a column.

    column: None if only *holds_strings* is known, whether it is a column of strings.
    folds: values that the column's collation finds equal have one stored form; else only equal texts do.
    """
    if column is None:
        return _UnknownForm(holds_strings=holds_strings)
    # The members of an ENUM may contain any character, and its type ends with them.
    found = _TYPE.match(column.text)
    if found is None:
        return _UnplacedForm(column.text)
    name, size, rest = found[1].lower(), found[2], found[3].lower()
    if name in _INTEGER_BITS:
        return _IntegerForm(
            _INTEGER_BITS[name], is_unsigned="unsigned" in rest or "zerofill" in rest
        )
    if name == "decimal":
        digits, _, scale = (size or "10").partition(",")
        return _DecimalForm(int(digits), int(scale or 0))
    if name in _TEXTS:
        length = int(size) if size else None
        return _TextForm(column.collation.lower(), length, is_char=name == "char", folds=folds)
    if name in _BINARIES:
        return _BinaryForm(int(size) if size else None, is_padded=name == "binary")
    if name == "enum":
        members = [member.replace("''", "'") for member in _MEMBER.findall(column.text)]
        return _EnumForm(members, column.collation.lower())
    if name == "date":
        return _moment_form("%Y-%m-%d")
    if name == "datetime":
        return _moment_form("%Y-%m-%d %H:%M:%S", int(size or 0))
    if name in _SPELLED:
        return _SpelledForm(*_SPELLED[name])
    return _UnplacedForm(column.text)


def folds_case(column: ColumnType) -> bool:
    """Return whether two texts in a column may be equal although they differ in more than blanks at the end."""
    found = _TYPE.match(column.text)
    is_text = found is not None and found[1].lower() in _TEXTS
    return is_text and not _BINARY_COLLATION.fullmatch(column.collation.lower())


class _IntegerForm(StoredForm):
    hint = "write it as an integer, in digits"

    def __init__(self, bits: int, *, is_unsigned: bool) -> None:
        self._least = 0 if is_unsigned else -(1 << bits - 1)
        self._greatest = (1 << bits if is_unsigned else 1 << bits - 1) - 1

    def stored(self, value: Value) -> int | None:
        number = _whole(value)
        # A value out of range is an error, or becomes the nearest one if the sql_mode is not strict.
        return None if number is None else min(max(number, self._least), self._greatest)

    def equal(self, value: Value) -> int | None:
        # 57.0 is 57, and beyond 15 digits a server compares it as a DOUBLE.
        return None if isinstance(value, Number) else _whole(value)


class _DecimalForm(StoredForm):
    hint = "write it in digits"

    def __init__(self, digits: int, scale: int) -> None:
        self._step = Decimal(1).scaleb(-scale)
        self._scale = scale
        self._beyond = 10 ** (digits - scale)

    def stored(self, value: Value) -> Stored | None:
        number = _exact(value)
        if number is None or abs(number) >= self._beyond:
            return None
        rounded = number.quantize(self._step, ROUND_HALF_UP)
        return None if abs(rounded) >= self._beyond else self._written(rounded)

    def equal(self, value: Value) -> Stored | None:
        number = _exact(value)
        if number is None or (isinstance(value, bytes) and len(value) > _DOUBLE_DIGITS):
            return None
        if abs(number) >= self._beyond or number != number.quantize(self._step):
            return None  # equal to no row
        return self._written(number.quantize(self._step))

    def _written(self, number: Decimal) -> Stored:
        return Number(f"{number + 0:f}") if self._scale else int(number)


class _TextForm(StoredForm):
    def __init__(
        self, collation: str, length: int | None, *, is_char: bool, folds: bool
    ) -> None:
        self._length = length
        charset = collation.partition("_")[0]
        self._is_utf8 = charset in _UTF8
        self._last = "\U0010ffff" if charset == "utf8mb4" else "\uffff"
        is_binary = bool(_BINARY_COLLATION.fullmatch(collation))
        self._trims = is_char or (folds and not _NO_PAD.search(collation))
        self._is_ascii_only = folds and not is_binary
        if folds and not is_binary and not _FOLDS_CASE.fullmatch(collation):
            self.fault = f"which of its values are equal by collation {collation} is not known here; COLLATE utf8mb4_bin"
        self.hint = (
            f"by collation {collation} it may equal others: write letters of ASCII, or have the column in COLLATE utf8mb4_bin"
            if self._is_ascii_only
            else "write it as a string, and what is not ASCII into a column of CHARACTER SET utf8mb4"
        )

    def stored(self, value: Value) -> bytes | None:
        if isinstance(value, int):
            value = b"%d" % value
        return self._form(value, self._length)

    def equal(self, value: Value) -> bytes | None:
        # A number is compared with the texts' values as numbers.
        return None if isinstance(value, int) else self._form(value, None)

    def _form(self, value: Value, length: int | None) -> bytes | None:
        if not isinstance(value, bytes) or self.fault:
            return None
        if self._is_ascii_only and not _PRINTABLE.fullmatch(value):
            return None
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return None
        if not text.isascii() and (not self._is_utf8 or max(text) > self._last):
            return None
        # A text that is too long is an error, or cut if the sql_mode is not strict; blanks are always cut.
        text = text[:length]
        return (text.rstrip(" ") if self._trims else text).encode()


class _BinaryForm(StoredForm):
    def __init__(self, length: int | None, *, is_padded: bool) -> None:
        self._length = length
        self._padded = length or 0 if is_padded else 0

    def stored(self, value: Value) -> bytes | None:
        if isinstance(value, int):
            value = b"%d" % value
        return (
            bytes(value[: self._length]).ljust(self._padded, b"\0")
            if isinstance(value, bytes)
            else None
        )

    def equal(self, value: Value) -> bytes | None:
        return bytes(value).ljust(self._padded, b"\0") if isinstance(value, bytes) else None


class _EnumForm(StoredForm):
    def __init__(self, members: list[str], collation: str) -> None:
        self._members = frozenset(members)
        self._folded: dict[str, str | None] = {}
        if _FOLDS_CASE.fullmatch(collation):
            for member in members:
                folded = member.lower()
                self._folded[folded] = None if folded in self._folded else member
        self.hint = "write one of the values of its ENUM as a string"

    def stored(self, value: Value) -> bytes | None:
        if not isinstance(value, bytes) or isinstance(value, Bits):
            return None
        text = value.decode("utf-8", "replace").rstrip(" ")
        if text not in self._members:
            found = self._folded.get(text.lower()) if text.isascii() else None
            if found is None:
                return None
            text = found
        return text.encode() if text.isascii() else None


class _SpelledForm(StoredForm):
    """Values with several spellings, some of which *read* knows: it returns the stored form, or None."""

    def __init__(self, read: Callable[[bytes], bytes | None], hint: str) -> None:
        self._read = read
        self.hint = hint

    def stored(self, value: Value) -> bytes | None:
        is_text = isinstance(value, bytes) and not isinstance(value, Bits)
        return self._read(cast("bytes", value)) if is_text else None


def _moment_form(layout: str, digits: int = 0) -> StoredForm:
    end = re.compile(rf"\.[0-9]{{{digits}}}" if digits else "")

    def read(value: bytes) -> bytes | None:
        whole, dot, fraction = value.decode("ascii", "replace").partition(".")
        try:
            moment = datetime.strptime(whole, layout)  # noqa: DTZ007 - a column without a zone
        except ValueError:
            return None
        # 2024-1-5 is also accepted, and is stored as 2024-01-05.
        is_written = f"{moment:{layout}}".rjust(len(whole), "0") == whole
        return value if is_written and end.fullmatch(dot + fraction) else None

    time, shown = " hh:mm:ss" if "H" in layout else "", "." + "f" * digits if digits else ""
    return _SpelledForm(read, f"write it as 'YYYY-MM-DD{time}{shown}'")


class _UnplacedForm(StoredForm):
    """A type whose stored forms are not known: FLOAT and DOUBLE round, and TIMESTAMP depends on the session."""

    def __init__(self, text: str) -> None:
        self.fault = f"values of type {text.upper()} cannot be placed; use an integer, DECIMAL, CHAR, VARCHAR, BINARY or VARBINARY"
        self.hint = self.fault


class _UnknownForm(StoredForm):
    """A column whose type is not known yet: values are taken as written."""

    def __init__(self, *, holds_strings: bool) -> None:
        self._holds_strings = holds_strings

    def stored(self, value: Value) -> Stored | None:
        if isinstance(value, Bits) and not self._holds_strings:
            return _whole(value)
        return value if isinstance(value, int | bytes) else None

    def equal(self, value: Value) -> Stored | None:
        # '05' = 5 is true, but '05' and '5' are two strings.
        return None if isinstance(value, int) and self._holds_strings else self.stored(value)


_INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BINARIES: Final = frozenset(
    {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
)
_UTF8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "uca1400"})
_DOUBLE_DIGITS: Final = 15
_DIGITS: Final = re.compile(rb"[+-]?\d+(?:\.0*)?")
_DECIMAL_TEXT: Final = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)")
_UUID: Final = re.compile(
    rb"[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_BIGINT_BYTES: Final = 8


def _whole(value: Value) -> int | None:
    """Return the integer that both servers read *value* as, next to a column of integers."""
    if isinstance(value, int):
        return value
    if isinstance(value, Bits):
        # x'39' is 57 to MySQL and '9' to MariaDB.
        is_known = not isinstance(value, HexString) and len(value) <= _BIGINT_BYTES
        return int.from_bytes(value, "big") if is_known else None
    text = _written(value)
    return int(text.partition(b".")[0]) if _DIGITS.fullmatch(text) else None


def _exact(value: Value) -> Decimal | None:
    if isinstance(value, Bits | int):
        number = _whole(value)
        return None if number is None else Decimal(number)
    text = _written(value)
    # 1e3 is a DOUBLE.
    return Decimal(text.decode()) if _DECIMAL_TEXT.fullmatch(text) else None


def _written(value: bytes | Number | None) -> bytes:
    if isinstance(value, Number):
        return value.text.encode()
    return (value or b"").strip(b" \t\n\r")


def _uuid(value: bytes) -> bytes | None:
    return str(UUID(value.decode())).encode() if _UUID.fullmatch(value) else None


def _inet(kind: type[IPv4Address | IPv6Address], value: bytes) -> bytes | None:
    try:
        address = kind(value.decode("ascii", "replace"))
    except AddressValueError:
        return None
    return None if b"%" in value else str(address).encode()


_SPELLED: Final[dict[str, tuple[Callable[[bytes], bytes | None], str]]] = {
    "uuid": (_uuid, "write the UUID in 32 hexadecimal digits, with hyphens as the server does"),
    "inet6": (partial(_inet, IPv6Address), "write the address as text"),
    "inet4": (partial(_inet, IPv4Address), "write the address as text"),
}
