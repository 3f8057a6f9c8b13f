"""`dead_letter = on` makes a queue for the dead letters: placed and shown beside the queue, and dropped with it when empty."""

from typing import Any

import pytest

from tests.fixtures.streams import eventually, rows, run, value
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

QUICK = "ack_wait = 0.2, min_backoff = 0.2, max_backoff = 0.2, poller_interval = 0.2"
QUEUE = (
    "CREATE QUEUE job (tenant BIGINT UNSIGNED NOT NULL, job_key VARCHAR(40) COLLATE utf8mb4_bin UNIQUE, body JSON,"
    f" CHECK (tenant > 0)) WITH ({QUICK}, max_attempts = 1, dead_letter = on)"
)


@pytest.fixture
def client(cluster: SharedCluster, keyspace: str) -> Any:
    return cluster.proxy.connect(database=keyspace, autocommit=True)


def names(client: Any) -> list[str]:
    return [name for (name,) in rows(client, "SHOW QUEUES")]


def test_messages_die_into_it_and_come_back(cluster, keyspace, client, consume):
    run(client, QUEUE)
    assert rows(client, "SHOW WARNINGS") == ()
    assert names(client) == ["job", "job_dead"]
    insert = "INSERT INTO job (tenant, job_key, body) VALUES ({0}, '{0}', '{{\"n\": {0}}}')"
    for n in (1, 2, 3):
        run(client, insert.format(n))
    ids: dict[int, int] = dict(rows(client, "SELECT tenant, id FROM job"))
    run(client, "UPDATE job SET last_error = 'no route' WHERE tenant = 2")
    stream = consume(cluster.proxy, "STREAM * FROM job", database=keyspace)
    stream.take(3)
    count = "SELECT COUNT(*) FROM job_dead"
    eventually(lambda: value(client, count) == 3, "all are dead letters")
    found = rows(
        client,
        "SELECT tenant, id, job_key, dead_attempts, dead_reason IS NOT NULL, last_error FROM job_dead ORDER BY tenant",
    )
    assert [(row[0], row[1]) for row in found] == sorted(ids.items())
    assert [row[2:] for row in found] == [
        ("1", 1, 1, None), ("2", 1, 1, "no route"), ("3", 1, 1, None)
    ]  # fmt: skip
    # Where the queue's rows were, a unique key of the queue is free again, and dies once more.
    for n in (1, 2, 3):
        assert rows(client, f"SELECT tenant FROM job_dead WHERE id = {ids[n]}") == ((n,),)
    run(client, insert.format(1))
    stream.take(1)
    eventually(lambda: value(client, count) == 4, "two of one key")
    run(client, "DELETE FROM job_dead WHERE tenant = 1")
    stream.close()
    assert run(client, "ALTER QUEUE job REQUEUE DEAD") == 2
    assert rows(client, "SELECT tenant, id FROM job ORDER BY tenant") == tuple(
        (n, ids[n]) for n in (2, 3)
    )


def test_it_is_dropped_with_its_queue_only_when_empty(client: Any) -> None:
    run(client, QUEUE)
    run(client, "INSERT INTO job_dead (id, tenant) VALUES (7, 1)")
    run(client, "DROP QUEUE job")
    ((_, _, text),) = rows(client, "SHOW WARNINGS")
    assert text == "job_dead has dead letters and stays"
    assert names(client) == ["job_dead"]
    run(client, QUEUE)
    run(client, "DELETE FROM job_dead WHERE id = 7")
    run(client, "DROP QUEUE job")
    assert names(client) == []


def test_a_queue_that_is_there_gets_one_and_its_definition_says_so(client: Any) -> None:
    run(client, "CREATE QUEUE job (a INT)")
    run(client, "ALTER QUEUE job SET (max_attempts = 3, dead_letter = on)")
    assert names(client) == ["job", "job_dead"]
    ((_, again),) = rows(client, "SHOW CREATE QUEUE job")
    assert "dead_letter = on" in again
    run(client, "DROP QUEUE job")
    run(client, again)
    assert names(client) == ["job", "job_dead"]
    run(client, "ALTER QUEUE job SET (dead_letter = on)")
    assert run(client, "ALTER QUEUE job REQUEUE DEAD") == 0
