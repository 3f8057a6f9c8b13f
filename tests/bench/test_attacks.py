import zlib

import pytest
from hypothesis import given, strategies as st

from bench.attack_list import Named, every_attack
from bench.attacker import FRAME_BYTES_MAX, packed, unfinished
from bench.fleet import FleetError
from bench.workloads.attacks import (
    WIDTH_MAX,
    Outcome,
    Waits,
    shown,
    waits_ms,
)


def outcome(name="an attack", longest_ms=10.0):
    return Outcome(name, Waits(longest_ms / 2, longest_ms), 50.0, 89.0, 3175.4, 101.6)


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


def test_the_table_says_who_waited_too_long_and_what_memory_it_took():
    lines = shown(Waits(2, 3), [outcome(), outcome("another", 2649.0)]).splitlines()
    assert lines[1].split() == ["nothing", "2", "ms", "3", "ms"]
    assert lines[2].split()[-4:] == ["yes", "89", "3175", "102"]
    assert lines[3].split()[3:9] == ["2649", "ms", "≤", "50", "ms", "NO"]


def test_an_attack_that_is_answered_otherwise_than_meant_is_no_figure():
    named = Named("an attack", lambda _: set(), answers=frozenset({"3170", "1064"}))
    named.check({"1064"})
    for found in (set(), {"done"}, {"3170", "closed"}):
        with pytest.raises(FleetError, match="an attack: answered"):
            named.check(found)


def test_the_table_fits_a_page_whatever_was_measured():
    named = every_attack(450_000, quick=False) + every_attack(45_000, quick=True)
    worst = [
        Outcome(each.name, Waits(60_200, 60_200), each.longest_ms, 9999, 9999, 9999)
        for each in named
    ]
    lines = shown(Waits(43.9, 43.9), worst).splitlines()
    assert max(map(len, lines)) <= WIDTH_MAX
    assert len({each.name for each in named[: len(named) // 2]}) == len(named) // 2


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
