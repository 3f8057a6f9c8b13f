"""A message that was sent vt_max_attempts times is parked, and one UPDATE revives it."""

import pytest

from streamfrom.engine.messaging.attempts import PARKED_NS
from tests.fixtures.streams import Consume, eventually, refused, rows, run
from tests.integration.conftest import CreateTable, SharedCluster
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db


def test_the_last_wait_parks_a_message_and_one_update_revives_it(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace)
    other = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(
        other,
        "ALTER QUEUE my_message SET (ack_wait = 0.3, min_backoff = 0.3, max_attempts = 2)",
    )
    stream = consume(cluster.proxy, "STREAM id FROM my_message", database=keyspace)
    insert_all(other, [1])
    assert stream.take(2) == [(1,), (1,)]
    parked = f"SELECT id, epoch FROM my_message WHERE time_next = {PARKED_NS}"
    eventually(lambda: rows(other, parked) == ((1, 2),))
    run(other, "ALTER QUEUE my_message SET (ack_wait = 60, min_backoff = 60)")
    insert_all(other, [2])
    assert stream.take(1) == [(2,)]
    run(other, "UPDATE my_message SET time_acked = NOW() WHERE id = 2")
    run(
        other,
        "UPDATE my_message SET time_next = 0, epoch = 0"
        f" WHERE time_next = {PARKED_NS} AND time_acked IS NULL",
    )
    assert stream.take(1) == [(1,)]


def test_a_number_that_is_none_changes_nothing(
    cluster: SharedCluster, create: CreateTable, keyspace: str
) -> None:
    create(keyspace)
    other = cluster.proxy.connect(database=keyspace, autocommit=True)
    code, text = refused(other, "ALTER QUEUE my_message SET (max_attempts = -1)")
    assert (code, "max_attempts" in text) == (1210, True)
    (_, definition) = rows(other, "SHOW CREATE TABLE my_message")[0]
    assert "vt_max_attempts" not in definition
