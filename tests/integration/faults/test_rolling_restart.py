"""Members that are restarted one after the other: what clients hold is acked, or sent again when it is said to be."""

import time

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.load import Audit
from tests.fixtures.streams import eventually, message_table, run
from tests.integration.conftest import DISPATCHED


pytestmark = [pytest.mark.db, pytest.mark.one_server]

RELEASE_S = 1
# Neither a poll nor the end of a lease brings anything within a test.
SLOW = message_table(poller_interval=600, ack_wait=600, more=f",vt_release_after={RELEASE_S}")


def test_what_clients_of_a_stopped_dispatcher_had_not_acked_comes_soon(
    server, database, fleet, consume
):
    execute(server, SLOW, database=database)
    first, second = fleet()
    client = second.connect(database=database, autocommit=True)
    left = consume(first, database=database)
    run(client, "INSERT INTO my_message (id) VALUES (1), (2), (3)")
    assert sorted(left.ids(3)) == [1, 2, 3]
    run(client, "UPDATE my_message SET time_acked = NOW() WHERE id = 2")
    stopped_s = time.monotonic()
    assert first.stop() == 0
    assert left.error()[0] == 1053
    assert sorted(consume(second, database=database).ids(2)) == [1, 3]
    assert time.monotonic() - stopped_s > RELEASE_S, "its client may ack for so long"


def test_a_stream_holds_under_the_next_dispatcher_what_the_one_before_sent(
    server, database, fleet, consume
):
    execute(server, SLOW, database=database)
    first, *others = fleet(3)
    client = others[0].connect(database=database, autocommit=True)
    streams = [
        consume(other, "STREAM /*vt+ PREFETCH=2 */ * FROM my_message", database=database)
        for other in others
    ]
    run(client, "INSERT INTO my_message (id) VALUES (1), (2), (3), (4)")
    held = [sorted(stream.ids(2)) for stream in streams]
    assert sorted(held[0] + held[1]) == [1, 2, 3, 4]
    assert first.stop() == 0
    eventually(lambda: any(DISPATCHED in other.log() for other in others), "a successor")
    run(client, "INSERT INTO my_message (id) VALUES (5), (6)")
    for stream in streams:
        assert stream.poll(1) is None, "its prefetch is full"
    run(client, f"UPDATE my_message SET time_acked = NOW() WHERE id = {held[0][0]}")
    assert streams[0].ids(1)[0] in (5, 6)
    # One of these is a client of the dispatcher, and one of another member.
    for number, stream in enumerate(streams):
        stream.close()
        taker = consume(
            others[number - 1],
            "STREAM /*vt+ PREFETCH=0 */ id FROM my_message",
            database=database,
        )
        taker.comes(*held[number][1:])
        taker.close()


@pytest.mark.slow
def test_a_rolling_restart_under_load_leaves_no_message_to_its_lease(
    server, database, start_proxy, fleet
):
    execute(server, SLOW, database=database)
    members = fleet(3)
    audit = Audit(database)
    try:
        for member in members:
            audit.produce(member.port)
            audit.receive(member.port)
        for number, member in enumerate(members):
            audit.sends_more(100)
            assert member.stop() == 0
            text = member.config.read_text().replace(':0"', f':{member.port}"')
            members[number] = start_proxy(text)
        audit.sends_more(100)
        audit.check(members[0].connect(database=database, autocommit=True))
    finally:
        audit.close()
