"""Keys take turns (`vt_fair`): a flood of one tenant delays nobody, on both servers, through any member."""

import pytest

from tests.fixtures.streams import run
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

MAKE = (
    "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant VARCHAR(20))"
    " WITH (key = tenant, fair = on, ack_wait = 600, poller_interval = 600, cache_size = 200,"
    " batch_size = 5)"
)
STREAM = "STREAM /*vt+ PREFETCH=10 */ id, tenant FROM my_message"


@pytest.fixture
def producer(plain: Queue):
    connection = plain.connect()
    run(connection, MAKE)
    return connection


def insert(connection, key, *ids, priority=50):
    values = ", ".join(f"({ident}, {key}, {priority})" for ident in ids)
    run(connection, f"INSERT INTO my_message (id, tenant, priority) VALUES {values}")


def sent_until(consumer, producer, key, count):
    """Take and ack messages until there are *count* of *key*; return how many others came before."""
    others, left = 0, count
    while left:
        ident, found = consumer.next()
        run(producer, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")
        if found == key:
            left -= 1
        else:
            others += 1
    return others


def test_a_tenant_does_not_wait_for_the_flood_of_another(plain: Queue, producer) -> None:
    insert(producer, "'flood'", *range(1, 5001), priority=1)
    insert(producer, "'small'", *range(10_000, 10_010))
    insert(producer, "NULL", *range(20_000, 20_010))
    consumer = plain.stream(STREAM)
    # Three of each key in nine messages, beside those that are on their way.
    assert sent_until(consumer, producer, "small", 10) <= 2 * 10 + 25
    insert(producer, "'flood'", *range(5001, 6001))
    insert(producer, "'new'", 30_000, 30_001)
    assert sent_until(consumer, producer, "new", 2) <= 45
    insert(producer, "NULL", 40_000, 40_001)
    assert sent_until(consumer, producer, None, 2) <= 60
