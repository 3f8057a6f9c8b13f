import ast

from streamfrom.sqlparse_ext.selects.windows import read_windows
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from tests.cases import cases


def windows(sql):
    tokens = statement_tokens(sql.encode())
    found = read_windows(tokens, sql.encode(), 0, len(tokens))
    if found is None:
        return None
    calls, partitions = found
    texts = [
        [sql[tokens[first].start : tokens[end - 1].end] for first, end in partition]
        for partition in partitions
    ]
    return set(calls), texts


@cases(sql=str, calls=ast.literal_eval, partitions=ast.literal_eval)
def test_a_window_is_read_by_its_partitions(sql, calls, partitions):
    assert windows(sql) == (calls, partitions)


@cases(sql=str)
def test_other_forms_are_not_read(sql):
    assert windows(sql) is None
