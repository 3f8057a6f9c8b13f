"""The regular expressions of each way of quoting."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.text.chunks import marks
from streamfrom.sqlparse_ext.text.lexer_patterns import lexis
from tests.cases import in_turn


MODES = [
    SqlMode(0),
    SqlMode.ANSI_QUOTES,
    SqlMode.NO_BACKSLASH_ESCAPES,
    SqlMode.ANSI_QUOTES | SqlMode.NO_BACKSLASH_ESCAPES,
]
# Each has one `?` that is code, and others that are none.
PIECES = {
    b"'?' ?": MODES, b"'it''s ?' ?": MODES, b'"a""?" ?': MODES, b"`a``?` ?": MODES, b"/* ? */ ?": MODES,
    b"/*+ ? */ ?": MODES, b"-- ?\n ?": MODES, b"# ?\n ?": MODES, b"a / ?": MODES, b"a--b- ?": MODES,
    b"'\\'?' ?": MODES[:2], b"'\\\\' ?": MODES[:2], b"'\\' ?": MODES[2:], b'"\\"?" ?': MODES[:1],
}  # fmt: skip


def parameters(sql: bytes, mode: SqlMode) -> list[int]:
    lex = lexis(mode)
    return list(marks(sql, lex.parameter, lex, 0, len(sql)))


@pytest.mark.parametrize("piece", PIECES)
def test_marks_in_literals_names_and_comments_are_none(piece):
    for mode in PIECES[piece]:
        assert parameters(piece, mode) == [len(piece) - 1]


@in_turn
@pytest.mark.parametrize("filling", [b"x", b"''", b"**", b"  ", b'""'])
@pytest.mark.parametrize("count", [70, 5_000, 300_000])
@pytest.mark.parametrize("form", [b"'%b?' ?", b"/*%b? */ ?", b"-- %b?\n ?", b"#%b?\n ?"])
def test_what_is_longer_than_one_call_looks_at_is_read_alike(form, filling, count):
    long = form % (filling * count)
    for mode in MODES:
        assert parameters(long, mode) == [len(long) - 1]


@pytest.mark.parametrize("opened", [b"'", b'"', b"`", b"/*", b"/*+", b"'a''", b"# ", b"-- "])
def test_what_is_open_takes_all_that_is_left(opened):
    for mode in MODES:
        assert parameters(b"? " + opened + b" ? ?", mode) == [0]


@given(sql=st.text("?'\"`\\/*#-+ \nx", max_size=40), mode=st.sampled_from(MODES))
def test_a_mark_is_found_in_pieces_as_it_is_in_the_whole(sql, mode):
    text = sql.encode()
    found = parameters(text, mode)
    for place in found:
        assert text[place : place + 1] == b"?"
        rest = parameters(text[place + 1 :], mode)
        assert [each + place + 1 for each in rest] == [each for each in found if each > place]
