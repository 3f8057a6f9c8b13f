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
STRINGS = FieldType.LONG_BLOB, FieldType.MEDIUM_BLOB, FieldType.VAR_STRING


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
        (said(FieldType.LONGLONG, b"-5"), b"CAST('-5' AS SIGNED)"),
        (said(FieldType.LONGLONG, None), b"CAST(NULL AS SIGNED)"),
        (
            said(FieldType.LONGLONG, b"18446744073709551615", flags=FieldFlag.UNSIGNED),
            b"CAST('18446744073709551615' AS UNSIGNED)",
        ),
        (said(FieldType.NEWDECIMAL, b"-1.50"), b"CAST('-1.50' AS DECIMAL(3,2))"),
        (said(FieldType.NEWDECIMAL, b"0.001"), b"CAST('0.001' AS DECIMAL(3,3))"),
        (said(FieldType.NEWDECIMAL, b"0"), b"CAST('0' AS DECIMAL(1,0))"),
        (said(FieldType.NEWDECIMAL, None), b"CAST(NULL AS DECIMAL)"),
        (said(FieldType.DOUBLE, b"-0"), b"-0e0"),
        (said(FieldType.DOUBLE, b"1e300"), b"1e300"),
        (said(FieldType.DOUBLE, b"0.30000000000000004"), b"0.30000000000000004e0"),
        (said(FieldType.DOUBLE, None), b"NULL + 0e0"),
        (said(FieldType.LONG_BLOB, b"\0A", BINARY, b"0041"), b"_binary x'0041'"),
        (
            said(FieldType.VAR_STRING, b"?", LATIN, b"E9"),
            b"_latin1 x'E9' COLLATE latin1_bin",
        ),
        (
            said(FieldType.LONG_BLOB, None, LATIN),
            b"_latin1 x'' COLLATE latin1_bin, @`a` = NULL",
        ),
        (
            said(FieldType.GEOMETRY, b"...", BINARY, b"E61000000102"),
            b"ST_GeomFromWKB(x'0102', 4326)",
        ),
        (said(FieldType.GEOMETRY, None), b"ST_GeomFromWKB(NULL)"),
    ],
)
def test_each_type_has_a_literal_that_is_exactly_it(value, sql):
    assert assignment("a", value) == b"SET @`a` = " + sql


@pytest.mark.parametrize("kind", STRINGS)
def test_all_strings_are_of_one_type(kind):
    assert said(kind, b"A", LATIN, b"41") == said(STRINGS[0], b"A", LATIN, b"41")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"kind": FieldType.LONGLONG, "value": b"1", "rows": 0}, "not to be had"),
        ({"kind": FieldType.LONGLONG, "value": b"1", "charset": (None, None)}, "character set"),
        # In ucs2, as after SET character_set_results = ucs2.
        ({"kind": FieldType.LONGLONG, "value": b"1", "charset": (b"\0b", b"\0b")}, "set"),
        ({"kind": FieldType.NEWDECIMAL, "value": b"\0001"}, "no literal"),
        ({"kind": FieldType.DATETIME, "value": b"2026-01-01"}, "no literal"),
        ({"kind": FieldType.LONG_BLOB, "value": b"a"}, "too long"),
        (
            {
                "kind": FieldType.LONG_BLOB,
                "value": b"a",
                "digits": b"61" * (VALUE_BYTES_MAX + 1),
            },
            "more than 1048576 bytes",
        ),
    ],
)
def test_what_cannot_be_carried_is_refused(answer, reason):
    with pytest.raises(Unsupported, match=rf"^unsupported: user variable @a in .*{reason}"):
        said(**answer)


def test_a_name_that_is_not_ascii_is_refused():
    with pytest.raises(Unsupported, match="user variable @É"):
        question("É")


def test_values_differ_where_anything_of_them_does():
    one = said(FieldType.LONGLONG, b"1")
    unset = said(FieldType.VAR_STRING, None)
    assert isinstance(one, VariableValue)
    assert differing({"a": one, "b": one, "c": unset}, {"a": one}) == ["b"]
    others = (
        said(FieldType.LONGLONG, b"2"),
        said(FieldType.LONGLONG, b"1", flags=FieldFlag.UNSIGNED),
        said(FieldType.DOUBLE, b"1"),
        unset,
    )
    for other in others:
        assert differing({"a": one}, {"a": other}) == ["a"]
    text = said(FieldType.VAR_STRING, b"A", LATIN, b"41")
    assert differing({"a": text}, {"a": text._replace(collation=b"latin1_swedish_ci")}) == ["a"]
