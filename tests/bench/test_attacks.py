import zlib

import pytest
from hypothesis import given, strategies as st

from bench.attack_list import Named
from bench.attacker import packed
from bench.fleet import LabError
from streamfrom.proxy.wire.compression import ZLIB


def test_an_attack_that_is_answered_otherwise_than_meant_is_no_figure():
    named = Named("an attack", lambda _: set(), answers=frozenset({"3170", "1064"}))
    named.check({"1064"})
    for found in (set(), {"done"}, {"3170", "closed"}):
        with pytest.raises(LabError, match="an attack: answered"):
            named.check(found)


@given(st.binary(max_size=2000), st.sampled_from([None, ZLIB]))
def test_what_is_packed_says_its_sizes(data, packer):
    piece = packed(data, packer)
    if not data:
        assert piece == b""
        return
    size, unpacked_bytes = (int.from_bytes(piece[at : at + 3], "little") for at in (0, 4))
    assert len(piece) == 7 + size
    found = zlib.decompress(piece[7:]) if packer else piece[7:]
    assert (unpacked_bytes, found) == (len(data) if packer else 0, data)
