"""Which keyspaces are put into force when vschema files and comments of message tables change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.sharding.keyspace import Keyspace
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.vschema_files import QueueSharding
from streamfrom.sqlparse_ext.stored_forms import ColumnType
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sim.memory_store import loaded, raw_table


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

    def columns(self, table: str) -> Any:
        return self.primary(table).columns


def test_what_a_comment_says_is_in_force_until_it_says_something_else():
    rig = Rig(SHARDED)
    rig.create("q", ",vt_shard_by=hash(user_id)")
    rig.create("other")
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.columns("q") == ("user_id",)
    assert rig.columns("t") == ("id",), "what the vschema says stays"
    rig.create("third")
    rig.sharding.tables_changed(SHARDED.name)
    assert len(rig.applied) == 1, "nothing that concerns routing has changed"
    del rig.tables["q"]
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.applied[-1] == SHARDED


def test_the_types_of_the_columns_that_place_rows_are_known():
    rig = Rig(SHARDED)
    rig.types["t"] = {"id": ColumnType("uuid"), "other": ColumnType("int")}
    rig.sharding.tables_changed(SHARDED.name)
    assert rig.primary("t").types == (ColumnType("uuid"),)


def test_a_new_vschema_keeps_the_queues_that_it_does_not_name():
    rig = Rig(SHARDED)
    rig.create("q", ",vt_shard_by=hash(user_id)")
    rig.sharding.tables_changed(SHARDED.name)
    rig.sharding.vschema_changed(
        replace(SHARDED, vschema=parse_vschema('{"sharded": true, "tables": {}}'))
    )
    assert rig.columns("q") == ("user_id",)
    assert rig.applied[-1].vschema != SHARDED.vschema
    plain = Rig(PLAIN)
    plain.create("q", ",vt_shard_by=hash(user_id)")
    plain.sharding.tables_changed(PLAIN.name)
    assert plain.applied == [PLAIN], "an unsharded keyspace is as it is"
