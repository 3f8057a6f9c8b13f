"""Rows of a SELECT as rows of VALUES: literals that any column takes as it would take the values themselves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import Sort, loses_digits, sort_of
from streamfrom.proxy.wire.binary_parameters import Parameter, literal_of
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.wire.resultset import ColumnDefinition


_MOMENTS: Final = {
    Sort.DATE: b"DATE'%b'",
    Sort.DATETIME: b"TIMESTAMP'%b'",
    Sort.TIME: b"TIME'%b'",
}


def values_row(
    columns: Sequence[ColumnDefinition],
    row: Sequence[bytes | None],
    *,
    backslash_escapes: bool,
    is_summed: bool,
    is_whole_charset: bool = True,
) -> bytes:
    """Return `(1, 'a')`, in the character set in which the texts came.

    backslash_escapes: False under NO_BACKSLASH_ESCAPES.
    is_summed: the rows are groups of several shards, so the sum of a DOUBLE depends on their order.
    is_whole_charset: that character set has all characters; in others a `?` may be one that is missing.

    Raises Unsupported if a column's texts are not all that its values are.
    """
    values = []
    for column, text in zip(columns, row, strict=True):
        sort = sort_of(column)
        if (
            (sort is None and column.type != FieldType.NULL)
            or loses_digits(column)
            # In the hour in which clocks are set back its text is two moments.
            or column.type == FieldType.TIMESTAMP
            or (is_summed and sort is Sort.DOUBLE)
        ):
            raise Unsupported(
                f"INSERT … SELECT of the column '{column.name}' over several shards, whose type has"
                " no exact text; CAST it as CHAR, DECIMAL or DATETIME"
            )
        if text is None:
            values.append(b"NULL")
        elif sort is Sort.TEXT:
            if not is_whole_charset and b"?" in text:
                raise Unsupported(
                    f"INSERT … SELECT of a '?' in the column '{column.name}' over several shards,"
                    " which may be a character that the session's character set lacks; SET NAMES"
                    " utf8mb4"
                )
            parameter = Parameter(FieldType.VAR_STRING, False, text)  # noqa: FBT003
            values.append(literal_of(parameter, backslash_escapes=backslash_escapes))
        elif sort in _MOMENTS:
            if sort is not Sort.TIME and (text.startswith(b"0000-") or b"-00" in text):
                raise Unsupported("INSERT … SELECT of a date of zeros over several shards")
            values.append(_MOMENTS[sort] % text)
        elif sort is Sort.BYTES:
            values.append(b"x'%b'" % text.hex().encode())
        elif sort is Sort.DOUBLE and b"e" not in text:
            values.append(text + b"e0")
        elif sort is Sort.DECIMAL and b"." not in text:
            values.append(text + b".")
        else:
            values.append(text)
    return b"(" + b", ".join(values) + b")"
