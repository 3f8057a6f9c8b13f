"""Time functions beside the time columns, compared with what a server says of the true moment."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import in_turn
from tests.fixtures.streams import refused, refuses, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


SECOND_NS = 10**9
# When the messages are due, in seconds from now; both shards have some of each.
OFFSETS_S = (-86_400, -3_600, -60, 60, 3_600, 86_400, 40 * 86_400, -400 * 86_400)
ZONES = ("SYSTEM", "+00:00", "-09:30", "+13:00")

# Through the proxy, and of how many seconds from now it is true.
CONDITIONS: dict[str, Callable[[int], bool]] = {
    "time_next <= NOW()": lambda due: due <= 0,
    "NOW(6) < time_next": lambda due: due > 0,
    "t.time_next > CURRENT_TIMESTAMP + INTERVAL 30 DAY": lambda due: due > 30 * 86400,
    "`time_next` BETWEEN NOW() - INTERVAL 2 HOUR AND DATE_ADD(NOW(), INTERVAL 2 HOUR)": (
        lambda due: -7200 <= due <= 7200
    ),
    "NOT time_next <= UTC_TIMESTAMP()": lambda due: due > 0,
    "time_next < TIMESTAMPADD(HOUR, -5, SYSDATE())": lambda due: due < -18000,
    "time_next < UNIX_TIMESTAMP() - 7200": lambda due: due < -7200,
    "time_next < UNIX_TIMESTAMP(NOW(6))": lambda due: due < 0,
    "time_next / 1000000000 < UNIX_TIMESTAMP()": lambda due: due < 0,
    "time_next < (UNIX_TIMESTAMP() - 7200) * 1000000000": lambda due: due < -7200,
    "time_next > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 1000": (
        lambda due: due > 0
    ),
    "FROM_UNIXTIME(time_next / 1000000000) < NOW() - INTERVAL 2 HOUR": lambda due: due < -7200,
    "CASE WHEN time_next > NOW() THEN 1 ELSE 0 END = 1": lambda due: due > 0,
    "IF(time_next > NOW(), 'later', 'due') = 'later'": lambda due: due > 0,
    "(time_next > LOCALTIME() AND id > 0)": lambda due: due > 0,
    "COALESCE(time_next, NOW()) > NOW()": lambda due: due > 0,
}


@pytest.fixture
def filled(queue: Queue) -> Any:
    """A connection to a table with messages that are due at OFFSETS_S, numbered from 1."""
    connection = queue.create(poller_interval=1000)
    now_ns = time.time_ns()
    for number, offset_s in enumerate(OFFSETS_S, 1):
        due_ns = now_ns + offset_s * SECOND_NS
        run(connection, f"INSERT INTO my_message (id, time_next) VALUES ({number}, {due_ns})")
    return connection


@in_turn
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_means_the_moment_in_every_time_zone(filled: Any, condition: str) -> None:
    is_true = CONDITIONS[condition]
    truth = [number for number, offset_s in enumerate(OFFSETS_S, 1) if is_true(offset_s)]
    assert 0 < len(truth) < len(OFFSETS_S)
    for zone in ZONES:
        run(filled, f"SET time_zone = '{zone}'")
        found = rows(filled, f"SELECT id FROM my_message t WHERE {condition} ORDER BY id")
        assert [number for (number,) in found] == truth, zone


def test_columns_and_groups_are_of_the_moment_and_keep_their_names(filled: Any) -> None:
    cursor = filled.cursor()
    asked = "SELECT id, time_next <= NOW() FROM my_message WHERE id IN (1, 4) ORDER BY id"
    cursor.execute(asked)
    assert [column[0] for column in cursor.description] == ["id", "time_next <= NOW()"]
    assert cursor.fetchall() == ((1, 1), (4, 0))
    assert rows(
        filled,
        "SELECT IF(time_next <= NOW(), 'due', 'later') state, COUNT(*) FROM my_message"
        " GROUP BY state ORDER BY state",
    ) == (("due", 4), ("later", 4))
    assert value(filled, "SELECT SUM(time_next <= NOW()) FROM my_message") == 4
    assert value(filled, "SELECT COUNT(*) FROM my_message HAVING MAX(time_next) > NOW()") == 8


def test_a_clock_of_the_sessions_own_is_refused(filled: Any, cluster: SharedCluster) -> None:
    run(filled, "SET timestamp = 1000000000")
    refuses(filled, "SELECT id FROM my_message WHERE time_next < NOW()", 1235, "@@timestamp")
    assert refused(filled, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")[0] == 1235
    assert len(rows(filled, "SELECT id FROM my_message WHERE time_next < 5")) == 0
    run(filled, "SET timestamp = DEFAULT")
    assert len(rows(filled, "SELECT id FROM my_message WHERE time_next < NOW()")) == 4
    if "MariaDB" in value(filled, "SELECT VERSION()"):
        sql = "SET STATEMENT timestamp = 5 FOR SELECT id FROM my_message WHERE id = 1 AND time_next < NOW()"
        assert refused(filled, sql)[0] == 1235


def test_prepared_statements_mean_the_moment_of_their_execution(cluster, filled, keyspace):
    driver = pytest.importorskip("mysql.connector", reason="no mysql-connector-python here")
    connection = cluster.proxy.connector(keyspace)
    with contextlib.closing(connection):
        cursor = connection.cursor(prepared=True)
        for least in (0, 2):
            asked = "SELECT id FROM my_message WHERE id > %s AND time_next <= NOW() ORDER BY id"
            cursor.execute(asked, (least,))
            assert [row[0] for row in cursor.fetchall()] == [1, 2, 3, 8][least:]
        cursor.execute("DELETE FROM my_message WHERE time_next > NOW() + INTERVAL %s DAY", [30])
        assert cursor.rowcount == 1
        for wrong in ("2026-11-22 15:00:00", 1795220485):
            with pytest.raises(driver.Error, match="which holds nanoseconds since 1970"):
                cursor.execute("UPDATE my_message SET time_acked = %s WHERE id = 1", (wrong,))
        cursor.execute("SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL")
        assert cursor.fetchall() == [(7,)]
