import pytest

from streamfrom.proxy.execution.user_variables import (
    VALUE_BYTES_MAX,
    VariableValue,
    assignment,
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
BLOB, TEXT, SHAPE = FieldType.LONG_BLOB, FieldType.VAR_STRING, FieldType.GEOMETRY


def said(kind, value, charset=BINARY, digits=None, flags=0, name="a", rows=1):
    """Return what `read` makes of a server's answer."""
    column = column_definition(
        ColumnDefinition(f"@{name}", type=kind, flags=flags), int(MODERN)
    )
    row = text_row([value, *charset, digits])
    return read(name, [column] * 4, [row] * rows)


def test_one_question_asks_for_all_that_makes_a_value():
    assert question("a `b") == (
        b"SELECT @`a ``b`, CHARSET(@`a ``b`), COLLATION(@`a ``b`), HEX(@`a ``b`) LIMIT 1"
    )


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (said(INT, b"-5"), b"CAST('-5' AS SIGNED)"),
        (said(INT, None), b"CAST(NULL AS SIGNED)"),
        (
            said(INT, b"18446744073709551615", flags=FieldFlag.UNSIGNED),
            b"CAST('18446744073709551615' AS UNSIGNED)",
        ),
        (said(DECIMAL, b"-1.50"), b"CAST('-1.50' AS DECIMAL(3,2))"),
        (said(DECIMAL, b"0.001"), b"CAST('0.001' AS DECIMAL(3,3))"),
        (said(DECIMAL, b"0"), b"CAST('0' AS DECIMAL(1,0))"),
        (said(DECIMAL, None), b"CAST(NULL AS DECIMAL)"),
        (said(DOUBLE, b"-0"), b"-0e0"),
        (said(DOUBLE, b"1e300"), b"1e300"),
        (said(DOUBLE, b"0.30000000000000004"), b"0.30000000000000004e0"),
        (said(DOUBLE, None), b"NULL + 0e0"),
        (said(BLOB, b"\0A", BINARY, b"0041"), b"_binary x'0041'"),
        (said(TEXT, b"?", LATIN, b"E9"), b"_latin1 x'E9' COLLATE latin1_bin"),
        (said(BLOB, None, LATIN), b"_latin1 x'' COLLATE latin1_bin, @`a` = NULL"),
        (said(SHAPE, b"...", BINARY, b"E61000000102"), b"ST_GeomFromWKB(x'0102', 4326)"),
        (said(SHAPE, None), b"ST_GeomFromWKB(NULL)"),
    ],
)
def test_each_type_has_a_literal_that_is_exactly_it(value, sql):
    assert assignment("a", value) == b"SET @`a` = " + sql


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
    one = said(INT, b"1")
    unset = said(TEXT, None)
    assert isinstance(one, VariableValue)
    assert differing({"a": one, "b": one, "c": unset}, {"a": one}) == ["b"]
    others = (
        said(INT, b"2"),
        said(INT, b"1", flags=FieldFlag.UNSIGNED),
        said(DOUBLE, b"1"),
        unset,
    )
    for other in others:
        assert differing({"a": one}, {"a": other}) == ["a"]
    text = said(TEXT, b"A", LATIN, b"41")
    assert differing({"a": text}, {"a": text._replace(collation=b"latin1_swedish_ci")}) == ["a"]
