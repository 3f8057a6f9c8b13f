"""Who may see what of the schema `streamfrom`."""

from types import SimpleNamespace
from typing import Any

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.figures import QueueFigures
from streamfrom.engine.messaging.memory_store import loaded, raw_table
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.status.status_rows import MemberStatus
from streamfrom.proxy.status.status_source import StatusSource, sees
from tests.virtual_loop import VirtualClock, run_virtual


def user(keyspaces=None, tables=None):
    keyspaces = None if keyspaces is None else frozenset(keyspaces)
    tables = None if tables is None else frozenset(tables)
    return User("ann", None, None, Role.READONLY, keyspaces, None, tables)


def runtime(keyspace):
    pool = SimpleNamespace(size=4, connections=3, lent=2, waiting=1)
    dsn = SimpleNamespace(server="h:3306")
    return SimpleNamespace(
        keyspace=keyspace, name="0", dsn=dsn, version="10", trouble=None, pool=pool
    )


def source() -> Any:
    async def queues():
        return [
            QueueFigures(loaded(raw_table(name), keyspace), (), 0)
            for keyspace, name in (("a", "one"), ("a", "two"), ("b", "one"))
        ]

    broken = {"bad": TableLoadError("bad", "why")}
    return StatusSource(
        SimpleNamespace(queues=queues, streams=list),  # type: ignore[arg-type]
        SimpleNamespace(tables=lambda keyspace: broken if keyspace == "b" else {}),  # type: ignore[arg-type]
        VirtualClock(),
        {("a", "0"): runtime("a"), ("b", "0"): runtime("b")},
        lambda: MemberStatus(None, "1", 1.0, 1, 0, 1, is_stopping=False),
        lambda keyspace, _: keyspace == "b",
    )


def seen(who, table="queues"):
    rows = run_virtual(source().rows([table], who, []))[table]
    return [row[:2] for row in rows]


def test_a_user_sees_its_keyspaces_and_its_tables():
    assert seen(user()) == [("a", "one"), ("a", "two"), ("b", "bad"), ("b", "one")]
    assert seen(user(keyspaces={"a"})) == [("a", "one"), ("a", "two")]
    assert seen(user(tables={(None, "one")})) == [("a", "one"), ("b", "one")]
    assert seen(user(keyspaces={"a"}, tables={("a", "two")})) == [("a", "two")]


def test_shards_are_those_of_ones_keyspaces():
    assert seen(user(), "shards") == [("a", "0"), ("b", "0")]
    assert seen(user(keyspaces={"b"}), "shards") == [("b", "0")]
    assert seen(user(keyspaces={"b"}), "members") == [(None, "1")]
    assert seen(user(), "streams") == []


def test_a_shard_tells_whether_it_is_dispatched_here():
    told = {shard.keyspace: shard.is_dispatched for shard in source().shard_status()}
    assert told == {"a": False, "b": True}


def test_a_table_of_another_keyspace_is_not_seen():
    assert not sees(user(tables={("a", "one")}), "b", "one")
    assert sees(user(tables={("a", "one")}), "b")
