"""Names and values as text, and schema names exchanged in place."""

from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier
from tests.cases import cases
from tests.sqlparse_ext.facts import statement, tables, value
from tests.sqlparse_ext.strategies import MODES


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20))
def test_a_quoted_name_is_read_back(name):
    assert tables(f"SELECT * FROM {quote_identifier(name)} a")[0] == f"{name} a"


@cases(value=value, text=str.encode)
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
