"""One row that the server refuses to write, in each batch that the proxy writes on its own: all others go on as if it were not there.

Of each poison row 1 is the bad one. The neighbours are sent again and again, acknowledged and purged; the row is listed in
`streamfrom.set_aside`; and once what refuses it is gone, it goes on, too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.program import Family
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import StartProxy, keyspace_toml
from tests.fixtures.streams import (
    Consume,
    Consumer,
    eventually,
    message_table,
    rows,
    run,
    value,
)
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

QUICK = ",vt_min_backoff=0.2,vt_max_backoff=0.2"
WRITTEN = ",vt_lease=written"
SET_ASIDE = "SELECT id, tried FROM streamfrom.set_aside WHERE keyspace = 'plain'"
COUNT = (
    "SELECT set_aside FROM streamfrom.queues WHERE keyspace = 'plain' AND queue = 'my_message'"
)
ACK = "UPDATE my_message SET time_acked = NOW() WHERE id = {}"
BAD, OTHERS = 1, (2, 3, 4)


@dataclass(frozen=True)
class Poison:
    """What makes row 1 impossible to write. make: run before the queue is used; cure: run to end it."""

    make: Sequence[str] = ()
    cure: Sequence[str] = ()
    insert: str = "INSERT INTO my_message (id, message) VALUES (1, '1')"
    columns: str = "tenant_id BIGINT, message JSON"
    ident: str = "id BIGINT NOT NULL"
    on: tuple[Family, ...] = tuple(Family)


def refused_by_trigger(when: str, event: str = "UPDATE") -> Poison:
    """Return a trigger that refuses row 1 where *when* is true."""
    return Poison(
        make=(
            f"CREATE TRIGGER refuses BEFORE {event} ON my_message FOR EACH ROW BEGIN IF OLD.id = 1"
            f" AND {when} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not row 1'; END IF; END",
        ),
        cure=("DROP TRIGGER refuses",),
    )


CLAIM_POISONS = {
    "overflow": Poison(
        make=("ALTER TABLE my_message MODIFY epoch TINYINT NOT NULL DEFAULT 0",),
        insert="INSERT INTO my_message (id, epoch) VALUES (1, 127)",
        cure=("ALTER TABLE my_message MODIFY epoch BIGINT NOT NULL DEFAULT 0",),
    ),
    "check": Poison(
        make=("ALTER TABLE my_message ADD CONSTRAINT refuses CHECK (id <> 1 OR epoch < 1)",),
        cure=("ALTER TABLE my_message DROP CONSTRAINT refuses",),
    ),
    "trigger": refused_by_trigger("NEW.epoch > OLD.epoch"),
    "foreign key": Poison(
        # Each write of row 1 points to a parent that is not there.
        make=(
            "CREATE TABLE other_message (e BIGINT PRIMARY KEY)",
            "INSERT INTO other_message VALUES (0)",
            "ALTER TABLE my_message ADD parent BIGINT NULL,"
            " ADD CONSTRAINT refuses FOREIGN KEY (parent) REFERENCES other_message (e)",
            "CREATE TRIGGER points BEFORE UPDATE ON my_message FOR EACH ROW"
            " SET NEW.parent = IF(OLD.id = 1, NEW.epoch + 99, NULL)",
        ),
        cure=("DROP TRIGGER points", "ALTER TABLE my_message DROP FOREIGN KEY refuses"),
    ),
    "json": Poison(
        insert="INSERT INTO my_message (id, message) VALUES (1, 'no JSON')",
        cure=("UPDATE my_message SET message = '1' WHERE id = 1",),
        on=(Family.MARIADB,),
    ),
}


@contextmanager
def poisoned(queue: Queue, poison: Poison, **options: Any) -> Iterator[Any]:
    """Create the queue with its bad row; return a client."""
    client = queue.create(
        poller_interval=1,
        columns=poison.columns,
        ident=poison.ident,
        **{"more": QUICK + WRITTEN} | options,
    )
    for sql in poison.make:
        run(client, sql)
    if "no JSON" in poison.insert:
        queue.cluster.direct(f"SET STATEMENT check_constraint_checks = 0 FOR {poison.insert}")
    else:
        run(client, poison.insert)
    run(client, "INSERT INTO my_message (id, message) VALUES (2, '2'), (3, '3'), (4, '4')")
    yield client


def sent_twice(stream: Consumer, idents: Sequence[int]) -> None:
    """See that each of *idents* comes, and comes again."""
    counts = dict.fromkeys(idents, 0)

    def enough() -> bool:
        row = stream.poll(0.1)
        if row is not None:
            counts[row[0]] = counts.get(row[0], 0) + 1
        return all(counts[ident] >= 2 for ident in idents)

    eventually(enough, f"each is sent twice: {counts}")


def is_listed(client: Any, *tried: str) -> None:
    eventually(
        lambda: rows(client, SET_ASIDE) in [((f"{BAD}", each),) for each in tried], "listed"
    )
    assert rows(client, COUNT) == ((1,),)


def is_over(client: Any) -> None:
    eventually(lambda: rows(client, SET_ASIDE) == (), "it is not set aside any more")


def acknowledge_early(client: Any, ident: int) -> None:
    """Have an ack answered before it is written.

    A write of which the proxy does not know all effects makes it ask the rows first; until then an ack goes to the server.
    """

    def is_answered() -> bool:
        try:
            return run(client, ACK.format(ident)) == 1
        except pymysql.MySQLError as error:
            assert error.args == (1644, f"not row {BAD}")  # noqa: PT017 - it is tried again
            return False

    eventually(is_answered, "an early ack")


def cure(client: Any, poison: Poison) -> None:
    for sql in poison.cure:
        run(client, sql)


@pytest.mark.parametrize("lease", [WRITTEN, ",vt_lease_delay=0.1"], ids=["written", "lazy"])
@pytest.mark.parametrize("name", CLAIM_POISONS)
def test_claims_and_leases_leave_a_bad_row_out(
    plain: Queue, family: Family, name: str, lease: str
) -> None:
    poison = CLAIM_POISONS[name]
    if family not in poison.on:
        pytest.skip("this server has no such row")
    with poisoned(plain, poison, ack_wait=0.2, more=QUICK + lease) as client:
        stream = plain.stream("STREAM id FROM my_message")
        sent_twice(stream, OTHERS)
        is_listed(client, "claim", "lease")
        for ident in OTHERS:
            assert run(client, ACK.format(ident)) in (0, 1)
        cure(client, poison)
        sent_twice(stream, [BAD])
        is_over(client)
        assert run(client, ACK.format(BAD)) == 1


def test_early_acks_are_written_but_for_a_bad_row(plain: Queue) -> None:
    poison = refused_by_trigger("NEW.time_acked IS NOT NULL")
    with poisoned(plain, poison, ack_wait=60, more=",vt_ack=early") as client:
        stream = plain.stream("STREAM id FROM my_message")
        assert sorted(stream.ids(4)) == [1, 2, 3, 4]
        for ident in (1, 2, 3, 4):
            acknowledge_early(client, ident)
        unacked = "SELECT id FROM my_message WHERE time_acked IS NULL"
        eventually(lambda: rows(client, unacked) == ((BAD,),), "the others are written")
        is_listed(client, "ack")
        cure(client, poison)
        eventually(lambda: rows(client, unacked) == (), "and it as well")
        is_over(client)


def test_acks_of_many_clients_are_written_but_for_a_bad_row(plain: Queue) -> None:
    poison = refused_by_trigger("NEW.time_acked IS NOT NULL")
    with poisoned(plain, poison, ack_wait=60) as client:
        idents = range(10, 40)
        values = ", ".join(f"({ident}, '1')" for ident in idents)
        run(client, f"INSERT INTO my_message (id, message) VALUES {values}")
        answers: dict[int, Any] = {}

        def ack(ident: int, connection: Any) -> None:
            try:
                answers[ident] = run(connection, ACK.format(ident))
            except Exception as error:
                answers[ident] = error.args

        threads = [
            threading.Thread(target=ack, args=(ident, plain.connect()))
            for ident in (BAD, *idents)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert answers.pop(BAD) == (1644, "not row 1")
        assert answers == dict.fromkeys(idents, 1)


PURGES = {
    "foreign key": Poison(
        make=(
            "CREATE TABLE other_message (id BIGINT PRIMARY KEY,"
            " FOREIGN KEY (id) REFERENCES my_message (id))",
        ),
        cure=("DROP TABLE other_message",),
    ),
    "trigger": refused_by_trigger("TRUE", "DELETE"),
}


@pytest.mark.parametrize("name", PURGES)
def test_the_purge_deletes_all_but_a_bad_row(plain: Queue, name: str) -> None:
    poison = PURGES[name]
    with poisoned(plain, poison, purge_after=0.1) as client:
        if name == "foreign key":
            run(client, "INSERT INTO other_message VALUES (1)")
        run(client, "UPDATE my_message SET time_acked = NOW() WHERE id > 0")
        left = "SELECT id FROM my_message"
        eventually(lambda: rows(client, left) == ((BAD,),), "the others are purged")
        is_listed(client, "purge")
        run(client, "INSERT INTO my_message (id, message) VALUES (9, '9')")
        run(client, ACK.format(9))
        eventually(lambda: rows(client, left) == ((BAD,),), "and so are those that follow")
        cure(client, poison)
        eventually(lambda: rows(client, left) == (), "and it as well")
        is_over(client)


def test_what_a_stream_leaves_behind_is_returned_but_for_a_bad_row(plain: Queue) -> None:
    poison = refused_by_trigger("NEW.time_next < OLD.time_next")
    more = WRITTEN + ",vt_release_after=0.1"
    with poisoned(plain, poison, ack_wait=60, more=more) as client:
        stream = plain.stream("STREAM id FROM my_message")
        assert sorted(stream.ids(4)) == [1, 2, 3, 4]
        stream.close()
        other = plain.stream("STREAM id FROM my_message")
        assert sorted(other.ids(3)) == [2, 3, 4]
        is_listed(client, "return")


@pytest.mark.parametrize("dead_letter", [False, True])
def test_messages_are_given_up_but_for_a_bad_row(plain: Queue, *, dead_letter: bool) -> None:
    more = (
        QUICK + WRITTEN + ",vt_max_attempts=1" + ",vt_dead_letter=other_message" * dead_letter
    )
    poison = refused_by_trigger("NEW.time_next > 8000000000000000000")
    if dead_letter:
        poison = refused_by_trigger("TRUE", "DELETE")
    with poisoned(plain, poison, ack_wait=0.2, more=more) as client:
        run(
            client,
            "CREATE TABLE other_message (id BIGINT PRIMARY KEY, message JSON) COMMENT = 'vt_dead_letters_of=my_message'",
        )
        stream = plain.stream("STREAM id FROM my_message")
        assert sorted(stream.ids(4)) == [1, 2, 3, 4]
        if dead_letter:
            gone = "SELECT GROUP_CONCAT(id ORDER BY id) FROM other_message"
            eventually(lambda: value(client, gone) == "2,3,4", "the others are dead letters")
            parked = "SELECT id FROM my_message WHERE time_next = 9000000000000000000"
            eventually(lambda: rows(client, parked) == ((BAD,),), "it is parked instead")
            return
        parked = "SELECT GROUP_CONCAT(id ORDER BY id) FROM my_message WHERE time_next > 8000000000000000000"
        eventually(lambda: value(client, parked) == "2,3,4", "the others are parked")
        is_listed(client, "claim")


@pytest.mark.parametrize("order", [",vt_key=tenant_id,vt_key_in_flight=1", ",vt_order=strict"])
def test_later_messages_of_its_key_go_on(plain: Queue, order: str) -> None:
    poison = refused_by_trigger("NEW.epoch > OLD.epoch")
    more = WRITTEN + order
    with poisoned(plain, poison, ack_wait=60, more=more) as client:
        run(
            client,
            "CREATE INDEX by_key ON my_message (tenant_id, time_acked, epoch, priority, time_next)",
        )
        stream = plain.stream("STREAM id FROM my_message")
        for ident in OTHERS:
            assert stream.ids(1) == [ident]
            assert run(client, ACK.format(ident)) == 1
        is_listed(client, "claim")
        cure(client, poison)
        assert stream.ids(1) == [BAD]
        assert run(client, ACK.format(BAD)) == 1
        is_over(client)


def test_groups_fire_but_for_a_bad_row(plain: Queue) -> None:
    poison = Poison(
        make=refused_by_trigger("NEW.time_next < OLD.time_next").make,
        cure=("DROP TRIGGER refuses",),
        columns="message JSON, batch VARCHAR(20), finishes VARCHAR(20), INDEX by_group (batch, time_acked)",
        insert="INSERT INTO my_message (id, batch) VALUES (9, 'g')",
    )
    with poisoned(
        plain, poison, ack_wait=60, more=",vt_group=batch,vt_after=finishes"
    ) as client:
        run(client, "DELETE FROM my_message WHERE id < 9")
        run(
            client,
            "INSERT INTO my_message (id, finishes) VALUES (1, 'g'), (2, 'g'), (3, 'g'), (4, 'g')",
        )
        stream = plain.stream("STREAM id FROM my_message")
        assert stream.ids(1) == [9]
        held = "SELECT COUNT(*) FROM my_message WHERE time_next = 8000000000000000000"
        eventually(lambda: value(client, held) == 4, "all wait")
        assert run(client, ACK.format(9)) == 1
        assert sorted(stream.ids(3)) == [2, 3, 4]
        is_listed(client, "fire")
        cure(client, poison)
        assert stream.ids(1) == [BAD]
        is_over(client)


def test_a_bad_row_is_found_again_after_a_restart_and_early_acks_are_not_lost(
    server: DatabaseServer, database: str, start_proxy: StartProxy, consume: Consume
) -> None:
    config = keyspace_toml("plain", [server], database)
    proxy = start_proxy(config)
    client = proxy.connect(database="plain", autocommit=True)
    more = ",vt_ack=early,vt_release_after=never"
    run(client, message_table(ack_wait=60, poller_interval=1, more=more))
    poison = refused_by_trigger("NEW.time_acked IS NOT NULL")
    for sql in poison.make:
        run(client, sql)
    stream = consume(proxy, "STREAM id FROM my_message", database="plain")
    count = 600
    values = ", ".join(f"({ident}, '1')" for ident in range(1, count + 1))
    run(client, f"INSERT INTO my_message (id, message) VALUES {values}")
    taken = 0
    while taken < count:
        idents = stream.ids(1) + [row[0] for row in iter(lambda: stream.poll(0.02), None)]
        taken += len(idents)
        for ident in idents:
            acknowledge_early(client, ident)
    assert proxy.stop() == 0
    assert execute(
        server, "SELECT id FROM my_message WHERE time_acked IS NULL", database=database
    ) == ((BAD,),)
    assert [
        json.loads(line) for line in proxy.log().splitlines() if '"acks not written"' in line
    ]
    proxy = start_proxy(config)
    client = proxy.connect(database="plain", autocommit=True)
    stream = consume(proxy, "STREAM id FROM my_message", database="plain")
    assert stream.ids(1) == [BAD], "it comes again, and no other"
    run(client, "INSERT INTO my_message (id, message) VALUES (1001, '1')")
    assert stream.ids(1) == [1001]
    for ident in (BAD, 1001):
        acknowledge_early(client, ident)
    eventually(lambda: rows(client, SET_ASIDE) == ((f"{BAD}", "ack"),), "found again")
    unacked = "SELECT id FROM my_message WHERE time_acked IS NULL"
    eventually(lambda: rows(client, unacked) == ((BAD,),), "the other one is written")
