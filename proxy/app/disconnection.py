"""How clients are disconnected: all of them when the proxy stops, or those whose account is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from streamfrom.proxy.errors import AccountChanged, ServerShutdown, ShutdownUnanswered


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.config.file import Server
    from streamfrom.proxy.sessions.services import Peer


log = structlog.get_logger()

# How long a server may take to stop a statement by KILL QUERY, and a client to take its last answer.
INTERRUPT_S: Final = 1.0
# How often a stop checks whether all sent messages are acknowledged.
ACKS_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Disconnection:
    """The end of sessions.

    sessions: all sessions of the proxy, by connection id.
    hurry: once this event is set, no session is waited for.
    """

    _sessions: Mapping[int, Peer]
    _hurry: asyncio.Event

    def clients(self) -> list[Peer]:
        """Return the sessions that have logged in."""
        return [session for session in self._sessions.values() if session.user is not None]

    async def drain(self, registry: Registry, server: Server) -> None:
        """Let clients finish, for a bounded time, then disconnect them.

            at once              streams end
            `shutdown_grace`     sessions go once they are at rest: no work, no transaction. As long
                                 as sent messages are not acked, and not due again, sessions
                                 at rest stay, too
            INTERRUPT_S          running statements are stopped on their servers, unless they may commit
            `failover_buffer`    statements that may commit are waited for

        A client without an answer then gets the error that the outcome is unknown.
        """
        loop = asyncio.get_running_loop()
        error = ServerShutdown()
        grace_ends_s = loop.time() + server.shutdown_grace_s
        log.info("stopping", clients=len(self.clients()))
        registry.here.end_streams(error)
        while registry.here.held() and self.clients() and not self._hurry.is_set():
            left_s = grace_ends_s - loop.time()
            if left_s <= 0:
                break
            await self._gone(self.clients(), min(left_s, ACKS_LOOK_S))
        for session in self.clients():
            session.work.shut_down(error)
        await self._gone(self.clients(), grace_ends_s - loop.time())
        for session in self.clients():
            session.work.stop_work(error)
        await self._gone([s for s in self.clients() if not s.work.is_committing], INTERRUPT_S)
        for session in self.clients():
            if not session.work.is_committing:
                session.cut_off(ShutdownUnanswered())
        if committing := [session for session in self.clients() if session.work.is_committing]:
            log.info("waiting for commits", clients=len(committing))
            await self._gone(committing, server.failover_buffer_s)
        for session in list(self._sessions.values()):
            session.cut_off(error if session.user is None else ShutdownUnanswered())
        await self._gone(list(self._sessions.values()), INTERRUPT_S)
        for session in list(self._sessions.values()):
            session.end()
        await registry.stop(error)

    async def dismiss(self, sessions: Sequence[Peer]) -> None:
        """Cut off those of *sessions* whose server does not stop their statement."""
        await self._gone(sessions, INTERRUPT_S)
        for session in sessions:
            if session.user is not None and not session.work.is_committing:
                session.cut_off(AccountChanged(session.user.name))

    async def _gone(self, sessions: Sequence[Peer], within_s: float) -> None:
        """Return when all *sessions* are gone, after *within_s*, or when a stop must hurry."""
        if not sessions or within_s <= 0:
            return
        gone = asyncio.gather(*(session.closed.wait() for session in sessions))
        hurry = asyncio.ensure_future(self._hurry.wait())
        waited: set[asyncio.Future[Any]] = {gone, hurry}
        await asyncio.wait(waited, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
