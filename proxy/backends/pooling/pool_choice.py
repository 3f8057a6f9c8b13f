"""Which connection of a pool a session gets. Pure: what is decided here, `proxy.backends.pooling.pool` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from streamfrom.proxy.backends.pooling.connection_handover import fits


if TYPE_CHECKING:
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner


class Choice(Enum):
    """What is done where no idle connection is given."""

    OPEN = "open a new connection"
    WAIT = "wait for one to come back"


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """Close the idle connection *victim*, and open another one in its place."""

    victim: Backend


def choose(
    idle: Iterable[Backend],
    owner: ConnectionOwner,
    database: str | None,
    *,
    has_room: bool,
    may_open: bool,
    may_displace: bool,
) -> Backend | MakeRoom | Choice:
    """Return *owner*'s own connection, else one without owner, else OPEN, else the oldest of the account.

    idle: the idle connections, the least recently used first.
    has_room: the pool is not full.
    may_open: the server takes another connection of the owner's account.
    may_displace: a connection of another account may be closed for it.
    """
    fitting = unowned = oldest = spent = other_kind = foreign = None
    # The first match of each kind is the oldest.
    for backend in idle:
        # Two of one user are mostly one object.
        is_own = backend.account is owner.account or backend.account == owner.account
        if not is_own:
            foreign = foreign or backend
        elif backend.variant != owner.variant or (
            # Nothing but a new login leaves a database for no database.
            database is None and backend.database is not None
        ):
            other_kind = other_kind or backend
        elif backend.owner is owner:
            return backend
        elif backend.is_spent:
            spent = spent or backend
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
        return Choice.OPEN
    if oldest is not None and spent is None:
        return oldest
    # One of the account itself makes room at the server, too.
    victim = spent or other_kind or (foreign if may_open and may_displace else None)
    return Choice.WAIT if victim is None else MakeRoom(victim)
