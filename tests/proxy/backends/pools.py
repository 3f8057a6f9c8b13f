"""Pools on a fake server, and their users."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.pooling.pool import Pool
from streamfrom.proxy.backends.pooling.pool_queue import PoolWaiter
from streamfrom.proxy.backends.session_variables import Settings
from tests.proxy.fake_answers import until


class Tenant:
    """A session, as far as a pool and a connection use it.

    Attributes:
        asks: it needs the facts about its last statement that its connection has, `left`.
        lost_ids: the insert ids that were taken away from it.
    """

    def __init__(self, variant=0, account=SHARDS_ACCOUNT, **variables):
        self.account = account
        self.asks = False
        self.left = None
        self.settings = Settings(variables.items())
        self.variant = variant
        self.lost_ids = []
        self.began_s = 0.0

    def handed_over(self, backend, last_insert_id):
        self.lost_ids.append(last_insert_id)

    def keeps_diagnostics(self, backend, left):
        self.left = left
        return self.asks


async def opened(server, database="db", **dsn):
    return await open_backend("ks", "-", server.dsn(**dsn), database=database, variant=0)


@asynccontextmanager
async def pool_on(server, size=2):
    async def connect(account, database, variant):
        return await open_backend(
            "ks", "-", server.dsn(), account, database=database, variant=variant
        )

    pool = Pool(
        "ks", "-", size=size, timeout_s=20.0, open_backend=connect, on_lost=lambda: None
    )
    try:
        yield pool
    finally:
        pool.close()


async def busy(pool, tenant):
    """Return a task that is waiting for a connection."""
    before = pool.waiting
    task = asyncio.ensure_future(pool.acquire(tenant, "db"))
    await until(lambda: pool.waiting > before)
    return task


class Sender:
    """A user that waits without a task; *served* holds the connections it got, in order."""

    def __init__(self, pool):
        self.served: list[Any] = []
        self.waiter = PoolWaiter(Tenant(), "db", self.served.append, self.served.append)
        pool.enqueue(self.waiter)


class Connection:
    """A connection without a server, as far as a pool uses it."""

    def __init__(self, account=SHARDS_ACCOUNT):
        self.link = self
        self.closed = False
        self.on_lost: Any = None
        self.owner = self.leaving = self.found_rows = self.row_count = None
        self.account = account
        self.settings, self.database, self.variant = Settings(), "db", 0
        self.has_residue = self.has_insert_id = self.has_warnings = False
        self.is_busy = self.in_transaction = self.awaits_kill = False
        self.is_spent = self.is_left = self.may_have_role = False

    @property
    def is_closed(self):
        return self.closed

    def may_serve(self, owner):
        return True

    def check_open(self):
        assert not self.closed

    def close(self):
        if not self.closed:
            self.closed = True
            self.on_lost(self)

    abort = close
