"""Expressions that mean a moment."""

import ast

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens, tokenise
from streamfrom.sqlparse_ext.writes.times import (
    NO_MOMENTS,
    Mixture,
    MomentPlan,
    Terms,
    TimeColumns,
    read_moment,
)
from tests.cases import cases


NOW_NS = 1_700_000_000_123_456_789


def moment_ns(expression):
    """Return the nanoseconds that an expression means, None where it means none."""
    template, literals, runs = fingerprint(expression, DEFAULT_MODE)
    tokens = tokenise(template).tokens
    moment = read_moment(Cursor(tokens, template), len(tokens))
    if moment is None:
        return None
    shape = Shape(Kind.OTHER, Uses(0), template)
    return moment.ns(Statement(expression, DEFAULT_MODE, shape, literals, runs), NOW_NS)


@cases(text=str, offset_ns=ast.literal_eval)
def test_moments(text, offset_ns):
    assert moment_ns(text.encode()) == NOW_NS + offset_ns


@cases(text=str)
def test_everything_else_is_the_writers_affair(text):
    assert moment_ns(text.encode()) is None


def test_a_plan_with_anything_to_do_is_told_from_none():
    assert not any(NO_MOMENTS)
    assert any(MomentPlan(mixtures=(Mixture("time_next", "NOW"),)))


def test_time_columns_of_equal_tables_are_one_key():
    one, other = TimeColumns(frozenset({"a", "b"})), TimeColumns(frozenset({"b", "a"}))
    assert {one: 1}[other] == 1
    assert TimeColumns(frozenset({"a"}), frozenset({"t"})) != TimeColumns(frozenset({"a"}))


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
