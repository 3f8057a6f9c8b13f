"""A table with vt_delayed = off takes what is due at once, and nothing that is or may be for later."""

import mysql.connector
import pytest

from tests.fixtures.streams import refuses, rows, run, value
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

LATER = 9 * 10**18


def test_nothing_is_scheduled_for_later_by_text_or_prepared(queue: Queue) -> None:
    client = queue.create()
    run(client, "ALTER QUEUE my_message SET (delayed = off)")
    (_, definition) = rows(client, "SHOW CREATE TABLE my_message")[0]
    assert "vt_delayed=off" in definition
    for sql in (
        f"INSERT INTO my_message (id, time_next) VALUES (1, {LATER})",
        "INSERT INTO my_message (id, time_next) VALUES (1, NOW() + INTERVAL 1 HOUR)",
        f"INSERT INTO my_message SET id = 1, time_next = {LATER}",
        "INSERT INTO my_message (id, time_next) SELECT 1, 0",
        f"UPDATE my_message SET time_next = {LATER} WHERE id = 1",
    ):
        refuses(client, sql, 1290, "vt_delayed of message table 'my_message' is off")
    assert value(client, "SELECT COUNT(*) FROM my_message") == 0
    with queue.proxy.connector(queue.keyspace) as connection:
        cursor = connection.cursor(prepared=True)
        insert = "INSERT INTO my_message (id, time_next) VALUES (?, ?)"
        with pytest.raises(mysql.connector.Error) as failed:
            cursor.execute(insert, (1, LATER))
        assert failed.value.errno == 1290
        cursor.execute(insert, (1, 0))
        with pytest.raises(mysql.connector.Error, match="is later than now"):
            cursor.execute("UPDATE my_message SET time_next = ? WHERE id = ?", (LATER, 1))
        cursor.execute("UPDATE my_message SET time_next = ? WHERE id = ?", (0, 1))

    stream = queue.stream("STREAM id FROM my_message")
    assert stream.take(1) == [(1,)]
    run(client, "UPDATE my_message SET time_next = time_next + INTERVAL 1 MINUTE WHERE id = 1")
    run(client, "UPDATE my_message SET time_next = 0 WHERE id = 1")
    assert stream.take(1) == [(1,)]
    assert run(client, "UPDATE my_message SET time_acked = NOW() WHERE id = 1") == 1

    run(client, "ALTER QUEUE my_message SET (delayed = DEFAULT)")
    run(client, f"INSERT INTO my_message (id, time_next) VALUES (2, {LATER})")
