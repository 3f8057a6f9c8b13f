"""The login of one client: how it is refused, how long it may take, when the client's proof is checked.

Every refusal of a login is sent here, and the connection closed behind it:

| when | which error | sent |
|---|---|---|
| before the greeting | `refusal`: no place, or not from this machine | at once |
| the proof is wrong | AccessDenied, which `proxy.wire.login.auth` raises | after `auth_backoff` |
| the protocol is broken | the error of `proxy.wire.server_connection` | at once |
| the proof is right | `check`: no place for this user; no such database; the proxy ends | at once |
| `connect_timeout` is over | none | the connection is reset |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamfrom.proxy.addresses import group
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.errors import (
    AccessDenied,
    AddressLimitReached,
    HostNotAllowed,
    TooManyConnections,
    UserLimitReached,
)
from streamfrom.proxy.wire.server_connection import Event, ServerConnection, refusal


if TYPE_CHECKING:
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sessions.services import Peer, Services
    from streamfrom.sqlparse_ext.errors import StreamfromError


@dataclass(slots=True, eq=False, repr=False)
class LoginGate:
    """The limits and waits of one connection's login."""

    _services: Services
    _link: Link
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _address: str = ""
    _is_counted: bool = False
    _is_in: bool = False
    # Either the end of the time to log in, or the moment of an answer that waits.
    _timer: asyncio.TimerHandle | None = None
    # The user that the current login names; None when the login has been decided.
    _user: str | None = None
    _waited_s: float = 0.0  # how long it has waited for its turn
    _judging: asyncio.Task[None] | None = None

    def admits(self) -> bool:
        """Return whether a client may try to log in; one that may not gets the error."""
        error = self.refusal()
        if error is not None:
            self._services.turned_away.warning(
                "connections turned away", address=self._link.peer, reason=str(error)
            )
            self._link.write(refusal(error))
            self._link.close()
        return error is None

    def refusal(self) -> StreamfromError | None:
        """Return why a client may not even try to log in, None if it may."""
        services = self._services
        config = services.config
        number = len(services.sessions)
        if number >= config.max_connections and not (
            # One more may log in if it is an admin: see `check`.
            number == config.max_connections and services.has_admin
        ):
            return TooManyConnections()
        if services.loopback_only and not self._link.is_loopback:
            return HostNotAllowed(self._link.peer)
        self._address = group(self._link.peer)
        limit = config.max_connections_per_address
        if limit and services.connected[self._address] >= limit:
            return AddressLimitReached(self._link.peer, "max_connections_per_address", limit)
        limit = config.max_logins_per_address
        if services.strangers[self._address] >= limit:
            return AddressLimitReached(self._link.peer, "max_logins_per_address", limit)
        return None

    def open(self) -> None:
        """Let the client log in, within `connect_timeout`."""
        self._services.connected.enter(self._address)
        self._services.strangers.enter(self._address)
        self._is_counted = True
        self._set_timer()

    def _set_timer(self) -> None:
        if self._is_counted and not self._is_in:
            self._timer = self._loop.call_later(
                self._services.config.connect_timeout_s, self._timed_out
            )

    def _timed_out(self) -> None:
        self._services.turned_away.info("login timed out", host=self._link.peer)
        self._link.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def logged_in(self) -> None:
        """Count the client among those of its address that have logged in."""
        self._stop_timer()
        self._judging = None
        if self._is_counted and not self._is_in:
            self._services.strangers.leave(self._address)
        self._is_in = True

    def disconnected(self) -> None:
        """End the waits of a client that is gone; an answer that it did not wait for counts as a failure."""
        self._stop_timer()
        if self._judging is not None:
            self._judging.cancel()
        if self._user is not None and self._waited_s == 0.0:
            self._services.backoff.failed(self._address, self._user, self._loop.time())
        if self._is_counted:
            self._is_counted = False
            self._services.connected.leave(self._address)
            if not self._is_in:
                self._services.strangers.leave(self._address)

    def check(self, user: User, session: Peer) -> None:
        """Raise UserLimitReached or TooManyConnections if there is no place for *user*."""
        services = self._services
        if (
            len(services.sessions) > services.config.max_connections
            and user.role is not Role.ADMIN
        ):
            raise TooManyConnections
        limit = user.max_connections
        if limit is None:
            return
        peers = services.sessions.values()
        held = sum(
            peer is not session and peer.user is not None and peer.user.name == user.name
            for peer in peers
        )
        if held >= limit:
            raise UserLimitReached(user.name, limit)

    # --- proofs ---------------------------------------------------------------------------

    def judge(
        self,
        user: str,
        pieces: Generator[None, None, list[Event]],
        then: Callable[[list[Event]], Awaitable[None]],
        *,
        is_costly: bool,
    ) -> None:
        """Have a proof of *user* judged when it may be, and call *then* with the resulting events."""
        # Nothing is read meanwhile: a client that keeps sending fills its own socket.
        self._link.pause_reading()
        if self._user is None:
            self._user, self._waited_s = user, 0.0

        async def go_on() -> None:
            events = await self._services.work.judged(
                self._address, pieces, self._turn_s, self._wait, is_costly=is_costly
            )
            self._link.resume_reading()
            await then(events)

        self._judging = asyncio.create_task(go_on())

    def _turn_s(self) -> float:
        if self._waited_s:  # with an earlier proof of this login
            return 0.0
        assert self._user is not None
        backoff = self._services.backoff
        self._waited_s = backoff.turn(self._address, self._user, self._loop.time())
        return self._waited_s

    async def _wait(self, wait_s: float) -> None:
        """Wait for the turn of a proof; connect_timeout stands still unless the queue is long."""
        services = self._services
        if wait_s > services.backoff.longest_s + services.config.connect_timeout_s:
            await asyncio.sleep(wait_s)
            return
        self._stop_timer()
        await asyncio.sleep(wait_s)
        self._set_timer()

    def proven(self, user: str) -> None:
        """Forget failures: a client has proven to be *user*."""
        self._user = None
        self._services.backoff.succeeded(self._address, user)

    def refuse(self, wire: ServerConnection, error: StreamfromError) -> None:
        """Refuse a client that has proven its identity."""
        wire.refuse(error)
        self._link.write(wire.data_to_send())
        self._link.close()

    def refused(self, error: StreamfromError, answer: bytes) -> None:
        """Send *answer* to a client that the protocol refused with *error*, when it is time."""
        wait_s = 0.0
        if isinstance(error, AccessDenied):
            self._user = None
            wait_s = self._services.backoff.failed(
                self._address, error.user, self._loop.time(), self._waited_s
            )
        if not wait_s:
            self._link.write(answer)
            self._link.close()
            return
        self._stop_timer()
        self._link.pause_reading()

        def go_on() -> None:
            self._timer = None
            self._link.resume_reading()
            self._link.write(answer)
            self._link.close()

        self._timer = self._loop.call_later(wait_s, go_on)
