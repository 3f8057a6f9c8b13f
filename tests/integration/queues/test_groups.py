"""A message that comes after a group: sent once, when every message of the group is done."""

from typing import Any

from streamfrom.engine.messaging.table.groups import HELD_NS
from tests.cases import cases
from tests.fixtures.streams import eventually, rows, run, value
from tests.integration.conftest import Queue


# Only news can bring anything within this interval.
NEVER_S = 10_000
STREAM = "STREAM id FROM step"
COLUMNS = "tenant BIGINT NOT NULL DEFAULT 1, batch VARCHAR(20), finishes VARCHAR(20)"


def make(queue: Queue, **settings: Any) -> Any:
    client = queue.connect()
    chosen = {"poller_interval": NEVER_S, "ack_wait": 60, **settings}
    others = "".join(f", {key} = {value}" for key, value in chosen.items())
    # Members and what comes after them are on one shard, so by a column that they share.
    sharding = "SHARD BY (tenant) " if queue.keyspace == "commerce" else ""
    run(
        client,
        f"CREATE QUEUE step ({COLUMNS}) {sharding}"
        f"WITH (group = batch, after = finishes{others})",
    )
    return client


def insert(client: Any, *messages: tuple[int, str | None, str | None]) -> None:
    with client.cursor() as cursor:
        cursor.executemany(
            # All of them parameters, or the driver sends a statement for each message.
            "INSERT INTO step (tenant, id, batch, finishes) VALUES (%s, %s, %s, %s)",
            [(1, *message) for message in messages],
        )


def held(client: Any, *idents: int) -> None:
    sql = f"SELECT id FROM step WHERE time_next = {HELD_NS} AND time_acked IS NULL ORDER BY id"
    eventually(lambda: rows(client, sql) == tuple((ident,) for ident in idents))


def ack(client: Any, *idents: int) -> None:
    listed = ", ".join(map(str, idents))
    update = f"UPDATE step SET time_acked = NOW() WHERE id IN ({listed})"
    assert run(client, update) == len(idents)


def test_two_who_ack_the_last_two_members_at_once_fire_what_comes_after_once(queue):
    client = make(queue)
    stream = queue.stream(STREAM)
    insert(client, (1, "b", None), (2, "b", None), (3, None, "b"))
    assert sorted(stream.ids(2)) == [1, 2]
    held(client, 3)
    assert value(client, "SELECT state FROM step WHERE id = 3") == "to_be_fired"
    workers = [queue.connect(autocommit=False) for _ in range(2)]
    for ident, worker in enumerate(workers, 1):
        # Neither sees the other's ack.
        run(worker, "BEGIN")
        ack(worker, ident)
        seen = rows(worker, "SELECT id FROM step WHERE batch = 'b' AND time_acked IS NULL")
        assert seen == ((3 - ident,),)
    workers[0].commit()
    stream.nothing(0.3)
    workers[1].commit()
    assert stream.ids(1) == [3]
    assert value(client, "SELECT state FROM step WHERE id = 3") == "fired"
    ack(client, 3)
    assert rows(client, "SELECT id FROM step WHERE time_acked IS NULL") == ()


@cases(end=str)
def test_whatever_ends_a_group_fires_what_comes_after(plain: Queue, end: str) -> None:
    client = make(plain)
    stream = plain.stream(STREAM)
    insert(client, (1, "b", None), (2, None, "b"))
    assert stream.ids(1) == [1]
    held(client, 2)
    run(client, end)
    assert stream.ids(1) == [2]


def test_what_is_delayed_as_well_fires_at_the_later_of_both(queue: Queue) -> None:
    client = make(queue)
    stream = queue.stream(STREAM)
    insert(client, (1, "b", None))
    run(
        client,
        "INSERT INTO step (tenant, id, finishes, time_next) VALUES"
        " (1, 2, 'b', NOW() + INTERVAL 2 SECOND), (1, 3, 'b', NOW() + INTERVAL 1 HOUR)",
    )
    assert stream.ids(1) == [1]
    # Its group is not done when its time comes.
    held(client, 2)
    ack(client, 1)
    assert stream.ids(1) == [2]
    # And here its time is not.
    asked = "SELECT id, state FROM step WHERE finishes = 'b' ORDER BY id"
    assert rows(client, asked) == ((2, "fired"), (3, "to_be_fired"))
    run(client, "UPDATE step SET time_next = NOW() WHERE id = 3 AND time_acked IS NULL")
    assert stream.ids(1) == [3]


def test_every_form_of_insert_is_held(plain: Queue) -> None:
    client = make(plain)
    stream = plain.stream(STREAM)
    create = (
        "CREATE TABLE plan (id BIGINT PRIMARY KEY, batch VARCHAR(20), finishes VARCHAR(20))"
    )
    run(client, create)
    run(client, "INSERT INTO plan VALUES (1, 'b', NULL), (2, NULL, 'b')")
    run(client, "INSERT INTO step (id, batch, finishes) SELECT id, batch, finishes FROM plan")
    with plain.proxy.connector("plain") as connection:
        cursor = connection.cursor(prepared=True)
        for message in [(3, "c", None), (4, None, "c")]:
            cursor.execute("INSERT INTO step (id, batch, finishes) VALUES (%s,%s,%s)", message)
        cursor.close()
    run(client, "INSERT INTO step SET id = 5, finishes = 'c'")
    run(client, "REPLACE INTO step (id, finishes) VALUES (6, 'c')")
    assert sorted(stream.ids(2)) == [1, 3]
    held(client, 2, 4, 5, 6)
    ack(client, 1)
    assert stream.ids(1) == [2]
    ack(client, 3)
    assert sorted(stream.ids(3)) == [4, 5, 6]


def test_a_parked_member_is_told_and_holds_on_until_somebody_ends_it(plain: Queue) -> None:
    """Also where there is a table for dead letters: moved there it would look done."""
    client = make(plain, ack_wait=0.3, max_attempts=1, poller_interval=1, dead_letter="grave")
    consent = "COMMENT = 'vt_dead_letters_of=step'"
    run(client, f"CREATE TABLE grave (id BIGINT PRIMARY KEY, {COLUMNS}) {consent}")
    stream = plain.stream(STREAM)
    insert(client, (1, "b", None), (2, None, "b"), (3, None, None))
    assert sorted(stream.ids(2)) == [1, 3]
    eventually(lambda: rows(client, "SELECT id FROM grave") == ((3,),))
    plain.proxy.wait_for_log("message waits for a parked one")
    held(client, 2)
    ack(client, 1)
    assert stream.ids(1) == [2]
