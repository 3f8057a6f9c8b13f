"""From commit to row: what is sent at once, and what never is."""

import pytest

from tests.fixtures.streams import run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert, insert_all


pytestmark = pytest.mark.db

QUIET_S = 0.4


def test_rows_of_a_transaction_come_when_it_commits_and_not_before(queue: Queue) -> None:
    queue.create()
    producer = queue.connect(autocommit=False)
    stream = queue.stream()
    insert_all(producer, (1, 4))
    stream.nothing(QUIET_S)
    producer.commit()
    assert sorted(stream.ids(2)) == [1, 4]


def test_every_form_of_insert_wakes_the_stream(queue: Queue) -> None:
    producer, stream = queue.create(), queue.stream()
    for sql in (
        "INSERT INTO my_message SET id = 1",
        "REPLACE INTO my_message (id) VALUES (1)",
        "INSERT INTO my_message (id) VALUES (1) ON DUPLICATE KEY UPDATE tenant_id = 2",
        "INSERT IGNORE my_message (id, priority) VALUES (1, 10 + 5)",
        "INSERT INTO `my_message` (`id`, `time_next`) VALUES (1, NULL)",
        "INSERT INTO my_message (id, time_next) VALUES (1, UNIX_TIMESTAMP() - 5)",
        "INSERT INTO my_message VALUES (1, 50, 0, 0, NULL, 3, NULL)",
        "/* a comment */ insert into my_message(id,message) value (1, '{\"a;b\": \"c''d\"}');",
    ):
        run(producer, sql)
        assert stream.next()[0] == 1, sql
        run(producer, "DELETE FROM my_message WHERE id = 1")


def test_a_row_that_is_inserted_as_acknowledged_is_not_sent(queue: Queue) -> None:
    producer, stream = queue.create(), queue.stream()
    run(
        producer,
        "INSERT INTO my_message (id, time_acked) VALUES (1, 1800000000000000005), (4, 1800000000000000005)",
    )
    stream.nothing(QUIET_S)


def test_a_row_written_past_the_proxy_is_found_by_the_poller(queue: Queue) -> None:
    queue.create(poller_interval=0.3)
    stream = queue.stream()
    queue.cluster.direct("INSERT INTO my_message (id) VALUES (1)", keyspace=queue.keyspace)
    assert stream.next()[0] == 1


def test_an_open_transaction_of_somebody_else_delays_only_its_own_rows(plain: Queue) -> None:
    plain.create()
    slow = plain.connect(autocommit=False)
    quick = plain.connect()
    stream = plain.stream()
    insert(slow, 1)
    insert(quick, 2)
    assert stream.next()[0] == 2
    slow.commit()
    assert stream.next()[0] == 1
