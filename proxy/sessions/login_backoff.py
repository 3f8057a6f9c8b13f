"""How long a login waits, after failures from the same address. Pure.

The first few failures cost nothing, because people mistype. Then every refusal to an address waits twice
as long as the one before, up to a bound. A login that succeeds waits only if the same user has
failed from this address before: otherwise one client with a wrong password would slow down all
clients of its machine. Such a login must wait like a refusal: otherwise a guesser could recognize a refusal by its
delay, hang up, and try the next password.

After the free failures, the proofs of one user from one address are judged one after another, each
when its wait is over (`turn`): a hundred guesses over a hundred connections take as long as a
hundred over one.

Failures are forgotten a minute after the last one, and the oldest first when REMEMBERED_MAX are
kept, so that no attacker can fill the memory from many addresses or with many names.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final


FREE_FAILURES: Final = 3
FIRST_S: Final = 0.1
FORGOTTEN_S: Final = 60.0
REMEMBERED_MAX: Final = 4096
# After this many doublings of FIRST_S (three years) every sensible bound has been reached.
_DOUBLINGS_MAX: Final = 30

_Key = tuple[str, str | None]


class LoginBackoff:
    """The failures of the last minute."""

    def __init__(self, longest_s: float) -> None:
        self.longest_s = longest_s  # the longest wait of an answer; with 0 no answer waits
        # The number of failures and the time of the last one; the oldest entry first.
        self._failures: OrderedDict[_Key, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def turn(self, address: str, user: str, now_s: float) -> float:
        """Return the seconds until a proof of *user* may be judged, after all earlier ones.

        A proof that waits counts as a failure already.
        """
        key = address, user
        if not self._wait_s(self._known(key, now_s)):
            return 0.0
        _, last_s = self._failures[key]
        number = self._known(key, now_s)
        # The proof before may still wait for its turn.
        turn_s = max(now_s, last_s) + self._wait_s(number)
        self._count(key, turn_s, number)
        return turn_s - now_s

    def failed(self, address: str, user: str, now_s: float, waited_s: float = 0.0) -> float:
        """Count a failure, and return how many seconds its answer waits.

        waited_s: how long the proof has waited for its turn.
        """
        if not waited_s:
            self._count((address, user), now_s, self._known((address, user), now_s))
        key = address, None
        number = self._known(key, now_s)
        self._count(key, now_s, number)
        return max(self._wait_s(number + 1) - waited_s, 0.0)

    def succeeded(self, address: str, user: str) -> None:
        """Forget the failures of *user*."""
        self._failures.pop((address, user), None)

    def _known(self, key: _Key, now_s: float) -> int:
        number, at_s = self._failures.get(key, (0, now_s))
        return number if now_s - at_s < FORGOTTEN_S else 0

    def _count(self, key: _Key, at_s: float, before: int) -> None:
        self._failures[key] = before + 1, at_s
        self._failures.move_to_end(key)
        while len(self._failures) > REMEMBERED_MAX:
            self._failures.popitem(last=False)

    def _wait_s(self, failures: int) -> float:
        if failures <= FREE_FAILURES:
            return 0.0
        doublings = min(failures - FREE_FAILURES - 1, _DOUBLINGS_MAX)
        return float(min(FIRST_S * (1 << doublings), self.longest_s))
