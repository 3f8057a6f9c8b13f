"""The sessions of the proxy as one of them sees them: it may list and end those of its own user."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from proxy.errors import ConnectionKilled, NoSuchThread, NotOwner, QueryInterrupted


if TYPE_CHECKING:
    from proxy.answers.processlist import Process
    from proxy.backends.shard import ShardRuntime
    from proxy.sessions.services import Peer, Services


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
        if other.user is not self._own.user:
            raise NotOwner(connection_id)
        if other is self._own:
            if query_only:
                raise QueryInterrupted
            raise ConnectionKilled(on_mariadb="MariaDB" in self._services.server_version())
        if query_only:
            told = other.interrupt(QueryInterrupted())
            if told:
                await asyncio.wait(told)
        else:
            other.end()

    def processes(self) -> list[Process]:
        """Return the sessions of the same user, as SHOW PROCESSLIST lists them."""
        own = (peer for peer in self._services.sessions.values() if peer.user is self._own.user)
        return [process for peer in own if (process := peer.process()) is not None]

    def holders(self, shard: ShardRuntime) -> dict[int, int]:
        """Return who holds a connection to the server of *shard*: the proxy's id by the server's."""
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
