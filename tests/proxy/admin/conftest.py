"""An admin server with fake figures, and a client for it."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from streamfrom.engine.messaging.figures.figures import (
    QueueFigures,
    ShardFigures,
    StreamFigures,
)
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.admin.admin_server import AdminServer
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.fairness import QUEUES_IN_A_TURN
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.sessions.login_backoff import LoginBackoff
from streamfrom.proxy.sessions.login_work import LoginWork
from streamfrom.proxy.status.fleet_figures import MembersFigures
from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus
from streamfrom.proxy.status.status_source import Sight, StatusSource
from streamfrom.proxy.wire.login.auth import Authenticator
from streamfrom.sqlparse_ext.cache import StatementCache
from tests.proxy.rigs import SERVER
from tests.sim.memory_store import loaded, raw_table
from tests.virtual_loop import VirtualClock


def figures(name="msg", keyspace="ks", **parts: Any) -> QueueFigures:
    counters = Counters(
        **{key: parts.pop(key) for key in ("delivered", "acked", "deleted") if key in parts}
    )
    shard = ShardFigures("0", counters, 1, 4, 2, True, 1, parts.pop("depth", 3), None)
    return QueueFigures(loaded(raw_table(name, **parts), keyspace), (shard,), 1)


QUEUES = [figures(f"q{number:03}") for number in range(3 * QUEUES_IN_A_TURN + 5)]
NAMES = [queue.table.name for queue in QUEUES]


class OtherClient:
    """Notes the work done between two of its turns, as queues by name."""

    def __init__(self):
        self.turns: list[list[str]] = [[]]
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self):
        self.turns.append([])
        if sum(map(len, self.turns)) < len(QUEUES):
            asyncio.get_running_loop().call_soon(self._turn)

    def saw(self, queues):
        self.turns[-1] += [queue.table.name for queue in queues]

    def check(self):
        assert sorted(name for turn in self.turns for name in turn) == NAMES
        assert max(map(len, self.turns)) == QUEUES_IN_A_TURN


class Client:
    """A session that streams, and a record of the calls on it."""

    def __init__(self, user, connection_id):
        self.user, self.work = user, self
        self.connection_id = connection_id
        self.interrupted = []

    def process(self):
        name = "" if self.user is None else self.user.name
        return Process(self.connection_id, name, "10.0.0.9:4000", "ks", "Query", 1, "", None)

    def interrupt(self, error):
        self.interrupted.append(error)
        return []


def stream_of(queue: QueueFigures, connection_id: int, *, unacked=3) -> StreamFigures:
    return StreamFigures(queue.table, connection_id, None, 0, 9, unacked, 0, 100, None)


class Others:
    """The reports of the other members."""

    def __init__(self):
        self.told = MembersFigures()

    async def ask(self, tables, viewer=None):
        return self.told


class Status(StatusSource):
    """The status of a process, as a test sets it."""

    def __init__(self):
        self.registry: Any = SimpleNamespace(tables=lambda _: {})
        self.watch: Any = self
        self.troubles = [None, "gone"]
        self.is_stopping = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.clock = VirtualClock()
        self.figures = [figures(), figures("other", "ks2")]
        self.open_streams = []
        self.others = Others()
        self.shards: dict[Any, Any] = {}
        for keyspace, shard in (("ks", "0"), ("ks", "1")):
            self.shards[keyspace, shard] = SimpleNamespace(name=shard, keyspace=keyspace)

    def member(self):
        return MemberStatus(None, "1.0", 1.0, 2, 3, 4, is_stopping=self.is_stopping)

    def shard_status(self):
        return [
            ShardStatus("ks", str(number), "10.0.0.5:3306", "11.8.2-MariaDB", one, 32, 9, 2, 0)
            for number, one in enumerate(self.troubles)
        ]

    def streams(self):
        return self.open_streams

    async def queues(self):
        await self.gate.wait()
        return self.figures


class Definitions:
    """The message tables, as far as the page uses them."""

    def __init__(self, status):
        self.status = status
        self.here = SimpleNamespace(leases_of=lambda *_: None)

    def tables(self, keyspace):
        found = [one.table for one in self.status.figures]
        return {table.name: table for table in found if table.keyspace == keyspace}


class Acting:
    """The sessions of users who act, and the statements that these sent: user, target and statement.

    error: raised for every statement.
    gate: statements wait while it is closed.
    """

    def __init__(self):
        self.sent = []
        self.error = None
        self.affected = 1
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, user, host, database, sql):
        self.sent.append((user, database, sql.decode()))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.affected


class Rights:
    """The rights of accounts: everything is allowed and visible, unless a test sets otherwise.

    refusal: raised for every right.
    seen: the visible tables.
    """

    def __init__(self):
        self.refusal = None
        self.seen = Sight()
        self.asked = []

    async def sight(self, keys):
        return self.seen

    async def check(self, key):
        self.asked.append((key.account.name, key.shard.name, key.right.act))
        if self.refusal is not None:
            raise self.refusal


class MessagesServer:
    """A server that has *rows* of one priority, each an id and a payload."""

    def __init__(self, *rows):
        self.rows_found = rows
        self.sent = []
        self.error = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def rows(self, sql):
        self.sent.append(sql)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        if "avg_row_length" in sql:
            return [(100, None)]
        if "MIN(priority)" in sql:
            return [(5 if self.rows_found and ">" not in sql else None,)]
        if named := re.search(r"`id` IN \(([\d, ]+)\)", sql):
            ids = set(map(int, named[1].split(", ")))
            values = sql.partition(" FROM ")[0].count("LEFT(")
            return [
                (ident, 5, 3, PARKED_NS, None, *[body] * values)
                for ident, body in self.rows_found
                if ident in ids
            ]
        limit = int(sql.rpartition("LIMIT ")[2])
        first = int(sql.partition("`id` > ")[2].partition(" ")[0] or 0)
        return [(ident, 9) for ident, _ in self.rows_found if ident > first][:limit]


PASSWORDS = {"boss": "secret", "app": "", "reader": "päss"}
USERS = {
    "boss": User("boss", None, None, Role.ADMIN),
    "app": User("app", None, None, Role.USER),
    "reader": User("reader", None, None, Role.USER),
}


def services(status, readers, users) -> Any:
    accounts = {name: Verifier.from_password(PASSWORDS.get(name, "")) for name in users}
    return SimpleNamespace(
        status=status,
        readers=readers,
        users=dict(users),
        loopback_only="root" in users,
        authenticator=Authenticator(accounts, lambda: bytes(20), b"seed"),
        backoff=LoginBackoff(0.0),
        work=LoginWork(),
        tls=None,
        sessions={},
        config=SERVER,
        cache=StatementCache(),
        rights=Rights(),
        registry=Definitions(status),
        members=None,
    )


def with_shards(status, shared, keyspace, *names, **controls):
    """Give a keyspace shards, each with the fake of its control connection, and return them."""
    shards = [
        SimpleNamespace(
            name=name,
            keyspace=keyspace,
            trouble=None,
            control=controls.get(name),
            is_mariadb=True,
        )
        for name in names
    ]
    status.shards.update({(keyspace, shard.name): shard for shard in shards})
    shared.catalog = SimpleNamespace(view=lambda _: SimpleNamespace(runtimes=shards))
    shared.clock = status.clock
    return shards


class Browser:
    """A client of a server: it keeps cookies and the session's token."""

    def __init__(self, session, address):
        self._session = session
        self._address = address
        self.csrf = ""

    async def ask(self, path, method="GET", json=None, **headers):
        async with self._session.request(
            method, f"{self._address}{path}", headers=headers, json=json
        ) as answer:
            return answer.status, await answer.text(), answer.headers

    async def get(self, path):
        async with self._session.get(f"{self._address}{path}") as answer:
            return await answer.json()

    async def post(self, path, body, **headers):
        return await self.ask(path, "POST", body, **({"X-CSRF-Token": self.csrf} | headers))

    async def log_in(self, user, password=None):
        password = PASSWORDS[user] if password is None else password
        status, _, _ = await self.post("/api/login", {"user": user, "password": password})
        if status == 204:
            self.csrf = (await self.get("/api/session"))["csrf"]
        return status


async def _served(users):
    status = Status()
    with ThreadPoolExecutor(1) as readers:
        shared = services(status, readers, users)
        acting = Acting()
        server = AdminServer(shared, acting)
        await server.start("127.0.0.1", 0)
        # Browsers keep cookies of an IP address; aiohttp needs an option for it.
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            browser = Browser(session, f"http://127.0.0.1:{server.port}")
            yield SimpleNamespace(
                server=server,
                status=status,
                services=shared,
                browser=browser,
                ask=browser.ask,
                acting=acting,
                with_shards=partial(with_shards, status, shared),
            )
        await server.stop()
        await server.stop()


@pytest.fixture
async def served():
    """A server without its own users, its figures, and a function that requests its pages."""
    async for each in _served({"root": User("root", None, None, Role.USER)}):
        yield each


@pytest.fixture
async def guarded():
    """The same with USERS."""
    async for each in _served(USERS):
        yield each
