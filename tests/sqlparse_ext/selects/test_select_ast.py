import ast

from sqlglot import exp

from streamfrom.sqlparse_ext.selects.select_ast import Reference, Scope
from streamfrom.sqlparse_ext.selects.select_reader import read_select
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


def read(sql):
    found = read_select(statement(sql).shape.template)
    assert found is not None
    return found


@cases(item=str, is_constant=ast.literal_eval, has_aggregate=ast.literal_eval)
def test_an_expression_knows_what_it_is_made_of(item, is_constant, has_aggregate):
    expression = read(f"SELECT {item} FROM t").items[0].expression
    assert expression is not None
    assert expression.is_constant is is_constant
    assert expression.has_aggregate is has_aggregate


@cases(sql=str, aggregates=str.split)
def test_an_aggregate_anywhere_makes_groups(sql, aggregates):
    assert sorted(read(sql).aggregates) == aggregates


def column(name, table=""):
    return exp.column(name, table or None)


def test_a_name_is_a_source_a_tied_column_of_a_derived_table_or_unknown():
    outer = Scope(None)
    outer.add("a", 0)
    scope = Scope(outer)
    scope.add("b", 1)
    scope.add("d", None)
    scope.names["e"] = {"k": Reference(2, "id")}
    assert scope.find(column("X", "B")) == Reference(1, "x")
    assert scope.find(column("x", "a")) == Reference(0, "x")
    assert scope.find(column("k", "e")) == Reference(2, "id")
    assert scope.find(column("n", "e")) is None
    assert scope.find(column("x", "d")) is None
    assert scope.find(column("x")) is None
