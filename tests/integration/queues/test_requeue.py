"""ALTER QUEUE … REQUEUE: parked messages and dead letters are ready again, in every keyspace and on both servers."""

import time
from typing import Any

import pytest

from tests.fixtures.background import in_thread
from tests.fixtures.streams import eventually, refused, refuses, rows, run, value
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

PARKED_NS = 9_000_000_000_000_000_000
QUEUE = "CREATE QUEUE job (n INT) WITH (ack_wait = 30, max_attempts = 2)"


@pytest.fixture
def client(cluster: SharedCluster, keyspace: str) -> Any:
    return cluster.proxy.connect(database=keyspace, autocommit=True)


def parked(client: Any, count: int) -> None:
    """Fill a queue with parked messages, numbered from 1."""
    run(client, QUEUE)
    values = ", ".join(f"({n}, 2, {PARKED_NS})" for n in range(1, count + 1))
    run(client, f"INSERT INTO job (n, epoch, time_next) VALUES {values}")


def numbers(client: Any, where: str) -> list[int]:
    return [n for (n,) in rows(client, f"SELECT n FROM job WHERE {where} ORDER BY n")]


def test_parked_messages_are_delivered_again_with_all_their_attempts(
    cluster, keyspace, client, consume
):
    parked(client, 5)
    run(client, "INSERT INTO job (n, time_next) VALUES (6, NOW() + INTERVAL 1 HOUR)")
    stream = consume(cluster.proxy, "STREAM n, epoch FROM job", database=keyspace)
    assert run(client, "ALTER QUEUE job REQUEUE PARKED") == 5
    assert sorted(row[-2:] for row in stream.take(5)) == [(n, 0) for n in range(1, 6)]
    assert run(client, "ALTER QUEUE job REQUEUE PARKED") == 0
    assert numbers(client, "time_next > UNIX_TIMESTAMP() * 1000000000 + 60000000000") == [6]


def test_a_limit_and_a_rate(client: Any) -> None:
    parked(client, 2500)
    assert run(client, "ALTER QUEUE job REQUEUE PARKED LIMIT 3") == 3
    assert value(client, f"SELECT COUNT(*) FROM job WHERE time_next = {PARKED_NS}") == 2497
    begun = time.monotonic()
    assert run(client, "ALTER QUEUE job REQUEUE PARKED LIMIT 10 RATE 20") == 10
    assert time.monotonic() - begun >= 0.5  # what the statement itself waits for at least
    assert run(client, "ALTER QUEUE job REQUEUE PARKED") == 2487


def test_without_autocommit_it_commits_as_other_definitions_do(cluster, keyspace, client):
    parked(client, 3)
    other = cluster.proxy.connect(database=keyspace)
    run(other, "INSERT INTO job (n) VALUES (7)")
    assert run(other, "ALTER QUEUE job REQUEUE PARKED") == 3
    other.rollback()
    assert numbers(client, "epoch = 0") == [1, 2, 3, 7]


def buried(client: Any) -> None:
    """Make a queue whose table of dead letters has three."""
    run(
        client,
        "CREATE QUEUE grave (n INT, dead_time BIGINT, dead_reason VARCHAR(100), dead_attempts INT)",
    )
    run(client, "CREATE QUEUE job (n INT) WITH (max_attempts = 2, dead_letter = grave)")
    run(
        client,
        "INSERT INTO grave (n, priority, dead_reason) VALUES (1, 10, 'x'), (2, 10, 'x'), (3, 10, 'x')",
    )


def test_dead_letters_are_messages_again(cluster, keyspace, client, consume):
    buried(client)
    run(client, "UPDATE grave SET time_acked = NOW() WHERE n = 3")
    ids = rows(client, "SELECT id, n FROM grave WHERE n < 3 ORDER BY n")
    stream = consume(cluster.proxy, "STREAM n, epoch, priority FROM job", database=keyspace)
    assert run(client, "ALTER QUEUE job REQUEUE DEAD LIMIT 1") == 1
    assert run(client, "ALTER QUEUE job REQUEUE DEAD") == 1
    assert sorted(row[-3:] for row in stream.take(2)) == [(1, 0, 10), (2, 0, 10)]
    assert rows(client, "SELECT id, n FROM job ORDER BY n") == ids
    assert [n for (n,) in rows(client, "SELECT n FROM grave")] == [3], "it was acknowledged"


def test_a_kill_ends_it_between_two_batches(cluster, keyspace, client):
    parked(client, 100)
    slow = cluster.proxy.connect(database=keyspace, autocommit=True)
    number = value(slow, "SELECT CONNECTION_ID()")
    outcome = in_thread(lambda: refused(slow, "ALTER QUEUE job REQUEUE PARKED RATE 1"))
    eventually(lambda: numbers(client, "epoch = 0") != [], "it has begun")
    run(client, f"KILL QUERY {number}")
    assert outcome()[0] == 1317
    assert 1 <= len(numbers(client, "epoch = 0")) < 100
    assert value(slow, "SELECT 1") == 1, "the session goes on"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("DROP QUEUE grave", "has no table 'grave'"),
        ("ALTER QUEUE other SET (dead_letter = grave)", "the dead letters of several queues"),
    ],
)
def test_dead_letters_of_nobody_knows_which_queue_stay(client, spoil, words):
    buried(client)
    run(client, "CREATE QUEUE other (n INT) WITH (max_attempts = 2)")
    run(client, spoil)
    refuses(client, "ALTER QUEUE job REQUEUE DEAD", 1210, words)
