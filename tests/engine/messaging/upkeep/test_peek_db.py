"""Messages by their state on real servers: each once, page by page, and without a walk over the table."""

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.upkeep.peek import (
    Match,
    PeekState,
    can_peek,
    peek,
    peek_by_id,
    rows_of,
    shown_columns,
    ways,
)
from tests.engine.messaging.table.test_store_job_servers import NOW_NS, create, insert
from tests.sim.memory_store import loaded


pytestmark = pytest.mark.db


def ids(client, table, state, limit):
    """Return the ids of all pages in *state*, and how long each page was."""
    found, pages, place = [], [], None
    while True:
        page = client.run(peek(table, state, place, NOW_NS, limit))
        found += page.ids
        pages.append(len(page.ids))
        place = page.place
        if place is None:
            return found, pages


def test_texts_and_bytes_as_ids_are_gone_on_behind(client, database):
    table = create(client, database, id_type="varbinary(20)")
    names = [b"a'b", b"c\\", b"\x00\xff", b"z"]
    insert(client, *((b"x'%b'" % name.hex().encode(), 5, PARKED_NS) for name in names))
    found = ids(client, table, PeekState.PARKED, 1)[0]
    assert found == [table.id_literal(name) for name in sorted(names)]
    rows = client.run(rows_of(table, found, (), 9))
    assert [row.id for row in rows] == sorted(names)


def test_values_are_shortened_by_the_server(client, database):
    create(client, database)
    insert(client, (b"1", 5, 0))
    client.execute(b"ALTER TABLE msg ADD `a``b'%s\" c` longblob, ADD j json")
    client.execute(b"UPDATE msg SET `a``b'%s\" c` = REPEAT(x'ff', 100000), j = '[1]'")
    (raw,) = client.run(discover(database))
    columns = shown_columns(loaded(raw))
    (row,) = client.run(rows_of(loaded(raw), [b"1"], columns, 201))
    assert columns[-2:] == ("a`b'%s\" c", "j")
    assert row.values[-2:] == (b"\xff" * 201, b"[1]")


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
            client.run(rows_of(table, page.ids, ("message",), 201))
            read = {
                name: int(value)
                for name, value in client.rows(b"SHOW SESSION STATUS LIKE 'Handler_read%'")
            }
            assert sum(read.values()) < 200, (state, place, read)
            place = page.place
            if place is None:
                break


def test_a_value_is_found_by_its_index_and_rows_are_as_long_as_the_server_says(
    client, database
):
    create(client, database)
    client.execute(
        b"ALTER TABLE msg ADD tenant INT, ADD other INT, ADD body MEDIUMTEXT, ADD INDEX by_tenant (tenant),"
        b" ADD INDEX with_more (other, tenant)"
    )
    rows = b", ".join(b"(%d, 0, %d, %d, 'x')" % (n, n % 3, n % 3) for n in range(3000))
    client.execute(b"INSERT INTO msg (id, time_next, tenant, other, body) VALUES " + rows)
    client.execute(b"ANALYZE TABLE msg")
    (raw,) = client.run(discover(database))
    table, match = loaded(raw), Match("tenant", b"1")
    found = client.run(ways(table, match))
    assert found.by_index == "by_tenant"
    assert 0 < found.row_bytes < 1000
    assert client.run(ways(table, Match("id", b"1"))).by_index == "PRIMARY"
    # Rows of a value that come in another order than that of their ids would have to be sorted.
    for none in (Match("other", b"1"), Match("tenant", b"1", contains=True), None):
        assert client.run(ways(table, none)).by_index is None
    place, every = None, list[bytes]()
    client.execute(b"FLUSH STATUS")
    for _ in range(3):
        page = client.run(peek_by_id(table, match.condition(table), "by_tenant", place, 20))
        place, every = page.place, [*every, *page.ids]
    status = client.rows(b"SHOW SESSION STATUS LIKE 'Handler_read%'")
    assert sum(int(value) for _, value in status) < 200
    assert every == [b"%d" % number for number in range(1, 181, 3)]
