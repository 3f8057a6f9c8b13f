import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.writes.row_limit import limit_of, rows_max, with_limit
from tests.sqlparse_ext.facts import shape, statement


def limited(sql):
    found = statement(sql)
    limit = limit_of(found.shape)
    assert limit is not None
    return found, limit


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t LIMIT 7",
        "delete from t where id in (1, 2) and s = 'x' limit 7 ;",
        "DELETE FROM t WHERE a = (SELECT MAX(b) FROM r LIMIT 1) LIMIT 7 -- done",
    ],
)
def test_the_number_at_the_end_is_read_and_replaced(sql):
    found, limit = limited(sql)
    assert rows_max(found, limit) == 7
    assert with_limit(found, 40).decode() == "40".join(sql.rsplit("7", 1))


def test_a_bound_number_is_read():
    found, limit = limited("DELETE FROM t WHERE a = ? LIMIT ?")
    assert rows_max(found.bind((b"x", 3)), limit) == 3
    with pytest.raises(Unsupported, match="LIMIT that is no whole number"):
        rows_max(found, limit)


@pytest.mark.parametrize("number", ["1.5", "'7'"])
def test_what_is_no_whole_number_is_refused(number):
    with pytest.raises(Unsupported, match="LIMIT that is no whole number"):
        rows_max(*limited(f"DELETE FROM t LIMIT {number}"))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "DELETE FROM t WHERE a = 7",
        "DELETE FROM t ORDER BY a LIMIT 7",
        "DELETE FROM t LIMIT 7 RETURNING a",
        "UPDATE t SET a = 1 LIMIT 7",
        "SELECT a FROM t LIMIT 7",
    ],
)
def test_other_statements_have_no_such_limit(sql):
    assert limit_of(shape(sql)) is None
