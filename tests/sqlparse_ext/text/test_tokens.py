"""Tokens of a template, and the cursor over them."""

import pytest

from streamfrom.sqlparse_ext.statements import ListSlot, Slot, TableRef
from streamfrom.sqlparse_ext.text.tokens import (
    END,
    Cursor,
    outside_parens,
    split_commas,
    tokenise,
    unquote,
)
from tests.cases import cases


def cursor(template: bytes) -> Cursor:
    return Cursor(tokenise(template).tokens, template)


@cases(template=str.encode, expected=str.split)
def test_a_template_becomes_these_keys(template, expected):
    assert [token.key for token in tokenise(template).tokens] == expected


def test_what_is_outside_of_parentheses_is_none_of_them_either():
    tokens = tokenise(b"a (b (c)) d, e)").tokens
    assert [tokens[place].key for place in outside_parens(tokens, 0, len(tokens))] == [
        *["A", "D", ",", "E"]
    ]
    assert list(outside_parens(tokens, 2, 4)) == [2]


def test_slots_count_markers():
    slots = [
        token.slot for token in tokenise(b"\0 \1 (\4) \6 \0").tokens if token.slot is not None
    ]
    assert slots == [0, 1, 2, 3]
    assert [type(slot) for slot in slots] == [Slot, Slot, ListSlot, Slot]


def test_hints_are_set_aside():
    lexed = tokenise(b"select /*+ x */ /*vt+ Y=1 */ a")
    assert lexed.hints == [b"/*+ x */", b"/*vt+ Y=1 */"]
    assert [token.key for token in lexed.tokens] == ["SELECT", "A"]


def test_unquoting():
    template = b"a `b``c` @d @`e f` @'g'"
    names = [unquote(token, template) for token in tokenise(template).tokens]
    assert names == ["a", "b`c", "d", "e f", "g"]


def test_a_cursor_never_falls_off_the_end():
    at = cursor(b"a")
    assert (at.take().key, at.take(), at.key) == ("A", END, "")
    assert not any((at.accept("A"), at.table(), at.skip_parens()))


def test_accepting_several_keys_is_all_or_nothing():
    at = cursor(b"on duplicate key")
    assert not at.accept("ON", "DELETE")
    assert at.accept("ON", "DUPLICATE")
    assert at.key == "KEY"


@pytest.mark.parametrize(
    ("text", "table"),
    [("`a b`.c", TableRef("a b", "c")), ("a", TableRef(None, "a")), ("a.", None)],
)
def test_tables(text, table):
    assert cursor(text.encode()).table() == table


def test_finding_stays_outside_of_parentheses():
    at = cursor(b"a (b) b c")
    assert at.find({"B"}) == 4
    assert at.find({"X"}) == 6
    at.at = 2
    assert at.find({"C"}) == 3  # the parenthesis it is in ends there


def test_commas_inside_parentheses_do_not_split():
    tokens = tokenise(b"a, f(b, c), d").tokens
    assert split_commas(tokens, 0, len(tokens)) == [(0, 1), (2, 8), (9, 10)]
