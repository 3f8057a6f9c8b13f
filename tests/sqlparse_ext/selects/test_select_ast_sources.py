from sqlglot import exp

from streamfrom.sqlparse_ext.selects.select_ast import Reference, Scope


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
