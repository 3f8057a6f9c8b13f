"""A SELECT from a derived table, and the count of its rows."""

from streamfrom.sqlparse_ext.selects.inner_selects import read_counted, read_derived, read_union
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


def counted(sql):
    return read_counted(statement(sql).shape.template)


@cases(sql=str, inner=str)
def test_what_is_counted_is_a_statement_of_its_own(sql, inner):
    found = counted(sql)
    assert found is not None
    assert found.inner.statement(statement(sql)).sql == inner.encode()
    assert found.inner.statement(statement(sql)).literals == statement(inner).literals


def test_values_that_are_bound_belong_to_what_is_counted():
    sql = statement("SELECT COUNT(*) FROM (SELECT DISTINCT a FROM t WHERE id = ?) d").bind((7,))
    found = read_counted(sql.shape.template)
    assert found is not None
    inner = found.inner.statement(sql)
    assert inner.values(inner.shape.conditions["id"]) == [7]


@cases(sql=str)
def test_any_other_form_is_no_such_count(sql):
    assert counted(sql) is None


def test_a_select_from_a_derived_table_is_read_as_one_from_a_table():
    sql = "SELECT d.a, SUM(b) FROM (SELECT a, b FROM t ORDER BY a) AS d WHERE d.b > 1 GROUP BY d.a"
    template = statement(sql).shape.template
    select = read_derived(template)
    assert select is not None
    assert select.is_derived
    assert select.group[0].column == "a"
    assert template[slice(*select.table_span)] == b"(SELECT a, b FROM t ORDER BY a)"
    assert select.table.alias == "d"


def wrapped(sql, *, is_distinct=False):
    found = statement(sql)
    union = read_union(found.shape.template, is_distinct=is_distinct)
    assert union is not None
    return union, union.wrapped(found)


@cases(sql=str, body=str, tail=str)
def test_what_sorts_and_limits_all_of_it_stays_outside(sql, body, tail):
    union, found = wrapped(sql)
    assert union.body(statement(sql)) == body.encode()
    assert found.sql == f"SELECT * FROM ({body}) AS `streamfrom`{tail}".encode()


def test_the_pieces_are_those_of_the_wrapped_text():
    sql = "SELECT a, b FROM t WHERE b = 'x' UNION SELECT a, b FROM u ORDER BY b DESC LIMIT 5, 7"
    union, found = wrapped(sql, is_distinct=True)
    template = fingerprint(found.sql, found.mode).template
    select = union.select
    assert template[slice(*select.source)].endswith(b" FROM u) AS `streamfrom`")
    assert template[slice(*select.distinct or (0, 0))] == b"DISTINCT"
    assert [order.expression.column for order in select.order] == ["b"]
    assert select.limit is not None
    assert found.value(select.limit.count) == 7
    assert found.value(select.limit.offset) == 5


@cases(sql=str)
def test_any_other_form_is_not_read(sql):
    assert read_union(statement(sql).shape.template, is_distinct=False) is None
