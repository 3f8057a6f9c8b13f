"""Queues that are partitioned by time: made, shown, purged, and what holds their partitions back."""

import time
from typing import Any

import pytest

from streamfrom.engine.messaging.table.message_ids import first_id
from streamfrom.engine.messaging.upkeep.partitions import SPANS, Partition, definitions
from tests.fixtures.streams import eventually, message_table, refused, rows, run, value
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SharedCluster


HOUR = SPANS["HOUR"]
QUEUE = "CREATE QUEUE my_message (payload VARCHAR(64))"
ACKED_NS = 1_780_000_000 * 10**9  # long ago
# The hours that the table of `old` has, in order.
HOURS_AGO = (5, 4, 3, 2, 1)


def partitions(cluster: SharedCluster, keyspace: str) -> list[list[str]]:
    return [
        [
            name
            for (name,) in cluster.direct(
                "SELECT partition_name FROM information_schema.partitions WHERE table_name = 'my_message'"
                " AND table_schema = DATABASE() ORDER BY partition_ordinal_position",
                keyspace=keyspace,
                shard=shard,
            )
        ]
        for shard in range(len(cluster.servers_of(keyspace)))
    ]


class OldHours:
    """A queue that was partitioned by hand, whose partitions have all ended.

    The hours are those before the test, also when it ends in the next one.
    """

    def __init__(self, cluster: SharedCluster, keyspace: str) -> None:
        self._cluster, self._keyspace = cluster, keyspace
        self._present_ns = HOUR.floor_ns(time.time_ns())
        self._ids: dict[int, int] = {}
        timed = [self._partition(ago) for ago in HOURS_AGO]
        sql = message_table(purge_after=1, poller_interval=0.3)
        sql += f" PARTITION BY RANGE (id) ({definitions(timed, 'later').decode()})"
        run(cluster.proxy.connect(database=keyspace, autocommit=True), sql)

    def _partition(self, hours_ago: int) -> Partition:
        return HOUR.partition(self._present_ns - hours_ago * HOUR.length_ns)

    def name(self, hours_ago: int) -> str:
        return self._partition(hours_ago).name

    def ident(self, hours_ago: int) -> int:
        self._ids[hours_ago] = self._ids.get(hours_ago, 0) + 1
        return first_id(self._present_ns - hours_ago * HOUR.length_ns) + self._ids[hours_ago]

    def has(self, hours_ago: int) -> bool:
        found = partitions(self._cluster, self._keyspace)
        return any(self.name(hours_ago) in names for names in found)


@pytest.fixture
def old(cluster: SharedCluster, keyspace: str) -> OldHours:
    return OldHours(cluster, keyspace)


def insert_acked(client: Any, *ids: int) -> None:
    values = ", ".join(f"({ident}, 1, NULL, {ACKED_NS})" for ident in ids)
    insert = f"INSERT INTO my_message (id, tenant_id, time_next, time_acked) VALUES {values}"
    run(client, insert)


@pytest.mark.parametrize(("unit", "count"), [("HOUR", 38), ("DAY", 9)])
def test_a_partitioned_queue_is_like_any_other(client, cluster, keyspace, consume, unit, count):
    run(client, f"{QUEUE} PARTITION BY {unit} WITH (ack_wait = 60)")
    shards = partitions(cluster, keyspace)
    assert len(shards) == len(cluster.servers_of(keyspace))
    assert all(len(names) >= count for names in shards)
    stream = consume(cluster.proxy, database=keyspace)
    run(client, "INSERT INTO my_message (payload) VALUES ('a'), ('b')")
    got = stream.take(2)
    assert sorted(payload for _, payload in got) == ["a", "b"]
    ids = ", ".join(str(ident) for ident, _ in got)
    assert run(client, f"UPDATE my_message SET time_acked = NOW() WHERE id IN ({ids})") == 2
    run(client, "ALTER QUEUE my_message SET (ack_wait = 61)")
    for before, after in zip(shards, partitions(cluster, keyspace), strict=True):
        assert set(before) <= set(after)
    ((_, again),) = rows(client, "SHOW CREATE QUEUE my_message")
    assert f" PARTITION BY {unit}\n" in again
    assert "ack_wait = 61" in again
    for shard in range(len(shards)):
        rest = "SELECT COUNT(*) FROM my_message PARTITION (prest)"
        assert cluster.direct(rest, keyspace=keyspace, shard=shard) == ((0,),)
    run(client, "DROP QUEUE my_message")
    run(client, again)
    ((_, same),) = rows(client, "SHOW CREATE QUEUE my_message")
    assert same == again


def test_what_is_done_is_dropped_and_a_straggler_is_told(client, cluster, keyspace, old):
    # In a sharded keyspace ids that follow one another are on different shards.
    straggler = old.ident(4)
    insert = (
        f"INSERT INTO my_message (id, tenant_id, time_next) VALUES ({straggler}, 2, {2**62})"
    )
    run(client, insert)
    insert_acked(client, *(old.ident(hours) for hours in (5, 4, 3, 2) for _ in range(20)))
    eventually(lambda: not old.has(5), "the oldest one is dropped")
    eventually(lambda: not old.has(2), "so are those behind the straggler's")
    eventually(
        lambda: all(len(names) >= HOUR.ahead + 2 for names in partitions(cluster, keyspace)),
        "partitions are made ahead on every shard",
    )
    assert old.has(4)
    # The next look at the partitions finds out what holds this one back.
    reason = "1 message not acknowledged"
    cluster.proxy.wait_for_log(f'"partition": "{old.name(4)}"')
    cluster.proxy.wait_for_log(f'"reason": "{reason}"')
    run(client, f"UPDATE my_message SET time_acked = NOW() WHERE id = {straggler}")
    eventually(lambda: not old.has(4), "dropped once it is acked and old")
    assert value(client, "SELECT COUNT(*) FROM my_message") == 0


def test_a_table_with_other_partitions_is_purged_by_rows(client, cluster, keyspace):
    sql = message_table(purge_after=1, poller_interval=0.3)
    run(client, f"{sql} PARTITION BY HASH (id) PARTITIONS 3")
    insert_acked(client, *LOW_IDS, *HIGH_IDS)
    eventually(lambda: value(client, "SELECT COUNT(*) FROM my_message") == 0, "purged by rows")
    assert refused(client, "SHOW CREATE QUEUE my_message")[0] == 1210
    assert all(len(names) == 3 for names in partitions(cluster, keyspace))
