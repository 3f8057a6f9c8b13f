"""Terms and operands of a statement."""

import ast

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from streamfrom.sqlparse_ext.writes.terms import Terms
from tests.cases import cases


def read(text):
    """Return the terms of a text, and a function that returns the text of a range of tokens."""
    template = fingerprint(text.encode(), DEFAULT_MODE)[0]
    tokens = statement_tokens(template)

    def text_of(start, end):
        return " ".join(token.key for token in tokens[start:end])

    return Terms(tokens), text_of


@cases(text=str, expected=ast.literal_eval)
def test_terms_stand_between_borders(text, expected):
    terms, text_of = read(text)
    found = terms.cut(0, len(terms.tokens))
    assert [(border, text_of(start, end)) for border, start, end in found] == expected


@cases(text=str, expected=ast.literal_eval)
def test_operands_stand_between_comparisons(text, expected):
    terms, text_of = read(text)
    found = terms.operands(0, len(terms.tokens))
    assert [(key, text_of(start, end)) for key, start, end in found] == expected


@cases(text=str, up=ast.literal_eval, down=ast.literal_eval)
def test_the_scale_is_of_the_factors_of_the_groups_around(text, up, down):
    terms, _ = read(text)
    place = [token.key for token in terms.tokens].index("A")
    found = terms.scale(place, place + 1)
    assert (len(found[0]), len(found[1])) == (up, down)


def test_groups_are_as_deep_as_they_are_nested_or_not_closed():
    assert read("a")[0].depth == 0
    assert read("(a, CASE WHEN (b) THEN c END)")[0].depth == 3
    for text in ("(a", "CASE a", "(CASE)"):
        assert read(text)[0].depth is None
