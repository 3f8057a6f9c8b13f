"""The sessions of the fleet as one of them sees them: those of this process, then those of its other members."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import (
    ConnectionKilled,
    NoSuchThread,
    NotOwner,
    QueryInterrupted,
)
from streamfrom.proxy.sessions.services import Asker, Peer, Services
from streamfrom.proxy.status.status_source import Sight, Viewer


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.local_statements.show_processlist import Process


@dataclass(frozen=True, slots=True)
class LocalSessions:
    """The sessions of this process, as far as the requesting user may see them."""

    _sessions: Mapping[int, Peer]  # all of them, by connection id

    def find(self, asker: Asker, connection_id: int) -> Peer:
        """Return a session. Raises NoSuchThread if there is none with this id, NotOwner if it is another user's."""
        found = self._sessions.get(connection_id)
        if found is None or found.user is None:
            raise NoSuchThread(connection_id)
        if not asker.may_see(found.user):
            raise NotOwner(connection_id)
        return found

    def processes(self, asker: Asker) -> list[Process]:
        """Return the sessions that SHOW PROCESSLIST lists."""
        return [
            peer.work.process() for peer in self._sessions.values() if asker.may_see(peer.user)
        ]


async def end(peer: Peer, *, query_only: bool) -> None:
    """End a session, or its current statement; a later statement is left alone."""
    if not query_only:
        peer.end()
    elif told := peer.work.interrupt(QueryInterrupted()):
        await asyncio.wait(told)


@dataclass(frozen=True, slots=True)
class ProcessList:
    """The sessions of the fleet that one session may list and end."""

    _services: Services
    _own: Peer

    @property
    def _local(self) -> LocalSessions:
        return LocalSessions(self._services.sessions)

    @property
    def _asker(self) -> Asker:
        assert self._own.user is not None
        return Asker.of(self._own.user)

    async def kill(self, connection_id: int, *, query_only: bool) -> None:
        """End a connection, or its current statement; a later statement is left alone.

        Raises NoSuchThread, NotOwner if it is another user's, MemberUnreachable if its member does not answer, and
        QueryInterrupted or ConnectionKilled if it is one's own.
        """
        members = self._services.members
        try:
            found = self._local.find(self._asker, connection_id)
        except NoSuchThread:
            if members is None:
                raise
            await members.kill(self._asker, connection_id, query_only=query_only)
        else:
            if found is not self._own:
                await end(found, query_only=query_only)
            elif query_only:
                raise QueryInterrupted
            else:
                raise ConnectionKilled(on_mariadb="MariaDB" in self._services.server_version())

    def processes(self) -> list[Process]:
        """Return the sessions of this process that SHOW PROCESSLIST lists."""
        return self._local.processes(self._asker)

    def viewer(self, sight: Sight) -> Viewer:
        """Return one's own user as a reader of the schema `streamfrom`, with the rights of its account."""
        assert self._own.user is not None
        return Viewer(self._own.user, self._asker.is_admin, self.processes(), sight)

    async def fleet_processes(self) -> list[Process]:
        """Return all sessions that it lists, including those of other members."""
        members = self._services.members
        elsewhere = [] if members is None else await members.processes(self._asker)
        return self.processes() + elsewhere

    def holders(self, shard: ShardRuntime) -> dict[int, int]:
        """Return the holders of connections to the server of *shard*: the proxy's ids by the server's."""
        threads = (
            (peer.work.thread_on(shard), number)
            for number, peer in self._services.sessions.items()
            if peer.user is not None
        )
        return {thread: number for thread, number in threads if thread is not None}

    def statistics(self) -> bytes:
        """Return the answer to COM_STATISTICS, in the words of the server in the greeting.

        It is about the proxy, which opens no tables and has no log of slow queries. Source: `dispatch_command`
        of either server, at COM_STATISTICS.
        """
        services = self._services
        uptime_s, questions = int(services.uptime_s()), services.tally.questions
        flushed = "" if "MariaDB" in services.server_version() else "  Flush tables: 0"
        return (
            f"Uptime: {uptime_s}  Threads: {len(services.sessions)}  Questions: {questions}"
            f"  Slow queries: 0  Opens: 0{flushed}  Open tables: 0"
            f"  Queries per second avg: {questions / uptime_s if uptime_s else 0:.3f}"
        ).encode()
