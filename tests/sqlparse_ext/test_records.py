"""A record is a value: equal and hashed by its attributes, without a dictionary."""

from dataclasses import field, replace

import pytest

from streamfrom.sqlparse_ext.records import record


@record
class Place:
    name: str
    parts: tuple[int, ...] = ()
    notes: frozenset[str] = field(default_factory=frozenset)


def test_a_record_is_a_value():
    assert Place("a", (1,)) == Place("a", (1,)) != Place("b", (1,))
    assert {Place("a"), Place("a"), replace(Place("a"), name="b")} == {Place("a"), Place("b")}
    assert repr(Place("a")) == "Place(name='a', parts=(), notes=frozenset())"


def test_it_matches_by_position():
    match Place("a", (1, 2)):
        case Place(name, parts):
            assert (name, parts) == ("a", (1, 2))


def test_it_has_no_other_attributes():
    with pytest.raises(AttributeError):
        Place("a").other = 1  # type: ignore[attr-defined]
