"""Depths, parked rows and dead letters on real servers: few are exact, and many are not walked."""

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.upkeep.depths import (
    COUNTED_MAX,
    PARKED_COUNTED_MAX,
    Depth,
    depths,
)
from tests.engine.messaging.table.test_store_job_servers import COMMENT, CURRENT, FIRST, create


pytestmark = pytest.mark.db


def reads(client):
    """Return how many rows the session has read along an index."""
    ((_, value),) = client.rows(b"SHOW SESSION STATUS LIKE 'Handler_read_next'")
    return int(value)


def fill(client, first, last, time_next_ns, *, priority=None):
    """Insert rows with ids from *first* on, below *last*; without a priority a table of the first layout."""
    columns = (
        b"time_scheduled, id, time_next" if priority is None else b"id, priority, time_next"
    )
    row = "{i}, {i}, {t}" if priority is None else "{i}, {p}, {t}"
    numbers = range(first, last)
    for start in range(0, len(numbers), 1000):
        rows = ", ".join(
            f"({row.format(i=i, p=priority, t=time_next_ns)})"
            for i in numbers[start : start + 1000]
        )
        client.execute(b"INSERT INTO msg (%b) VALUES %b" % (columns, rows.encode()))


def test_depths_are_dives_and_no_counts(client, database):
    table = create(client, database)
    assert client.run(depths(database, [table])) == {"msg": Depth(0)}
    fill(client, 0, 900, 0, priority=50)
    client.execute(b"UPDATE msg SET time_acked = 5 WHERE id >= 40")
    assert client.run(depths(database, [table])) == {"msg": Depth(40)}
    client.execute(b"UPDATE msg SET time_acked = NULL WHERE id > 300")
    before = reads(client)
    found = client.run(depths(database, [table]))["msg"]
    assert 320 <= found.unacked <= 1280
    assert found.parked == 0
    assert reads(client) - before <= 2 * COUNTED_MAX


@pytest.mark.parametrize("layout", [CURRENT, FIRST])
def test_parked_rows_are_no_depth_and_are_not_walked(client, database, layout):
    table = create(client, database, layout)
    low, high = (None, None) if layout == FIRST else (7, 50)
    fill(client, 0, 60, PARKED_NS, priority=high)
    fill(client, 100, 130, 0, priority=low)
    assert client.run(depths(database, [table])) == {"msg": Depth(30, 60)}
    fill(client, 1000, 1500, PARKED_NS, priority=low)
    assert client.run(depths(database, [table])) == {"msg": Depth(30, 560)}
    many = 3 * PARKED_COUNTED_MAX
    fill(client, 10_000, 10_000 + many, PARKED_NS, priority=high)
    client.rows(b"ANALYZE TABLE msg")
    before = reads(client)
    found = client.run(depths(database, [table]))["msg"]
    assert found.unacked == 30
    assert PARKED_COUNTED_MAX <= found.parked <= 3 * many
    if layout == CURRENT:
        assert reads(client) - before <= 1.5 * PARKED_COUNTED_MAX
    client.execute(b"UPDATE msg SET time_next = 0 WHERE time_next = %d" % PARKED_NS)
    found = client.run(depths(database, [table]))["msg"]
    assert found.parked == 0
    assert PARKED_COUNTED_MAX <= found.unacked <= 3 * many


def test_rows_without_a_priority_are_counted(client, database):
    table = create(client, database, CURRENT.replace("NOT NULL DEFAULT 50", "NULL"))
    fill(client, 0, 200, PARKED_NS, priority="NULL")
    fill(client, 1000, 1200, PARKED_NS, priority=3)
    fill(client, 2000, 2007, 0, priority="NULL")
    assert client.run(depths(database, [table])) == {"msg": Depth(7, 400)}


def test_dead_letters_are_counted_if_there_is_such_a_table(client, database):
    comment = f"{COMMENT},vt_max_attempts=1,vt_dead_letter=dead"
    table = create(client, database, comment=comment)
    assert client.run(depths(database, [table])) == {"msg": Depth(0)}
    client.execute(b"CREATE TABLE dead (id BIGINT PRIMARY KEY)")
    client.execute(b"INSERT INTO dead VALUES (1), (2), (3)")
    assert client.run(depths(database, [table])) == {"msg": Depth(0)}, "it has not consented"
    client.execute(b"ALTER TABLE dead COMMENT = 'vt_dead_letters_of=other msg'")
    assert client.run(depths(database, [table])) == {"msg": Depth(0, 0, 3)}
    client.execute(b"DROP TABLE dead")
    taking = f"{COMMENT},vt_dead_letters_of=msg"
    queue = CURRENT.format(id_type="bigint", comment=taking).replace(" msg ", " dead ")
    client.execute(queue.encode())
    client.execute(b"INSERT INTO dead (id, time_acked) VALUES (1, NULL), (2, 5)")
    assert client.run(depths(database, [table])) == {"msg": Depth(0, 0, 1)}
