"""Messages by their state on real servers: each once, page by page, and without a walk over the table."""

import pytest

from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from streamfrom.engine.messaging.upkeep.peek import PeekState, can_peek, peek
from tests.engine.messaging.shell.test_message_store import NOW_NS, client, create, insert
from tests.sim.memory_store import loaded


__all__ = ["client"]

pytestmark = pytest.mark.db


def ids(client, table, state, limit):
    """Return the ids of all pages in *state*, and how long each page was."""
    found, pages, place = [], [], None
    while True:
        page = client.run(peek(table, state, place, NOW_NS, limit))
        found += [row[0] for row in page.rows]
        pages.append(len(page.rows))
        place = page.place
        if place is None:
            return found, pages


ROWS = (
    (b"1", 5, 0), (b"2", 5, 0), (b"3", 5, 0), (b"4", 5, None), (b"5", 5, NOW_NS - 9), (b"6", 5, NOW_NS - 5),
    (b"7", 7, 0), (b"8", 7, NOW_NS + 5), (b"9", 7, NOW_NS + 9), (b"10", 9, NOW_NS + 9), (b"11", 9, NOW_NS + 9),
    (b"12", 5, HELD_NS), (b"13", 9, HELD_NS), (b"14", 7, PARKED_NS), (b"15", 7, PARKED_NS), (b"16", 9, PARKED_NS),
)  # fmt: skip


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_every_message_of_a_state_is_on_one_page(client, database, limit):
    table = create(client, database)
    insert(client, *ROWS)
    client.execute(
        b"INSERT INTO msg (id, time_next, time_acked) VALUES (20, NULL, 4), (21, NULL, 5)"
    )
    assert ids(client, table, PeekState.DUE, limit)[0] == [
        b"4",
        b"6",
        b"5",
        b"1",
        b"2",
        b"3",
        b"7",
    ]
    assert ids(client, table, PeekState.WAITING, limit)[0] == [b"9", b"8", b"10", b"11"]
    assert ids(client, table, PeekState.HELD, limit)[0] == [b"12", b"13"]
    assert ids(client, table, PeekState.PARKED, limit)[0] == [b"14", b"15", b"16"]
    acked = client.run(peek(table, PeekState.ACKED, None, NOW_NS, limit))
    assert [row[0] for row in acked.rows] == [b"21", b"20"][:limit]
    assert acked.columns == ("id", "priority", "epoch", "time_next", "time_acked", "message")


def test_texts_and_bytes_as_ids_are_gone_on_behind(client, database):
    table = create(client, database, id_type="varbinary(20)")
    names = [b"a'b", b"c\\", b"\x00\xff", b"z"]
    insert(client, *((b"x'%b'" % name.hex().encode(), 5, PARKED_NS) for name in names))
    assert ids(client, table, PeekState.PARKED, 1)[0] == sorted(names)


def test_an_empty_table_and_one_of_many_priorities(client, database):
    table = create(client, database)
    assert ids(client, table, PeekState.DUE, 20) == ([], [0])
    insert(client, *((b"%d" % number, number, 0) for number in range(100)))
    assert len(ids(client, table, PeekState.DUE, 20)[0]) == 100
    # Nothing is parked: each answer looks at some of the priorities, and says where to go on.
    assert ids(client, table, PeekState.PARKED, 20)[1] == [0, 0, 0, 0]


def test_values_are_shortened_by_the_server(client, database):
    create(client, database)
    insert(client, (b"1", 5, 0))
    client.execute(b"ALTER TABLE msg ADD `a``b'%s\" c` longblob, ADD j json")
    client.execute(b"UPDATE msg SET `a``b'%s\" c` = REPEAT(x'ff', 100000), j = '[1]'")
    (raw,) = client.run(discover(database))
    page = client.run(peek(loaded(raw), PeekState.DUE, None, NOW_NS, 20))
    (row,) = page.rows
    assert page.columns[-2:] == ("a`b'%s\" c", "j")
    assert (row[-2], row[-1]) == (b"\xff" * 201, b"[1]")


def test_no_page_walks_the_table(client, database):
    table = create(client, database)
    assert can_peek(table)
    for first, time_next in (
        (0, b"0"),
        (3000, b"%d + seq" % NOW_NS),
        (6000, b"%d - seq" % NOW_NS),
    ):
        values = b", ".join(
            b"(%d, %b)" % (first + n, time_next.replace(b"seq", b"%d" % (n + 1)))
            for n in range(3000)
        )
        client.execute(b"INSERT INTO msg (id, time_next) VALUES " + values)
    client.execute(
        b"INSERT INTO msg (id, time_next) VALUES (10000, %d), (10001, %d)"
        % (PARKED_NS, HELD_NS)
    )
    values = b", ".join(b"(%d, NULL, %d)" % (20000 + n, n) for n in range(3000))
    client.execute(b"INSERT INTO msg (id, time_next, time_acked) VALUES " + values)
    client.execute(b"ANALYZE TABLE msg")
    for state in PeekState:
        place = None
        for _ in range(3):
            client.execute(b"FLUSH STATUS")
            page = client.run(peek(table, state, place, NOW_NS, 20))
            read = {
                name: int(value)
                for name, value in client.rows(b"SHOW SESSION STATUS LIKE 'Handler_read%'")
            }
            assert sum(read.values()) < 200, (state, place, read)
            place = page.place
            if place is None:
                break
