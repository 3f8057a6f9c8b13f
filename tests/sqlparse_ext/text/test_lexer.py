"""Templates, literals, and the way back from a template to its text."""

import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import ListSlot, Slot
from streamfrom.sqlparse_ext.text.lexer import Fold, fingerprint, fold_lists, fold_rows, locate
from streamfrom.sqlparse_ext.text.tokens import tokenise
from tests.cases import cases
from tests.sqlparse_ext.strategies import MODES, texts


NO_ESCAPES = SqlMode.NO_BACKSLASH_ESCAPES


def template(sql: bytes, mode: SqlMode = DEFAULT_MODE) -> bytes:
    return fingerprint(sql, mode).template


def literals(sql: bytes, mode: SqlMode = DEFAULT_MODE) -> tuple[bytes, ...]:
    return tuple(fingerprint(sql, mode).literals)


@cases(sql=str.encode, expected=ast.literal_eval)
def test_literals_are_found_and_names_are_not(sql, expected):
    assert list(literals(sql)) == expected


def test_without_backslash_escapes_a_backslash_is_a_character():
    assert literals(rb"'a\' 'b'", NO_ESCAPES) == (rb"'a\'", b"'b'")
    assert literals(rb"'a\' 'b'") == (rb"'a\' '",)
    assert literals(rb"N'a\' N'b'", NO_ESCAPES) == (rb"N'a\'", b"N'b'")
    assert literals(rb"N'a\', 'b'") == (rb"N'a\', '",)


@cases(sql=str.encode)
def test_texts_that_differ_in_literals_and_layout_share_a_template(sql):
    assert template(sql) == template(b"SELECT a FROM t WHERE id = 5 AND b = ''")


@cases(one=str.encode, other=str.encode)
def test_lists_and_rows_of_any_length_share_a_template(one, other):
    assert template(one) == template(other)


def test_what_is_no_list_or_row_of_literals_is_left_open():
    assert b"NULL" in template(b"id in (1, NULL, 2)")
    assert template(b"min(1, 2)") == b"min(\0, \0)"
    assert template(b"insert into t values (1)") != template(b"insert into t values (now())")


@pytest.mark.parametrize("bad", [b"select 'open", b"select `open", b"a \x00 b", b"a \x01 b"])
def test_bytes_that_begin_no_token_are_marked(bad):
    assert b"\2" in template(bad)


@given(sql=texts, mode=MODES)
def test_every_token_of_a_template_is_found_in_the_text(sql, mode):
    found = fingerprint(sql, mode)
    assert locate(sql, mode, [0, len(found.template)]) == [0, len(sql)]
    if b"value" in sql.lower():
        return  # rows have no positions inside
    tokens = tokenise(found.template).tokens
    places = locate(
        sql, mode, [place for token in tokens for place in (token.start, token.end)]
    )
    assert places == sorted(places)
    seen = 0
    for token, start, end in zip(tokens, places[::2], places[1::2], strict=True):
        text = sql[start:end]
        if isinstance(token.slot, ListSlot):
            count = {slot: count for slot, _, count in found.runs}[token.slot]
            assert all(each in text for each in found.literals[seen : seen + count])
            seen += count
        elif isinstance(token.slot, Slot):
            assert text == found.literals[seen]
            seen += 1
        elif token.key >= " ":
            assert text == found.template[token.start : token.end]
    assert seen == len(found.literals)


@given(sql=st.binary(max_size=60), mode=MODES)
def test_any_bytes_have_a_template_that_covers_them(sql, mode):
    found = fingerprint(sql, mode)
    assert locate(sql, mode, [0, len(found.template)]) == [0, len(sql)]


# What is left out of a template, and where its places were before.
def test_one_row_of_each_kind_stays_and_the_literals_of_all_fall_out():
    template = b"INSERT t VALUES (\0, f(\0)), (\1, g()), (\0, f(\0)) AS n(\0)"
    folded, folds, left_out = fold_rows(template, has_rows=False)
    assert folded == b"INSERT t VALUES (\6, f(\6)), (\6, g()) AS n(\0)"
    assert folds == [Fold(16, 46, 19)]
    assert left_out == [(0, 5)]


def test_a_list_becomes_one_mark_and_tells_where_its_literals_are():
    template = b"a = \0 AND b IN (\0, \1,\0) AND (c, d) in ((\0,\1)) AND e = \0"
    folded, folds, runs = fold_lists(template)
    assert folded == b"a = \0 AND b IN (\4) AND (c, d) in (\4) AND e = \0"
    assert [fold.size for fold in folds] == [1, 1]
    assert runs == ((1, 1, 3), (2, 4, 2))
