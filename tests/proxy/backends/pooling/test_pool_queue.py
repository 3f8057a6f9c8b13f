"""Those who wait for a connection: in one line, whoever comes, goes or fails."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.account import Account
from streamfrom.proxy.backends.pooling.pool import Pool
from streamfrom.proxy.backends.pooling.pool_queue import NewConnection, PoolWaiter, choose
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendUnavailable, PoolTimeout
from tests.cases import cases
from tests.proxy.backends.pools import Connection, Sender, Tenant, busy, pool_on
from tests.proxy.fake_answers import until
from tests.virtual_loop import running


async def test_who_gives_and_takes_again_at_once_does_not_pass_those_who_wait(server):
    async with pool_on(server, size=1) as pool:
        ann = Tenant()
        backend = await pool.acquire(ann, "db")
        waiting = await busy(pool, Tenant())
        pool.release(backend)
        assert not pool.acquire_own(backend, ann, "db")
        again = asyncio.ensure_future(pool.acquire(ann, "db"))
        assert await waiting is backend
        assert not again.done()
        pool.release(backend)
        assert await again is backend


async def test_closing_ends_everything_and_everybodys_wait(server):
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(), "db")
        waiting = [await busy(pool, Tenant()) for _ in range(3)]
        sender = Sender(pool)
        pool.close()
        for (error,) in (sender.served, Sender(pool).served):
            assert isinstance(error, BackendUnavailable)
        for task in waiting:
            with pytest.raises(BackendUnavailable, match="shutting down"):
                await task
        assert backend.is_closed
        pool.release(backend)
        assert pool.connections == 0


async def test_any_number_may_give_back_at_once_what_they_are_served_with(server):
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(), "db")
        served = []

        def pass_on(served_with):
            served.append(served_with)
            pool.release(served_with)

        for _ in range(2000):
            pool.enqueue(PoolWaiter(Tenant(), "db", pass_on, served.append))
        pool.release(backend)
        assert served == [backend] * 2000
        assert pool.lent == 0


@running
async def test_the_wait_of_each_has_its_own_end():
    async def opens(account, database, variant):
        return Connection()

    pool = Pool("ks", "-", size=1, timeout_s=5, open_backend=opens, on_lost=lambda: None)
    backend = await pool.acquire(Tenant(), "db")
    first = Sender(pool)
    await asyncio.sleep(2)
    second = Sender(pool)
    await asyncio.sleep(4)
    assert isinstance(first.served[0], PoolTimeout)
    assert second.served == []
    await asyncio.sleep(2)
    assert isinstance(second.served[0], PoolTimeout)
    third = Sender(pool)
    pool.release(backend)
    assert third.served == [backend]


async def test_a_task_cancelled_while_it_is_served_leaves_everything_to_the_next(server):
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(), "db")
        served_before, served_after = await busy(pool, Tenant()), await busy(pool, Tenant())
        next_one = Sender(pool)
        pool.release(backend)
        served_before.cancel()
        served_after.cancel()
        assert next_one.served == []
        await until(lambda: next_one.served)
        assert next_one.served == [backend]


@pytest.mark.parametrize("seed", range(10))
async def test_everybody_is_served_in_order_whatever_comes_and_goes(seed):
    dice = random.Random(seed)
    size = dice.randint(1, 4)

    async def opens(account, database, variant):
        if dice.random() < 0.2:
            raise BackendUnavailable("ks", "-", "down")
        return Connection()

    pool = Pool("ks", "-", size=size, timeout_s=60, open_backend=opens, on_lost=lambda: None)
    waiting: list[Sender] = []
    lent: list[Any] = []

    async def look():
        """Let those who were served go on: the first ones, and nobody before them."""
        while waiting and waiting[0].served:
            sender = waiting.pop(0)
            (found,) = sender.served
            if found is None:
                try:
                    found = await pool.make_own(None, sender.waiter.owner, "db")
                except BackendUnavailable:
                    continue
            found.owner = sender.waiter.owner
            assert found not in lent
            lent.append(found)
        assert not any(sender.served for sender in waiting)
        assert pool.connections <= size
        assert len(lent) == size or not waiting

    for _ in range(300):
        match dice.choice(["come", "come", "come", "give", "give", "give", "leave", "lose"]):
            case "come":
                waiting.append(Sender(pool))
            case "leave" if waiting:
                pool.dequeue(waiting.pop(dice.randrange(len(waiting))).waiter)
            case "give" if lent:
                pool.release(lent.pop(dice.randrange(len(lent))))
            case "lose" if lent:
                lent.pop(dice.randrange(len(lent))).close()
        await look()
    while lent:
        pool.release(lent.pop())
        await look()
    assert not waiting
    assert pool.lent == 0
    pool.close()
    assert pool.connections == 0


# The choice as a table: idle connections, in the order of their last use, and what a session of `ann` gets.
SETTINGS = Settings()
ANN, BOB = (Account(name, Secret("")) for name in ("ann", "bob"))
OWNER: Any = SimpleNamespace(account=ANN, variant=0, settings=SETTINGS)
OTHER: Any = SimpleNamespace(account=ANN, variant=0, settings=SETTINGS)


def idle(**fields):
    defaults = {
        "account": ANN,
        "variant": 0,
        "database": "db",
        "owner": None,
        "settings": SETTINGS,
    }
    defaults |= {"has_residue": False, "has_insert_id": False}
    return SimpleNamespace(**(defaults | fields))


CONNECTIONS: dict[str, Any] = {
    "own": idle(owner=OWNER),
    "free": idle(),
    "stained": idle(has_residue=True),
    "taken": idle(owner=OTHER),
    "variant": idle(variant=2),
    "bobs": idle(account=BOB),
}


@cases(there=str, flags=str, expected=str)
def test_a_choice(there, flags, expected):
    found = choose(
        [CONNECTIONS[name] for name in there.split()],
        OWNER,
        "db",
        has_room="f" not in flags,
        may_open="l" not in flags,
        may_displace="p" not in flags,
    )
    names = {id(connection): name for name, connection in CONNECTIONS.items()}
    if found is None:
        assert expected == "WAIT"
    elif isinstance(found, NewConnection):
        assert expected == (f"room: {names[id(found.victim)]}" if found.victim else "OPEN")
    else:
        assert names[id(found)] == expected


def test_only_a_new_login_leaves_a_database_for_none():
    found = choose([idle()], OWNER, None, has_room=False, may_open=True, may_displace=True)
    assert isinstance(found, NewConnection)
    assert found.victim is not None
    without = idle(database=None)
    assert (
        choose([without], OWNER, None, has_room=False, may_open=True, may_displace=True)
        is without
    )
