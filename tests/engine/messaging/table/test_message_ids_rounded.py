"""An id of which a driver made a double is found, however the driver spells it; a right one is none."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.messaging.table.message_ids import find_rounded


BEYOND = st.integers(2**53 + 1, 2**64 - 1)


def by_digits(ident):
    return int(float(ident))


def by_javascript(ident):
    """Return what `String(ident)` is in Node: `String(72057594037927943)` is 72057594037927940."""
    digits, _, exponent = repr(float(ident)).partition("e")
    whole, _, fraction = digits.partition(".")
    return (
        int((whole + fraction.rstrip("0")).ljust(int(exponent or 0) + 1, "0"))
        if exponent
        else int(whole)
    )


@pytest.mark.parametrize("spell", [by_digits, by_javascript])
@given(ident=BEYOND, others=st.lists(BEYOND))
def test_a_rounded_id_is_found_and_a_right_one_is_none(spell, ident, others):
    rounded = spell(ident)
    in_flight = [b"%d" % one for one in (*others, ident)]
    found = find_rounded((5, rounded), in_flight)
    if rounded in (ident, *others) or rounded >= 2**64:
        assert found is None
    else:
        assert found is not None
        assert found[0] == rounded
        assert float(found[1]) == float(rounded)
    assert find_rounded((5, rounded), [b"%d" % rounded, *in_flight]) is None


def test_what_node_sends_is_known():
    assert find_rounded((72057594037927940,), [b"72057594037927943"]) == (
        72057594037927940,
        "72057594037927943",
    )


def test_other_ids_are_none():
    # A neighbour with the same double, of which no driver makes this number; and what is no double at all.
    assert find_rounded((2**60 + 77,), [b"%d" % (2**60 + 78)]) is None
    assert (
        find_rounded(
            (10**400, -(2**60), 2**53 - 1), [b"9" * 400, b"'x'", b"-5", b"9007199254740993"]
        )
        is None
    )
