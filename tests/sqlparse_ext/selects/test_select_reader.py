import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.selects.select_reader import read_select
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.statements import Slot, TableRef
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from tests.cases import cases


def read(sql):
    found = read_select(fingerprint(sql.encode(), DEFAULT_MODE).template)
    assert found is not None
    return found


def text(sql, span):
    """Return a span of the template, which is the text itself where there are no literals."""
    return fingerprint(sql.encode(), DEFAULT_MODE).template[span[0] : span[1]].decode()


def test_each_item_has_its_text_and_its_alias():
    sql = "SELECT a, T.b AS x, COUNT(DISTINCT c, d) n, a + b `Y`, UPPER(a) FROM t"
    items = read(sql).items
    assert [text(sql, item.expression.span) for item in items] == [
        "a", "T.b", "COUNT(DISTINCT c, d)", "a + b", "UPPER(a)",
    ]  # fmt: skip
    assert [item.alias for item in items] == [None, "x", "n", "y", None]
    assert [item.expression.column for item in items] == ["a", "b", None, None, None]


@cases(expression=str, leaves=ast.literal_eval)
def test_an_expression_knows_the_aggregates_and_names_that_it_is_made_of(expression, leaves):
    sql = f"SELECT {expression} FROM t"
    found = read(sql).items[0].expression
    assert [text(sql, leaf.span) for leaf in found.leaves] == leaves


@pytest.mark.parametrize(
    "item", ["COUNT(*) + (SELECT 1)", "(SELECT 1) + MAX(a)", "COALESCE((SELECT 1), SUM(a))"]
)
def test_an_aggregate_beside_a_subquery_is_not_read(item):
    assert read_select(f"SELECT {item} FROM t".encode()) is None
    assert read_select(b"SELECT (SELECT MAX(a) FROM r) + 1 FROM t") is not None


def test_the_clauses_are_where_they_stand():
    sql = (
        "SELECT DISTINCT a FROM db.t AS x USE INDEX (i) WHERE b IS NULL GROUP BY a"
        " HAVING a IS NULL ORDER BY a DESC, b FOR UPDATE"
    )
    found = read(sql)
    spans = (found.distinct, found.table_span, found.source, found.where)
    assert [text(sql, span) for span in spans] == [
        "DISTINCT", "db.t", "FROM db.t AS x USE INDEX (i)", "WHERE b IS NULL"
    ]  # fmt: skip
    assert text(sql, (found.rows_end, found.rows_end + 4)) == " FOR"
    assert [order.descending for order in found.order] == [True, False]
    assert (found.table.schema, found.table.name, found.table.alias) == ("db", "t", "x")


def test_an_aggregate_is_one_call_and_nothing_else():
    items = read("SELECT SUM(a), SUM(a) + 1, COUNT(*), MIN(DISTINCT b), UPPER(a) FROM t").items
    calls = [item.expression.call for item in items]
    assert [call and call.function for call in calls] == ["SUM", None, "COUNT", "MIN", None]
    assert (calls[0].arguments[0].column, calls[2].arguments) == ("a", ())
    assert calls[3].distinct
    assert [item.expression.has_aggregate for item in items] == [True] * 4 + [False]


@cases(having=str, operators=ast.literal_eval)
def test_having_is_its_operands_of_and(having, operators):
    found = read(f"SELECT a FROM t GROUP BY a HAVING {having}").having
    assert [condition.operator for condition in found] == operators


@cases(item=str)
def test_the_last_word_of_an_expression_is_no_alias(item):
    assert read(f"SELECT {item} FROM t").items[0].alias is None


def test_a_select_that_the_loop_would_read_for_long_is_not_read():
    templates = [b"SELECT a FROM t ORDER BY a" + b", a" * more for more in (900, 1100)]
    assert [read_select(each) is None for each in templates] == [False, True]


@cases(sql=str)
def test_what_is_not_certain_is_not_read(sql):
    assert read_select(fingerprint(sql.encode(), DEFAULT_MODE).template) is None


pieces = st.lists(
    st.sampled_from(
        [
            "SELECT", "FROM", "t", "a", "b", "(", ")", ",", "*", ".", "AS", "x", "GROUP", "BY", "HAVING",
            "ORDER", "LIMIT", "1", "'x'", "COUNT(", "DISTINCT", "=", "DESC", "IS", "NULL", "AND", "WHERE",
            "--", "/*", "`",
        ]
    ),
    max_size=25,
)  # fmt: skip


@given(pieces)
def test_any_text_is_read_or_refused_without_an_error(words):
    sql = "SELECT " + " ".join(words)
    found = read_select(fingerprint(sql.encode(), DEFAULT_MODE).template)
    assert found is None or found.items


def joined(sql):
    tables = (TableRef(None, "a"), TableRef(None, "b", "x"))
    return read_select(fingerprint(sql.encode(), DEFAULT_MODE).template, tables)


def test_a_join_is_taken_apart_like_one_table_with_the_tables_names_in_the_words():
    found = joined(
        "SELECT a.id, x.v FROM a LEFT JOIN b x ON a.id = x.id WHERE x.v > 1 ORDER BY x.v LIMIT 2"
    )
    assert found is not None
    assert [table.name for table in found.joined] == ["a", "b"]
    assert [item.expression.words for item in found.items] == [
        ("a", ".", "id"),
        ("x", ".", "v"),
    ]
    assert found.order[0].expression.words == ("x", ".", "v")
    assert found.order[0].expression.column is None
    # Where one table was expected it is not read.
    assert read_select(b"SELECT a.id FROM a JOIN b ON 1 = 1") is None


def test_parentheses_around_a_position_or_a_column_change_nothing():
    select = read(
        "SELECT a, b FROM t GROUP BY (a), ((2)) ORDER BY (1) DESC, ((b)), (a) + (b), (a, b)"
    )
    assert [each.column for each in select.group] == ["a", None]
    assert isinstance(select.group[1].words[0], Slot)
    positions = [order.position is not None for order in select.order]
    assert positions == [True, False, False, False]
    assert [order.expression.column for order in select.order] == [None, "b", None, None]
    assert select.order[0].descending
