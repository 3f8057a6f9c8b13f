"""Which way an ack goes; the transaction of several is in test_group_commit.py."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.session_variables import Settings, names
from streamfrom.proxy.errors import QueryInterrupted, StatementTimedOut
from streamfrom.proxy.sql.ack_desk import AckDesk, Offer
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.writes.message_effects import effect
from tests.cases import cases
from tests.proxy.rigs import context_of
from tests.sim.memory_store import loaded, raw_table
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import CURRENT


TABLE = loaded(raw_table("m"))
ACK = (
    "UPDATE m SET time_acked = 5, time_next = NULL WHERE id IN (7, 8, 7) AND time_acked IS NULL"
)


class Group:
    """A group commit that takes an ack if there is another one."""

    def __init__(self, has_another=True):
        self.acks = []
        self._has_another = has_another

    def has_others(self):
        return self._has_another

    def join(self, table, ack):
        assert table is TABLE
        self.acks.append(ack)


class Scene:
    """A session that sends an ack."""

    def __init__(self, *, has_another=True, may_write=True, table: Any = TABLE):
        self.group = Group(has_another)
        self.sent: list[Any] = []
        self.over: list[Any] = []
        self.written: list[Any] = []
        self.connections: Any = SimpleNamespace(
            gathered=None, commits_at_once=lambda _: may_write, active={}
        )
        self.executor: Any = SimpleNamespace(connections=self.connections, send_now=self._send)
        self.state: Any = SimpleNamespace(
            settings=names("utf8mb4", "utf8mb4_general_ci"),
            variables=None,
            account=SHARDS_ACCOUNT,
        )
        self.registry: Any = SimpleNamespace(table=lambda *_: table)
        self.rights = context_of(connections=self.connections, registry=self.registry).rights
        self.attempt: Any = SimpleNamespace(
            shard=SimpleNamespace(
                keyspace="ks", name="-", group_commits={("m", SHARDS_ACCOUNT): self.group}
            ),
            reply=SimpleNamespace(updated=self.written.append, stopped=None),
            on_over=self.over.append,
        )

    def _send(self, attempt):
        self.sent.append(attempt)
        return True

    def joins(self, sql=ACK, complete=None):
        sent = statement(sql.encode())
        step = CompiledStatement(sent, "m", effect(sent, CURRENT))
        desk = AckDesk(self.registry, self.rights, self.executor, self.state)
        return desk.offer(step, self.attempt, complete) is Offer.TAKEN

    def gathered(self):
        assert self.joins()
        return self.connections.gathered


def test_an_ack_by_ids_joins_with_each_message_once():
    scene = Scene()
    ack = scene.gathered()
    assert (ack.ids, ack.values, ack.acked_ns) == ((b"7", b"8"), (7, 8, 7), 5)
    assert not scene.sent


@cases(sql=str)
def test_other_statements_do_not(sql):
    scene = Scene()
    assert not scene.joins(sql)
    assert not scene.group.acks


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("settings", Settings([("time_zone", "+02:00")])),
        ("settings", Settings([("sql_mode", "ANSI")])),
        ("settings", Settings([("autocommit", "OFF")])),
        ("settings", Settings([("transaction_isolation", "SERIALIZABLE")])),
        ("settings", Settings([("innodb_lock_wait_timeout", "1")])),
        ("settings", Settings([("character_set_client", "latin1")])),
        ("variables", object()),
    ],
)
def test_a_session_with_variables_sends_its_acks_itself(part, value):
    scene = Scene()
    setattr(scene.state, part, value)
    assert not scene.joins()


@pytest.mark.parametrize(
    "facts", [{"may_write": False}, {"table": None}, {"has_another": False}]
)
def test_so_does_one_in_a_transaction_without_a_usable_table_or_alone(facts):
    scene = Scene(**facts)
    assert not scene.joins()
    assert scene.connections.gathered is None


@pytest.mark.parametrize("reason", [None, StatementTimedOut()])
def test_what_was_stopped_is_not_sent_again(reason):
    scene = Scene()
    ack = scene.gathered()
    ack.is_stopped, scene.attempt.reply.stopped = True, reason
    ack.send_alone()
    assert not scene.sent
    (error,) = scene.over
    assert isinstance(error, QueryInterrupted if reason is None else StatementTimedOut)


def test_one_that_is_sent_by_itself_is_completed_then():
    scene, completed = Scene(), []

    def complete():
        completed.append(True)
        return b"packet"

    assert scene.joins(complete=complete)
    assert not completed
    scene.connections.gathered.send_alone()
    assert scene.sent == [scene.attempt]
    assert scene.attempt.packet == b"packet"


def test_one_that_cannot_be_completed_any_more_ends_with_the_reason():
    scene, error = Scene(), Unsupported("this")

    def complete():
        raise error

    assert scene.joins(complete=complete)
    scene.connections.gathered.send_alone()
    assert (scene.over, scene.sent) == ([error], [])
    assert scene.connections.gathered is None
