"""Names and values as text, and schema names exchanged in place."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.literal_values import Bits, HexString, Number
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier
from tests.sqlparse_ext.facts import statement, tables
from tests.sqlparse_ext.strategies import MODES


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20))
def test_a_quoted_name_is_read_back(name):
    assert tables(f"SELECT * FROM {quote_identifier(name)} a")[0] == f"{name} a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"NULL"),
        (42, b"42"),
        (-42, b"-42"),
        (Number("1.50"), b"1.50"),
        (b"", b"''"),
        (b"abc", b"'abc'"),
        (b"it's", b"'it''s'"),
        ("é".encode(), "'é'".encode()),
        (b"a\\b", b"_utf8mb4 x'615c62'"),
        (b"a\nb", b"_utf8mb4 x'610a62'"),
        (b"\x00\xff", b"x'00ff'"),
        (Bits(b"\x05"), b"0x05"),
        (Bits(b""), b"b''"),
        (HexString(b"\x05"), b"x'05'"),
    ],
)
def test_literals(value, text):
    assert literal(value) == text


@given(
    value=st.one_of(
        st.integers(-(2**63), 2**64 - 1), st.binary(max_size=30), st.text(max_size=20).map(str.encode)
    ),
    mode=MODES,
)  # fmt: skip
def test_a_literal_is_read_back_under_every_mode(value, mode):
    found = statement(b"SELECT * FROM t WHERE id = " + literal(value), mode)
    assert found.values(found.shape.conditions["id"]) == [value]
