"""The keys that a STREAM names: `WHERE key_column = v` or `IN (…)`. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message_table import IdKind, MessageTable
from streamfrom.proxy.errors import BadStreamKey
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Statement, Value


# A poll asks for each key separately.
KEYS_MAX: Final = 100
# A server reads such a value by settings of the session, and shows it as another text.
_MANY_SPELLINGS: Final = frozenset({"date", "datetime", "timestamp", "time", "enum", "set"})
_NUMBER: Final = re.compile(rb"-?[0-9]{1,65}(?:\.[0-9]{1,30})?")


def stream_keys(statement: Statement, table: MessageTable) -> frozenset[bytes] | None:
    """Return the literals of the keys that a STREAM on *table* names, None for all.

    Raises:
        BadStreamKey: the table has no such key column, or a value cannot be a key.
    """
    shape = statement.shape.stream
    if shape is None or shape.key is None:
        return None
    column = table.key_column
    if column is None:
        raise BadStreamKey(
            f"STREAM … WHERE takes the key of a table, and {table.name} has none:"
            f" ALTER QUEUE {table.name} SET (`key` = column), vt_key in a table's comment"
        )
    if shape.key.lower() != column.lower():
        raise BadStreamKey(
            f"STREAM … WHERE takes {column}, the key of {table.name} (vt_key), and no other column:"
            " acknowledge or reschedule what you do not want"
        )
    if table.key_type in _MANY_SPELLINGS:
        raise BadStreamKey(
            f"STREAM … WHERE takes no key of the type {table.key_type.upper()}, whose values can be written in more than one way:"
            f" stream all keys, or let another column that holds {column} as VARCHAR or as a number be the key"
        )
    if not table.has_priority:
        raise BadStreamKey("STREAM … WHERE needs a table with the column priority")
    values = statement.values(shape.key_values)
    if values is None:
        raise BadStreamKey(
            f"STREAM … WHERE takes values of {column} that can be read as they are"
        )
    if len(values) > KEYS_MAX:
        raise BadStreamKey(
            f"STREAM … WHERE takes {KEYS_MAX} values at most, not {len(values)}:"
            " open a stream for each part of them, or one for all keys"
        )
    return frozenset(_literal(table, column, value) for value in values)


def _literal(table: MessageTable, column: str, value: Value) -> bytes:
    if value is None:
        raise BadStreamKey(
            f"{column} = NULL holds for no message: those without a key go to streams without WHERE"
        )
    text = value.text.encode() if isinstance(value, Number) else value
    if table.key_kind is IdKind.NUMBER:
        text = b"%d" % text if isinstance(text, int) else text
        if _NUMBER.fullmatch(text) is None:
            raise BadStreamKey(f"{column} is a number, and '{_shown(text)}' is none")
        return text
    if not isinstance(value, bytes):
        shown = _shown(b"%d" % value if isinstance(value, int) else value.text.encode())
        raise BadStreamKey(f"{column} is no number: write its value in quotes, '{shown}'")
    return literal(value)


def _shown(text: bytes) -> str:
    return text[:40].decode("utf-8", "replace")
