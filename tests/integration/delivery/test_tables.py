"""Tables come, change and go while streams are open."""

import pytest

from tests.fixtures.streams import run, value
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert


pytestmark = pytest.mark.db

QUIET_S = 0.4


def test_a_changed_comment_takes_effect_at_once_and_streams_survive(queue: Queue) -> None:
    producer, stream = queue.create(), queue.stream()
    insert(producer, 1)
    stream.next()
    stream.nothing(QUIET_S)
    run(
        producer,
        "ALTER TABLE my_message COMMENT 'vitess_message,vt_ack_wait=0.3,vt_purge_after=9,"
        "vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30,vt_max_backoff=0.3,vt_prefetch=100'",
    )
    insert(producer, 4)
    assert stream.ids(3) == [4, 4, 4]


def test_a_new_column_appears_for_new_streams(queue: Queue) -> None:
    queue.create()
    old = queue.stream()
    producer = queue.connect()
    run(producer, "ALTER TABLE my_message ADD COLUMN extra INT DEFAULT 9")
    insert(producer, 1)
    assert len(old.next()) == 3
    old.close()
    new = queue.stream()
    assert new.columns[-1] == "extra"
    insert(producer, 4)
    assert new.next()[-1] == 9


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE my_message",
        "ALTER TABLE my_message COMMENT 'an ordinary table'",
        "RENAME TABLE my_message TO other_message",
    ],
)
def test_a_table_that_goes_ends_its_streams(queue: Queue, sql: str) -> None:
    connection, stream = queue.create(), queue.stream()
    run(connection, sql)
    assert stream.error() == (1146, "message table 'my_message' was dropped; its streams end")
    # The session goes on.
    assert value(stream.connection, "SELECT 1") == 1
