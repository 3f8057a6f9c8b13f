"""Names and values as text, and schema names exchanged in place."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier, requalify
from tests.sqlparse_ext.facts import statement, tables
from tests.sqlparse_ext.strategies import MODES, texts


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


MAPPING = {"ks": "db", "ks:-80": "db", "old": None}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"SELECT * FROM ks.t", b"SELECT * FROM `db`.t"),
        (b"SELECT * FROM `ks:-80`.`t`", b"SELECT * FROM `db`.`t`"),
        (b"SELECT * FROM old.t", b"SELECT * FROM t"),
        (
            b"SELECT ks.t.a, 'ks.t' FROM ks . t -- ks.t",
            b"SELECT `db`.t.a, 'ks.t' FROM `db` . t -- ks.t",
        ),
        (b"SELECT * FROM a, ks.t JOIN ks.u", b"SELECT * FROM a, `db`.t JOIN `db`.u"),
        (b"SELECT ks.a FROM x AS ks", b"SELECT ks.a FROM x AS ks"),
        (b"SELECT ks.a FROM ks.x ks", b"SELECT ks.a FROM `db`.x ks"),
        (b"INSERT INTO ks.t VALUES (1),(2)", b"INSERT INTO `db`.t VALUES (1),(2)"),
        (b"SELECT a.ks FROM a WHERE id IN (1, 2)", b"SELECT a.ks FROM a WHERE id IN (1, 2)"),
        (b"UPDATE ks.t SET a = 1", b"UPDATE `db`.t SET a = 1"),
        (
            b"DELETE FROM ks.t WHERE ks.t.id IN (1,2)",
            b"DELETE FROM `db`.t WHERE `db`.t.id IN (1,2)",
        ),
    ],
)
def test_schema_names_are_exchanged(sql, expected):
    assert requalify(sql, MAPPING) == expected


def test_an_unchanged_text_is_the_same_object():
    sql = b"SELECT 'ks.t' FROM t"
    assert requalify(sql, MAPPING) is sql


def test_double_quoted_schema_names_under_ansi_quotes():
    assert (
        requalify(b'SELECT * FROM "ks".t', MAPPING, SqlMode.ANSI_QUOTES)
        == b"SELECT * FROM `db`.t"
    )
    assert requalify(b'SELECT "ks".t', MAPPING, DEFAULT_MODE) == b'SELECT "ks".t'


@given(sql=texts, mode=MODES)
def test_requalifying_twice_changes_nothing_more(sql, mode):
    once = requalify(sql, {"ks": "db"}, mode)
    assert requalify(once, {"ks": "db"}, mode) == once
