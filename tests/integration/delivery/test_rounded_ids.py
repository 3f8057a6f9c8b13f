"""Acks by ids above 2^53 that a driver has made doubles of are refused, with the settings that end it."""

import mysql.connector
import pytest

from tests.fixtures.streams import refused, refuses, rows, run
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

# Rounded they are others, and none of them is what another one is. Of the first JavaScript makes a number with fewer digits than
# the double has.
IDS = (72057594037927943, *(2**60 + 1000 * n + 77 for n in range(1, 8)))
ACK = "UPDATE my_message SET time_acked = NOW() WHERE id IN ({})"


def rounded(ident: int) -> int:
    return 72057594037927940 if ident == IDS[0] else int(float(ident))


def test_a_rounded_id_of_a_message_in_flight_is_refused(queue: Queue) -> None:
    client, stream = queue.create(), queue.stream("STREAM id FROM my_message")
    values = ", ".join(f"({ident}, 1)" for ident in IDS)
    run(client, f"INSERT INTO my_message (id, tenant_id) VALUES {values}")
    assert sorted(row[0] for row in stream.take(len(IDS))) == list(IDS)
    for ident in IDS:
        refuses(
            client,
            ACK.format(rounded(ident)),
            1690,
            f"no message has the id {rounded(ident)}, and {ident} is in flight",
            "supportBigNumbers",
        )
    assert refused(client, ACK.format(", ".join(map(str, map(rounded, IDS)))))[0] == 1690
    assert rows(client, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL") == ((8,),)
    # Right ids, and a second ack by one, are no mistake.
    assert run(client, ACK.format(IDS[0])) == 1
    assert run(client, ACK.format(IDS[0])) == 0
    assert run(client, ACK.format(rounded(IDS[0]))) == 0, "it is no longer in flight"


def test_what_is_bound_is_refused_as_well(queue: Queue) -> None:
    client, stream = queue.create(), queue.stream("STREAM id FROM my_message")
    run(client, f"INSERT INTO my_message (id, tenant_id) VALUES ({IDS[0]}, 1)")
    stream.take(1)
    connection = queue.cluster.proxy.connector(queue.keyspace)
    cursor = connection.cursor(prepared=True)
    ack = "UPDATE my_message SET time_acked = NOW() WHERE id = %s"
    with pytest.raises(mysql.connector.Error, match="the driver has rounded it"):
        cursor.execute(ack, (rounded(IDS[0]),))
    cursor.execute(ack, (IDS[0],))
    assert cursor.rowcount == 1
    connection.close()
