import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.codec import PacketReader, lenenc_int, read_lenenc_int
from tests.cases import cases


@given(value=st.integers(0, (1 << 64) - 1))
def test_integers_come_back(value):
    encoded = lenenc_int(value)
    assert read_lenenc_int(b"??" + encoded + b"!", 2) == (value, 2 + len(encoded))


@cases(value=ast.literal_eval, encoded=ast.literal_eval)
def test_integers_take_the_form_of_the_manual(value, encoded):
    assert lenenc_int(value) == encoded


@pytest.mark.parametrize("payload", [b"", b"\xfb", b"\xff", b"\xfc\x00", b"\xfe1234567"])
def test_an_integer_that_is_cut_or_null_and_a_string_without_nul_are_refused(payload):
    with pytest.raises(WireError):
        read_lenenc_int(payload, 0)
    with pytest.raises(WireError):
        PacketReader(b"root" + payload.rstrip(b"\0")).until_nul()


_STEPS = [
    lambda cursor: cursor.read(5),
    lambda cursor: cursor.uint(4),
    lambda cursor: cursor.until_nul(),
    lambda cursor: cursor.lenenc_int(),
    lambda cursor: cursor.lenenc_bytes(),
    lambda cursor: cursor.rest(),
]


@given(payload=st.binary(max_size=40), steps=st.lists(st.sampled_from(_STEPS), max_size=10))
def test_a_cursor_never_leaves_its_packet(payload, steps):
    cursor = PacketReader(payload)
    try:
        for step in steps:
            step(cursor)
    except WireError:
        pass
    assert 0 <= cursor.pos <= len(payload)
