"""The values of user variables, read from one server and set on another. Pure.

A session's user variables are in the connection that changed them last. If the session continues on
another one, they are read there, by `question`, and set here, by `assignment`: with their type, and
for strings with their character set and collation. The query is then repeated on the new connection, and a value that
differs was not copied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.wire.constants import STRING_TYPES, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime


# A text of twice as many bytes is below every server's max_allowed_packet.
VALUE_BYTES_MAX: Final = 1 << 20

# Without their own LIMIT, the queries would obey the session's sql_select_limit.
_ROWS_MAX: Final = (1 << 64) - 1
# The names of a connection's user variables, or NULL at least: no row means that the server does not list them.
# Values are read one by one.
NAMES_ON_MARIADB: Final = (
    b"SELECT VARIABLE_NAME FROM information_schema.USER_VARIABLES UNION ALL SELECT NULL LIMIT %d"
    % _ROWS_MAX
)
# For the connection whose server id is filled in. Without rows if performance_schema is off.
NAMES_ON_MYSQL: Final = (
    "SELECT VARIABLE_NAME FROM performance_schema.threads LEFT JOIN"
    " performance_schema.user_variables_by_thread USING (THREAD_ID) WHERE PROCESSLIST_ID = {}"
)
# The tables that it reads.
TABLES_ON_MYSQL: Final = (
    "performance_schema.threads",
    "performance_schema.user_variables_by_thread",
)

_TEXTS: Final = STRING_TYPES | {FieldType.GEOMETRY}  # MariaDB's; MySQL makes bytes of them
_INTEGERS: Final = frozenset({FieldType.LONGLONG, FieldType.LONG})
_NUMBERS: Final = _INTEGERS | {FieldType.NEWDECIMAL, FieldType.DOUBLE}
_NUMBER: Final = re.compile(rb"-?(\d+)(?:\.(\d+))?(e[-+]?\d+)?", re.IGNORECASE)
_WORD: Final = re.compile(rb"\w+", re.ASCII)
_HEX: Final = re.compile(rb"(?:[0-9A-F]{2})*")


@dataclass(frozen=True, slots=True, eq=False)
class UserVariables:
    """A session's user variables, a new object for each change; compared by identity."""

    shard: ShardRuntime
    # The connection to *shard* that has all the variables; it stays with the session.
    backend: Backend
    names: frozenset[str]  # the variables that the client's texts have named
    has_unnamed: bool  # a stored program may have set other variables
    # The values on *backend*, once they were read from the server.
    values: dict[str, VariableValue] = field(default_factory=dict)


class VariableValue(NamedTuple):
    """The value of a user variable on a server."""

    # The column type, VAR_STRING for all strings; a geometry is a string after its SRID.
    kind: int = FieldType.VAR_STRING
    is_unsigned: bool = False
    number: bytes | None = None  # the text of a number, None for a string and for NULL
    charset: bytes = b"binary"
    collation: bytes = b"binary"
    hex: bytes = b""  # the bytes of a string, in *charset*
    # The value is NULL; a variable that was never set is a binary string that is NULL.
    is_null: bool = True


_UNSET: Final = VariableValue()


def question(name: str) -> bytes:
    """Return the SELECT whose answer `read` reads. Raises Unsupported for a name that is not ASCII."""
    if not name.isascii():
        raise Unsupported(
            f"user variable @{name} in another keyspace or shard: its name is not ASCII"
        )
    quoted = quote_identifier(name).encode()
    return b"SELECT @%b, CHARSET(@%b), COLLATION(@%b), HEX(@%b) LIMIT 1" % ((quoted,) * 4)


def read(name: str, columns: Sequence[bytes], rows: Sequence[bytes]) -> VariableValue:
    """Return the value in an answer to `question`. Raises Unsupported if it cannot be copied."""
    column = parse_column_definition(columns[0])
    if len(rows) != 1:
        raise _cannot(name, "its value is not to be had")
    value, charset, collation, digits = parse_text_row(rows[0], 4)
    if not _is(_WORD, charset) or not _is(_WORD, collation):
        raise _cannot(name, "its character set is not to be had")
    assert charset is not None
    assert collation is not None
    if column.type in _TEXTS:
        if value is not None and not _is(_HEX, digits):
            raise _cannot(name, "it is too long")
        hexed = b"" if value is None or digits is None else digits
        if len(hexed) > 2 * VALUE_BYTES_MAX:
            raise _cannot(name, f"it has more than {VALUE_BYTES_MAX} bytes")
        is_geometry = column.type == FieldType.GEOMETRY
        return VariableValue(
            FieldType.GEOMETRY if is_geometry else FieldType.VAR_STRING,
            charset=charset,
            collation=collation,
            hex=hexed,
            is_null=value is None,
        )
    if column.type not in _NUMBERS or not (value is None or _is(_NUMBER, value)):
        raise _cannot(name, "its type has no literal")
    return VariableValue(
        FieldType.LONGLONG if column.type in _INTEGERS else column.type,
        bool(column.flags & FieldFlag.UNSIGNED),
        number=value,
        charset=charset,
        collation=collation,
        is_null=value is None,
    )


def assignment(name: str, value: VariableValue) -> bytes:
    """Return the SET that gives a user variable this value."""
    quoted = quote_identifier(name).encode()
    if value.kind == FieldType.GEOMETRY:
        if value.is_null:
            return b"SET @%b = ST_GeomFromWKB(NULL)" % quoted
        srid = int.from_bytes(bytes.fromhex(value.hex[:8].decode()), "little")
        return b"SET @%b = ST_GeomFromWKB(x'%b', %d)" % (quoted, value.hex[8:], srid)
    if value.kind == FieldType.VAR_STRING:
        literal = b"_%b x'%b'" % (value.charset, value.hex)
        if value.charset != b"binary":
            literal += b" COLLATE " + value.collation
        # NULL leaves a string its collation.
        null = b", @%b = NULL" % quoted if value.is_null else b""
        return b"SET @%b = %b%b" % (quoted, literal, null)
    return b"SET @%b = %b" % (quoted, _number(value))


def differing(wanted: dict[str, VariableValue], found: dict[str, VariableValue]) -> list[str]:
    """Return the variables whose values are not the wanted ones, in order of their names."""
    return sorted(name for name, value in wanted.items() if found.get(name, _UNSET) != value)


def _number(value: VariableValue) -> bytes:
    text = value.number
    if value.kind == FieldType.DOUBLE:
        if text is None:
            return b"NULL + 0e0"
        return text if b"e" in text.lower() else text + b"e0"
    if value.kind == FieldType.LONGLONG:
        kind = b"UNSIGNED" if value.is_unsigned else b"SIGNED"
    elif text is None:
        kind = b"DECIMAL"
    else:
        found = _NUMBER.fullmatch(text)
        assert found is not None
        scale = len(found[2] or b"")
        kind = b"DECIMAL(%d,%d)" % (max(len(found[1].lstrip(b"0")) + scale, 1), scale)
    return b"CAST(%b AS %b)" % (b"NULL" if text is None else b"'%b'" % text, kind)


def _is(pattern: re.Pattern[bytes], text: bytes | None) -> bool:
    return text is not None and pattern.fullmatch(text) is not None


def _cannot(name: str, reason: str) -> Unsupported:
    return Unsupported(
        f"user variable @{name} in another keyspace or shard: {reason}; set it again there"
    )
