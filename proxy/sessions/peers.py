"""The sessions of the proxy as one of them sees them: it may list and end those of its own user.

A user of role admin may list and end all of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from streamfrom.proxy.config.file import Role
from streamfrom.proxy.errors import (
    ConnectionKilled,
    KillDenied,
    NoSuchThread,
    NotOwner,
    QueryInterrupted,
)


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.sessions.services import Peer, Services


class Peers:
    """What one session may ask of all."""

    __slots__ = ("_own", "_services")

    def __init__(self, services: Services, own: Peer) -> None:
        self._services = services
        self._own = own

    async def kill(self, connection_id: int, *, query_only: bool) -> None:
        """End a connection, or what it runs; then no statement that comes later is meant.

        Raises:
            NoSuchThread, NotOwner: there is none of this id, or it is another user's.
            QueryInterrupted, ConnectionKilled: it is one's own.
        """
        other = self._services.sessions.get(connection_id)
        if other is None or other.user is None:
            raise NoSuchThread(connection_id)
        if not self._may_see(other):
            raise NotOwner(connection_id)
        await self._kill([other], query_only=query_only)

    async def kill_user(self, name: str, *, query_only: bool) -> int:
        """End all connections of user *name*, or what they run, one's own last; return how many.

        Raises:
            KillDenied: it is another user, and one's own is no admin.
            QueryInterrupted, ConnectionKilled: one's own is among them.
        """
        own = self._own.user
        assert own is not None
        if own.role is not Role.ADMIN and own.name != name:
            raise KillDenied
        peers = self._services.sessions.values()
        found = [peer for peer in peers if peer.user is not None and peer.user.name == name]
        await self._kill(found, query_only=query_only)
        return len(found)

    async def _kill(self, found: list[Peer], *, query_only: bool) -> None:
        told: list[asyncio.Task[None]] = []
        for other in found:
            if other is self._own:
                continue
            if query_only:
                told += other.interrupt(QueryInterrupted())
            else:
                other.end()
        if told:
            await asyncio.wait(told)
        if self._own in found:
            if query_only:
                raise QueryInterrupted
            raise ConnectionKilled(on_mariadb="MariaDB" in self._services.server_version())

    def processes(self) -> list[Process]:
        """Return the sessions that SHOW PROCESSLIST lists."""
        own = filter(self._may_see, self._services.sessions.values())
        return [process for peer in own if (process := peer.process()) is not None]

    def _may_see(self, other: Peer) -> bool:
        own = self._own.user
        if own is None or other.user is None:
            return False
        # By name: the user may have been read again since one of them logged in.
        return own.role is Role.ADMIN or other.user.name == own.name

    def holders(self, shard: ShardRuntime) -> dict[int, int]:
        """Return the holders of connections to the server of *shard*: the proxy's ids by the server's."""
        threads = (
            (peer.thread_on(each), number)
            for number, peer in self._services.sessions.items()
            for each in shard.same_server
        )
        return {thread: number for thread, number in threads if thread is not None}

    def statistics(self) -> bytes:
        """Return the line that COM_STATISTICS answers, in the words of the server that is greeted as.

        It tells of the proxy, which opens no tables and has no log of slow queries. Source: `dispatch_command`
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
