"""An admin server before fake figures, and what asks it."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from streamfrom.engine.messaging.figures.figures import (
    QueueFigures,
    ShardFigures,
    StreamFigures,
)
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.admin.admin_server import AdminServer
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.login_backoff import LoginBackoff
from streamfrom.proxy.sessions.login_work import LoginWork
from streamfrom.proxy.status.fleet_figures import MembersFigures, merged_queue
from streamfrom.proxy.status.status_rows import (
    MemberStatus,
    ShardStatus,
    member_rows,
    shard_rows,
    stream_rows,
    stream_status,
)
from streamfrom.proxy.status.status_source import Sight
from streamfrom.proxy.status.turns import QUEUES_IN_A_TURN
from streamfrom.proxy.wire.auth import Authenticator, Credentials
from streamfrom.sqlparse_ext.cache import StatementCache
from tests.proxy.rigs import SERVER
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table
from tests.virtual_loop import VirtualClock


def figures(name="msg", keyspace="ks", **parts: Any) -> QueueFigures:
    counters = Counters(
        **{key: parts.pop(key) for key in ("sent", "acked", "deleted") if key in parts}
    )
    shard = ShardFigures("0", counters, 1, 4, 2, True, 1, parts.pop("depth", 3), None)
    return QueueFigures(loaded(raw_table(name, **parts), keyspace), (shard,), 1)


QUEUES = [figures(f"q{number:03}") for number in range(3 * QUEUES_IN_A_TURN + 5)]
NAMES = [queue.table.name for queue in QUEUES]


class OtherClient:
    """Notes what was worked on between two of its turns, the queues by their names."""

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
    """A session that streams, and what was done to it."""

    def __init__(self, user, connection_id):
        self.user = user
        self.connection_id = connection_id
        self.interrupted = []

    def process(self):
        name = "" if self.user is None else self.user.name
        return Process(self.connection_id, name, "10.0.0.9:4000", "ks", "Query", 1, "", None)

    def interrupt(self, error):
        self.interrupted.append(error)
        return []


def stream_of(queue: QueueFigures, connection_id: int, *, held=3) -> StreamFigures:
    return StreamFigures(queue.table, connection_id, None, 0, 9, held, 0, 100, None)


class Others:
    """What the other members tell."""

    def __init__(self):
        self.told = MembersFigures()

    async def ask(self, tables, viewer=None):
        return self.told


class Status:
    def __init__(self):
        self.troubles = [None, "gone"]
        self.is_stopping = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.clock = VirtualClock()
        self.figures = [figures(), figures("other", "ks2")]
        self.open_streams = []
        self.others = Others()
        self.shards = {}
        for keyspace, shard, *tables in (("ks", "0", "msg"), ("ks", "1", "msg")):
            self.shards[keyspace, shard] = SimpleNamespace(name=shard, control=Control(*tables))

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

    async def fleet_queues(self, others, viewer=None):
        found = [
            merged_queue(one, others.parts().get((one.table.keyspace, one.table.name), []), [])
            for one in await self.queues()
        ]
        unanswered = tuple(map(str, others.unanswered))
        return [
            replace(one, unanswered=unanswered)
            for one in found
            if viewer is None or viewer.sees(one.table.keyspace, one.table.name)
        ]

    def errors_of(self, viewer):
        return []

    async def rows(self, names, viewer, others=None):
        others = others or await self.others.ask(names, viewer)
        clock_ns = self.clock.time_ns()
        found = {
            "members": member_rows([self.member()], others.unanswered),
            "streams": stream_rows(
                stream_status(self.streams(), viewer.processes, None), clock_ns
            ),
            "shards": shard_rows(self.shard_status()),
        }
        return {name: found[name] for name in names if name in found}


class Definitions:
    """The message tables, as far as an action asks for them."""

    def __init__(self, status):
        self.status = status
        self.changed = []

    def tables(self, keyspace):
        found = [one.table for one in self.status.figures]
        return {table.name: table for table in found if table.keyspace == keyspace}

    async def definitions_changed(self, keyspace, names):
        """Put what ALTER TABLE said into force."""
        self.changed.append(keyspace)
        for index, one in enumerate(self.status.figures):
            shard = self.status.shards.get((one.table.keyspace, "0"))
            if shard is not None and one.table.name in shard.control.comments:
                comment = shard.control.comments[one.table.name]
                table = loaded(raw_table(one.table.name, comment=comment), one.table.keyspace)
                self.status.figures[index] = replace(one, table=table)


class Control:
    """A shard that knows the comments of its tables; *error* is what it says to every change."""

    def __init__(self, *tables):
        self.comments = dict.fromkeys(tables, DEFAULT_COMMENT)
        self.error = None
        self.said = []

    async def rows(self, sql):
        (name,) = re.findall(r"^SHOW CREATE TABLE `(.*)`$", sql)
        return [(name, f"CREATE TABLE x (\n  id\n) COMMENT='{self.comments[name]}'")]

    async def execute(self, sql):
        self.said.append(sql)
        if self.error is not None:
            raise self.error
        ((name, comment),) = re.findall(r"^ALTER TABLE `(.*)` COMMENT='(.*)'$", sql)
        self.comments[name] = comment
        return 0


class Rights:
    """The rights of accounts: everything is allowed and seen, unless a test says otherwise.

    refusal: what is raised for every right.
    seen: what is seen.
    ran: the accounts' names and the shards of statements that were run, in order.
    """

    def __init__(self):
        self.refusal = None
        self.seen = Sight()
        self.asked = []
        self.ran = []

    async def sight(self, keys):
        return self.seen

    async def check(self, key):
        self.asked.append((key.account.name, key.shard.name, key.right.act))
        if self.refusal is not None:
            raise self.refusal

    async def run(self, account, shard, sql):
        self.ran.append((account.name, shard.name))
        await shard.control.execute(sql.decode())


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
        if "MIN(priority)" in sql:
            return [(5 if self.rows_found and ">" not in sql else None,)]
        limit = int(sql.rpartition("LIMIT ")[2])
        first = int(sql.partition("`id` > ")[2].partition(" ")[0] or 0)
        found = [row for row in self.rows_found if row[0] > first][:limit]
        values = sql.partition(" FROM ")[0].count("LEFT(")
        tail = ["5", "3", "9", None]
        return [
            (ident, 9, str(ident), *tail, *[body] * (values - len(tail) - 1))
            for ident, body in found
        ]

    async def execute(self, sql):
        """Revive the rows that an UPDATE names."""
        self.sent.append(sql)
        if self.error is not None:
            raise self.error
        (ids,) = re.findall(
            r"^UPDATE .* time_next = 0, epoch = 0 WHERE `id` IN \(([\d, ]+)\)", sql
        )
        named = set(map(int, ids.split(", ")))
        before = len(self.rows_found)
        self.rows_found = tuple(row for row in self.rows_found if row[0] not in named)
        return before - len(self.rows_found)


PASSWORDS = {"boss": "secret", "app": "", "reader": "päss"}
USERS = {
    "boss": User("boss", None, None, Role.ADMIN),
    "app": User("app", None, None, Role.USER),
    "reader": User("reader", None, None, Role.USER),
}


def services(status, readers, users) -> Any:
    accounts = {
        name: Credentials.from_password(name, PASSWORDS.get(name, "")) for name in users
    }
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


class Browser:
    """What asks a server: it keeps cookies and the session's token."""

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
        server = AdminServer(shared)
        await server.start("127.0.0.1", 0)
        # Cookies of an IP address are kept by browsers; aiohttp must be told.
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            browser = Browser(session, f"http://127.0.0.1:{server.port}")
            yield SimpleNamespace(
                server=server, status=status, services=shared, browser=browser, ask=browser.ask
            )
        await server.stop()
        await server.stop()


@pytest.fixture
async def served():
    """A server without users of its own, its figures, and a function that asks it."""
    async for each in _served({"root": User("root", None, None, Role.USER)}):
        yield each


@pytest.fixture
async def guarded():
    """The same with USERS."""
    async for each in _served(USERS):
        yield each
