import pytest

from streamfrom.proxy.execution.user_variables import (
    VALUE_BYTES_MAX,
    differing,
    question,
    read,
)
from streamfrom.proxy.wire.constants import FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.fake_client import MODERN


LATIN = b"latin1", b"latin1_bin"
BINARY = b"binary", b"binary"
INT, DECIMAL, DOUBLE = FieldType.LONGLONG, FieldType.NEWDECIMAL, FieldType.DOUBLE
TOO_LONG = b"61" * (VALUE_BYTES_MAX + 1)
BLOB, TEXT = FieldType.LONG_BLOB, FieldType.VAR_STRING


def said(kind, value, charset=BINARY, digits=None, flags=0, name="a", rows=1):
    """Return what `read` makes of a server's answer."""
    column = column_definition(
        ColumnDefinition(f"@{name}", type=kind, flags=flags), int(MODERN)
    )
    row = text_row([value, *charset, digits])
    return read(name, [column] * 4, [row] * rows)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"kind": INT, "value": b"1", "rows": 0}, "not to be had"),
        ({"kind": INT, "value": b"1", "charset": (None, None)}, "character set"),
        # In ucs2, as after SET character_set_results = ucs2.
        ({"kind": INT, "value": b"1", "charset": (b"\0b", b"\0b")}, "set"),
        ({"kind": DECIMAL, "value": b"\0001"}, "no literal"),
        ({"kind": FieldType.DATETIME, "value": b"2026-01-01"}, "no literal"),
        ({"kind": BLOB, "value": b"a"}, "too long"),
        ({"kind": BLOB, "value": b"a", "digits": TOO_LONG}, "more than 1048576 bytes"),
    ],
)
def test_what_cannot_be_carried_is_refused(answer, reason):
    with pytest.raises(Unsupported, match=rf"^unsupported: user variable @a in .*{reason}"):
        said(**answer)


def test_a_name_that_is_not_ascii_is_refused():
    with pytest.raises(Unsupported, match="user variable @É"):
        question("É")


def test_values_differ_where_anything_of_them_does():
    one, unset = said(INT, b"1"), said(TEXT, None)
    assert differing({"a": one, "b": one, "c": unset}, {"a": one}) == ["b"]
    for other in (said(INT, b"1", flags=FieldFlag.UNSIGNED), said(DOUBLE, b"1"), unset):
        assert differing({"a": one}, {"a": other}) == ["a"]
