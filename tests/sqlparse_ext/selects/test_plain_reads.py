import pytest

from streamfrom.sqlparse_ext.selects.plain_reads import is_plain_read
from tests.cases import cases
from tests.loop_calls import calls_counted
from tests.sqlparse_ext.facts import shape


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE id = 5",
        "SELECT * FROM t WHERE id = ?",
        "SELECT t.a, `b` AS c FROM t WHERE t.id = 5 AND kind = 'x'",
        "SELECT a FROM t x WHERE x.id IN (1, 2, 3)",
        "SELECT a FROM t WHERE id IN (?, ?)",
        "SELECT a FROM t WHERE id = 5 LIMIT 1",
        "SELECT a FROM t WHERE id = ? ORDER BY a DESC LIMIT ?",
        "/* a comment with f() in it */ select a from t where id = 'f(x)';",
    ],
)
def test_columns_of_rows_with_given_values_are_a_plain_read(sql):
    assert is_plain_read(shape(sql))


@cases(sql=str)
def test_what_may_call_lock_set_or_count_is_not_plain(sql):
    assert not is_plain_read(shape(sql))


def test_a_long_list_of_markers_is_no_plain_read_and_is_not_looked_at():
    markers = ", ".join("?" * 65_535)
    long = shape(f"SELECT a FROM t WHERE id IN ({markers})")
    with calls_counted() as counts:
        assert not is_plain_read(long)
    assert sum(counts.values()) < 100
