"""SHOW QUEUE STATUS and the schema `streamfrom`, as any client reads them."""

from typing import Any

import pytest

from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.conftest import LOW_IDS, Queue, SharedCluster


pytestmark = pytest.mark.db


@pytest.fixture
def client(cluster: SharedCluster) -> Any:
    return cluster.proxy.connect(database="commerce", autocommit=True)


def insert(client: Any, *ids: int) -> None:
    values = ", ".join(f"({one}, '{{}}')" for one in ids)
    rows(client, f"INSERT INTO my_message (id, message) VALUES {values}")


def status(client: Any, columns: str) -> tuple[Any, ...]:
    return rows(client, f"SELECT {columns} FROM streamfrom.queues WHERE queue = 'my_message'")[
        0
    ]


def test_any_select_reads_them(sharded: Queue, client: Any) -> None:
    sharded.create()
    sharded.create(name="other_message")
    insert(client, LOW_IDS[0])
    names = rows(
        client,
        "SELECT queue FROM streamfrom.queues WHERE keyspace = 'commerce' ORDER BY queue DESC LIMIT 2",
    )
    assert names == (("other_message",), ("my_message",))
    eventually(lambda: status(client, "depth") == (1,))
    deep = "SELECT COUNT(*) FROM `streamfrom`.`queues` AS q WHERE q.depth > 0"
    assert value(client, deep) == 1
    assert value(client, "SELECT SUM(streamfrom.queues.depth) FROM STREAMFROM.queues") == 1
    with_own = (
        "WITH RECURSIVE d AS (SELECT depth FROM streamfrom.queues) SELECT MAX(depth) FROM d"
    )
    assert value(client, with_own) == 1
    # Proxies of other tests may stand before these shards as well, or were killed a moment ago; none has this keyspace.
    shards = "FROM streamfrom.shards WHERE keyspace = 'commerce'"
    assert rows(client, f"SELECT (SELECT COUNT(*) {shards}), (SELECT 1)") == ((2, 1),)
    assert value(client, f"SELECT GROUP_CONCAT(shard ORDER BY shard) {shards}") == "-80,80-"
    assert rows(client, f"SELECT is_up, last_error {shards} AND shard = '-80'") == ((1, None),)
    answering = (
        "SELECT COUNT(*) > 0, MAX(connections) >= 1 FROM streamfrom.members WHERE is_answering"
    )
    assert rows(client, answering) == ((1, 1),)
    assert rows(client, "SELECT * FROM streamfrom.streams WHERE 1 = 0") == ()


def test_show_queue_status_tells_of_the_keyspace_one_is_in(plain, sharded, cluster, client):
    sharded.create()
    plain.create(name="plain_message")
    names = [(row[0], row[1]) for row in rows(client, "SHOW QUEUE STATUS")]
    assert names == [("commerce", "my_message")]
    other = rows(client, "show queue status from plain like 'plain\\_%'")
    assert [row[1] for row in other] == ["plain_message"]
    assert rows(client, "SHOW QUEUE STATUS IN `plain` LIKE 'x%'") == ()
    run(client, "SET collation_server = latin1_swedish_ci")  # what JSON_TABLE would take
    assert rows(client, "SHOW QUEUE STATUS LIKE '日本%'") == ()
    anywhere = cluster.proxy.connect(autocommit=True)
    assert {row[0] for row in rows(anywhere, "SHOW QUEUE STATUS")} == {"commerce", "plain"}
    assert refused(client, "SHOW QUEUE STATUS FROM nowhere")[0] == 1049
    assert refused(client, "SHOW QUEUE STATUS WHERE depth > 1")[0] == 1064
    assert refused(client, "SHOW QUEUE STATUS FROM")[0] == 1064
    assert value(client, "SELECT 1") == 1
