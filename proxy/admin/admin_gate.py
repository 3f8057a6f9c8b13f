"""Access to the status page and `/api`: login, session, and the guard of each POST.

A login is judged as one on the wire: the same users and passwords, the same waits after failures, counted together
with theirs. Its password travels in clear text, so from another machine it requires TLS. Without users it is
as on the wire: clients on this machine need no login.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from streamfrom.proxy.addresses import AddressCounts, group
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.listening import FIRST_BYTES_S
from streamfrom.proxy.net import is_loopback
from streamfrom.proxy.wire.login.auth import PASSWORD_BYTES_MAX


if TYPE_CHECKING:
    from streamfrom.proxy.passwords.verifier import Verifier
    from streamfrom.proxy.sessions.services import Services


# An open page sends a request each second, so this long after it was closed.
IDLE_S: Final = 1800.0
# A page that stays open all night needs the password again in the morning.
LIFE_S: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1000


@dataclass(slots=True)
class WebSession:
    """One login."""

    user: str
    # What its password was judged by; another one has taken its place once that was changed.
    account: Verifier
    csrf: str  # what each POST must repeat, which only a page of this origin can read
    opened_s: float
    used_s: float


class WebSessions:
    """The logged-in users of the page, by the token of their cookie. *draw* returns a fresh secret at each call."""

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        # The one that was used longest ago first.
        self._sessions: OrderedDict[str, WebSession] = OrderedDict()

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._sessions)

    def open(self, user: str, account: Verifier, now_s: float) -> str:
        """Begin a session and return its token; beyond SESSIONS_MAX the longest unused one ends."""
        token = self._draw()
        self._sessions[token] = WebSession(user, account, self._draw(), now_s, now_s)
        if len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return token

    def find(self, token: str, now_s: float) -> WebSession | None:
        """Return the session of *token*, which counts as used now; None if it has ended."""
        session = self._sessions.get(token)
        if session is None:
            return None
        if now_s - session.used_s > IDLE_S or now_s - session.opened_s > LIFE_S:
            del self._sessions[token]
            return None
        session.used_s = now_s
        self._sessions.move_to_end(token)
        return session

    def close(self, token: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(token, None)


# Per address: a login may wait for some seconds after failures, and each holds a connection.
LOGINS_AT_ONCE_MAX: Final = 8
CSRF_HEADER: Final = "X-CSRF-Token"


@dataclass(frozen=True, slots=True)
class Visitor:
    """The sender of a request."""

    user: User
    csrf: str
    is_admin: bool  # it may end streams of others
    token: str | None  # of its cookie; None if no login is needed


class AdminGate:
    """Decides on access, by the users of the configuration in force."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sessions = WebSessions(lambda: secrets.token_urlsafe(32))
        self._csrf_of_all = secrets.token_urlsafe(32)
        self._trying = AddressCounts()

    def visitor(self, request: web.Request) -> Visitor:
        """Return the sender of a request. Raises HTTPUnauthorized or HTTPForbidden."""
        services = self._services
        if services.loopback_only:
            # A foreign page whose host name was made to resolve to this server has that name in its request.
            if not (is_loopback(request.remote or "") and is_loopback(request.url.host or "")):
                raise web.HTTPForbidden(
                    text="without [[users]] only clients on this machine are answered\n"
                )
            (user,) = services.users.values()
            return Visitor(user, self._csrf_of_all, is_admin=True, token=None)
        token = request.cookies.get(_cookie(request), "")
        session = self._sessions.find(token, asyncio.get_running_loop().time())
        if session is not None:
            user_now = services.users.get(session.user)
            account = services.authenticator.account(session.user)
            if user_now is not None and account is session.account:
                is_admin = user_now.role is Role.ADMIN
                return Visitor(user_now, session.csrf, is_admin, token)
            self._sessions.close(token)
        raise web.HTTPUnauthorized(text="log in by POST /api/login\n")

    def poster(self, request: web.Request) -> Visitor:
        """Return the sender of a POST that repeats the token of its session.

        Raises HTTPUnauthorized or HTTPForbidden.
        """
        _from_here(request)
        visitor = self.visitor(request)
        sent = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(sent.encode(errors="replace"), visitor.csrf.encode()):
            raise web.HTTPForbidden(text=f"{CSRF_HEADER} is not that of /api/session\n")
        return visitor

    async def log_in(self, request: web.Request) -> web.Response:
        """Answer `{"user": …, "password": …}` with a cookie. Raises HTTPError."""
        _from_here(request)
        services = self._services
        if services.loopback_only:
            self.visitor(request)
            return web.Response(status=204)
        self.may_try(request)
        name, password = await _credentials(request)
        address = group(request.remote or "")
        if self._trying[address] >= LOGINS_AT_ONCE_MAX:
            raise web.HTTPTooManyRequests(text="too many logins at once\n")
        self._trying.enter(address)
        try:
            is_right = await self._judge(address, name, password)
        finally:
            self._trying.leave(address)
        # A user who was removed meanwhile is not let in.
        account = services.authenticator.account(name)
        if not is_right or account is None:
            raise web.HTTPUnauthorized(text="no such user, or another password\n")
        token = self._sessions.open(name, account, asyncio.get_running_loop().time())
        response = web.Response(status=204)
        response.set_cookie(
            _cookie(request), token, httponly=True, samesite="Strict", secure=request.secure
        )
        return response

    def may_try(self, request: web.Request) -> None:
        """Raise HTTPForbidden for a client that must not send a password by such a connection."""
        tls = self._services.tls
        if not request.secure and not is_loopback(request.remote or ""):
            raise web.HTTPForbidden(
                text="a password from another machine takes TLS: see [server.tls]\n"
            )
        if not request.secure and tls is not None and tls.requires_tls:
            raise web.HTTPForbidden(text="server.tls.require is set: log in by https\n")
        if request.secure and tls is not None and tls.wants_certificate:
            assert request.transport is not None
            if not request.transport.get_extra_info("peercert"):
                raise web.HTTPForbidden(
                    text="a certificate that server.tls.client_ca signed is needed\n"
                )

    async def _judge(self, address: str, name: str, password: bytes) -> bool:
        services, loop = self._services, asyncio.get_running_loop()
        verifier, is_known = services.authenticator.verifier_of(name)
        waited_s = 0.0

        def turn_s() -> float:
            nonlocal waited_s
            waited_s = services.backoff.turn(address, name, loop.time())
            return waited_s

        pieces = verifier.is_password(password)
        if await services.work.judged(address, pieces, turn_s) and is_known:
            services.backoff.succeeded(address, name)
            return True
        await asyncio.sleep(services.backoff.failed(address, name, loop.time(), waited_s))
        return False

    async def log_out(self, request: web.Request) -> web.Response:
        """End the session. Raises as `poster`."""
        visitor = self.poster(request)
        response = web.Response(status=204)
        if visitor.token is not None:
            self._sessions.close(visitor.token)
            response.del_cookie(_cookie(request), httponly=True, samesite="Strict")
        return response


async def posted(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a POST. Raises HTTPBadRequest, HTTPRequestTimeout, HTTPUnsupportedMediaType."""
    # No form of another page can send this type.
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="expected application/json\n")
    try:
        async with asyncio.timeout(FIRST_BYTES_S):
            found = json.loads(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise web.HTTPBadRequest(text="expected a JSON object\n")
    return found


async def _credentials(request: web.Request) -> tuple[str, bytes]:
    found = await posted(request)
    name, password = found.get("user"), found.get("password")
    if not (isinstance(name, str) and isinstance(password, str)):
        raise web.HTTPBadRequest(text='expected {"user": "…", "password": "…"}\n')
    try:
        raw, _ = password.encode(), name.encode()
    except UnicodeEncodeError:
        raise web.HTTPBadRequest(text="expected text\n") from None
    if len(raw) > PASSWORD_BYTES_MAX:
        raise web.HTTPBadRequest(text=f"a password has {PASSWORD_BYTES_MAX} bytes at most\n")
    return name, raw


def _from_here(request: web.Request) -> None:
    """Raise HTTPForbidden for a POST from a foreign page, by the origin that browsers send."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise web.HTTPForbidden(text="a page of another origin may not do that\n")


def _cookie(request: web.Request) -> str:
    # A browser sends cookies to all ports of a host, and each worker has its own port.
    assert request.transport is not None
    port: int = request.transport.get_extra_info("sockname")[1]
    return f"streamfrom_{port}"
