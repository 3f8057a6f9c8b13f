import ast
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.merge.comparison import (
    ColumnKey,
    Comparison,
    Sort,
    are_alike,
    comparison_of,
    double_text,
    padded,
    padding,
    scaled,
    sort_of,
    unscaled,
)
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases


SPACE = b"0020"


@pytest.mark.parametrize(
    ("column", "comparison"),
    [
        (ColumnDefinition("c", type=FieldType.LONGLONG), Comparison.NUMBER),
        (ColumnDefinition("c", type=FieldType.FLOAT), Comparison.FLOAT),
        (ColumnDefinition("c", type=FieldType.VAR_STRING), Comparison.STRING),
        (ColumnDefinition("c", type=FieldType.BLOB, charset=BINARY_CHARSET), Comparison.BYTES),
        (
            ColumnDefinition("c", type=FieldType.STRING, flags=FieldFlag.ENUM),
            Comparison.ORDINAL,
        ),
        (ColumnDefinition("c", type=FieldType.STRING, flags=FieldFlag.SET), Comparison.ORDINAL),
        (ColumnDefinition("c", type=FieldType.TIMESTAMP), Comparison.INSTANT),
    ],
)
def test_the_definition_says_how_values_compare(column, comparison):
    assert comparison_of(column) is comparison


@pytest.mark.parametrize("kind", [FieldType.JSON, FieldType.GEOMETRY, FieldType.VECTOR])
def test_types_without_an_order_of_their_own_are_refused(kind):
    with pytest.raises(Unsupported, match="comparing values of 'c'"):
        comparison_of(ColumnDefinition("c", type=kind))


@cases(collation=str, pads=ast.literal_eval)
def test_the_collation_says_whether_blanks_at_the_end_count(collation, pads):
    assert padding(collation, SPACE) == (SPACE if pads else b"")


def test_a_char_column_without_padding_is_refused_as_its_sorting_contradicts_its_grouping():
    with pytest.raises(
        Unsupported, match="comparing values of collation utf8mb4_unicode_nopad_ci"
    ):
        padding("utf8mb4_unicode_nopad_ci", SPACE, is_char=True)
    assert padding("utf8mb4_0900_ai_ci", SPACE, is_char=True) == b""


@pytest.mark.parametrize(
    "collation",
    ["big5_chinese_ci", "latin2_czech_cs", "utf8mb4_uca1400_as_cs", "utf8mb4_thai_520_w2"],
)
def test_collations_of_uneven_or_stacked_weights_are_refused(collation):
    with pytest.raises(Unsupported, match=f"collation {collation}"):
        padding(collation, SPACE)


texts = st.text("\t a\x1fb", max_size=8)


def weight(text):
    return b"".join(b"%04X" % ord(character) for character in text)


@given(texts, texts)
def test_padded_weights_compare_as_if_both_sides_were_filled_up_with_spaces(left, right):
    width = max(len(left), len(right))
    a, b = left.ljust(width), right.ljust(width)
    one, other = padded(weight(left), SPACE), padded(weight(right), SPACE)
    assert (one < other) == (a < b)
    assert (one == other) == (a == b)


values = {
    Comparison.NUMBER: st.one_of(
        st.integers(-(2**63), 2**64).map(lambda n: b"%d" % n),
        st.decimals(-1000, 1000, places=2).map(lambda n: str(n).encode()),
    ),
    Comparison.DOUBLE: st.floats(-1e9, 1e9).map(lambda f: repr(f).encode()),
    Comparison.TEXT: st.dates().map(lambda d: str(d).encode()),
    Comparison.TIME: st.integers(-3000, 3000).map(
        lambda s: (
            b"%b%02d:%02d:%02d"
            % (b"-" if s < 0 else b"", abs(s) // 3600, abs(s) // 60 % 60, abs(s) % 60)
        )
    ),
    Comparison.BYTES: st.binary(max_size=4),
    Comparison.STRING: texts.map(weight),
}


@pytest.mark.parametrize("key", [*map(ColumnKey, values), ColumnKey(Comparison.STRING, SPACE)])
@given(st.data())
def test_a_descending_key_is_the_ascending_one_turned_round(key, data):
    value = st.one_of(st.none(), values[key.comparison])
    left, right = data.draw(value), data.draw(value)
    up, down = key.decoder(), key.decoder(descending=True)
    assert (up(left) < up(right)) == (down(right) < down(left))
    assert (up(left) == up(right)) == (down(left) == down(right))


@pytest.mark.parametrize(
    ("comparison", "sql"),
    [
        (Comparison.NUMBER, b"a + b"),
        (Comparison.STRING, b"HEX(WEIGHT_STRING(a + b))"),
        (Comparison.FLOAT, b"(a + b)+0e0"),
        (Comparison.INSTANT, b"UNIX_TIMESTAMP(a + b)"),
        (Comparison.ORDINAL, b"(a + b)+0"),
    ],
)
def test_what_is_compared_is_asked_of_the_server(comparison, sql):
    key = ColumnKey(comparison)
    assert key.sql(b"a + b") == sql
    assert key.is_plain is (sql == b"a + b")


@given(st.integers(-(10**20), 10**20), st.integers(0, 12))
def test_a_decimal_survives_scaling(value, scale):
    text = unscaled(value, scale)
    assert scaled(text) == value
    assert Decimal(text.decode()) == Decimal(value).scaleb(-scale)


@cases(value=float, text=str.encode)
def test_doubles_are_written_as_the_servers_write_them(value, text):
    assert double_text(value) == text


def test_doubles_of_fixed_decimals_keep_them():
    assert double_text(2.5, 3) == b"2.500"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(value):
    assert float(double_text(value)) == value


def column(kind, decimals=0, flags=0, charset=BINARY_CHARSET):
    return ColumnDefinition("c", type=kind, decimals=decimals, flags=flags, charset=charset)


TEXT = column(FieldType.VAR_STRING, charset=255)
UNSIGNED = column(FieldType.LONGLONG, flags=FieldFlag.UNSIGNED)


def test_columns_are_alike_whose_values_mean_the_same_things():
    small = column(FieldType.TINY)
    assert are_alike(small, column(FieldType.LONGLONG))
    assert not are_alike(small, UNSIGNED)
    assert are_alike(column(FieldType.TIMESTAMP), column(FieldType.DATETIME))
    assert not are_alike(column(FieldType.DATETIME), column(FieldType.DATETIME, 3))
    assert not are_alike(column(FieldType.NEWDECIMAL, 2), column(FieldType.NEWDECIMAL, 4))
    assert are_alike(TEXT, replace(TEXT, type=FieldType.BLOB, decimals=31))
    assert not are_alike(TEXT, replace(TEXT, charset=8))
    assert sort_of(column(FieldType.JSON)) is sort_of(column(FieldType.YEAR)) is None
    assert not are_alike(column(FieldType.JSON), column(FieldType.YEAR))
    assert sort_of(column(FieldType.BLOB)) is Sort.BYTES
