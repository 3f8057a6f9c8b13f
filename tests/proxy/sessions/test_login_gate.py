import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
import structlog

from streamfrom.proxy.addresses import AddressCounts
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import (
    AccessDenied,
    ServerShutdown,
    TooManyConnections,
    UserLimitReached,
)
from streamfrom.proxy.log import SparingLog
from streamfrom.proxy.sessions.login_backoff import LoginBackoff
from streamfrom.proxy.sessions.login_gate import LoginGate
from streamfrom.proxy.sessions.login_work import LoginWork
from tests.proxy.rigs import RecordingLink
from tests.virtual_loop import running


DENIED = AccessDenied("eve", "10.0.0.1", has_password=True)


def made(
    *,
    users=(),
    backoff_s=2.0,
    max_connections=10,
    loopback_only=False,
    per_address=0,
    logins=100,
    has_admin=False,
):
    link = RecordingLink()
    services = SimpleNamespace(
        config=SimpleNamespace(
            max_connections=max_connections,
            max_connections_per_address=per_address,
            max_logins_per_address=logins,
            connect_timeout_s=10,
        ),
        has_admin=has_admin,
        work=LoginWork(),
        connected=AddressCounts(),
        strangers=AddressCounts(),
        loopback_only=loopback_only,
        sessions={n: SimpleNamespace(user=user) for n, user in enumerate(users)},
        backoff=LoginBackoff(backoff_s),
        turned_away=SparingLog(structlog.get_logger()),
    )
    gate = LoginGate(services, link.link)  # type: ignore[arg-type]
    gate.refusal()  # which notes the address
    return gate, link, services


def proof(works):
    """A proof in one piece; *works* is told when it has been judged."""
    yield from ()
    works.append(asyncio.get_running_loop().time())
    return ["event"]


async def then(_events):
    """Does nothing more."""


def user(limit):
    return User("eve", Secret(""), None, Role.USER, limit)


@running
async def test_a_wrong_password_waits_for_its_answer_unread_and_all_else_has_it_at_once():
    gate, link, services = made()
    for _ in range(9):
        gate.refused(ServerShutdown(), b"x")
        assert link.closed
        link.closed = False
    assert bytes(link.written) == b"x" * 9
    assert len(services.backoff) == 0, "none was counted"
    gate, link, services = made()
    for _ in range(4):
        services.backoff.failed(link.peer, "eve", 0)
    gate.refused(DENIED, b"no")
    assert (bytes(link.written), link.is_reading, link.closed) == (b"", False, False)
    await asyncio.sleep(0.19)
    assert not link.written
    await asyncio.sleep(0.02)
    assert (bytes(link.written), link.is_reading, link.closed) == (b"no", True, True)


@running
async def test_one_who_leaves_is_not_judged_any_more():
    gate, link, services = made()
    for _ in range(9):
        services.backoff.failed(link.peer, "eve", 0)
    works: list[float] = []
    gate.judge("eve", proof(works), then, is_costly=False)
    await asyncio.sleep(0.1)
    gate.disconnected()
    await asyncio.sleep(5)
    assert not works
    assert not link.written


@running
async def test_a_turn_that_waits_ends_the_time_to_log_in_unless_the_queue_is_long():
    gate, link, services = made(backoff_s=60)
    for _ in range(20):
        services.backoff.failed(link.peer, "eve", 0)
    gate.open()
    works: list[float] = []
    gate.judge("eve", proof(works), then, is_costly=False)
    await asyncio.sleep(59.5)
    assert not works
    await asyncio.sleep(1)
    assert works
    assert not link.is_gone
    other = LoginGate(services, link.link)
    assert other.refusal() is None
    other.open()
    for _ in range(3):
        services.backoff.turn(link.peer, "eve", asyncio.get_running_loop().time())
    other.judge("eve", proof(works), then, is_costly=False)
    await asyncio.sleep(11)
    assert link.closed
    other.disconnected()


@running
async def test_a_proof_that_nobody_waits_for_was_a_guess():
    gate, _, services = made()
    gate.judge("eve", proof([]), then, is_costly=False)
    gate.disconnected()
    assert len(services.backoff) == 2
    gate, _, services = made()
    gate.judge("eve", proof([]), then, is_costly=False)
    gate.proven("eve")
    gate.disconnected()
    assert len(services.backoff) == 0


@running
async def test_an_address_has_so_many_connections_and_so_many_without_a_login():
    _, link, services = made(per_address=3, logins=2)

    def come(address="10.0.0.1"):
        link.peer = address
        one = LoginGate(services, link.link)
        found = one.refusal()
        if found is None:
            one.open()
        return one, found

    first, second = come()[0], come()[0]
    refusal = come()[1]
    assert refusal is not None
    assert refusal.wire_code() == (1040, "08004")
    assert "max_logins_per_address = 2" in str(refusal)
    assert come("10.0.0.2")[1] is None
    first.logged_in()
    second.logged_in()
    third, refusal = come()
    assert refusal is None
    refusal = come()[1]
    assert refusal is not None
    assert "max_connections_per_address = 3" in str(refusal)
    for one in (first, third):
        one.disconnected()
    assert come()[1] is None
    # One host may have all addresses of such a network.
    for number in (1, 2):
        assert come(f"2001:db8::{number}")[1] is None
    assert come("2001:db8::3")[1] is not None
    assert come("2001:db8:0:1::3")[1] is None


@running
async def test_a_user_has_so_many_connections_and_a_place_is_kept_for_an_admin():
    eve, other = user(2), replace(user(None), name="other")
    gate, _, services = made(users=(eve, other, other))
    newcomer = SimpleNamespace(user=None)
    services.sessions[9] = newcomer
    gate.check(eve, newcomer)
    gate.check(other, newcomer)
    # COM_CHANGE_USER to oneself takes no second place.
    services.sessions[8] = SimpleNamespace(user=eve)
    gate.check(eve, services.sessions[8])
    # As it was before it was read again.
    services.sessions[0] = SimpleNamespace(user=replace(eve, role=Role.ADMIN))
    with pytest.raises(UserLimitReached) as refused:
        gate.check(eve, newcomer)
    assert refused.value.wire_code() == (1226, "42000")
    assert str(refused.value) == (
        "User 'eve' has exceeded the 'max_connections' resource (current value: 2)"
    )
    gate, _, services = made(users=(None, None), max_connections=2, has_admin=True)
    assert gate.refusal() is None
    services.sessions[9] = newcomer
    gate.check(replace(other, role=Role.ADMIN), newcomer)
    with pytest.raises(TooManyConnections):
        gate.check(other, newcomer)
    assert isinstance(gate.refusal(), TooManyConnections)


@running
async def test_who_may_not_even_try():
    gate, _, _ = made(users=(None, None), max_connections=2)
    refusal = gate.refusal()
    assert refusal is not None
    assert refusal.mysql_code == 1040
    gate, link, _ = made(loopback_only=True)
    link.is_loopback = False
    refusal = gate.refusal()
    assert refusal is not None
    assert refusal.mysql_code == 1130
    assert not gate.admits()
    assert b"is not allowed to connect" in link.written
    assert link.closed
    assert made()[0].refusal() is None
