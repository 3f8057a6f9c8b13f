import ast
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.reading.split import split_statements
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.multibyte_text import has_dollar_quotes, original, readable
from tests.cases import cases
from tests.growth import is_linear
from tests.sqlparse_ext.facts import statement


# How Python calls what servers call sjis is told apart from cp932 by a few signs alone.
CODECS = {
    SqlMode.GBK: "gbk", SqlMode.BIG5: "big5", SqlMode.SJIS: "cp932", SqlMode.GB18030: "gb18030",
}  # fmt: skip
CHARACTERS = st.characters(codec="utf-8", categories=["Lo", "Lu", "Ll", "So", "Po"])
TEXTS = st.text(
    CHARACTERS
    | st.sampled_from("\\'\"`;-/* a$\u8868\u80fd\u529f\u7adc\u5341\u8a31\u529f\u84cb\u30fc"),
    max_size=12,
)


def encoded(text, codec):
    """Return the characters of *text* that there are in *codec*, each as its bytes."""
    return [found for char in text if (found := char.encode(codec, "ignore"))]


@pytest.mark.parametrize("mode", CODECS)
@given(text=TEXTS)
def test_a_name_has_letters_in_place_of_characters_and_comes_back(mode, text):
    characters = [char for char in encoded(text, CODECS[mode]) if char != b"`"]
    name = b"".join(characters)
    read = readable(b"`" + name + b"`", mode)[1:-1]
    assert len(read) == len(name)
    wanted = b"".join(each if each.isascii() else b"$" * len(each) for each in characters)
    found = bytes(
        ord("$") if mark == ord("$") and byte != mark else byte
        for byte, mark in zip(read, wanted, strict=True)
    )
    assert found == wanted
    assert all(
        byte >= 0x80 or chr(byte).isalnum() or byte == ord("_")
        for byte, mark, was in zip(read, wanted, name, strict=True)
        if mark == ord("$") and was != mark
    )
    if mode is not SqlMode.GB18030 or not any(byte in b"0123456789" for byte in read):
        assert original(
            readable(b"".join(c for c in characters if not c.isascii()), mode), mode
        ) == b"".join(c for c in characters if not c.isascii())


@pytest.mark.parametrize("mode", CODECS)
@given(text=TEXTS, quote=st.sampled_from([b"'", b'"']))
def test_what_a_client_escapes_by_characters_stays_one_literal(mode, text, quote):
    """As `mysql_real_escape_string` does it, which knows the character set."""
    special = (b"'", b'"', b"\\")
    escaped = b"".join(
        b"\\" + each if each in special else each for each in encoded(text, CODECS[mode])
    )
    found = statement(b"SELECT " + quote + escaped + quote + b" FROM t", mode)
    assert len(found.literals) == 1
    assert found.shape.template == b"SELECT \1 FROM t"
    assert [table.name for table in found.shape.tables] == ["t"]


@cases(mode=SqlMode.__getitem__, text=ast.literal_eval)
def test_bytes_that_are_no_character_stay_what_they_are(mode, text):
    assert readable(text, mode) == text


def test_half_a_character_is_no_quote_and_no_backslash():
    text = b"'\xb2\\\\' -- '"
    gbk = SqlMode.GBK | SqlMode.NO_BACKSLASH_ESCAPES
    assert fingerprint(text, gbk).template == b"\1 "
    # A character of one byte, and then a backslash.
    assert readable(text, SqlMode.SJIS) == text


def test_a_backslash_takes_the_first_half_of_a_character_alone():
    """As `mysql_real_escape_string` writes bytes that are no characters."""
    text = b"SELECT '\xef\xbb\\\xbf\\'\\\xbf\x10'"
    assert fingerprint(text, SqlMode.GBK).literals == (text[7:],)
    assert fingerprint(b"SELECT '\\\xb3\\'', 2 AS `\xb3\\`", SqlMode.GBK).template == (
        b"SELECT \1, \0 AS `\xb3s`"
    )


@cases(beside=str.encode, read=str.encode)
def test_in_names_and_comments_a_backslash_is_a_letter(beside, read):
    assert fingerprint(b"SELECT 1 " + beside, SqlMode.GBK).template == b"SELECT \0 " + read


def test_quotes_are_those_of_the_mode():
    text = b'SELECT "\\\xb3\\"'
    assert readable(text, SqlMode.GBK | SqlMode.ANSI_QUOTES) == b'SELECT "\\\xb3s"'
    for mode in (SqlMode.GBK, DEFAULT_MODE, SqlMode.OTHER_CHARSET):
        assert readable(text, mode) == text
    assert original(b"\xb3S", DEFAULT_MODE) == b"\xb3S"


DOLLARS = SqlMode.DOLLAR_QUOTES


@cases(quoted=str.encode)
def test_between_dollars_is_a_literal(quoted):
    sql = b"CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS " + quoted + b" ; SELECT 2"
    assert has_dollar_quotes(sql)
    assert len(readable(sql, DOLLARS)) == len(sql)
    found = fingerprint(sql, DOLLARS)
    assert found.template.endswith(b" AS \1 ; SELECT \0")
    first, second = split_statements(sql, DOLLARS)
    assert first.endswith(quoted)
    assert second == b"SELECT 2"


@cases(sql=str.encode)
def test_other_dollars_are_letters_of_names_values_and_comments(sql):
    """As MySQL 9.7 reads them."""
    assert readable(sql, DOLLARS) == sql
    assert len(split_statements(sql, DOLLARS)) == 2


def test_an_open_quote_takes_all_that_is_left_and_half_a_character_is_none():
    sql = b"SELECT $a$; SELECT $A$; SELECT 3"
    assert split_statements(sql, DOLLARS) == [sql]
    assert len(split_statements(sql)) == 3
    sql = b"SELECT '\xb3\\' AS x, $$ \xb3\\' $$, '\xb3\\'"
    assert fingerprint(sql, SqlMode.GBK | DOLLARS).template == b"SELECT \1 AS x, \1, \1"


@pytest.mark.parametrize("read", [has_dollar_quotes, lambda sql: readable(sql, DOLLARS)])
@pytest.mark.parametrize(
    "piece", [b"$a", b"$ ", b"$$ ", b" $a$ ", b"a$", b"$a$;", b" $a", b"'$$"]
)
def test_time_is_linear_in_dollars(read, piece):
    def reading(count: int) -> Callable[[], object]:
        return partial(read, b"SELECT " + piece * count)

    assert is_linear(reading, 5_000, 50_000)
