"""Who may ask `/api`, and what a POST must bring."""

import asyncio
from itertools import count
from types import SimpleNamespace

import pytest
from aiohttp import web

from streamfrom.proxy.admin.admin_gate import (
    IDLE_S,
    LIFE_S,
    LOGINS_AT_ONCE_MAX,
    SESSIONS_MAX,
    AdminGate,
    WebSessions,
)
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.wire.login.auth import PASSWORD_BYTES_MAX
from tests.proxy.admin.conftest import PASSWORDS, USERS


PATHS = [
    *("/api/session", "/api/overview", "/api/queues", "/api/streams", "/api/nothing"),
    *("/healthz", "/readyz", "/metrics", "/", "/page.js"),
]


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_told_without_a_login_but_health_metrics_and_the_empty_page(
    guarded, path
):
    expected = 401 if path.startswith("/api/") else 200
    assert (await guarded.ask(path))[0] == expected
    cookie = f"streamfrom_{guarded.server.port}=x"
    assert (await guarded.ask(path, Cookie=cookie))[0] == expected


@pytest.mark.parametrize("user", list(USERS))
async def test_each_user_logs_in_with_the_password_of_the_wire(guarded, user):
    body = {"user": user, "password": PASSWORDS[user]}
    status, _, headers = await guarded.browser.post("/api/login", body)
    assert status == 204
    name, *attributes = headers["Set-Cookie"].split("; ")
    assert name.startswith(f"streamfrom_{guarded.server.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)
    found = await guarded.browser.get("/api/session")
    assert (found["user"], found["is_open"]) == (user, False)


@pytest.mark.parametrize(
    ("user", "password"),
    [("boss", ""), ("boss", "Secret"), ("nobody", ""), ("nobody", "secret"), ("", "")],
)
async def test_another_password_or_user_gets_no_cookie(guarded, user, password):
    status, _, headers = await guarded.browser.post(
        "/api/login", {"user": user, "password": password}
    )
    assert status == 401
    assert "Set-Cookie" not in headers
    assert (await guarded.ask("/api/session"))[0] == 401


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, 415),
        ([], 400),
        ({}, 400),
        ({"user": "boss"}, 400),
        ({"user": 1, "password": "secret"}, 400),
        ({"user": "\ud800", "password": "secret"}, 400),
        ({"user": "boss", "password": "x" * (PASSWORD_BYTES_MAX + 1)}, 400),
        ({"user": "x" * 200_000, "password": ""}, 413),
    ],
)
async def test_what_is_no_login_is_refused(guarded, body, expected):
    assert (await guarded.browser.post("/api/login", body))[0] == expected
    assert await guarded.browser.log_in("boss") == 204


async def test_a_form_of_another_page_logs_nobody_in_or_out(guarded):
    body = {"user": "boss", "password": "secret"}
    status, _, _ = await guarded.browser.post("/api/login", body, Origin="http://evil.example")
    assert status == 403
    assert await guarded.browser.log_in("boss") == 204
    own = f"http://127.0.0.1:{guarded.server.port}"
    assert (await guarded.browser.post("/api/logout", {}, Origin="null"))[0] == 403
    assert (await guarded.browser.post("/api/logout", {}, **{"X-CSRF-Token": ""}))[0] == 403
    assert (await guarded.browser.post("/api/logout", {}, **{"X-CSRF-Token": "ü"}))[0] == 403
    assert (await guarded.ask("/api/session"))[0] == 200
    assert (await guarded.browser.post("/api/logout", {}, Origin=own))[0] == 204
    assert (await guarded.ask("/api/session"))[0] == 401


async def test_a_session_ends_with_its_user_or_password(guarded):
    assert await guarded.browser.log_in("boss") == 204
    accounts = {name: guarded.services.authenticator.account(name) for name in USERS}
    guarded.services.authenticator.replace(
        accounts | {"boss": Verifier.from_password("another")}
    )
    assert (await guarded.ask("/api/session"))[0] == 401
    assert await guarded.browser.log_in("app") == 204
    del guarded.services.users["app"]
    assert (await guarded.ask("/api/session"))[0] == 401


async def test_failures_are_counted_as_those_of_the_wire(guarded):
    for _ in range(4):
        assert await guarded.browser.log_in("boss", "wrong") == 401
    guarded.services.backoff.longest_s = 60.0
    assert guarded.services.backoff.turn("127.0.0.1", "boss", asyncio.get_running_loop().time())
    assert not guarded.services.backoff.turn("127.0.0.1", "app", 0.0)
    assert not guarded.services.backoff.turn("127.0.0.2", "boss", 0.0)


async def test_only_some_logins_of_an_address_wait_at_once(guarded):
    loop, backoff = asyncio.get_running_loop(), guarded.services.backoff
    backoff.longest_s = 3600.0
    for _ in range(20):
        backoff.failed("127.0.0.1", "boss", loop.time())
    tries = [
        asyncio.create_task(guarded.browser.log_in("boss"))
        for _ in range(LOGINS_AT_ONCE_MAX + 1)
    ]
    done, pending = await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [429]
    for task in pending:
        task.cancel()
    assert (await guarded.ask("/healthz"))[0] == 200


async def test_without_users_this_machine_is_let_in(served):
    found = await served.browser.get("/api/session")
    assert found["is_open"]
    served.browser.csrf = found["csrf"]
    assert (await served.browser.post("/api/login", {}))[0] == 204
    assert (await served.browser.post("/api/logout", {}))[0] == 204
    assert (await served.ask("/api/session", Host="evil.example"))[0] == 403


def asking(services, remote, *, secure=False, certificate=None):
    """Return the gate's answer to whether this client may try to log in."""
    transport = SimpleNamespace(get_extra_info={"peercert": certificate}.get)
    request = SimpleNamespace(remote=remote, secure=secure, transport=transport)
    AdminGate(services).may_try(request)  # type: ignore[arg-type]


async def test_a_password_from_another_machine_takes_tls_by_the_rules_of_the_wire(guarded):
    services = guarded.services
    asking(services, "127.0.0.1")
    asking(services, "::1")
    asking(services, "10.0.0.1", secure=True)
    for remote in ("10.0.0.1", "", None):
        with pytest.raises(web.HTTPForbidden):
            asking(services, remote)
    services.tls = SimpleNamespace(requires_tls=True, wants_certificate=True)
    for secure in (False, True):
        with pytest.raises(web.HTTPForbidden):
            asking(services, "127.0.0.1", secure=secure)
    asking(services, "127.0.0.1", secure=True, certificate={"subject": ()})


# Who is logged in to the status page, and until when.
ACCOUNT = Verifier.from_password("")


@pytest.fixture
def sessions():
    numbers = count()
    return WebSessions(lambda: f"secret {next(numbers)}")


def test_a_session_is_found_by_its_token_alone_and_shares_no_secret(sessions):
    token = sessions.open("app", ACCOUNT, 0.0)
    found = sessions.find(token, 1.0)
    assert (found.user, found.account) == ("app", ACCOUNT)
    assert found.csrf not in ("", token)
    assert sessions.find("", 1.0) is None
    assert sessions.find(found.csrf, 1.0) is None
    assert sessions.find(sessions.open("app", ACCOUNT, 0.0), 0.0).csrf != found.csrf


def test_it_ends_when_nobody_uses_it_after_its_life_and_by_logging_out(sessions):
    token, used, closed = (sessions.open("app", ACCOUNT, 0.0) for _ in range(3))
    for _ in range(2):
        sessions.close(closed)
    assert sessions.find(closed, 0.0) is None
    assert sessions.find(token, IDLE_S)
    assert sessions.find(token, 2 * IDLE_S)
    assert sessions.find(token, 3 * IDLE_S + 1) is None
    for moment_s in range(0, int(LIFE_S), int(IDLE_S)):
        assert sessions.find(used, float(moment_s))
    assert sessions.find(used, LIFE_S)
    assert sessions.find(used, LIFE_S + 1) is None
    assert len(sessions) == 0


def test_of_too_many_the_longest_unused_ends(sessions):
    first, second = (sessions.open("app", ACCOUNT, 0.0) for _ in range(2))
    assert sessions.find(first, 1.0)
    for _ in range(SESSIONS_MAX - 1):
        sessions.open("app", ACCOUNT, 1.0)
    assert len(sessions) == SESSIONS_MAX
    assert sessions.find(second, 1.0) is None
    assert sessions.find(first, 1.0)
