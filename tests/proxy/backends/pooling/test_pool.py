"""Which connection a session gets, and what it finds on it."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.backends.pooling.connection_handover import hand_over_now
from streamfrom.proxy.backends.pooling.pool import LIMIT_RETRY_S, PATIENCE_S, Pool
from streamfrom.proxy.backends.session_variables import Settings, names
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendError, PoolTimeout, UnknownDatabase
from tests.proxy.backends.pools import Connection, Tenant, pool_on
from tests.proxy.fake_answers import Error, Silence, until
from tests.virtual_loop import running


async def test_the_hot_path_takes_a_connection_only_as_its_owner_left_it(server):
    async with pool_on(server) as pool:
        ann, bob = Tenant(), Tenant()
        backend = await pool.acquire(ann, "db")
        assert not pool.acquire_own(backend, ann, "db")  # lent already
        pool.release(backend)
        assert not pool.acquire_own(backend, bob, "db")
        assert not pool.acquire_own(backend, ann, "elsewhere")
        ann.settings = names("latin1", "latin1_bin")
        assert not pool.acquire_own(backend, ann, "db")
        ann.settings = backend.settings
        assert pool.acquire_own(backend, ann, "db")
        assert pool.lent == 1


async def test_a_pool_is_smaller_as_connections_come_back_and_larger_at_once(server):
    async with pool_on(server, size=3) as pool:
        lent = [await pool.acquire(Tenant(), "db") for _ in range(3)]
        pool.release(lent[0])
        pool.resize(1)
        assert [each.is_closed for each in lent] == [True, False, False]
        pool.release(lent[1])
        pool.release(lent[2])
        assert pool.connections == 1
        waiting = [asyncio.create_task(pool.acquire(Tenant(), "db")) for _ in range(2)]
        await until(lambda: pool.waiting == 1)
        pool.resize(2)
        await asyncio.gather(*waiting)
        assert pool.lent == 2


async def test_a_pool_that_refuses_lets_what_is_lent_end(server):
    async with pool_on(server, size=2) as pool:
        lent, idle = [await pool.acquire(Tenant(), "db") for _ in range(2)]
        waiting = asyncio.create_task(pool.acquire(Tenant(), "db"))
        await until(lambda: pool.waiting == 1)
        pool.refuse(lambda: UnknownDatabase("shop"))
        pool.release(idle)
        assert (lent.is_closed, idle.is_closed) == (False, True)
        for late in (waiting, pool.acquire(Tenant(), "db")):
            with pytest.raises(UnknownDatabase):
                await late
        pool.release(lent)
        assert (lent.is_closed, pool.connections) == (True, 0)
        pool.close()
        with pytest.raises(UnknownDatabase):
            await pool.acquire(Tenant(), "db")


@pytest.mark.parametrize("trouble", ["in_transaction", "awaits_kill"])
async def test_what_somebody_else_would_inherit_is_thrown_away(server, trouble):
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(), "db")
        setattr(backend, trouble, True)
        pool.release(backend)
        assert backend.is_closed
        assert await pool.acquire(Tenant(), "db") is not backend


@pytest.mark.parametrize("change_s", [None, 9.0])
async def test_a_later_session_gets_a_new_login_in_the_place_of_an_outdated_one(
    server, change_s
):
    """Those that there were go on with the old one, and keep what a last statement left there."""
    async with pool_on(server, size=1) as pool:
        ann, bob, carol = Tenant(), Tenant(), Tenant()
        ann.asks = True
        old = await pool.acquire(ann, "db")
        outdated_s = old.outdated_s
        if change_s is not None:
            pool.outdate(change_s)
            outdated_s = change_s
        bob.began_s, carol.began_s = outdated_s, outdated_s + 0.001
        assert old.may_serve(bob)
        old.row_count = old.found_rows = 7
        pool.release(old)
        assert not hand_over_now(old, carol, old.settings, "db")
        new = await pool.acquire(carol, "db")
        assert (old.is_closed, new is old, pool.connections) == (True, False, 1)
        assert ann.left is not None
        assert ann.left.row_count == 7
        pool.release(new)
        assert await pool.acquire(bob, "db") is new, "a newer login serves older sessions, too"


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        # In a transaction of XA, which a reset would lose.
        ("ROLLBACK", Error(1399, "XAER_RMFAIL: … in the  PREPARED state", "XAE07")),
        ("RESET", Error(1047, "Unknown command")),
        ("RESET", Silence()),
    ],
)
async def test_a_connection_that_cannot_be_recycled_is_closed(
    server, monkeypatch, step, answer
):
    monkeypatch.setattr("streamfrom.proxy.backends.pooling.pool.RESET_TIMEOUT_S", 0.01)
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(), "db")
        server.once(step, answer)
        await pool.recycle(backend)
        assert backend.is_closed
        assert step == "RESET" or "RESET" not in server.heard
        assert pool.connections == 0


async def test_a_recycled_connection_is_known_to_have_nothing_more(server):
    """Its reset has taken all from the server; by what a pool believes of a connection it chooses one."""
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(sql_mode="ANSI"), "db")
        await backend.prepare(StatementKey(b"SELECT 1", "db", ()))
        await pool.recycle(backend)
        assert not backend.is_closed
        assert backend.settings is Settings()
        assert not backend.statements


async def test_statements_of_idle_connections_make_room_for_those_of_others(server):
    async with pool_on(server) as pool:
        ann, bob = Tenant(), Tenant()
        idle, busy = await pool.acquire(ann, "db"), await pool.acquire(bob, "db")
        await idle.prepare(StatementKey(b"SELECT 1", "db", ()))
        server.once("PREPARE SELECT 2", Error(1461, "too many"), Error(1461, "too many"))
        with pytest.raises(BackendError, match="too many"):
            await busy.prepare(StatementKey(b"SELECT 2", "db", ()))
        pool.release(idle)
        await busy.prepare(StatementKey(b"SELECT 2", "db", ()))
        at = server.heard.index("CLOSE SELECT 1")
        # Only when the other connection is known to have closed it.
        assert server.heard[at:] == ["CLOSE SELECT 1", "PING", "PREPARE SELECT 2"]
        assert not idle.statements


# One pool, several accounts: who gets a connection, and how long the others wait.
LOGIN_S = 0.001
RUN_S = 2
ANN, BOB = (Account(name, Secret(name)) for name in ("ann", "bob"))


class Server:
    """Logins at a server; it allows each account *limit* connections."""

    def __init__(self, size: int, limit: int = 1000, timeout_s: float = 10.0) -> None:
        self.logins: Counter[str] = Counter()
        self.refused = 0
        self.open: list[Connection] = []
        self.held: dict[Tenant, Any] = {}
        self.limit = limit
        self.pool = Pool(
            "ks",
            "-",
            size=size,
            timeout_s=timeout_s,
            open_backend=self._log_in,
            on_lost=lambda: None,
        )

    async def _log_in(self, account: Account, database: str | None, variant: int) -> Any:
        await asyncio.sleep(LOGIN_S)
        held = sum(each.account == account and not each.closed for each in self.open)
        if held >= self.limit:
            self.refused += 1
            raise BackendError(1226, "42000", "User has exceeded 'max_user_connections'")
        self.logins[account.name] += 1
        connection = Connection(account)
        self.open.append(connection)
        return connection

    async def run(self, tenant: Tenant, statement_s: float) -> float:
        """Run one statement; return how long it waited for a connection."""
        began_s = asyncio.get_running_loop().time()
        backend = await self.pool.acquire(tenant, "db")
        waited_s = asyncio.get_running_loop().time() - began_s
        assert backend.account == tenant.account
        assert self.pool.connections <= self.pool.size
        self.held[tenant] = backend
        await asyncio.sleep(statement_s)
        del self.held[tenant]
        self.pool.release(backend)
        return waited_s


async def crowd(server: Server, account: Account, clients: int, until_s: float) -> list[float]:
    """Run statements by many clients without a pause; return all their waits."""
    waits: list[float] = []

    async def client() -> None:
        tenant, loop = Tenant(account=account), asyncio.get_running_loop()
        while loop.time() < until_s:
            waits.append(await server.run(tenant, 0.005))

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return waits


@running
async def test_a_crowd_of_one_account_keeps_nobody_elses_client_waiting():
    server = Server(size=4)
    until_s = asyncio.get_running_loop().time() + RUN_S
    ann, bob = await asyncio.gather(
        crowd(server, ANN, 200, until_s), crowd(server, BOB, 1, until_s)
    )
    assert max(bob) < PATIENCE_S + 0.05
    # That the other one works costs few logins.
    assert sum(server.logins.values()) < len(ann) / 20
    assert len(bob) > 5 * RUN_S


@running
async def test_what_the_server_refuses_an_account_waits_for_one_of_the_account():
    server = Server(size=8, limit=2)
    until_s = asyncio.get_running_loop().time() + RUN_S
    ann, bob = await asyncio.gather(
        crowd(server, ANN, 20, until_s), crowd(server, BOB, 2, until_s)
    )
    assert max(ann) < 1
    assert max(bob) < 0.1
    # Once a second, and not by each client.
    assert server.refused < RUN_S / LIMIT_RETRY_S + 20
    assert sum(not each.closed for each in server.open) == 4


@running
async def test_in_vain_it_gets_the_servers_error():
    server = Server(size=8, limit=1, timeout_s=5)
    loop = asyncio.get_running_loop()
    await server.pool.acquire(Tenant(account=ANN), "db")
    began_s = loop.time()
    with pytest.raises(BackendError, match="max_user_connections"):
        await server.pool.acquire(Tenant(account=ANN), "db")
    assert loop.time() - began_s == pytest.approx(5, abs=0.1)
    assert server.pool.connections == 1
    # Others are served meanwhile, and it is once the server lets it.
    waiting = asyncio.ensure_future(server.pool.acquire(Tenant(account=ANN), "db"))
    await asyncio.sleep(0.5)
    assert await server.run(Tenant(account=BOB), 0.001) < 0.1
    server.limit = 2
    backend = await waiting
    assert backend.account == ANN


@pytest.mark.parametrize("seed", range(5))
@running
async def test_whatever_accounts_come_and_go_all_are_served(seed):
    dice = random.Random(seed)
    server = Server(size=dice.randint(1, 5), limit=dice.randint(1, 4), timeout_s=30)
    accounts = [SHARDS_ACCOUNT, *(Account(f"u{number}", Secret("")) for number in range(4))]
    waits: list[float] = []

    async def client(tenant: Tenant) -> None:
        for _ in range(dice.randint(1, 30)):
            await asyncio.sleep(dice.random() * 0.05)
            try:
                async with asyncio.timeout(dice.choice([None, None, None, 0.02])):
                    waits.append(await server.run(tenant, dice.random() * 0.02))
            except TimeoutError:
                # The client has left, perhaps in the middle of its statement.
                if (backend := server.held.pop(tenant, None)) is not None:
                    server.pool.discard(backend)
            except BackendError:
                assert tenant.account is SHARDS_ACCOUNT

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(40):
                tenant = Tenant(dice.randrange(2), account=dice.choice(accounts))
                group.create_task(client(tenant))
    except* PoolTimeout as error:
        raise AssertionError(str(error)) from None
    assert len(waits) > 100
    assert server.pool.waiting == server.pool.lent == 0
    assert server.pool.connections <= server.pool.size
    server.pool.close()
