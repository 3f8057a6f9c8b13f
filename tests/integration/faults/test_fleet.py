"""Two proxies before one server: one dispatches, and the other follows it."""

import os
import signal

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import (
    RunningProxy,
)
from tests.fixtures.streams import message_table, run
from tests.integration.conftest import DISPATCHED


pytestmark = [pytest.mark.db, pytest.mark.one_server]

TEXTS = "message LONGTEXT"


def change(member: RunningProxy, database: str, sql: str) -> None:
    run(member.connect(database=database, autocommit=True), sql)


def test_a_paused_dispatcher_delivers_nothing_once_it_goes_on(server, database, fleet, consume):
    execute(server, message_table(poller_interval=1), database=database)
    first, second = fleet()
    at_second = consume(second, database=database)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second.wait_for_log(DISPATCHED)
        producer = second.connect(database=database, autocommit=True)
        for ident in range(1, 21):
            run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
        assert sorted(at_second.ids(20)) == list(range(1, 21))
    finally:
        os.kill(first.pid, signal.SIGCONT)
    first.wait_for_log("is withheld")
    at_second.close()
    at_first = consume(first, database=database)
    run(producer, "INSERT INTO my_message (id) VALUES (21)")
    assert 21 in at_first.ids(21), "what the closed stream held comes as well"


def test_streams_and_commits_at_any_member_are_those_of_one_queue(
    server, database, fleet, consume
):
    """A poll comes every 10,000 s: whatever comes sooner was told from member to member."""
    execute(server, message_table(poller_interval=10_000, columns=TEXTS), database=database)
    first, second, third = fleet(3)
    stream = consume(second, "STREAM /*vt+ PREFETCH=1 */ * FROM my_message", database=database)
    producers = [p.connect(database=database, autocommit=True) for p in (first, second, third)]
    for ident, producer in enumerate(producers * 2, 1):
        run(
            producer,
            f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', {ident}))",
        )
    came = []
    for member in [third, first, second] * 2:
        (ident,) = stream.ids(1)
        assert stream.poll(0.05) is None, "its prefetch is full"
        came.append(ident)
        change(
            member,
            database,
            f"UPDATE my_message SET time_acked = 1800000000000000005 WHERE id = {ident}",
        )
    assert sorted(came) == [1, 2, 3, 4, 5, 6]


def test_a_backlog_reaches_a_fast_stream_of_another_member_whole_beside_a_stalled_one(
    server, database, fleet, consume
):
    """What the stalled one's socket never took comes at once when it leaves, what it took soon after."""
    table = message_table(
        poller_interval=10_000, ack_wait=600, columns=TEXTS, more=",vt_release_after=1"
    )
    execute(server, table, database=database)
    values = ", ".join(f"({ident}, REPEAT('x', 20000))" for ident in range(1, 501))
    execute(server, f"INSERT INTO my_message (id, message) VALUES {values}", database=database)
    _, second = fleet()
    sql = "STREAM /*vt+ PREFETCH=0 */ * FROM my_message"
    stalled, fast = (consume(second, sql, database=database) for _ in range(2))
    came = set(fast.ids(200))
    stalled.close()
    while len(came) < 500:
        came |= set(fast.ids(1))
    assert came == set(range(1, 501))


def test_a_member_of_another_fleet_sends_nothing_says_why_and_takes_over_when_the_first_is_gone(
    server, database, fleet, start_proxy, consume
):
    execute(server, message_table(poller_interval=600), database=database)
    (shop,) = fleet(1)
    stock = start_proxy(shop.config.read_text().replace('"shop"', '"stock"'))
    stock.wait_for_log("fleet 'shop'")
    at_shop = consume(shop, database=database)
    at_stock = consume(stock, database=database)
    producer = shop.connect(database=database, autocommit=True)
    run(producer, "INSERT INTO my_message (id) VALUES (1)")
    assert at_shop.ids(1) == [1]
    assert at_stock.poll(0.5) is None
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    # Neither lists nor ends the other's clients.
    with stock.connect().cursor() as cursor:
        cursor.execute("SHOW PROCESSLIST")
        assert at_shop.id not in {row[0] for row in cursor.fetchall()}
    assert shop.stop() == 0
    stock.wait_for_log(DISPATCHED)
    change(stock, database, "INSERT INTO my_message (id) VALUES (2)")
    assert at_stock.ids(1) == [2]
