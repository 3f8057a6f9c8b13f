"""What stands between the borders of a text, groups whole."""

import ast

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.nodes import BORDERS, cut, nest
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from tests.cases import cases


@cases(text=str, expected=ast.literal_eval)
def test_terms_stand_between_borders(text, expected):
    template = fingerprint(text.encode(), DEFAULT_MODE).template
    nodes = nest(statement_tokens(template), template)
    assert nodes is not None
    assert [
        (border, [template[node.start : node.end].decode() for node in part])
        for border, part in cut(nodes, BORDERS)
    ] == expected


def test_what_is_open_or_too_deep_has_no_nodes():
    for text in (b"(a", b"CASE a", b"(" * 99 + b"a" + b")" * 99):
        assert nest(statement_tokens(text), text) is None
