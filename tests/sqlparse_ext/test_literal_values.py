"""Values of literals."""

import pytest

from streamfrom.sqlparse_ext.literal_values import Number, decode_literal
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from tests.cases import in_turn


@in_turn
@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"42", 42),
        (b"-42", -42),
        (b"0042", 42),
        (b"18446744073709551615", 18446744073709551615),
        (b"18446744073709551616", Number("18446744073709551616")),
        (b"-9223372036854775809", Number("-9223372036854775809")),
        (b"9" * 5000, Number("9" * 5000)),
        (b"1.50", Number("1.50")),
        (b"-.5", Number("-.5")),
        (b"1e5", Number("1e5")),
        (b"'abc'", b"abc"),
        (b'"abc"', b"abc"),
        (b"''", b""),
        (b"'it''s'", b"it's"),
        (b'"a""b\'\'c"', b"a\"b''c"),
        (rb"'it\'s \"x\" \\ \n\r\t\b\0\Z \% \_ \q'", b'it\'s "x" \\ \n\r\t\b\0\x1a \\% \\_ q'),
        (rb"'a\\''b'", b"a\\'b"),
        (b"'\xff\xfe'", b"\xff\xfe"),
        (b"N'abc'", b"abc"),
        (b"_binary'abc'", b"abc"),
        (b"_utf8mb4 'abc'", b"abc"),
        (b"_binary x'00ff'", b"\x00\xff"),
        (b"x'00FF'", b"\x00\xff"),
        (b"X''", b""),
        (b"x'0'", b"\0"),
        (b"x'zz'", b""),
        (b"0x0aF", b"\x00\xaf"),
        (b"b'101010101'", b"\x01\x55"),
        (b"0b11", b"\x03"),
        (b"b'2'", b""),
        (b"-0x1F", -31),
    ],
)
def test_literals(raw, value):
    assert decode_literal(raw, DEFAULT_MODE) == value


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
