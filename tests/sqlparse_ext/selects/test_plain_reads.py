from streamfrom.sqlparse_ext.selects.plain_reads import is_plain_read
from tests.cases import cases
from tests.loop_calls import calls_counted
from tests.sqlparse_ext.facts import shape


@cases(sql=str, plain=str)
def test_columns_of_rows_with_given_values_are_a_plain_read(sql, plain):
    assert is_plain_read(shape(sql)) is bool(plain)


def test_a_long_list_of_markers_is_no_plain_read_and_is_not_looked_at():
    markers = ", ".join("?" * 10_000)
    long = shape(f"SELECT a FROM t WHERE id IN ({markers})")
    with calls_counted() as counts:
        assert not is_plain_read(long)
    assert sum(counts.values()) < 100
