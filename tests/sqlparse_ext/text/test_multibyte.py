import pytest
from hypothesis import given, strategies as st

from sqlparse_ext.text.multibyte import masked
from tests.sqlparse_ext.facts import statement


# How Python calls what servers call sjis is told apart from cp932 by a few signs alone.
CODECS = {
    "gbk": "gbk",
    "big5": "big5",
    "cp932": "cp932",
    "gb18030": "gb18030",
    "sjis": "shift_jis",
}
TEXTS = st.text(
    st.characters(codec="utf-8", categories=["Lo", "Lu", "Ll", "So", "Po"])
    | st.sampled_from("\\'\"`;-/* a$表能功竜十許功蓋ー"),
    max_size=12,
)


def encoded(text, codec):
    """Return the characters of *text* that there are in *codec*, each as its bytes."""
    return [found for char in text if (found := char.encode(codec, "ignore"))]


@pytest.mark.parametrize("charset", CODECS)
@given(text=TEXTS)
def test_characters_are_cut_as_codecs_cut_them(charset, text):
    characters = encoded(text, CODECS[charset])
    wanted = b"".join(each if each.isascii() else b"$" * len(each) for each in characters)
    assert masked(b"".join(characters), charset, backslash_escapes=False) == wanted


@pytest.mark.parametrize("charset", CODECS)
@given(text=TEXTS, quote=st.sampled_from([b"'", b'"']))
def test_what_a_client_escapes_by_characters_stays_one_literal(charset, text, quote):
    """As `mysql_real_escape_string` does it, which knows the character set."""
    special = (b"'", b'"', b"\\")
    escaped = b"".join(
        b"\\" + each if each in special else each for each in encoded(text, CODECS[charset])
    )
    read = masked(
        b"SELECT " + quote + escaped + quote + b" FROM t", charset, backslash_escapes=True
    )
    assert read is not None
    found = statement(read)
    assert len(found.literals) == 1
    assert found.shape.template == b"SELECT \1 FROM t"
    assert [table.name for table in found.shape.tables] == ["t"]


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("gbk", b"'\x81'"),
        ("gbk", b"\xff"),
        ("big5", b"'\xa1'"),
        ("big5", b"\x80\\"),
        ("sjis", b"'\x81'"),
        ("cp932", b"\xfd"),
        ("gb18030", b"'\x810\x81'"),
        ("gb18030", b"\xb2"),
    ],
)
def test_bytes_that_are_no_character_are_not_read(charset, text):
    assert masked(text, charset, backslash_escapes=True) is None


def test_half_a_character_is_no_quote_and_no_backslash():
    assert masked(b"'\xb2\\\\' -- '", "gbk", backslash_escapes=False) == b"'$$\\' -- '"
    # A character of one byte, and then a backslash.
    text = masked(b"'\xb2\\\\' -- '", "sjis", backslash_escapes=True)
    assert text == b"'$\\\\' -- '"


def test_a_backslash_takes_the_first_half_of_a_character_alone():
    """As `mysql_real_escape_string` writes bytes that are no characters."""
    text = b"SELECT '\xef\xbb\\\xbf\\'\\\xbf\x10'"
    assert masked(text, "gbk", backslash_escapes=True) == b"SELECT '$$\\$\\'\\$\x10'"
    assert masked(text, "gbk", backslash_escapes=False) is None


def test_behind_two_backslashes_a_character_is_whole():
    assert masked(b"'C:\\\\\xb3\\'", "gbk", backslash_escapes=True) == b"'C:\\\\$$'"


@pytest.mark.parametrize("beside", [b"`a`", b"-- b", b"# c", b"/* d */"])
def test_a_backslash_before_a_character_is_not_read_where_it_may_be_a_letter(beside):
    text = b"SELECT '\\\xb3\\'' " + beside
    assert masked(text, "gbk", backslash_escapes=True) is None
    assert masked(text, "gbk", backslash_escapes=False) is not None
