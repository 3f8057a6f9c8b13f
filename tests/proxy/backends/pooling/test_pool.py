"""Which connection a session gets, and what it finds on it."""

import pytest

from streamfrom.proxy.backends.session_variables import names
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import BackendError
from tests.proxy.backends.pools import Tenant, pool_on
from tests.proxy.fake_answers import Error, Silence


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


@pytest.mark.parametrize("trouble", ["in_transaction", "awaits_kill"])
async def test_what_somebody_else_would_inherit_is_thrown_away(server, trouble):
    async with pool_on(server, size=1) as pool:
        backend = await pool.acquire(Tenant(), "db")
        setattr(backend, trouble, True)
        pool.release(backend)
        assert backend.is_closed
        assert await pool.acquire(Tenant(), "db") is not backend


async def test_recycling_undoes_what_the_session_left(server):
    async with pool_on(server, size=1) as pool:
        ann = Tenant(time_zone="UTC")
        backend = await pool.acquire(ann, "db")
        await backend.query(b"BEGIN")
        await backend.query(b"SET @a = 1")
        backend.in_transaction = True
        await pool.recycle(backend)
        (connection,) = server.relays
        assert not connection.in_transaction
        assert connection.user_variables == set()
        assert await pool.acquire(Tenant(), "db") is backend
        assert connection.variables["session_track_state_change"] == "1"


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
