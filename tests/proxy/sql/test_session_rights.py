"""Which acks of a session other connections may write, and with which roles its rights are asked for."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.config.file import SessionAccount, User
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.rights.questions import acknowledge, count
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.proxy.sql.session_rights import SessionRights
from streamfrom.proxy.wire.resultset import text_row
from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites
from streamfrom.sqlparse_ext.writes.message_effects import effect
from tests.proxy.fake_server import PASSWORD
from tests.proxy.rigs import add_message_table, running_proxy
from tests.sim.memory_store import loaded, raw_table
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import CURRENT


ACK = "UPDATE m SET time_acked = 5, time_next = NULL WHERE id IN (7, 8) AND time_acked IS NULL"
OWN = Account("app", Secret("secret"))
TABLE = loaded(raw_table("m"))


class Shard:
    keyspace = "ks"
    name = "0"
    is_mariadb = True


SHARD: Any = Shard()


class Desk:
    """The rights desk, which allows some rights."""

    def __init__(self, *allowed):
        self.allowed = allowed
        self.checked = []

    def allows(self, account, shard, right):
        assert (account, shard) == (OWN, SHARD)
        return right in self.allowed

    async def check(self, key):
        self.checked.append(key)


def rights_of(account, desk, *, may_write=True, hidden=None, held=None, uncounted=None):
    branches = SimpleNamespace(held={} if held is None else {SHARD: held})

    async def patiently(_shard, ask):
        return await ask()

    async def pipeline(_shard, backend, _packets):
        return [SimpleNamespace(rows=[text_row((backend.role,))])]

    connections: Any = SimpleNamespace(
        commits_at_once=lambda _shard: may_write,
        branches=branches,
        patiently=patiently,
        pipeline=pipeline,
    )
    registry: Any = SimpleNamespace(
        table=lambda _keyspace, name: TABLE if name == "m" else None,
        hidden_writes=lambda _keyspace: hidden or HiddenWrites(),
    )
    state: Any = SimpleNamespace(account=account)
    return SessionRights(
        desk, state, connections, registry, set() if uncounted is None else uncounted
    )


def asked(sql, account=SHARDS_ACCOUNT, desk=None, **parts):
    sent = statement(sql.encode())
    step = CompiledStatement(sent, "m", effect(sent, CURRENT), acks_early=True)
    return rights_of(account, desk or Desk(), **parts).ack_for_others(step, SHARD)


def test_the_ack_of_an_account_is_written_by_others_once_it_is_known_that_it_may():
    may = Desk(acknowledge(TABLE))
    assert asked(ACK, OWN, may) == ((7, 8), 5)
    assert asked(ACK, OWN, Desk()) is None


@pytest.mark.parametrize(
    "hidden", [HiddenWrites(update_triggered=["M"]), HiddenWrites(hides_triggers=True)]
)
def test_an_ack_that_a_trigger_may_see_runs_on_the_connection_of_its_session(hidden):
    may = Desk(acknowledge(TABLE))
    assert asked(ACK, OWN, may, hidden=hidden) is None
    # The trigger sees the same account on every connection.
    assert asked(ACK, hidden=hidden) == ((7, 8), 5)


@pytest.mark.parametrize("may_count", [True, False])
async def test_acks_count_sends_where_the_account_may_change_epoch(may_count):
    class Counting(Desk):
        async def check(self, key):
            await super().check(key)
            if not may_count:
                raise BackendError(1143, "42000", "UPDATE command denied for column 'epoch'")

    view: Any = SimpleNamespace(
        schema=None, keyspace=SimpleNamespace(name="ks"), runtimes=[SHARD]
    )
    desk, uncounted = Counting(), set[tuple[str, str]]()
    rights = rights_of(OWN, desk, uncounted=uncounted)
    ack, insert = statement(ACK.encode()).shape, statement(b"INSERT INTO m VALUES (1)").shape
    await rights.learn(view, insert)
    assert rights.must_learn(view, ack)
    for _ in range(2):
        await rights.learn(view, ack)
    assert not rights.must_learn(view, ack)
    assert [key.right for key in desk.checked] == [count(TABLE)]
    assert uncounted == (set() if may_count else {("ks", "m")})


async def test_a_stream_and_an_ack_cost_one_question_each_and_later_ones_none(server):
    add_message_table(server)
    user = User("app", Secret(PASSWORD), None, account=SessionAccount.OWN)
    stream = "STREAM id, message FROM msg LIMIT 1 WAIT 0"
    ack = "UPDATE msg SET time_acked = 5, time_next = NULL WHERE id = 7 AND time_acked IS NULL"
    asked = []
    async with running_proxy(server, users=(user,)) as proxy:
        for _ in range(2):
            client = await proxy.client(user="app", password=PASSWORD)
            for sql in (stream, stream, ack, ack):
                before = len(server.heard)
                await client.query(sql)
                heard = server.heard[before:]
                asked.append([one for one in heard if "WHERE FALSE" in one or "LIMIT 0" in one])
    # Of what is asked together, SELECT and UPDATE, all is in one round trip.
    assert [len(each) for each in asked] == [2, 0, 2, 0, 0, 0, 0, 0], asked
