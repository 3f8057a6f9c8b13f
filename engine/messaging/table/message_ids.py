"""The ids that the proxy gives to messages without one: the time, and bits that keep two of them apart.

An id is the time since 2026 in steps of 10 ms (37 bits until 2069), the number of the member that made it (6 bits), and a count of the
ids that it made in that step (10 bits): 53 bits, which JavaScript, JSON and spreadsheets keep. So ids of one member ascend, those of two
ascend with the time to 10 ms, and up to 1,024 of one statement are consecutive, as drivers expect of generated keys.

A member that needs more ids than a step has uses the following steps, up to `LEAD_STEPS` ahead, and then waits. A process starts as far
ahead, so it repeats no id of a process that had its number a moment ago. A clock that is set back repeats none either, because the steps
then follow a clock that cannot be set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final


EPOCH_NS: Final = 1_767_225_600 * 10**9  # 2026-01-01, UTC
STEP_NS: Final = 10_000_000
COUNT_BITS: Final = 10
MEMBER_BITS: Final = 6
MEMBERS_MAX: Final = 1 << MEMBER_BITS
COUNTS: Final = 1 << COUNT_BITS
LEAD_STEPS: Final = 10
_STEP_BITS: Final = COUNT_BITS + MEMBER_BITS


def first_id(at_ns: int) -> int:
    """Return the first id of the step with a moment since 1970; negative before 2026."""
    return (at_ns - EPOCH_NS) // STEP_NS << _STEP_BITS


def time_of(ident: int) -> int:
    """Return when the step of an id began, in nanoseconds since 1970."""
    return (ident >> _STEP_BITS) * STEP_NS + EPOCH_NS


class MessageIds:
    """The ids of one member.

    now_ns: returns the time since 1970; steady_ns: a clock that is never set; member: its number, of which the lowest 6 bits count.
    """

    def __init__(
        self, now_ns: Callable[[], int], steady_ns: Callable[[], int], member: int
    ) -> None:
        self._now_ns = now_ns
        self._steady_ns = steady_ns
        self._member = member % MEMBERS_MAX << COUNT_BITS
        self._time_ns, self._steady_before_ns = 0, steady_ns()
        # The last step that a former process may have used, so nothing is left in it.
        self._step, self._count = self._present() + LEAD_STEPS, COUNTS

    def take(self, count: int) -> range:
        """Return *count* consecutive ids, 1,024 at most; none while `wait_ns` is above 0."""
        assert count <= COUNTS
        present = self._present()
        if present > self._step:
            self._step, self._count = present, 0
        elif self._count + count > COUNTS:
            if self._step >= present + LEAD_STEPS:
                return range(0)
            self._step, self._count = self._step + 1, 0
        first = self._step << _STEP_BITS | self._member | self._count
        self._count += count
        return range(first, first + count)

    def wait_ns(self) -> int:
        """Return how long it takes, at most, until a step has room."""
        return max(0, self._step + 1 - LEAD_STEPS - self._present()) * STEP_NS

    def _present(self) -> int:
        steady_ns = self._steady_ns()
        past_ns = self._time_ns + steady_ns - self._steady_before_ns
        # A clock before 2026 counts as that year's first moment.
        self._time_ns = max(self._now_ns() - EPOCH_NS, past_ns, STEP_NS)
        self._steady_before_ns = steady_ns
        return self._time_ns // STEP_NS


# The greatest number up to which a double has every one, and the end of a BIGINT UNSIGNED.
_EXACT_MAX: Final = 2**53
_END: Final = 2**64


def find_rounded(given: Iterable[int], in_flight: Iterable[bytes]) -> tuple[int, str] | None:
    """Return one of *given* that a driver has rounded to a double from the id of a message in flight, with that id; None without one.

    given: the ids above 2^53 of an ack that matched no row. An id that is itself in flight is right.
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
    """Return a double as a number: all its digits, and JavaScript's spelling, the fewest that distinguish it from other doubles."""
    return int(double), int(Decimal(repr(double)))
