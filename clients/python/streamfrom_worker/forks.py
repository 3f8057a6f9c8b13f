"""Drop the connections and locks that a child process must not share with its parent."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Renewable(Protocol):
    """An object that starts afresh in a child process."""

    def renew(self) -> None:
        """Drop everything that belongs to the parent."""


_renewed: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_in_children(thing: Renewable) -> None:
    """Call *thing*'s `renew` now and in each child process."""
    thing.renew()
    _renewed.add(thing)


def _renew() -> None:
    for thing in list(_renewed):
        thing.renew()


os.register_at_fork(after_in_child=_renew)
