"""What stands beside a time column, as the reader plans it."""

import ast

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from streamfrom.sqlparse_ext.writes.moment_reader import MomentReader
from streamfrom.sqlparse_ext.writes.times import TimeColumns
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
