from __future__ import annotations

import asyncio
import os
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.sharding.keyspace import Keyspace
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.config.keyspaces import KeyspaceConfig
from streamfrom.proxy.vschema_files import QueueSharding, VschemaFiles
from streamfrom.sqlparse_ext.stored_forms import ColumnType
from tests.proxy.fake_answers import until
from tests.proxy.fake_server import FakeServer
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.proxy.rigs import shard_config
from tests.sim.memory_store import loaded, raw_table


EMPTY = '{"sharded": true}'
ONE_TABLE = '{"sharded": true, "tables": {"r": {"type": "reference"}}}'


class Watched:
    """One keyspace with two shards, its file, and what was put into force."""

    def __init__(self, path: Path) -> None:
        path.write_text(EMPTY)
        halves = tuple(shard_config(FakeServer(), name) for name in ("-80", "80-"))
        self.path = path
        self.asked = asyncio.Event()
        self.applied: list[Keyspace] = []
        self.logs: list[MutableMapping[str, Any]] = []
        self.files = VschemaFiles(
            [
                KeyspaceConfig("commerce", EMPTY, halves, path),
                KeyspaceConfig("plain", None, ()),
            ],
            self.asked,
            self.applied.append,
            look_every_s=0.01,
        )

    async def write(self, text: str, then) -> None:
        """Replace the file, as an editor does, and wait until *then*."""
        other = self.path.with_suffix(".new")
        other.write_text(text)
        os.replace(other, self.path)
        await until(then)


@pytest.fixture
async def watched(tmp_path):
    made = Watched(tmp_path / "vschema.json")
    with structlog.testing.capture_logs() as logs:
        made.logs = logs
        watching = asyncio.ensure_future(made.files.watch())
        yield made
        watching.cancel()


async def test_a_file_that_changes_is_put_into_force_and_who_asks_is_told_of_no_change(watched):
    watched.asked.set()
    await until(lambda: watched.logs)
    assert [line["event"] for line in watched.logs] == ["vschema unchanged"]
    assert watched.applied == []
    assert not watched.asked.is_set()
    watched.logs.clear()
    await watched.write(ONE_TABLE, lambda: watched.applied)
    (keyspace,) = watched.applied
    assert (keyspace.name, list(keyspace.vschema.tables)) == ("commerce", ["r"])
    assert [shard.name for shard in keyspace.shards] == ["-80", "80-"]
    (line,) = watched.logs
    assert (line["event"], line["keyspace"], line["tables"]) == (
        "vschema reloaded",
        "commerce",
        1,
    )


async def test_a_file_that_cannot_be_used_leaves_the_old_vschema_and_says_why(watched):
    await watched.write("{", lambda: watched.applied)
    (keyspace,) = watched.applied
    assert keyspace.vschema.tables == {}
    assert "is no JSON" in keyspace.vschema_fault
    (line,) = watched.logs
    assert line["event"] == "vschema not reloaded, the old one is still used"
    assert line["reason"] == keyspace.vschema_fault
    await watched.write(EMPTY, lambda: len(watched.applied) == 2)
    assert watched.applied[1].vschema_fault == ""
    assert len(watched.logs) == 1


async def test_a_file_that_went_away_is_said_once(watched):
    watched.path.unlink()
    await until(lambda: watched.applied)
    for _ in range(3):
        watched.logs.clear()
        await asyncio.sleep(0.02)
        assert not watched.logs
    assert "cannot read" in watched.applied[0].vschema_fault


async def test_keyspaces_that_are_new_or_have_another_file_are_put_into_force(
    watched, tmp_path
):
    other, gone = tmp_path / "other.json", watched.path
    other.write_text(ONE_TABLE)
    more = KeyspaceConfig("more", None, ())
    commerce = KeyspaceConfig("commerce", EMPTY, (), other)
    plain = KeyspaceConfig("plain", None, ())
    watched.files.replace([commerce, plain, more])
    assert [keyspace.name for keyspace in watched.applied] == ["commerce", "more"]
    # What it was read as for the configuration may be old by now.
    await until(lambda: len(watched.applied) == 3)
    assert list(watched.applied[2].vschema.tables) == ["r"]
    gone.write_text("{")
    watched.files.replace([commerce, plain])
    watched.files.replace([replace(commerce, vschema_path=None, vschema_text=None), plain])
    other.write_text("{")
    await asyncio.sleep(0.05)
    assert [(keyspace.name, keyspace.vschema) for keyspace in watched.applied[3:]] == [
        ("commerce", None)
    ]


async def test_a_key_that_means_nothing_is_a_warning(watched):
    await watched.write('{"sharded": true, "tablez": {}}', lambda: len(watched.logs) == 2)
    assert watched.logs[1]["reason"] == "tablez: unknown key; did you mean tables?"


# Which keyspaces are put into force when vschema files and comments of message tables change.
COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,vt_cache_size=100,"
    "vt_poller_interval=30"
)


class Rig:
    def __init__(self, keyspace: Keyspace) -> None:
        self.tables: dict[str, MessageTable | TableLoadError] = {}
        self.types: dict[str, dict[str, ColumnType]] = {}
        self.applied: list[Keyspace] = []
        self.sharding = QueueSharding(
            [keyspace],
            lambda _keyspace: self.tables,
            lambda _keyspace: self.types,
            self.applied.append,
        )

    def create(self, name: str, more: str = "") -> None:
        self.tables[name] = loaded(raw_table(name, COMMENT + more))

    def primary(self, table: str) -> Any:
        vschema = self.applied[-1].vschema
        assert vschema is not None
        return vschema.tables[table].primary

    def column(self, table: str) -> Any:
        return self.primary(table).column


def test_what_a_comment_says_is_in_force_until_it_says_something_else():
    rig = Rig(SHARDED)
    rig.create("q", ",vt_shard_by=hash(user_id)")
    rig.create("other")
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.column("q") == "user_id"
    assert rig.column("t") == "id", "what the vschema says stays"
    rig.create("third")
    rig.sharding.tables_changed(SHARDED.name)
    assert len(rig.applied) == 1, "nothing that concerns routing has changed"
    del rig.tables["q"]
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.applied[-1] == SHARDED


def test_a_keyspace_counts_as_its_tables_are_once_it_is_put_into_force_and_until_it_goes():
    rig = Rig(PLAIN)
    rig.create("q", ",vt_shard_by=hash(user_id)")
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.applied == []
    rig.sharding.vschema_changed(SHARDED)
    assert rig.column("q") == "user_id"
    rig.sharding.forget(SHARDED.name)
    rig.tables.clear()
    rig.sharding.tables_changed(SHARDED.name)
    assert len(rig.applied) == 1


def test_the_types_of_the_columns_that_place_rows_are_known():
    rig = Rig(SHARDED)
    rig.types["t"] = {"id": ColumnType("uuid"), "other": ColumnType("int")}
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.primary("t").type == ColumnType("uuid")


def test_a_new_vschema_keeps_the_queues_that_it_does_not_name():
    rig = Rig(SHARDED)
    rig.create("q", ",vt_shard_by=hash(user_id)")
    rig.sharding.tables_changed(SHARDED.name)
    rig.sharding.vschema_changed(
        replace(SHARDED, vschema=parse_vschema('{"sharded": true, "tables": {}}'))
    )
    assert rig.column("q") == "user_id"
    assert rig.applied[-1].vschema != SHARDED.vschema
    plain = Rig(PLAIN)
    plain.create("q", ",vt_shard_by=hash(user_id)")
    plain.sharding.tables_changed(PLAIN.name)
    assert plain.applied == [PLAIN], "an unsharded keyspace is as it is"
