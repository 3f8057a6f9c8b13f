"""The login of one client: how it is refused, how long it may take, when the client's proof is checked.

Every refusal of a login is sent here, and the connection closed behind it:

| when | which error | sent |
|---|---|---|
| before the greeting | `refusal`: no place, or not from this machine | at once |
| the proof is wrong | AccessDenied, which `proxy.wire.login.auth` raises | when `auth_backoff` says |
| the protocol is broken | what `proxy.wire.server_connection` raises | at once |
| the proof is right | `check`: no place for this user; no such database; the proxy ends | at once |
| `connect_timeout` is over | none | the connection is reset |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.errors import (
    AccessDenied,
    AddressLimitReached,
    HostNotAllowed,
    TooManyConnections,
    UserLimitReached,
)
from streamfrom.proxy.sessions.addresses import group
from streamfrom.proxy.wire.server_connection import Event, ServerConnection, refusal


if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sessions.services import Peer, Services
    from streamfrom.sqlparse_ext.errors import StreamfromError


class LoginGate:
    """The limits and waits of one connection's login."""

    def __init__(self, services: Services, link: Link, logger: FilteringBoundLogger) -> None:
        self._services = services
        self._link = link
        self._log = logger
        self._loop = asyncio.get_running_loop()
        self._address = ""
        self._is_counted = False
        self._is_in = False
        # Either the end of the time to log in, or the moment of an answer that waits.
        self._timer: asyncio.TimerHandle | None = None
        # The user that the login under way names; None when the login has been decided.
        self._user: str | None = None
        # How long this login has waited for its turn; None before `LoginBackoff.turn` was asked.
        self._waited_s: float | None = None
        self._judging: asyncio.Task[None] | None = None

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
        if limit and services.addresses.connections(self._address) >= limit:
            return AddressLimitReached(self._link.peer, "max_connections_per_address", limit)
        limit = config.max_logins_per_address
        if services.addresses.strangers(self._address) >= limit:
            return AddressLimitReached(self._link.peer, "max_logins_per_address", limit)
        return None

    def open(self) -> None:
        """Let the client log in, for as long as `connect_timeout` says."""
        self._services.addresses.connected(self._address)
        self._is_counted = True
        self._set_timer()

    def _set_timer(self) -> None:
        if self._is_counted and not self._is_in:
            self._timer = self._loop.call_later(
                self._services.config.connect_timeout_s, self._timed_out
            )

    def _timed_out(self) -> None:
        self._log.info("login timed out", host=self._link.peer)
        self._link.abort()

    def leave(self) -> None:
        """Stop every wait: the client is in, or gone."""
        self._stop_timer()
        if self._judging is not None:
            self._judging.cancel()
            self._judging = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def logged_in(self) -> None:
        """End the waits, and count the client among those of its address that have logged in."""
        self.leave()
        if self._is_counted and not self._is_in:
            self._services.addresses.logged_in(self._address)
        self._is_in = True

    def disconnected(self) -> None:
        """End the waits of a client that is gone; an answer that it did not wait for counts as a failure."""
        self.leave()
        if self._user is not None and self._waited_s == 0.0:
            self._services.backoff.failed(self._address, self._user, self._loop.time())
        if self._is_counted:
            self._is_counted = False
            self._services.addresses.disconnected(self._address, was_in=self._is_in)

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

    def defers(self, user: str, *, is_costly: bool) -> bool:
        """True if a proof of *user* is to be judged by `judge`: it must wait, or is much work."""
        if self._user is None:
            self._user, self._waited_s = user, None
        if self._waited_s is None:
            # A costly proof asks in its own turn, when the proofs before it have been judged.
            self._waited_s = 0.0 if is_costly else self._turn_s(user)
        return is_costly or self._waited_s > 0

    def _turn_s(self, user: str) -> float:
        return self._services.backoff.turn(self._address, user, self._loop.time())

    def judge(
        self,
        user: str,
        pieces: Generator[None, None, list[Event]],
        then: Callable[[list[Event]], None],
        *,
        is_costly: bool,
    ) -> None:
        """Have a proof that was deferred judged when it may be, and call *then* with what follows."""
        # Nothing is read meanwhile: a client that goes on sending fills its own socket.
        self._link.pause_reading()
        self._judging = asyncio.create_task(
            self._judge(user, pieces, then, is_costly=is_costly)
        )

    async def _judge(
        self,
        user: str,
        pieces: Generator[None, None, list[Event]],
        then: Callable[[list[Event]], None],
        *,
        is_costly: bool,
    ) -> None:
        work = self._services.work
        events: list[Event] | None = None
        if not is_costly:
            await self._wait(self._waited_s or 0.0)
            events = await work.done(pieces)
        else:
            async with work.turn(self._address):
                wait_s = 0.0 if self._waited_s else self._turn_s(user)
                if not wait_s:
                    events = await work.done(pieces)
            if events is None:
                self._waited_s = wait_s
                await self._wait(wait_s)
                async with work.turn(self._address):
                    events = await work.done(pieces)
        self._judging = None
        self._link.resume_reading()
        then(events)

    async def _wait(self, wait_s: float) -> None:
        """Wait for the turn of a proof; connect_timeout stands still unless the queue is long."""
        services = self._services
        if wait_s > services.backoff.longest_s + services.config.connect_timeout_s:
            await asyncio.sleep(wait_s)
            return
        self._stop_timer()
        await asyncio.sleep(wait_s)
        self._set_timer()

    def proven(self, user: str, answer: bytes, then: Callable[[], None]) -> None:
        """Send *answer* to a client that has proven to be *user*, and go on."""
        self._user = None
        self._services.backoff.succeeded(self._address, user)
        self._link.write(answer)
        then()

    def refuse(self, wire: ServerConnection, error: StreamfromError) -> None:
        """Refuse a client that has proven who it is."""
        wire.refuse(error)
        self._link.write(wire.data_to_send())
        self._link.close()

    def refused(self, error: StreamfromError, answer: bytes) -> None:
        """Send *answer* to a client that the protocol refused with *error*, when it is time."""
        wait_s = 0.0
        if isinstance(error, AccessDenied):
            self._user = None
            wait_s = self._services.backoff.failed(
                self._address, error.user, self._loop.time(), self._waited_s or 0.0
            )
        if not wait_s:
            self._link.write(answer)
            self._link.close()
            return
        self.leave()
        self._link.pause_reading()

        def go_on() -> None:
            self._timer = None
            self._link.resume_reading()
            self._link.write(answer)
            self._link.close()

        self._timer = self._loop.call_later(wait_s, go_on)
