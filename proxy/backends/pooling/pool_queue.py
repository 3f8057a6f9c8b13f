"""Which waiter gets which connection of a pool: by account, so that no crowd keeps another one waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.proxy.backends.pooling.connection_handover import fits


if TYPE_CHECKING:
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner


@dataclass(slots=True, eq=False)
class PoolWaiter:
    """A place in a pool's queue.

    The pool calls one of two functions, once, unless `Pool.dequeue` came before:
    served: with a connection that is lent now and may have to be made the *owner*'s own
        (`Pool.make_own`), or with None as permission to open one.
    failed: with PoolTimeout, or BackendUnavailable if the proxy shuts down.
    """

    owner: ConnectionOwner
    database: str | None
    served: Callable[[Backend | None], None]
    failed: Callable[[Exception], None]
    came_s: float = 0.0
    deadline_s: float = 0.0


class PoolQueue:
    """The waiters of each account, in the order in which they came; the accounts take turns."""

    def __init__(self) -> None:
        # The account whose turn is next comes first. Dicts keep the order and remove in O(1).
        self._accounts: dict[Account, dict[PoolWaiter, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PoolWaiter]:
        """Iterate over all of them, account by account."""
        return (waiter for waiters in list(self._accounts.values()) for waiter in list(waiters))

    def add(self, waiter: PoolWaiter, *, is_first: bool = False) -> None:
        """Put *waiter* behind, or before, all others of its account."""
        waiters = self._accounts.setdefault(waiter.owner.account, {})
        if is_first and waiters:
            self._accounts[waiter.owner.account] = {waiter: None, **waiters}
        else:
            waiters[waiter] = None
        self._count += 1

    def remove(self, waiter: PoolWaiter) -> None:
        """Take *waiter* out if it waits."""
        waiters = self._accounts.get(waiter.owner.account, {})
        if waiter in waiters:
            del waiters[waiter]
            self._count -= 1
            if not waiters:
                del self._accounts[waiter.owner.account]

    def heads(self) -> list[PoolWaiter]:
        """Return the first waiter of each account, in the order of the turns."""
        return [next(iter(waiters)) for waiters in self._accounts.values()]

    def took_turn(self, waiter: PoolWaiter) -> None:
        """Remove *waiter*, and put its account behind the others."""
        self.remove(waiter)
        if waiters := self._accounts.pop(waiter.owner.account, None):
            self._accounts[waiter.owner.account] = waiters

    def first_deadline_s(self) -> float | None:
        """Return the earliest deadline; None if no statement waits."""
        return min((waiter.deadline_s for waiter in self.heads()), default=None)

    def late(self, now_s: float) -> list[PoolWaiter]:
        """Remove and return those whose deadline has come."""
        late = []
        for waiters in list(self._accounts.values()):
            for waiter in list(waiters):
                if waiter.deadline_s > now_s:
                    break  # the later ones of an account wait longer
                late.append(waiter)
        for waiter in late:
            self.remove(waiter)
        return late


@dataclass(frozen=True, slots=True)
class NewConnection:
    """Open a connection, in the place of the idle connection *victim* if that is not None."""

    victim: Backend | None = None


def choose(
    idle: Iterable[Backend],
    owner: ConnectionOwner,
    database: str | None,
    *,
    has_room: bool,
    may_open: bool,
    may_displace: bool,
) -> Backend | NewConnection | None:
    """Return *owner*'s own connection, else one without owner, else a new one, else the oldest of the account, else None.

    idle: the idle connections, the least recently used first.
    has_room: the pool is not full.
    may_open: the server takes another connection of the owner's account.
    may_displace: a connection of another account may be closed for it.
    """
    fitting = unowned = oldest = other_kind = foreign = None
    # The first match of each kind is the oldest.
    for backend in idle:
        # Two accounts of one user are usually one object.
        is_own = backend.account is owner.account or backend.account == owner.account
        if not is_own:
            foreign = foreign or backend
        elif backend.variant != owner.variant or (
            # Only a new login leaves no database.
            database is None and backend.database is not None
        ):
            other_kind = other_kind or backend
        elif backend.owner is owner:
            return backend
        elif backend.owner is not None:
            # Only the oldest: taking a connection from a session costs both of them a
            # handover, and the session that used its own longest ago needs it least.
            oldest = oldest or backend
        elif fitting is None and fits(backend, owner, owner.settings, database):
            fitting = backend
        else:
            unowned = unowned or backend
    found = fitting or unowned
    if found is not None:
        return found
    if has_room and may_open:
        return NewConnection()
    if oldest is not None:
        return oldest
    # One of the account itself makes room at the server, too.
    victim = other_kind or (foreign if may_open and may_displace else None)
    return None if victim is None else NewConnection(victim)
