"""Values of literals."""

import pytest

from streamfrom.sqlparse_ext.literal_values import Number, decode_literal
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from tests.cases import cases


@cases(raw=str.encode, value=str)
def test_literals(raw, value):
    assert repr(decode_literal(raw, DEFAULT_MODE)) == value


def test_a_number_may_have_any_length():
    assert decode_literal(b"9" * 5000, DEFAULT_MODE) == Number("9" * 5000)


@pytest.mark.parametrize("quote", [b"'", b'"'])
@pytest.mark.parametrize("mode", [DEFAULT_MODE, SqlMode.NO_BACKSLASH_ESCAPES])
@pytest.mark.parametrize(
    "piece", [b"a", rb"\n", b"%q%q", rb"\\", rb"\%q%q%q", b"x%q%q%q%q", rb"\\%q%qy"]
)
def test_a_long_string_is_what_its_parts_are(quote, mode, piece):
    piece = piece.replace(b"%q", quote)
    if mode is not DEFAULT_MODE and piece.count(quote) % 2:
        piece += quote
    whole = decode_literal(quote + piece + quote, mode)
    assert isinstance(whole, bytes)
    count = 40_000 // len(piece) + 1
    for lead in (b"", b".", b"..", b"..."):
        long = quote + lead + piece * count + quote
        assert decode_literal(long, mode) == lead + whole * count


def test_without_escapes_a_backslash_stays():
    assert decode_literal(rb"'a\n''b'", SqlMode.NO_BACKSLASH_ESCAPES) == rb"a\n'b"
