"""The keys are those that golang.org/x/text/collate gives, which Vitess uses."""

import pytest

from streamfrom.engine.sharding.vindex import loose_key
from tests.cases import cases


@cases(text=str, key=str)
def test_keys(text, key):
    found = loose_key(text)
    assert found is not None
    assert found.hex() == key


@pytest.mark.parametrize("other", ["STRASSE", "Stra\u00dfe", "s\u0301trasse", "strasse  "])
def test_case_accents_and_blanks_at_the_end_do_not_count(other):
    assert loose_key(other) == loose_key("strasse")


@pytest.mark.parametrize(
    "text",
    ["\u65e5", "\U0001f600", "l\u00b7l", "\u0387", "\u0438\u0306", "\u0378", "\u04d0", "a\u0345", "\u1f00"],
)  # fmt: skip
def test_what_is_not_surely_known_has_no_key(text):
    assert loose_key(text) is None
