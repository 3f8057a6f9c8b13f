from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.merge.comparison import double_text, unscaled
from streamfrom.proxy.merge.stage import values_row
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported


def column(kind, **options):
    return ColumnDefinition("c", type=kind, **options)


def spelled(kind, text, *, backslash_escapes=True, is_summed=False, **options):
    row = values_row(
        [column(kind, **options)],
        [text],
        backslash_escapes=backslash_escapes,
        is_summed=is_summed,
    )
    return row.decode()[1:-1]


@pytest.mark.parametrize(
    ("kind", "text", "literal"),
    [
        (FieldType.NULL, None, "NULL"),
        (FieldType.VAR_STRING, b"it's \\ 5", "'it''s \\\\ 5'"),
        (FieldType.DATE, b"2026-01-02", "DATE'2026-01-02'"),
        (FieldType.TIME, b"-01:02:03", "TIME'-01:02:03'"),
    ],
)
def test_a_value_is_a_literal_that_a_vindex_reads_as_well(kind, text, literal):
    assert spelled(kind, text) == literal
    assert spelled(FieldType.BLOB, b"\xff'", charset=BINARY_CHARSET) == "x'ff27'"


@pytest.mark.parametrize(
    "options",
    [
        {"kind": FieldType.FLOAT},
        {"kind": FieldType.DOUBLE, "decimals": 2},
        {"kind": FieldType.TIMESTAMP},
        {"kind": FieldType.YEAR},
        {"kind": FieldType.BIT},
        {"kind": FieldType.JSON},
        {"kind": FieldType.GEOMETRY},
        {"kind": FieldType.STRING, "flags": int(FieldFlag.ENUM)},
        {"kind": FieldType.LONG, "flags": int(FieldFlag.ZEROFILL)},
        {"kind": FieldType.DOUBLE, "decimals": 31, "is_summed": True},
    ],
)
@pytest.mark.parametrize("text", [b"1", None])
def test_what_has_no_exact_text_is_refused_by_its_column(options, text):
    with pytest.raises(Unsupported, match="column 'c' over several shards, whose type has no"):
        spelled(text=text, **options)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(FieldType.DATE, b"0000-00-00"), (FieldType.DATETIME, b"2024-00-01 00:00:00")],
)
def test_a_date_of_zeros_is_up_to_the_mode_and_refused(kind, text):
    with pytest.raises(Unsupported, match="a date of zeros"):
        spelled(kind, text)


@given(st.integers(-(10**20), 10**20), st.integers(0, 6))
def test_numbers_stay_of_their_kind(value, scale):
    text = unscaled(value, scale)
    assert Decimal(spelled(FieldType.NEWDECIMAL, text)) == Decimal(text.decode())
    assert "." in spelled(FieldType.NEWDECIMAL, text)
    assert "e" in spelled(FieldType.DOUBLE, double_text(float(value)), decimals=31)
