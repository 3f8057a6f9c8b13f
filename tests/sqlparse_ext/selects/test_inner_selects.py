"""The SELECTs that a statement is made of."""

import pytest

from streamfrom.sqlparse_ext.selects.inner_selects import read_inner_selects, without_rows
from tests.sqlparse_ext.facts import statement


def parts(sql):
    return read_inner_selects(statement(sql).shape.template)


def texts(sql):
    found = parts(sql)
    assert found is not None
    return [each.statement(statement(sql)).sql.decode() for each in found.excerpts]


@pytest.mark.parametrize(
    ("sql", "expected", "operators"),
    [
        (
            "SELECT a FROM t GROUP BY a UNION ALL (SELECT b FROM u LIMIT 3) ORDER BY 1 LIMIT 2",
            ["SELECT a FROM t GROUP BY a", "SELECT b FROM u LIMIT 3"],
            ("UNION ALL",),
        ),
        (
            "((SELECT 1)) UNION SELECT 2 /* x */ EXCEPT select (SELECT 3) ;",
            ["SELECT 1", "SELECT 2", "select (SELECT 3)"],
            ("UNION", "EXCEPT"),
        ),
        ("SELECT 1 UNION DISTINCT SELECT 'x)' LIMIT 3", ["SELECT 1", "SELECT 'x)'"], ("UNION",)),
        ("SELECT * FROM (SELECT a FROM t LIMIT 3) d WHERE a > 2", ["SELECT a FROM t LIMIT 3"], ()),
        (
            "SELECT * FROM (SELECT 1) d JOIN (SELECT 2 UNION SELECT 3) AS e, r, (SELECT 4) f",
            ["SELECT 1", "SELECT 2 UNION SELECT 3", "SELECT 4"],
            (),
        ),
        (
            "WITH x AS (SELECT 1), `y` (a, b) AS (SELECT 2, 3) SELECT * FROM x, y",
            ["SELECT 1", "SELECT 2, 3"],
            (),
        ),
    ],
)  # fmt: skip
def test_the_parts_are_statements_of_their_own(sql, expected, operators):
    found = parts(sql)
    assert found is not None
    assert texts(sql) == expected
    assert found.operators == operators


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        "WITH RECURSIVE x AS (SELECT 1 UNION SELECT 2) SELECT * FROM x",
        "SELECT 1 UNION (SELECT 2 UNION SELECT 3)",
        "SELECT * FROM (SELECT 1) d FOR UPDATE",
        "SELECT * FROM t, LATERAL (SELECT t.a) d",
        "SELECT @a := 1 UNION SELECT 2",
        "(SELECT 1) UNION VALUES (2)",
        "WITH x (SELECT 1) SELECT 1",
        "SELECT 1 UNION",
    ],
)
def test_of_other_forms_there_are_none(sql):
    assert parts(sql) is None


def test_what_is_outside_of_the_parts_has_its_own_tables():
    found = parts("WITH x AS (SELECT a FROM t) SELECT * FROM x JOIN ref ON ref.id = x.a")
    assert found is not None
    assert found.names == {"x"}
    assert [table.name for table in found.outside.tables] == ["ref"]


def test_texts_take_the_places_of_parts():
    sql = "SELECT 'a' UNION ALL (SELECT 'bcd') ORDER BY 1 LIMIT 7"
    found = parts(sql)
    assert found is not None
    given = statement(sql)
    assert found.with_parts(given, {1: b"SELECT x"}) == (
        b"SELECT 'a' UNION ALL (SELECT x) ORDER BY 1 LIMIT 7"
    )
    assert found.body(given, {0: b"A", 1: b"B"}) == b"A UNION ALL (B)"


def test_values_that_are_bound_go_to_the_parts_that_they_stand_in():
    sql = "SELECT a FROM t WHERE id = ? UNION ALL SELECT ? FROM t WHERE id IN (?, 8) LIMIT ?"
    given = statement(sql).bind((1, 2, 3, 4), lambda place: b"%d" % (place + 1))
    found = read_inner_selects(given.shape.template)
    assert found is not None
    one, other = (each.statement(given) for each in found.excerpts)
    assert one.values(one.shape.conditions["id"]) == [1]
    assert other.arguments == (2, 3)
    assert other.spell is not None
    assert other.spell(1) == b"3"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t", "SELECT a FROM t LIMIT 0"),
        ("SELECT (SELECT 1 LIMIT 1) FROM t LIMIT 3, 4;", "SELECT (SELECT 1 LIMIT 1) FROM t LIMIT 0"),
        ("(SELECT 1 LIMIT 1) UNION SELECT 'x' ORDER BY 1", "(SELECT 1 LIMIT 1) UNION SELECT 'x' ORDER BY 1 LIMIT 0"),
    ],
)  # fmt: skip
def test_a_limit_of_none_keeps_the_columns(sql, expected):
    assert without_rows(statement(sql)) == expected.encode()
