import ast

import pytest

from streamfrom.sqlparse_ext.literal_values import Bits, HexString, Number
from streamfrom.sqlparse_ext.stored_forms import ColumnType, folds_case, stored_form
from tests.cases import cases, in_turn


CI, BIN = "utf8mb4_general_ci", "utf8mb4_bin"


@in_turn
@pytest.mark.parametrize(
    ("kind", "written", "stored"),
    [
        ("bigint(20)", b" 058.0 ", 58),
        ("bigint(20)", Bits(b"\x3e"), 62),
        ("bigint(20)", HexString(b"9"), None),
        ("bigint(20)", b"1e3", None),
        ("bigint(20)", Number("57.5"), None),
        ("tinyint(4)", 300, 127),
        ("int(10) unsigned", -5, 0),
        ("decimal(5,2)", b"07.005", Number("7.01")),
        ("decimal(5,2)", 1000, None),
        ("decimal(20,0)", Number("7.0"), 7),
        ("binary(4)", b"ab", b"ab\0\0"),
        ("varbinary(4)", b"ab", b"ab"),
        ("uuid", b"550E8400E29B41D4A716446655440000", b"550e8400-e29b-41d4-a716-446655440000"),
        ("inet6", b"2001:DB8:0::1", b"2001:db8::1"),
        ("inet4", b"10.0.0.1", b"10.0.0.1"),
        ("date", b"2024-01-05", b"2024-01-05"),
        ("date", b"20240105", None),
        ("date", b"2024-02-31", None),
        ("datetime(3)", b"2024-01-05 01:02:03.004", b"2024-01-05 01:02:03.004"),
        ("datetime(3)", b"2024-01-05 01:02:03", None),
        ("date", b"2024-1-5", None),
        ("date", 20240105, None),
        ("datetime(3)", b"2024-01-05 01:02:03.00x", None),
        ("decimal(5,2)", Bits(b"\x07"), Number("7.00")),
        ("decimal(5,2)", HexString(b"7"), None),
        ("decimal(5,2)", b"1e3", None),
        ("inet6", b"fe80::1%eth0", None),
        ("inet6", b"::g", None),
        ("inet4", b"10.0.0.256", None),
        ("varchar(9)", 58, b"58"),
        ("varchar(9)", b"\xff", None),
        ("binary(4)", 58, b"58\0\0"),
        ("varbinary(1)", 58, b"5"),
        ("enum('a')", 1, None),
        ("()", 5, None),
        ("double", 5, None),
        ("timestamp", b"2024-01-05 01:02:03", None),
    ],
)
def test_a_value_is_stored_in_one_form_or_in_one_that_is_not_known(kind, written, stored):
    form = stored_form(ColumnType(kind, BIN))
    assert form.stored(written) == stored
    assert stored is not None or form.hint


@cases(kind=str, collation=str, folds=ast.literal_eval, written=str.encode, stored=str.encode)
def test_a_text_is_stored_as_its_type_and_its_collation_have_it(
    kind, collation, folds, written, stored
):
    assert stored_form(ColumnType(kind, collation), folds=folds).stored(written) == stored


@pytest.mark.parametrize(
    ("kind", "wanted", "equal"),
    [
        ("bigint", b"057", 57),
        ("bigint", Number("57.0"), None),
        ("decimal(5,2)", b"7.00", Number("7.00")),
        ("decimal(5,2)", b"7.001", None),
        ("decimal(20,2)", b"1234567890123.00", None),
        ("enum('a','b')", b"b ", b"b"),
        ("uuid", b"550E8400E29B41D4A716446655440000", b"550e8400-e29b-41d4-a716-446655440000"),
        ("date", b"2024-01-05", b"2024-01-05"),
        ("double", b"5", None),
        ("varchar(9)", 5, None),
        ("varchar(2)", b"long", b"long"),
        ("binary(4)", b"ab", b"ab\0\0"),
    ],
)
def test_a_lookup_finds_the_form_of_what_is_equal_or_none(kind, wanted, equal):
    assert stored_form(ColumnType(kind, BIN)).equal(wanted) == equal


def test_values_of_a_column_that_is_not_known_yet_are_as_they_are_written():
    of_strings, of_numbers = stored_form(None, holds_strings=True), stored_form(None)
    assert of_strings.stored(Bits(b"9")) == b"9"
    assert of_numbers.stored(Bits(b"9")) == 57
    assert (of_strings.equal(5), of_numbers.equal(5)) == (None, 5)


def test_case_counts_by_binary_collations_alone():
    assert folds_case(ColumnType("varchar(9)", CI))
    assert not folds_case(ColumnType("varchar(9)", BIN))
    assert not folds_case(ColumnType("bigint(20)"))
