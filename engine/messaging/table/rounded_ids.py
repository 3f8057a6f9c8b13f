"""Ids above 2^53 of which a driver has made doubles, so that an ack by them matches no row. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final


# The greatest number up to which a double has every one, and the end of a BIGINT UNSIGNED.
_EXACT_MAX: Final = 2**53
_END: Final = 2**64


def find_rounded(given: Iterable[int], in_flight: Iterable[bytes]) -> tuple[int, str] | None:
    """Return one of *given* that was made of the id of a message in flight, with that id; None without one.

    given: the ids of an ack that matched no row. One that is in flight itself is right.
    """
    doubles = {
        float(ident): ident
        for ident in given
        if _EXACT_MAX <= ident < _END and ident in _spellings(float(ident))
    }
    if not doubles:
        return None
    found = {}
    for ident in in_flight:
        if ident.isdigit() and (rounded := doubles.get(float(ident))):
            if int(ident) == rounded:
                del doubles[float(ident)]
            else:
                found[rounded] = ident.decode()
    return next(((one, found[one]) for one in doubles.values() if one in found), None)


def _spellings(double: float) -> tuple[int, int]:
    """Return a double as a number: all its digits, and as JavaScript spells it, by as few as distinguish it from other doubles."""
    return int(double), int(Decimal(repr(double)))
