"""Dead letters and parked messages: how they come to be, their queue (`dead_letter = on`), and REQUEUE, which makes them ready again."""

import time
from typing import Any

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from tests.fixtures.background import in_thread
from tests.fixtures.streams import eventually, refused, refuses, rows, run, value
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


QUEUE = "CREATE QUEUE job (n INT) WITH (ack_wait = 30, max_attempts = 2)"


def parked(client: Any, count: int) -> None:
    """Fill a queue with parked messages, numbered from 1."""
    run(client, QUEUE)
    values = ", ".join(f"({n}, 2, {PARKED_NS})" for n in range(1, count + 1))
    run(client, f"INSERT INTO job (n, epoch, time_next) VALUES {values}")


def numbers(client: Any, where: str) -> list[int]:
    return [n for (n,) in rows(client, f"SELECT n FROM job WHERE {where} ORDER BY n")]


def test_parked_messages_come_again_with_all_their_attempts(cluster, keyspace, client, consume):
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
    create = "CREATE QUEUE grave (n INT, dead_time BIGINT, dead_reason VARCHAR(100), dead_attempts INT)"
    run(client, create)
    run(client, "CREATE QUEUE job (n INT) WITH (max_attempts = 2, dead_letter = grave)")
    insert = "INSERT INTO grave (n, priority, dead_reason) VALUES (1, 10, 'x'), (2, 10, 'x'), (3, 10, 'x')"
    run(client, insert)


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


QUICK = "ack_wait = 0.2, min_backoff = 0.2, max_backoff = 0.2, poller_interval = 0.2"
WITH_DEAD_LETTERS = (
    "CREATE QUEUE job (tenant BIGINT UNSIGNED NOT NULL, job_key VARCHAR(40) COLLATE utf8mb4_bin UNIQUE, body JSON,"
    f" CHECK (tenant > 0)) WITH ({QUICK}, max_attempts = 1, dead_letter = on)"
)


def names(client: Any) -> list[str]:
    return [name for (name,) in rows(client, "SHOW QUEUES")]


def test_messages_die_into_it_and_come_back(cluster, keyspace, client, consume):
    run(client, WITH_DEAD_LETTERS)
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
    asked = "SELECT tenant, id, job_key, dead_attempts, dead_reason IS NOT NULL, last_error FROM job_dead ORDER BY tenant"
    found = rows(client, asked)
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
    sql = "SELECT tenant, id FROM job ORDER BY tenant"
    assert rows(client, sql) == tuple((n, ids[n]) for n in (2, 3))


def test_it_is_dropped_with_its_queue_only_when_empty(client: Any) -> None:
    run(client, WITH_DEAD_LETTERS)
    run(client, "INSERT INTO job_dead (id, tenant) VALUES (7, 1)")
    run(client, "DROP QUEUE job")
    ((_, _, text),) = rows(client, "SHOW WARNINGS")
    assert text == "job_dead has dead letters and stays"
    assert names(client) == ["job_dead"]
    run(client, WITH_DEAD_LETTERS)
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


GRAVE = (
    "CREATE TABLE grave (id BIGINT PRIMARY KEY, message VARCHAR(100), dead_time BIGINT,"
    " dead_reason VARCHAR(100), dead_attempts INT, seen_by VARCHAR(20) DEFAULT 'nobody')"
)


def test_a_message_that_nobody_handles_is_a_dead_letter(plain: Queue) -> None:
    """Once its table is there and consents; before that, and while the table refuses it, it is parked."""
    other = plain.create()
    settings = "ack_wait = 0.3, min_backoff = 0.3, max_attempts = 2, dead_letter = grave"
    run(other, f"ALTER QUEUE my_message SET ({settings})")
    stream = plain.stream("STREAM id FROM my_message")
    parked = f"SELECT id FROM my_message WHERE time_next = {PARKED_NS}"
    insert_all(other, [1])
    assert stream.take(2) == [(1,), (1,)]
    eventually(lambda: rows(other, parked) == ((1,),))
    run(other, GRAVE)
    insert_all(other, [9])
    assert stream.take(2) == [(9,), (9,)]
    plain.proxy.wait_for_log("the comment of grave does not consent to it")
    eventually(lambda: rows(other, parked) == ((1,), (9,)))
    assert rows(other, "SELECT COUNT(*) FROM grave") == ((0,),)
    run(other, f"ALTER QUEUE my_message SET ({settings})")
    ((_, shown),) = rows(other, "SHOW CREATE TABLE grave")
    assert "COMMENT='vt_dead_letters_of=my_message'" in shown
    insert_all(other, [2])
    assert stream.take(2) == [(2,), (2,)]
    told = "SELECT id, dead_time > 1.7e18, dead_reason, dead_attempts, seen_by FROM grave"
    reason = "sent 2 times and not acknowledged"
    eventually(lambda: rows(other, told) == ((2, 1, reason, 2, "nobody"),))
    figures = "SELECT parked, dead_lettered FROM streamfrom.queues WHERE queue = 'my_message'"
    eventually(lambda: rows(other, figures) == ((2, 1),))
    assert rows(other, "SELECT id FROM my_message ORDER BY id") == ((1,), (9,))
    # Its id is taken there: it stays where it is, and nothing else is held up by it.
    insert_all(other, [2, 3])
    assert sorted(stream.take(4)) == [(2,), (2,), (3,), (3,)]
    eventually(lambda: (2,) in rows(other, parked))
    # One claim may have taken both, and then both are parked.
    eventually(lambda: 3 in {row[0] for row in (*rows(other, told), *rows(other, parked))})
    assert '"event": "messages parked"' in plain.proxy.log()
