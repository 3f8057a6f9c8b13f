import pytest

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.sql.scatter.taken_rows import INSERT_ROWS_MAX, TakenRows
from streamfrom.sqlparse_ext.errors import Unsupported


def test_rows_of_several_queries_count_together_and_not_what_is_taken_back():
    taken = TakenRows(1000, "parts")
    taken.head([b"column"])
    taken.more_rows([b"row"] * (INSERT_ROWS_MAX // 16))
    taken.end_of_rows(warnings=2)
    assert (len(taken.rows), taken.columns, taken.warnings) == (
        INSERT_ROWS_MAX // 16,
        [b"column"],
        2,
    )
    taken.begin()
    assert taken.rows == []
    with pytest.raises(MergeTooLarge):
        taken.more_rows([b"row"] * 50)
    taken = TakenRows(1 << 20, "parts")
    for _ in range(3):
        taken.more_rows([b""] * INSERT_ROWS_MAX)
        assert taken.take_back()
    assert taken.rows == []


def test_one_row_more_than_may_be_is_refused_by_what_it_is_of():
    taken = TakenRows(1 << 20, "INSERT … SELECT")
    taken.more_rows([b""] * INSERT_ROWS_MAX)
    with pytest.raises(Unsupported, match="INSERT … SELECT of more than 5000 rows"):
        taken.more_rows([b""])
