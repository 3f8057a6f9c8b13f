"""Rows that the database refuses to write, each for some kinds of statement: a CHECK, a trigger, a value that does not fit.

Besides the promises of `tests.sim.promises`: while rows are bad all other messages are delivered and acked; once they are
good again, so are they, by an event, by a poll that shows another value, or by the next try.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from streamfrom.engine.messaging.gates.set_aside import PAUSE_LAST_NS
from streamfrom.engine.messaging.table.message import Tried


# Until the last try, and a claim after it.
HEALED_S = PAUSE_LAST_NS / 10**9 + 60


@dataclass
class BadRows:
    """The bad rows of one history.

    share: the fraction of all rows that are bad.
    what: the kinds of statement that may be refused.
    kinds: those refused for each row, by id.
    ever: the ids that were bad once.
    refused: how often a write was refused.
    """

    dice: random.Random
    share: float
    what: tuple[Tried, ...] = tuple(Tried)
    kinds: dict[bytes, frozenset[Tried]] = field(default_factory=dict)
    ever: set[bytes] = field(default_factory=set)
    refused: int = 0

    @classmethod
    def drawn(cls, seed: int) -> BadRows:
        """Return the bad rows of a history; every second one has some."""
        dice = random.Random(-seed - 1)
        return cls(dice, dice.choice([0.05, 0.2, 0.5]) if seed % 2 else 0)

    def spare_acks(self) -> None:
        """Allow every ack: otherwise messages behind a bad row whose ack fails would rightly wait."""
        self.what = tuple(one for one in self.what if one is not Tried.ACK)

    def inserted(self, idents):
        """Make some new rows bad."""
        for ident in idents:
            if self.dice.random() < self.share:
                count = self.dice.choice([1, 1, 2, len(self.what)])
                self.kinds[ident] = frozenset(self.dice.sample(self.what, count))
                self.ever.add(ident)

    def refuses(self, tried, row):
        """Return whether the database refuses to write a row."""
        is_bad = tried in self.kinds.get(row.id, ())
        self.refused += is_bad
        return is_bad

    def heal_some(self):
        """Make some row good again during the history."""
        if self.kinds and self.dice.random() >= 0.9:
            del self.kinds[self.dice.choice(sorted(self.kinds))]
