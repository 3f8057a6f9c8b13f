import pytest

from streamfrom.sqlparse_ext.writes.column_list import leaves_out_columns, with_columns
from tests.sqlparse_ext.facts import statement as parsed


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("INSERT INTO t VALUES (1, 2)", "INSERT INTO t (`id`, `a b`) VALUES (1, 2)"),
        (
            "INSERT /* x */ IGNORE t/* y */VALUES (1, 'a'), (2, 'b')",
            "INSERT /* x */ IGNORE t (`id`, `a b`)/* y */VALUES (1, 'a'), (2, 'b')",
        ),
        ("replace `t`values (?,?)", "replace `t` (`id`, `a b`)values (?,?)"),
        (
            "INSERT INTO ks.t PARTITION (p0, p1) VALUES (1, 2)",
            "INSERT INTO ks.t PARTITION (p0, p1) (`id`, `a b`) VALUES (1, 2)",
        ),
        ("INSERT INTO t SELECT * FROM u", "INSERT INTO t (`id`, `a b`) SELECT * FROM u"),
        ("INSERT INTO t (SELECT 1, 2)", "INSERT INTO t (`id`, `a b`) (SELECT 1, 2)"),
        (
            "INSERT INTO t VALUES (1, 2) AS n ON DUPLICATE KEY UPDATE a = n.a",
            "INSERT INTO t (`id`, `a b`) VALUES (1, 2) AS n ON DUPLICATE KEY UPDATE a = n.a",
        ),
        ("INSERT INTO t VALUES ROW(1, 2)", "INSERT INTO t (`id`, `a b`) VALUES ROW(1, 2)"),
    ],
)
def test_the_list_stands_behind_the_table(sql, named):
    statement = parsed(sql)
    assert leaves_out_columns(statement.shape)
    assert with_columns(statement, ["id", "a b"]).decode() == named


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (id) VALUES (1)",
        "INSERT INTO t () VALUES ()",
        "INSERT INTO t SET id = 1",
        "INSERT INTO t",
        "UPDATE t SET id = 1",
    ],
)
def test_what_names_its_columns_or_has_no_place_for_them_is_left_alone(sql):
    assert not leaves_out_columns(parsed(sql).shape)
