"""How one stream's prefetch is divided among its dispatchers, so that it holds no more than that from all together. Pure.

Each dispatcher has a *share*: how many of its messages the stream may hold. All shares together are never more than the
prefetch. A dispatcher *wants* more if messages are due and its share is full. It gets any unassigned part, or else another dispatcher
gives up a part: half of its share, or half of the difference if that one wants more as well. Room that was given up is given to
another dispatcher only once the giver has reported how many messages the stream holds.
"""

from __future__ import annotations

from typing import NamedTuple

from streamfrom.engine.messaging.streams.attached_receiver import UNLIMITED


class ShareChange(NamedTuple):
    """A dispatcher must be notified of its new share."""

    dispatcher: str
    share: int


class PrefetchShares:
    """The shares of one stream. Methods that change them return the changes to notify dispatchers of.

    prefetch: how many messages the stream may hold; at least one. UNLIMITED is not divided: each dispatcher has all of it. A
        stream with `vt_prefetch = auto` is UNLIMITED here, and has its own window with each dispatcher.
    """

    def __init__(self, prefetch: int, dispatcher: str) -> None:
        """Give everything to the only *dispatcher*."""
        self._prefetch = prefetch
        self._shares = {dispatcher: prefetch}
        # How many messages the stream may still hold of a dispatcher that has not answered the last change of its share.
        self._bounds: dict[str, int] = {}
        # In the order in which they came to want more.
        self._wanting: dict[str, None] = {}
        # The dispatcher that is giving up a part of its share: one at a time.
        self._giver: str | None = None

    def joined(self, dispatcher: str) -> int:
        """Return the share of a new dispatcher: the unassigned part. It wants more as soon as it has answered."""
        share = UNLIMITED if self._prefetch == UNLIMITED else self._free
        self._shares[dispatcher] = self._bounds[dispatcher] = share
        self._wanting[dispatcher] = None
        return share

    def idle(self, dispatcher: str) -> list[ShareChange]:
        """Free the share of a dispatcher without due messages; it will want more if it ever has some."""
        return [] if self._prefetch == UNLIMITED else [self._change(dispatcher, 0)]

    def left(self, dispatcher: str) -> list[ShareChange]:
        """Free the share of a former dispatcher."""
        for each in (self._shares, self._bounds, self._wanting):
            each.pop(dispatcher, None)
        return self._has_answered(dispatcher)

    def wanted(self, dispatcher: str) -> list[ShareChange]:
        """Note that messages are due and its share is full."""
        if dispatcher in self._shares:
            self._wanting[dispatcher] = None
        return self._changes()

    def kept(self, dispatcher: str, most: int) -> list[ShareChange]:
        """Note that the stream holds *most* of its messages at most: its share, or more until enough are acked."""
        if most > self._shares.get(dispatcher, most):
            self._bounds[dispatcher] = most
        else:
            self._bounds.pop(dispatcher, None)
        return self._has_answered(dispatcher)

    def _has_answered(self, dispatcher: str) -> list[ShareChange]:
        if self._giver == dispatcher:
            self._giver = None
        return self._changes()

    def altered(self, prefetch: int) -> list[ShareChange]:
        """Divide another prefetch."""
        self._prefetch = prefetch
        return self._changes()

    @property
    def _free(self) -> int:
        most = (max(share, self._bounds.get(one, 0)) for one, share in self._shares.items())
        return max(0, self._prefetch - sum(most))

    def _changes(self) -> list[ShareChange]:
        """Return the notices to send; for each dispatcher one change at a time is on its way."""
        if self._prefetch == UNLIMITED:
            short = [one for one in self._shares if self._shares[one] < UNLIMITED]
            return [self._change(one, UNLIMITED) for one in short if one not in self._bounds]
        changes: list[ShareChange] = []
        excess = sum(self._shares.values()) - self._prefetch
        for one in sorted(self._shares, key=self._shares.__getitem__, reverse=True):
            if excess > 0 and one not in self._bounds:
                left = max(0, self._shares[one] - excess)
                excess -= self._shares[one] - left
                changes.append(self._change(one, left))
        free = self._free
        wanting = [one for one in self._wanting if one not in self._bounds]
        wanting.sort(key=self._shares.__getitem__)
        if free and wanting:
            # As with water: the smallest share grows until the others are as large.
            level = -(-(free + sum(map(self._shares.__getitem__, wanting))) // len(wanting))
            for one in list(wanting):
                if more := min(free, max(0, level - self._shares[one])):
                    free -= more
                    wanting.remove(one)
                    changes.append(self._change(one, self._shares[one] + more))
        if wanting and self._giver is None:
            giver, left = self._giving(wanting[0])
            if giver is not None:
                self._giver = giver
                changes.append(self._change(giver, left))
        return changes

    def _change(self, one: str, share: int) -> ShareChange:
        # With another share it announces again whether it wants more.
        self._wanting.pop(one, None)
        self._bounds[one], self._shares[one] = self._shares[one], share
        return ShareChange(one, share)

    def _giving(self, wanting: str) -> tuple[str | None, int]:
        """Return the dispatcher that gives up a part of its share for *wanting*, and its remaining share; None if none has more."""
        lefts = {
            one: self._left(one, wanting)
            for one in self._shares
            if one != wanting and one not in self._bounds
        }
        givers = [one for one, left in lefts.items() if left < self._shares[one]]
        if not givers:
            return None, 0
        # One that does not want more gives before one that does.
        giver = max(givers, key=lambda one: (one not in self._wanting, self._shares[one]))
        return giver, lefts[giver]

    def _left(self, one: str, wanting: str) -> int:
        """Return the remaining share of *one* after it gives up a part for *wanting*."""
        share, least = self._shares[one], self._shares[wanting]
        if one not in self._wanting:
            return share // 2
        # The last one is passed around, or a prefetch smaller than their number would serve only some.
        return (share + least) // 2 if share - least > 1 or not least else share
