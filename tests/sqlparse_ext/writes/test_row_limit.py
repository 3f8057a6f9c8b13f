import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.writes.row_limit import limit_of, rows_max, with_limit
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


def limited(sql):
    found = statement(sql)
    limit = limit_of(found.shape)
    assert limit is not None
    return found, limit


@cases(sql=str)
def test_the_number_at_the_end_is_read_and_replaced(sql):
    found, limit = limited(sql)
    assert rows_max(found, limit) == 7
    assert with_limit(found, 40).decode() == "40".join(sql.rsplit("7", 1))


def test_a_bound_number_is_read():
    found, limit = limited("DELETE FROM t WHERE a = ? LIMIT ?")
    assert rows_max(found.bind((b"x", 3)), limit) == 3
    for wrong in (found, found.bind((b"x", -3)), found.bind((b"x", 1.5))):
        with pytest.raises(Unsupported, match="LIMIT that is no whole number"):
            rows_max(wrong, limit)


@pytest.mark.parametrize("number", ["1.5", "'7'"])
def test_what_is_no_whole_number_is_refused(number):
    with pytest.raises(Unsupported, match="LIMIT that is no whole number"):
        rows_max(*limited(f"DELETE FROM t LIMIT {number}"))


@cases(sql=str)
def test_other_statements_have_no_such_limit(sql):
    assert limit_of(shape(sql)) is None
