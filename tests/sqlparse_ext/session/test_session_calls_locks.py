import ast

from streamfrom.sqlparse_ext.session.session_calls import LockCalls, lock_calls
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


@cases(
    sql=str, names=ast.literal_eval, has_others=ast.literal_eval, releases_all=ast.literal_eval
)
def test_the_locks_that_a_statement_asks_for_are_told(sql, names, has_others, releases_all):
    assert lock_calls(statement(sql)) == LockCalls(frozenset(names), has_others, releases_all)
