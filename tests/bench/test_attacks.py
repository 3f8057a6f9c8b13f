import zlib

import pytest
from hypothesis import given, strategies as st

from bench.attack_list import Named, every_attack
from bench.attacker import FRAME_BYTES_MAX, packed, unfinished
from bench.fleet import FleetError
from bench.workloads.attacks import Waits, waits_ms


def test_a_wait_begins_when_the_schedule_wanted_the_select():
    assert waits_ms([1.0, 1.02], [1.5, 1.51], 9.0) == pytest.approx([500, 490])


def test_a_select_without_an_answer_has_waited_until_the_end():
    assert waits_ms([1.0, 1.02], [1.001], 61.02) == pytest.approx([1, 60_000])


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_the_longest_wait_is_one_of_all_and_no_less_than_the_p99(waits):
    found = Waits.of(waits)
    assert found.longest_ms == max(waits)
    assert found.p99_ms in waits
    assert found.p99_ms <= found.longest_ms


def test_no_answer_at_all_is_no_figure():
    with pytest.raises(ValueError, match="no values"):
        Waits.of([])


def test_an_attack_that_is_answered_otherwise_than_meant_is_no_figure():
    named = Named("an attack", lambda _: set(), answers=frozenset({"3170", "1064"}))
    named.check({"1064"})
    for found in (set(), {"done"}, {"3170", "closed"}):
        with pytest.raises(FleetError, match="an attack: answered"):
            named.check(found)


def test_each_attack_has_its_name():
    names = [each.name for each in every_attack(450_000, quick=False)]
    assert len(set(names)) == len(names)


@given(st.binary(max_size=2000), st.sampled_from([None, 1, 9]))
def test_what_is_packed_says_its_sizes(data, level):
    piece = packed(data, level=level)
    if not data:
        assert piece == b""
        return
    size, unpacked_bytes = (int.from_bytes(piece[at : at + 3], "little") for at in (0, 4))
    assert len(piece) == 7 + size
    found = piece[7:] if level is None else zlib.decompress(piece[7:])
    assert (unpacked_bytes, found) == (0 if level is None else len(data), data)


def test_an_unfinished_command_announces_more_than_comes():
    sent = unfinished(1000, 500)
    assert len(sent) == 500
    assert int.from_bytes(sent[:3], "little") == 1000
    assert len(unfinished(FRAME_BYTES_MAX + 10, FRAME_BYTES_MAX + 9)) == FRAME_BYTES_MAX + 9
