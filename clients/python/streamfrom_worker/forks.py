"""What a child process must not share with its parent: connections, and locks that threads held at the fork."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Renewable(Protocol):
    """What begins again in a child process."""

    def renew(self) -> None:
        """Let go of what belongs to the parent."""


_renewed: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_in_children(thing: Renewable) -> None:
    """Call *thing*'s `renew` now, and in each child process."""
    thing.renew()
    _renewed.add(thing)


def _renew() -> None:
    for thing in list(_renewed):
        thing.renew()


os.register_at_fork(after_in_child=_renew)
