"""What stands beside a time column, as the reader plans it."""

import ast

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from streamfrom.sqlparse_ext.writes.moment_reader import MomentReader
from streamfrom.sqlparse_ext.writes.times import NO_MOMENTS, TimeColumns
from tests.cases import cases


def plan(sql):
    template = fingerprint(sql.encode(), DEFAULT_MODE).template
    columns = TimeColumns(frozenset({"time_next", "time_acked"}))
    found = MomentReader(statement_tokens(template), template, columns).plan()
    return template.decode(), found


@cases(sql=str, texts=ast.literal_eval, shifts=ast.literal_eval)
def test_a_moment_beside_a_time_column_is_placed(sql, texts, shifts):
    template, found = plan(sql)
    assert [template[each.start : each.end] for each in found.moments] == texts
    assert [each.is_shift for each in found.moments] == shifts
    assert not found.mixtures


def test_a_function_in_one_term_with_a_time_column_is_a_mixture():
    _, found = plan("SELECT id FROM m WHERE time_next / 1000000000 > UNIX_TIMESTAMP(a)")
    assert [(each.column, each.function) for each in found.mixtures] == [
        ("time_next", "UNIX_TIMESTAMP")
    ]
    assert found.mixtures[0].unit_ns == 10**9


def test_what_names_no_time_column_is_not_read():
    assert plan("SELECT NOW() FROM m WHERE a < NOW()")[1] is NO_MOMENTS


def test_literals_beside_a_time_column_are_checked_later():
    _, found = plan("SELECT id FROM m WHERE time_next = 5 AND time_acked > 3 * 4 + 1")
    assert [each.column for each in found.literals] == ["time_next"]
    assert [(each.column, len(each.terms)) for each in found.sums] == [("time_acked", 2)]
