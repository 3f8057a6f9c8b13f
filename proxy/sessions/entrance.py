"""One client's way in: who may try, how long it may take, how long an answer waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from proxy.errors import (
    AccessDenied,
    HostNotAllowed,
    TooManyConnections,
    UserLimitReached,
)


if TYPE_CHECKING:
    from collections.abc import Callable

    from proxy.config.file import User
    from proxy.net import Link
    from proxy.sessions.services import Peer, Services
    from sqlparse_ext.errors import StreamfromError


class Entrance:
    """The entrance of one connection."""

    def __init__(self, services: Services, link: Link) -> None:
        self._services = services
        self._link = link
        self._loop = asyncio.get_running_loop()
        # Either the end of the time to log in, or the moment of an answer that waits.
        self._timer: asyncio.TimerHandle | None = None

    def refusal(self) -> StreamfromError | None:
        """Return why a client may not even try to log in, None if it may."""
        services = self._services
        if len(services.sessions) >= services.config.max_connections:
            return TooManyConnections()
        if services.loopback_only and not self._link.is_loopback:
            return HostNotAllowed(self._link.peer)
        return None

    def open(self, on_timeout: Callable[[], None]) -> None:
        """Let the client log in; *on_timeout* is called if it has not `left` by then."""
        self._timer = self._loop.call_later(self._services.config.connect_timeout_s, on_timeout)

    def leave(self) -> None:
        """Stop every wait: the client is in, or gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def check(self, user: User, session: Peer) -> None:
        """Raise UserLimitReached if *user* has all connections that it may have."""
        limit = user.max_connections
        if limit is None:
            return
        peers = self._services.sessions.values()
        held = sum(
            peer is not session and peer.user is not None and peer.user.name == user.name
            for peer in peers
        )
        if held >= limit:
            raise UserLimitReached(user.name, limit)

    def proven(self, user: str, answer: bytes, then: Callable[[], None]) -> None:
        """Send *answer* to a client that has proven to be *user*, and go on."""
        wait_s = self._services.backoff.succeeded(self._link.peer, user, self._loop.time())
        self._answer(wait_s, answer, then)

    def refused(self, error: StreamfromError, answer: bytes, then: Callable[[], None]) -> None:
        """Send *answer* to a client that was refused with *error*, and go on."""
        wait_s = 0.0
        if isinstance(error, AccessDenied):
            wait_s = self._services.backoff.failed(
                self._link.peer, error.user, self._loop.time()
            )
        self._answer(wait_s, answer, then)

    def _answer(self, wait_s: float, answer: bytes, then: Callable[[], None]) -> None:
        if not wait_s:
            self._link.write(answer)
            then()
            return
        self.leave()
        # Nothing is read meanwhile: who sends on only fills the socket.
        self._link.pause_reading()

        def go_on() -> None:
            self._timer = None
            self._link.resume_reading()
            self._link.write(answer)
            then()

        self._timer = self._loop.call_later(wait_s, go_on)
