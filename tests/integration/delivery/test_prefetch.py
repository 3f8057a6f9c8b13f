"""What a stream holds, and what limits the sending of a table on all its shards together."""

import time

import pytest

from tests.fixtures.streams import Consumer, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


QUIET_S = 0.3
STREAM_3 = "STREAM /*vt+ PREFETCH=3 */ id FROM my_message"


def taken(stream: Consumer, count: int) -> list[int]:
    """Return the ids of the next *count* rows, behind which nothing comes."""
    ids = sorted(stream.ids(count))
    stream.nothing(QUIET_S)
    return ids


def stream_of_a_program(queue: Queue, hint: str = "") -> Consumer:
    """Return a stream whose client is none that a person watches."""
    sql = f"STREAM {hint} id FROM my_message"
    return queue.consume(queue.proxy, sql, database=queue.keyspace, program_name="worker")


def test_a_stream_holds_its_prefetch_and_every_commit_gives_room_back(queue: Queue) -> None:
    other = queue.create()
    insert_all(other, range(1, 41))
    stream = queue.stream(STREAM_3)
    held = taken(stream, 3)

    def gives_back(sql: str, count: int) -> None:
        gone = held[:count]
        run(other, sql.format(ids=", ".join(map(str, gone))))
        held[:] = held[count:] + taken(stream, count)

    gives_back("UPDATE my_message SET time_acked = NOW() WHERE id IN ({ids})", 2)
    gives_back("DELETE FROM my_message WHERE id = {ids}", 1)
    gives_back("UPDATE my_message SET time_acked = NOW() WHERE id IN ({ids}) AND epoch < 99", 2)
    gives_back("DELETE FROM my_message WHERE id + 0 IN ({ids})", 1)

    # A rollback gives nothing.
    other.begin()
    run(other, f"UPDATE my_message SET time_acked = NOW() WHERE id = {held[0]}")
    stream.nothing(QUIET_S)
    other.rollback()
    stream.nothing(QUIET_S)


@pytest.mark.parametrize("hint", ["PREFETCH=3", "PREFETCH=0"])
def test_what_a_client_held_comes_again_soon_after_its_connection_has_ended(queue, hint):
    other = queue.create(more=",vt_release_after=1")
    insert_all(other, range(1, 4))
    sql = f"STREAM /*vt+ {hint} */ id FROM my_message"
    first = queue.stream(sql)
    held = first.ids(3)
    second = queue.stream()
    second.nothing(QUIET_S)
    run(other, f"UPDATE my_message SET time_acked = NOW() WHERE id = {held[0]}")
    first.close()
    second.nothing(QUIET_S)
    run(other, f"UPDATE my_message SET time_acked = NOW() WHERE id = {held[1]}")
    assert second.ids(1) == [held[2]]


def test_the_end_of_a_stream_alone_releases_nothing(queue: Queue) -> None:
    other = queue.create(more=",vt_release_after=0.2")
    insert_all(other, range(1, 3))
    first = queue.stream()
    held = first.ids(2)
    run(other, f"KILL QUERY {first.id}")
    assert first.error()[0] == 1317
    second = queue.stream()
    second.nothing(1)
    first.close()
    assert sorted(second.ids(2)) == sorted(held)


def test_a_table_may_hold_what_was_sent_until_its_wait_ends(queue: Queue) -> None:
    other = queue.create(ack_wait=3, more=",vt_release_after=never,vt_lease=written")
    insert_all(other, [1])
    first = queue.stream()
    first.take(1)
    (until_ns,) = rows(other, "SELECT time_next FROM my_message")[0]
    first.close()
    second = queue.stream()
    second.take(1)
    assert time.time_ns() >= until_ns


def test_by_default_it_begins_with_two_and_for_a_person_with_a_hundred(queue: Queue) -> None:
    other = queue.create(prefetch="auto")
    insert_all(other, range(1, 151))
    worker = stream_of_a_program(queue)
    held = taken(worker, 2)
    taken(queue.stream(), 100)
    shown = "SELECT prefetch FROM streamfrom.{} WHERE keyspace = '{}' AND queue = 'my_message'"
    assert rows(other, shown.format("queues", queue.keyspace)) == ((None,),)
    streams = shown.format("streams", queue.keyspace)
    assert sorted(rows(other, streams)) == [(2,), (100,)]
    # What was acked in the last half second, at least.
    run(other, f"UPDATE my_message SET time_acked = NOW() WHERE id IN {tuple(held)}")
    taken(worker, 2)
    # A hint asks for such a window where the table has a number.
    run(other, "ALTER QUEUE my_message SET (prefetch = 5)")
    taken(stream_of_a_program(queue, "/*vt+ PREFETCH=auto */"), 2)


def test_no_more_are_in_flight_than_allowed_and_an_ack_gives_room(queue: Queue) -> None:
    other = queue.create()
    run(other, "ALTER QUEUE my_message SET (ack_wait = 600, max_in_flight = 4)")
    stream = queue.stream("STREAM id FROM my_message")
    insert_all(other, list(range(1, 41)))
    first = stream.take(4)
    assert stream.poll(QUIET_S) is None
    assert rows(other, "STREAM id FROM my_message LIMIT 5 WAIT 0") == ()
    for (ident,) in first:
        run(other, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")
        stream.take(1)
    assert stream.poll(QUIET_S) is None
    run(other, "ALTER QUEUE my_message SET (max_in_flight = DEFAULT)")
    stream.take(32)
    assert sorted(stream.rows) == [(ident,) for ident in range(1, 41)]


def test_no_more_are_sent_a_second_than_the_rate_and_it_changes_live(queue: Queue) -> None:
    other = queue.create()
    run(other, "ALTER QUEUE my_message SET (ack_wait = 600, max_rate = 0.001)")
    stream = queue.stream("STREAM id FROM my_message")
    insert_all(other, list(range(1, 81)))
    assert stream.poll(QUIET_S) is None
    assert rows(other, "STREAM id FROM my_message LIMIT 5 WAIT 0") == ()
    began_s = time.monotonic()
    run(other, "ALTER QUEUE my_message SET (max_rate = 20)")
    stream.take(30)
    # However slow the machine is, it is no faster: at the most two are there from the start, one for each shard.
    assert time.monotonic() - began_s >= (30 - 2) / (20 * 1.1)
    run(other, "ALTER QUEUE my_message SET (max_rate = DEFAULT)")
    stream.take(50)
    assert sorted(stream.rows) == [(ident,) for ident in range(1, 81)]
