"""The sessions of this process, as clients of any member of the fleet may see and end them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import NoSuchThread, NotOwner, QueryInterrupted


if TYPE_CHECKING:
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.sessions.services import Asker, Peer


@dataclass(frozen=True, slots=True)
class LocalSessions:
    """The sessions of this process, as far as the asking user may see them.

    sessions: all of them, by connection id.
    """

    _sessions: Mapping[int, Peer]

    def find(self, asker: Asker, connection_id: int) -> Peer:
        """Return a session.

        Raises:
            NoSuchThread, NotOwner: there is none of this id, or it is another user's.
        """
        found = self._sessions.get(connection_id)
        if found is None or found.user is None:
            raise NoSuchThread(connection_id)
        if not asker.may_see(found.user):
            raise NotOwner(connection_id)
        return found

    def of_user(self, name: str) -> list[Peer]:
        """Return the sessions of a user."""
        peers = self._sessions.values()
        return [peer for peer in peers if peer.user is not None and peer.user.name == name]

    def processes(self, asker: Asker) -> list[Process]:
        """Return the sessions that SHOW PROCESSLIST lists."""
        return [
            peer.work.process() for peer in self._sessions.values() if asker.may_see(peer.user)
        ]


async def end(found: Iterable[Peer], *, query_only: bool) -> None:
    """End sessions, or the statements that they run now; a statement that comes later is left alone."""
    told: list[asyncio.Task[None]] = []
    for each in found:
        if query_only:
            told += each.work.interrupt(QueryInterrupted())
        else:
            each.end()
    if told:
        await asyncio.wait(told)
