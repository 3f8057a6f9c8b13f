import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from proxy.config.file import Role, User
from proxy.config.values import Secret
from proxy.errors import AccessDenied, ServerShutdown, UserLimitReached
from proxy.sessions.entrance import Entrance
from proxy.sessions.login_backoff import LoginBackoff
from tests.proxy.house import RecordingLink
from tests.virtual_loop import run_virtual


DENIED = AccessDenied("eve", "10.0.0.1", has_password=True)


def made(*, users=(), backoff_s=2.0, max_connections=10, loopback_only=False):
    link = RecordingLink()
    services = SimpleNamespace(
        config=SimpleNamespace(max_connections=max_connections, connect_timeout_s=10),
        loopback_only=loopback_only,
        sessions={n: SimpleNamespace(user=user) for n, user in enumerate(users)},
        backoff=LoginBackoff(backoff_s),
    )
    return Entrance(services, link.link), link, services  # type: ignore[arg-type]


def user(limit):
    return User("eve", Secret(""), None, Role.READWRITE, None, limit)


def test_an_answer_waits_without_the_client_being_read():
    async def main():
        entrance, link, services = made()
        for _ in range(4):
            services.backoff.failed(link.peer, "eve", 0)
        gone = []
        entrance.refused(DENIED, b"no", lambda: gone.append(1))
        assert (bytes(link.written), link.is_reading, gone) == (b"", False, [])
        await asyncio.sleep(0.19)
        assert not link.written
        await asyncio.sleep(0.02)
        assert (bytes(link.written), link.is_reading, gone) == (b"no", True, [1])

    run_virtual(main())


def test_what_is_no_wrong_password_is_answered_at_once_and_not_counted():
    async def main():
        entrance, link, services = made()
        for _ in range(9):
            entrance.refused(ServerShutdown(), b"x", lambda: None)
        assert bytes(link.written) == b"x" * 9
        assert len(services.backoff) == 0

    run_virtual(main())


def test_one_who_leaves_is_not_answered_any_more():
    async def main():
        entrance, link, services = made()
        for _ in range(9):
            services.backoff.failed(link.peer, "eve", 0)
        entrance.proven("eve", b"welcome", lambda: pytest.fail("it is gone"))
        entrance.leave()
        await asyncio.sleep(5)
        assert not link.written

    run_virtual(main())


def test_an_answer_that_waits_ends_the_time_to_log_in():
    async def main():
        entrance, link, services = made(backoff_s=60)
        entrance.open(lambda: pytest.fail("it has logged in"))
        for _ in range(20):
            services.backoff.failed(link.peer, "eve", 0)
        entrance.proven("eve", b"welcome", lambda: None)
        await asyncio.sleep(61)
        assert bytes(link.written) == b"welcome"

    run_virtual(main())


def test_the_time_to_log_in_is_limited_unless_the_client_is_in():
    async def main():
        late = []
        slow, quick = made()[0], made()[0]
        for entrance in (slow, quick):
            entrance.open(lambda: late.append(1))
        quick.leave()
        await asyncio.sleep(11)
        assert late == [1]

    run_virtual(main())


def test_a_user_has_so_many_connections_and_no_more():
    async def main():
        eve, other = user(2), replace(user(None), name="other")
        entrance, _, services = made(users=(eve, other, other))
        newcomer = SimpleNamespace(user=None)
        services.sessions[9] = newcomer
        entrance.check(eve, newcomer)
        entrance.check(other, newcomer)
        # COM_CHANGE_USER to oneself takes no second place.
        services.sessions[8] = SimpleNamespace(user=eve)
        entrance.check(eve, services.sessions[8])
        # As it was before it was read again.
        services.sessions[0] = SimpleNamespace(user=replace(eve, role=Role.READONLY))
        with pytest.raises(UserLimitReached) as refused:
            entrance.check(eve, newcomer)
        assert refused.value.wire_code() == (1226, "42000")
        assert str(refused.value) == (
            "User 'eve' has exceeded the 'max_connections' resource (current value: 2)"
        )

    run_virtual(main())


def test_who_may_not_even_try():
    async def main():
        entrance, _, _ = made(users=(None, None), max_connections=2)
        refusal = entrance.refusal()
        assert refusal is not None
        assert refusal.mysql_code == 1040
        entrance, link, _ = made(loopback_only=True)
        link.is_loopback = False
        refusal = entrance.refusal()
        assert refusal is not None
        assert refusal.mysql_code == 1130
        assert made()[0].refusal() is None

    run_virtual(main())
