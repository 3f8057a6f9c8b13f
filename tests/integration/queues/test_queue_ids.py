"""Ids that the proxy gives to messages, as text and drivers ask for them."""

import ast
import time
from typing import Any

import pytest

from streamfrom.engine.messaging.table.message_ids import LEAD_STEPS, STEP_NS, first_id
from tests.cases import cases
from tests.fixtures.streams import message_table, refused, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


pytestmark = pytest.mark.db


@pytest.fixture
def client(cluster: SharedCluster, keyspace: str) -> Any:
    client = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(client, "CREATE QUEUE my_message (user_id BIGINT(10), payload VARCHAR(256),)")
    return client


def stored(client: Any) -> list[int]:
    """Return all ids, by what was inserted with them."""
    return [ident for ident, _ in rows(client, "SELECT id, user_id FROM my_message ORDER BY 2")]


def test_the_proposals_own_insert(queue: Queue, client: Any) -> None:
    stream = queue.stream()
    before = first_id(time.time_ns())
    run(client, "BEGIN")
    run(client, "INSERT INTO my_message(user_id, payload) VALUES (10, 'I want to send this')")
    run(client, "COMMIT")
    ((ident, user_id, payload),) = stream.take(1)
    assert (user_id, payload) == (10, "I want to send this")
    assert before <= ident < first_id(time.time_ns() + (LEAD_STEPS + 1) * STEP_NS) < 1 << 53
    assert value(client, "SELECT LAST_INSERT_ID()") == ident
    assert run(client, f"UPDATE my_message SET state = 'acked' WHERE id = {ident}") == 1


@cases(sql=str, count=ast.literal_eval)
def test_every_form_of_insert_gets_ids_that_are_told(client: Any, sql: str, count: int) -> None:
    with client.cursor() as cursor:
        cursor.execute(sql)
        told = cursor.lastrowid
    found = stored(client)
    assert found == list(range(told, told + count))
    assert value(client, "SELECT LAST_INSERT_ID()") == told


def test_the_last_id_finds_its_message_on_whichever_shard_it_is(client: Any) -> None:
    where = "WHERE id = LAST_INSERT_ID()"
    for number in range(8):
        run(client, f"INSERT INTO my_message (user_id) VALUES ({number})")
        found = f"SELECT user_id FROM my_message {where}"
        assert rows(client, found) == ((number,),)
        assert rows(client, f"SELECT COUNT(*) FROM my_message {where}") == ((1,),)
        assert run(client, f"UPDATE my_message SET time_acked = NOW() {where}") == 1
        run(client, "BEGIN")
        run(client, f"INSERT INTO my_message (user_id) VALUES ({number + 100})")
        assert run(client, f"UPDATE my_message SET time_acked = NOW() {where}") == 1
        assert rows(client, found) == ((number + 100,),)
        run(client, "COMMIT")
    assert value(client, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL") == 0


def test_prepared_statements_and_batches(cluster, client, keyspace):
    with cluster.proxy.connector(keyspace) as connection:
        cursor = connection.cursor(prepared=True)
        told = []
        for user_id in range(3):
            cursor.execute("INSERT INTO my_message (user_id) VALUES (?)", (user_id,))
            told.append(cursor.lastrowid)
        assert stored(client) == told
        assert told == sorted(set(told))
        plain = connection.cursor()
        plain.executemany("INSERT INTO my_message (user_id) VALUES (%s)", [(10,), (11,), (12,)])
        first = plain.lastrowid
        assert first is not None
        assert stored(client)[3:] == [first, first + 1, first + 2]


def test_a_query_that_leaves_the_id_out_gets_one_for_each_row(queue, client):
    stream = queue.stream("STREAM id, user_id FROM my_message")
    with client.cursor() as cursor:
        assert cursor.execute("INSERT INTO my_message (user_id) SELECT 1") == 1
        assert stored(client) == [cursor.lastrowid]
        copied = "INSERT INTO my_message (user_id, payload) SELECT user_id + {0}, 'it''s' FROM my_message"
        for more in (1, 2, 4):
            assert cursor.execute(copied.format(more)) == more
        first = cursor.lastrowid
    assert sorted(stored(client)[-4:]) == [first, first + 1, first + 2, first + 3]
    assert value(client, "SELECT LAST_INSERT_ID()") == first
    assert sorted(row[1] for row in stream.take(8)) == list(range(1, 9))
    nothing = "INSERT INTO my_message (user_id) SELECT 1 FROM my_message WHERE id = 0"
    assert run(client, nothing) == 0
    run(client, "BEGIN")
    assert run(client, copied.format(8)) == 8
    run(client, "ROLLBACK")
    assert len(stored(client)) == 8


def test_an_ordinary_table_gets_ids_when_it_asks_for_them(cluster, keyspace):
    client = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(client, message_table())
    assert refused(client, "INSERT INTO my_message (message) VALUES ('1')")[0] == 1364
    run(client, "ALTER QUEUE my_message SET (auto_id = on)")
    with client.cursor() as cursor:
        cursor.execute("INSERT INTO my_message (message) VALUES ('1')")
        assert value(client, "SELECT id FROM my_message") == cursor.lastrowid


def test_an_id_of_ones_own_is_not_made(cluster: SharedCluster, keyspace: str) -> None:
    client = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(client, "CREATE QUEUE named (id VARCHAR(36) NOT NULL, a INT)")
    assert refused(client, "INSERT INTO named (a) VALUES (1)")[0] == 1364
    run(client, "INSERT INTO named (id, a) VALUES ('x', 1)")
