"""The tables of queries that need a real parser."""

import pytest

from tests.sqlparse_ext.facts import tables, uses


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM a JOIN ks.b x ON a.i = x.i", ["a", "ks.b x"]),
        ("SELECT * FROM a LEFT JOIN (b, c) ON 1 = 1", ["a", "b", "c"]),
        ("SELECT * FROM t a JOIN t b", ["t a", "t b"]),
        ("SELECT * FROM (SELECT * FROM t) d", ["t"]),
        ("SELECT (SELECT MAX(a) FROM u) FROM t WHERE b IN (SELECT c FROM v)", ["t", "u", "v"]),
        ("SELECT 1 UNION SELECT a FROM t", ["t"]),
        ("(SELECT a FROM t) UNION ALL (SELECT b FROM u LIMIT 1)", ["t", "u"]),
        ("TABLE t", ["t"]),
        ("VALUES ROW(1, 2)", []),
        ("SELECT * FROM DUAL, t", ["t"]),
        ("SELECT EXTRACT(YEAR FROM a), TRIM('x' FROM b) FROM t, u", ["t", "u"]),
        ("SELECT * FROM t, JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$')) j", ["t"]),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", ["t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH T AS (SELECT 1) SELECT * FROM t", ["t"]),
        ("WITH RECURSIVE c AS (SELECT 1 UNION SELECT a FROM c) SELECT * FROM c", []),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", []),
        ("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b", ["a"]),
        ("SELECT * FROM t WHERE a IN (WITH t AS (SELECT 1) SELECT * FROM t)", ["t"]),
        ("WITH c AS (SELECT 1) SELECT * FROM ks.c", ["ks.c"]),
        ("WITH c AS (SELECT * FROM t) UPDATE u JOIN c USING (i) SET u.a = 1", ["u", "t"]),
        ("WITH c AS (SELECT i FROM t) DELETE FROM u WHERE i IN (SELECT i FROM c)", ["u", "t"]),
        ("UPDATE a, b SET a.x = b.x", ["a", "b"]),
        ("UPDATE LOW_PRIORITY t SET a = (SELECT MAX(b) FROM u) WHERE c = 1", ["t", "u"]),
        ("DELETE a FROM a JOIN b USING (i)", ["a", "b"]),
        ("DELETE FROM a USING a JOIN b USING (i)", ["a", "b"]),
        ("DELETE QUICK FROM t WHERE a IN (SELECT b FROM u)", ["t", "u"]),
        ("INSERT INTO t SELECT * FROM u JOIN v ON u.a = v.a ON DUPLICATE KEY UPDATE a = 1",
         ["t", "u", "v"]),
        ("INSERT INTO t VALUES ((SELECT MAX(a) FROM u), 1)", ["t", "u"]),
        ("REPLACE INTO t SET a = (SELECT MAX(a) FROM u)", ["t", "u"]),
        ("CREATE TABLE t AS SELECT * FROM u", ["t", "u"]),
        ("CREATE VIEW v AS SELECT * FROM t WITH CHECK OPTION", ["v", "t"]),
        ("SELECT * FROM `t``x`, `select`", ["t`x", "select"]),
    ],
)  # fmt: skip
def test_all_tables_are_found(sql, expected):
    assert sorted(tables(sql)) == sorted(expected)
    assert "UNPARSED" not in uses(sql)
    if not sql.startswith(("SELECT", "WITH", "(")):
        assert tables(sql)[:1] == expected[:1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM a JOIN b INTO @x",
        "SELECT * FROM {oj a LEFT JOIN b ON 1}",
        "SELECT * FROM a JOIN b PROCEDURE ANALYSE()",
        "SELECT * FROM a JOIN",
        "SELECT " + "(" * 5000 + "SELECT 1 FROM t" + ")" * 5000,
        "SELECT * FROM a, b WHERE " + " OR ".join(["x = y"] * 2000),
        "UPDATE a, b",
        "SELECT * FROM t WHERE (id = 5",
        "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
    ],
)
def test_what_is_not_understood_is_unparsed(sql):
    assert "UNPARSED" in uses(sql)


def test_unparsed_statements_still_name_the_tables_they_show():
    assert tables("SELECT * FROM a JOIN ks.b INTO @x") == ["a", "ks.b"]
