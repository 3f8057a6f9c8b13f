import ast

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from streamfrom.sqlparse_ext.writes.times import Terms
from tests.cases import cases


def read(text):
    return Terms(statement_tokens(fingerprint(text.encode(), DEFAULT_MODE).template))


@cases(text=str, expected=ast.literal_eval)
def test_terms_stand_between_borders(text, expected):
    terms = read(text)
    keys = [token.key for token in terms.tokens]
    found = terms.cut(0, len(keys))
    assert [(border, " ".join(keys[start:end])) for border, start, end in found] == expected


@cases(text=str, up=ast.literal_eval, down=ast.literal_eval)
def test_the_scale_is_of_the_factors_of_the_groups_around(text, up, down):
    terms = read(text)
    place = [token.key for token in terms.tokens].index("A")
    found = terms.scale(place, place + 1)
    assert (len(found[0]), len(found[1])) == (up, down)
