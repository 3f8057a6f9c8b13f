"""SELECT, UPDATE and DELETE of one table."""

import ast

from streamfrom.sqlparse_ext.statements import OPAQUE
from tests.cases import cases
from tests.sqlparse_ext.facts import conditions, statement, tables, uses


@cases(sql=str, expected=ast.literal_eval)
def test_a_plain_table_needs_no_parser(sql, expected):
    assert tables(sql) == expected
    assert "UNPARSED" not in uses(sql)


def test_modifiers_and_hints_do_not_hide_the_condition():
    assert conditions("UPDATE LOW_PRIORITY IGNORE t SET a = 1 WHERE id = 5") == {"id": [5]}
    assert conditions("SELECT * FROM t FORCE INDEX (a) WHERE id = 5") == {"id": [5]}
    assert conditions("DELETE FROM t AS x WHERE x.id = 5") == {"id": [5]}
    assert conditions("UPDATE t SET a = (SELECT 1 UNION SELECT 2) WHERE id = 5") == {"id": [5]}


def test_assignments_give_literals_null_and_opaque():
    found = statement(
        "UPDATE t x SET x.a = 5, `B` = NULL, c = b + 1, d = 'q', a = -6 WHERE id = 7"
    )
    assigned = found.shape.assignments
    assert assigned.keys() == {"a", "b", "c", "d"}
    assert found.value(assigned["a"]) == -6  # the last one counts
    assert found.value(assigned["b"]) is None
    assert assigned["c"] is OPAQUE
    assert found.value(assigned["d"]) == b"q"
