"""A message that was sent vt_max_attempts times is parked, and one UPDATE revives it."""

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db


def test_the_last_wait_parks_a_message_and_one_update_revives_it(queue: Queue) -> None:
    other = queue.create()
    run(
        other,
        "ALTER QUEUE my_message SET (ack_wait = 0.3, min_backoff = 0.3, max_attempts = 2)",
    )
    stream = queue.stream("STREAM id FROM my_message")
    insert_all(other, [1])
    assert stream.take(2) == [(1,), (1,)]
    parked = f"SELECT id, epoch FROM my_message WHERE time_next = {PARKED_NS}"
    eventually(lambda: rows(other, parked) == ((1, 2),))
    figures = (
        "SELECT depth, parked, parked_total FROM streamfrom.queues WHERE queue = 'my_message'"
    )
    eventually(lambda: rows(other, figures) == ((0, 1, 1),))
    run(other, "ALTER QUEUE my_message SET (ack_wait = 60, min_backoff = 60)")
    insert_all(other, [2])
    assert stream.take(1) == [(2,)]
    run(other, "UPDATE my_message SET time_acked = NOW() WHERE id = 2")
    where = f"WHERE time_next = {PARKED_NS} AND time_acked IS NULL"
    run(other, f"UPDATE my_message SET time_next = 0, epoch = 0 {where}")
    assert stream.take(1) == [(1,)]
    eventually(lambda: rows(other, figures)[0][1:] == (0, 1))


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
