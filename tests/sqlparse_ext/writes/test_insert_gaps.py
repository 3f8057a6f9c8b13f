import ast

import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.writes.insert_gaps import (
    bounded,
    count_of,
    gaps,
    insert_select,
    is_insert_select,
    keeps_shard,
    leaves_out_columns,
    naming_updated,
    next_values,
    with_columns,
)
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


def filled(sql, first=7, columns=None, zero_is_value=False):
    found = statement(sql)
    missing = gaps(found, "id", columns, zero_is_value=zero_is_value)
    return len(missing), missing.filled(found.sql, range(first, first + len(missing))).decode()


@cases(sql=str, result=str)
def test_rows_without_a_value_get_the_next_ones(sql, result):
    assert filled(sql)[1] == result


@cases(sql=str)
def test_rows_with_a_value_are_left_as_they_are(sql):
    assert filled(sql) == (0, sql)


def test_zero_is_a_value_where_the_sql_mode_says_so():
    assert filled("INSERT INTO t (id) VALUES (0), (NULL)", zero_is_value=True) == (
        1,
        "INSERT INTO t (id) VALUES (0), (7)",
    )


def test_without_a_column_list_the_table_says_where_the_column_is():
    sql = "INSERT INTO t VALUES ('x', NULL), ('y', 5)"
    assert filled(sql, columns=("a", "id")) == (1, "INSERT INTO t VALUES ('x', 7), ('y', 5)")


@cases(sql=str, result=str)
def test_rows_of_defaults_get_the_next_ones(sql, result):
    assert filled(sql, columns=("a", "id"))[1] == result


@cases(sql=str)
def test_what_cannot_be_told_is_refused(sql):
    with pytest.raises(
        Unsupported, match="'id' takes values of a sequence or of vt_auto_id; name"
    ):
        filled(sql)


@pytest.mark.parametrize("count", [1, 200, 1000])
def test_many_rows_get_as_many_values(count):
    rows = ", ".join(f"('row {n}')" for n in range(count))
    number, sql = filled(f"INSERT INTO t (a) VALUES {rows}", first=100)
    assert number == count
    assert sql.endswith(f"('row {count - 1}', {100 + count - 1})")


@cases(sql=str, table=ast.literal_eval, count=ast.literal_eval)
def test_who_asks_a_sequence_says_how_many_values(sql, table, count):
    found = statement(sql)
    asked = next_values(found.shape)
    assert asked is not None
    assert (asked.table.schema, asked.table.name) == table
    assert count_of(asked, found) == count
    assert asked.is_certain == ("VALUES" in sql.upper())


@cases(sql=str)
def test_other_statements_ask_no_sequence(sql):
    assert next_values(statement(sql).shape) is None


@cases(sql=str, named=str)
def test_the_list_stands_behind_the_table(sql, named):
    found = statement(sql)
    assert leaves_out_columns(found.shape)
    assert with_columns(found, ["id", "a b"]).decode() == named


@cases(sql=str)
def test_what_names_its_columns_or_has_no_place_for_them_is_left_alone(sql):
    assert not leaves_out_columns(statement(sql).shape)


@cases(sql=str, asked=str)
def test_the_id_of_an_updated_row_is_asked_for_where_a_value_is_assigned(sql, asked):
    found = naming_updated(statement(sql), "id")
    assert (None if found is None else found.decode()) == asked


@cases(assigned=str, keeps=ast.literal_eval)
def test_an_update_of_a_duplicate_stays_on_its_shard(assigned, keeps):
    sql = f"INSERT INTO t (id, a) VALUES (1, 2) AS n ON DUPLICATE KEY UPDATE {assigned}"
    assert keeps_shard(statement(sql).shape, "id") is keeps


def test_without_an_update_of_duplicates_no_row_is_known_to_stay():
    assert not keeps_shard(statement("INSERT INTO t (id) VALUES (1)").shape, "id")


@cases(sql=str, last=ast.literal_eval)
def test_the_last_value_that_a_client_gave_is_known(sql, last):
    found = statement(f"INSERT INTO t (id) {sql}")
    assert gaps(found, "id", None, zero_is_value=False).last == last


@cases(sql=str, head=str, query=str)
def test_the_query_stands_alone(sql, head, query):
    found = statement(sql)
    assert is_insert_select(found.shape)
    parts = insert_select(found)
    assert (parts.head.decode(), parts.query.decode()) == (head, query)


def test_what_is_returned_stands_behind_the_query():
    sql = "INSERT INTO t (a) (SELECT b FROM u) RETURNING a, 'x'"
    assert insert_select(statement(sql)) == (
        b"INSERT INTO t (a) ",
        b"SELECT b FROM u",
        b"RETURNING a, 'x'",
    )


@cases(sql=str)
def test_other_statements_are_none(sql):
    assert not is_insert_select(shape(sql))


def test_a_query_is_bounded_whatever_its_own_limit():
    assert bounded(statement("SELECT a FROM t"), 9, b" LOCK") == b"SELECT a FROM t LIMIT 9 LOCK"
    assert (
        bounded(statement("SELECT a FROM t LIMIT 90"), 9)
        == b"SELECT * FROM (SELECT a FROM t LIMIT 90) AS `streamfrom` LIMIT 9"
    )
    inner = "SELECT a FROM t WHERE b = (SELECT b FROM u LIMIT 1)"
    assert bounded(statement(inner), 9) == inner.encode() + b" LIMIT 9"
