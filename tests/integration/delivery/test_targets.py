"""Which stream: keyspaces, shards and forms of the statement."""

import pytest

from tests.fixtures.streams import Consume, Consumer, refused, run
from tests.integration.conftest import HIGH_IDS, LOW_IDS, Queue
from tests.integration.delivery.producing import insert, insert_all


pytestmark = pytest.mark.db

QUIET_S = 0.4


def test_a_qualified_table_needs_no_database(queue: Queue, consume: Consume) -> None:
    queue.create()
    stream = consume(queue.proxy, f"STREAM * FROM {queue.keyspace}.my_message")
    run(
        queue.proxy.connect(autocommit=True),
        f"INSERT INTO {queue.keyspace}.my_message (id) VALUES (1)",
    )
    assert stream.next()[0] == 1


def test_a_table_of_one_keyspace_alone_needs_neither(queue: Queue, consume: Consume) -> None:
    queue.create("other_message")
    stream = consume(queue.proxy, "STREAM * FROM other_message")
    producer = queue.connect()
    insert(producer, 1, table="other_message")
    assert stream.next()[0] == 1


def test_a_table_of_two_keyspaces_needs_a_database(plain, sharded, cluster):
    plain.create()
    sharded.create()
    code, text = refused(cluster.proxy.connect(), "STREAM * FROM my_message")
    assert code == 1046, text


@pytest.mark.parametrize(
    "how", ["STREAM * FROM `commerce:-80`.my_message", "USE `commerce:-80`", "login"]
)
def test_a_narrowed_stream_has_its_shard_only(sharded, consume, how):
    producer = sharded.create()
    insert_all(producer, (*LOW_IDS, *HIGH_IDS))
    if how == "login":
        stream = consume(sharded.proxy, database="commerce:-80")
    elif how.startswith("USE"):
        connection = sharded.connect(autocommit=False)
        run(connection, how)
        stream = Consumer(connection, "STREAM * FROM my_message")
    else:
        stream = sharded.stream(how)
    assert sorted(stream.ids(len(LOW_IDS))) == sorted(LOW_IDS)
    stream.nothing(QUIET_S)
    other = consume(sharded.proxy, "STREAM * FROM `commerce:80-`.my_message")
    assert sorted(other.ids(len(HIGH_IDS))) == sorted(HIGH_IDS)
    stream.nothing(0)
