"""Groups of a fleet of two, whose dispatcher is killed at any moment."""

import os
import signal

import pytest

from streamfrom.engine.messaging.table.groups import HELD_NS
from tests.fixtures.database_servers import execute
from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import DISPATCHED


pytestmark = [pytest.mark.db, pytest.mark.one_server]

HELD = f"SELECT id FROM step WHERE time_next = {HELD_NS} AND time_acked IS NULL"
# Only news, and the walk of a new dispatcher, can bring anything within this interval.
QUEUE = (
    "CREATE QUEUE step (batch VARCHAR(20), finishes VARCHAR(20))"
    " WITH (group = batch, after = finishes, poller_interval = 10000, ack_wait = 60)"
)


def test_a_group_fires_once_whoever_acks_and_whichever_dispatcher_dies(
    server, database, start_proxy, consume, fleet
):
    first, second = fleet()
    client = second.connect(database=database, autocommit=True)
    run(client, QUEUE)
    stream = consume(second, "STREAM id FROM step", database=database)

    # The last ack passes through a member that does not dispatch.
    run(client, "INSERT INTO step (id, batch) VALUES (1, 'a'), (2, 'a')")
    run(client, "INSERT INTO step (id, finishes) VALUES (3, 'a')")
    assert sorted(stream.ids(2)) == [1, 2]
    eventually(lambda: rows(client, HELD) == ((3,),))
    for ident, member in enumerate([first, second], 1):
        other = member.connect(database=database, autocommit=True)
        run(other, f"UPDATE step SET time_acked = NOW() WHERE id = {ident}")
    assert stream.ids(1) == [3]
    run(client, "UPDATE step SET time_acked = NOW() WHERE id = 3")

    # The dispatcher dies while a message is held, and the last ack comes while there is none, past all of them.
    run(client, "INSERT INTO step (id, batch) VALUES (4, 'b')")
    run(client, "INSERT INTO step (id, finishes) VALUES (5, 'b')")
    assert stream.ids(1) == [4]
    eventually(lambda: rows(client, HELD) == ((5,),))
    os.kill(first.pid, signal.SIGSTOP)  # so that no other dispatches before the ack is there
    execute(
        server,
        "UPDATE step SET time_acked = 1800000000000000005, time_next = NULL WHERE id = 4",
        database=database,
    )
    first.kill()
    second.wait_for_log(DISPATCHED)
    stream.comes(5)

    # And the other one while it fires: killed with the ack on its way, it may have fired or not.
    stream.close()
    third = start_proxy(second.config.read_text())
    stream = consume(third, "STREAM id FROM step", database=database)
    client = third.connect(database=database, autocommit=True)
    run(client, "UPDATE step SET time_acked = NOW() WHERE id = 5")
    members = [f"({ident}, 'c')" for ident in range(10, 15)]
    run(client, f"INSERT INTO step (id, batch) VALUES {', '.join(members)}")
    run(client, "INSERT INTO step (id, finishes) VALUES (15, 'c'), (16, 'c')")
    stream.comes(*range(10, 15))
    eventually(lambda: set(rows(client, HELD)) == {(15,), (16,)})
    run(client, "UPDATE step SET time_acked = NOW() WHERE batch = 'c'")
    second.kill()
    stream.comes(15, 16)
    run(client, "UPDATE step SET time_acked = NOW() WHERE id IN (15, 16)")
    # What a message counts of its sends says that none was fired twice.
    sent = "SELECT id, epoch FROM step WHERE finishes IS NOT NULL ORDER BY id"
    assert [ident for ident, _ in rows(client, sent)] == [3, 5, 15, 16]
    assert rows(client, "SELECT id FROM step WHERE time_acked IS NULL") == ()
