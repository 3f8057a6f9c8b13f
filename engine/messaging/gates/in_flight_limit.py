"""How many messages of one shard may be in flight, where ``vt_max_in_flight`` says so. Pure.

A message is *in flight* from its sending until it is acked, deleted or rescheduled, or until it is due again.
Each shard of a table has a dispatcher of its own, so each has a fixed share of the number: the sum can never be
more, and no dispatcher has to ask another. A new dispatcher reads from the rows what the one before it has sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


# What a receiver holds that stands still so long, full, while messages are due, is looked at so often, and so is all that is in
# flight where the limit holds back what is due: acks may pass through a proxy outside the fleet.
STANDING_NS: Final = 250 * 10**6


@dataclass(slots=True)
class InFlightLimit:
    """The limit of one shard.

    at_most: the shard's share.
    is_known: the messages that a former dispatcher has in flight are known.
    reading: the number of the reading that asks for them, while it is under way.
    look_ns: when to look at what is in flight, if the limit holds the shard back until then; None if it does not.
    """

    at_most: int
    is_known: bool = False
    reading: int | None = None
    look_ns: int | None = None

    def begin(self) -> None:
        """Forget what is known: another process may have dispatched the shard since."""
        self.is_known, self.reading, self.look_ns = False, None, None

    def room(self, in_flight: int) -> int:
        """Return how many more may be sent now."""
        room = max(0, self.at_most - in_flight)
        if room:
            self.look_ns = None
        return room

    def is_to_look(self, now_ns: int) -> bool:
        """Note that the shard is held back; return whether to look at what is in flight."""
        is_late = self.look_ns is not None and self.look_ns <= now_ns
        if is_late or self.look_ns is None:
            self.look_ns = now_ns + STANDING_NS
        return is_late


def share(limit: int, shards: int, index: int) -> int:
    """Return what the shard at *index* gets of *limit*: the first ones get what is left over."""
    return limit // shards + (index < limit % shards)
