"""Rows that the server refuses to write, in each batch that the proxy writes on its own: all others go on as if they were not there.

A batch has one bad row of each kind: a trigger, an overflow, a CHECK, a foreign key, its own JSON. Its neighbours are sent again and
again, acknowledged and purged; the rows are listed in `streamfrom.set_aside`; and once what refuses them is gone, they go on, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import (
    POLL_NEVER_S,
    Consumer,
    eventually,
    message_table,
    rows,
    run,
    value,
)
from tests.integration.conftest import Queue


QUICK = ",vt_min_backoff=0.2,vt_max_backoff=0.2"
WRITTEN = ",vt_lease=written"
SET_ASIDE = "SELECT id, tried FROM streamfrom.set_aside WHERE keyspace = 'plain'"
COUNT = (
    "SELECT set_aside FROM streamfrom.queues WHERE keyspace = 'plain' AND queue = 'my_message'"
)
ACK = "UPDATE my_message SET time_acked = NOW() WHERE id = {}"
BAD = (1, 2, 3, 4, 5)
OTHERS = (6, 7, 8)
# A trigger's, an overflow, CHECK and JSON of MariaDB and of MySQL, a foreign key.
CODES = {1644, 1264, 4025, 3819, 3140, 1452}
PARKED = "SELECT id FROM my_message WHERE time_next = 9000000000000000000 ORDER BY id"

# Of two tables with these columns one takes any value, and the other refuses those of BAD.
LAX = "small INT, parent BIGINT, doc TEXT"
STRICT = (
    "small TINYINT, parent BIGINT, doc JSON, CONSTRAINT refuses CHECK (small <> 7),"
    " CONSTRAINT points FOREIGN KEY (parent) REFERENCES parent (id)"
)
BAD_VALUES = {2: "999, NULL, NULL", 3: "7, NULL, NULL", 4: "0, 9, NULL", 5: "0, NULL, '{'"}


def insert(
    client: Any, table: str, idents: Sequence[int], column: str = "", text: str = ""
) -> None:
    values = ", ".join(f"({ident}{text})" for ident in idents)
    run(client, f"INSERT INTO {table} (id{column}) VALUES {values}")


def insert_bad(client: Any, table: str) -> None:
    """Insert rows of which a table with STRICT refuses all but row 1."""
    values = ", ".join(f"({ident}, {values})" for ident, values in BAD_VALUES.items())
    run(client, f"INSERT INTO {table} (id, small, parent, doc) VALUES {values}")


def create(
    queue: Queue, columns: str = "tenant_id BIGINT, message JSON", **options: Any
) -> Any:
    """Create the queue, in which `refuse_updates` can make rows bad; return a client."""
    client = queue.connect()
    run(client, "CREATE TABLE parent (id BIGINT PRIMARY KEY)")
    settings: dict[str, Any] = {"poller_interval": 1, "more": QUICK + WRITTEN, **options}
    return queue.create(columns=f"{columns}, {STRICT}", **settings)


def refuse_updates(client: Any, when: str) -> None:
    """Make BAD impossible to update where *when* is true, each for a reason of its own."""
    run(
        client,
        f"CREATE TRIGGER no_update BEFORE UPDATE ON my_message FOR EACH ROW BEGIN IF {when} THEN CASE OLD.id"
        " WHEN 1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not row 1';"
        " WHEN 2 THEN SET NEW.small = 999; WHEN 3 THEN SET NEW.small = 7;"
        " WHEN 4 THEN SET NEW.parent = 99; WHEN 5 THEN SET NEW.doc = 'no JSON';"
        " ELSE BEGIN END; END CASE; END IF; END",
    )


def refuse_deletes(client: Any) -> None:
    """Make rows 1 and 2 impossible to delete, by a trigger and by a foreign key."""
    run(
        client,
        "CREATE TRIGGER no_delete BEFORE DELETE ON my_message FOR EACH ROW BEGIN IF OLD.id = 1"
        " THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not row 1'; END IF; END",
    )
    sql = "CREATE TABLE other_message (id BIGINT PRIMARY KEY, FOREIGN KEY (id) REFERENCES my_message (id))"
    run(client, sql)


def sent_twice(stream: Consumer, idents: Sequence[int]) -> None:
    """See that each of *idents* comes, and comes again."""
    counts = Counter(dict.fromkeys(idents, 0))

    def enough() -> bool:
        row = stream.poll(0.1)
        if row is not None:
            counts[row[0]] += 1
        return all(counts[ident] >= 2 for ident in idents)

    eventually(enough, f"each is sent twice: {counts}")


def are_listed(client: Any, bad: Sequence[int], *tried: str) -> None:
    def listed() -> bool:
        found: dict[str, str] = dict(rows(client, SET_ASIDE))
        return sorted(map(int, found)) == sorted(bad) and set(found.values()) <= set(tried)

    eventually(listed, "listed")
    assert rows(client, COUNT) == ((len(bad),),)


def are_over(client: Any) -> None:
    eventually(lambda: rows(client, SET_ASIDE) == (), "none is set aside any more")


def ids(client: Any, sql: str) -> list[int]:
    return [ident for (ident,) in rows(client, sql)]


def acknowledge_early(client: Any, ident: int) -> None:
    """Have an ack answered before it is written.

    A write of which the proxy does not know all effects makes it ask the rows first; until then an ack goes to the server.
    """

    def is_answered() -> bool:
        try:
            return run(client, ACK.format(ident)) == 1
        except pymysql.MySQLError as error:
            assert error.args[0] in CODES  # noqa: PT017 - it is tried again
            return False

    eventually(is_answered, "an early ack")


@pytest.mark.parametrize("lease", [WRITTEN, ",vt_lease_delay=0.1"], ids=["written", "lazy"])
def test_claims_and_leases_leave_bad_rows_out(plain: Queue, family: Family, lease: str) -> None:
    """Two more rows are bad by themselves: one was sent as often as its column counts, and one was restored without a check."""
    client = create(plain, ack_wait=0.2, more=QUICK + lease)
    run(client, "ALTER TABLE my_message MODIFY epoch TINYINT NOT NULL DEFAULT 0")
    refuse_updates(client, "NEW.epoch > OLD.epoch")
    bad = [*BAD, 11]
    run(client, "INSERT INTO my_message (id, epoch) VALUES (11, 127)")
    if family is Family.MARIADB:
        bad.append(12)
        sql = "SET STATEMENT check_constraint_checks = 0 FOR INSERT INTO my_message (id, message) VALUES (12, 'no JSON')"
        plain.cluster.direct(sql)
    insert(client, "my_message", [*BAD, *OTHERS])
    stream = plain.stream("STREAM id FROM my_message")
    sent_twice(stream, OTHERS)
    are_listed(client, bad, "claim", "lease")
    for ident in OTHERS:
        assert run(client, ACK.format(ident)) in (0, 1)
    run(client, "DROP TRIGGER no_update")
    run(client, "UPDATE my_message SET message = '1' WHERE id = 12")
    run(client, "ALTER TABLE my_message MODIFY epoch BIGINT NOT NULL DEFAULT 0")
    sent_twice(stream, bad)
    are_over(client)
    for ident in bad:
        assert run(client, ACK.format(ident)) == 1


UNACKED = "SELECT id FROM my_message WHERE time_acked IS NULL ORDER BY id"


def test_early_acks_are_written_but_for_bad_rows(plain: Queue) -> None:
    client = create(plain, ack_wait=60, more=",vt_ack=early")
    refuse_updates(client, "NEW.time_acked IS NOT NULL")
    insert(client, "my_message", [*BAD, *OTHERS])
    stream = plain.stream("STREAM id FROM my_message")
    assert sorted(stream.ids(8)) == [*BAD, *OTHERS]
    for ident in (*BAD, *OTHERS):
        acknowledge_early(client, ident)
    eventually(lambda: ids(client, UNACKED) == [*BAD], "the others are written")
    are_listed(client, BAD, "ack")
    run(client, "DROP TRIGGER no_update")
    eventually(lambda: ids(client, UNACKED) == [], "and they as well")
    are_over(client)


def test_the_purge_deletes_all_but_bad_rows(plain: Queue) -> None:
    client = create(plain, purge_after=0.1)
    refuse_deletes(client)
    insert(client, "my_message", [1, 2, *OTHERS])
    run(client, "INSERT INTO other_message VALUES (2)")
    run(client, "UPDATE my_message SET time_acked = NOW() WHERE id > 0")
    left = "SELECT id FROM my_message ORDER BY id"
    eventually(lambda: ids(client, left) == [1, 2], "the others are purged")
    are_listed(client, [1, 2], "purge")
    insert(client, "my_message", [9])
    run(client, ACK.format(9))
    eventually(lambda: ids(client, left) == [1, 2], "and so are those that follow")
    run(client, "DROP TRIGGER no_delete")
    run(client, "DROP TABLE other_message")
    eventually(lambda: ids(client, left) == [], "and they as well")
    are_over(client)


def test_what_a_stream_leaves_behind_is_returned_but_for_bad_rows(plain: Queue) -> None:
    client = create(plain, ack_wait=60, more=WRITTEN + ",vt_release_after=0.1")
    refuse_updates(client, "NEW.time_next < OLD.time_next")
    insert(client, "my_message", [*BAD, *OTHERS])
    stream = plain.stream("STREAM id FROM my_message")
    assert sorted(stream.ids(8)) == [*BAD, *OTHERS]
    stream.close()
    other = plain.stream("STREAM id FROM my_message")
    assert sorted(other.ids(3)) == [*OTHERS]
    are_listed(client, BAD, "return")


def test_messages_are_parked_and_requeued_but_for_bad_rows(plain: Queue) -> None:
    client = create(plain, ack_wait=0.2, more=QUICK + WRITTEN + ",vt_max_attempts=1")
    refuse_updates(client, "NEW.time_next > 8000000000000000000")
    insert(client, "my_message", [*BAD, *OTHERS])
    stream = plain.stream("STREAM id FROM my_message")
    assert sorted(stream.ids(8)) == [*BAD, *OTHERS]
    eventually(lambda: ids(client, PARKED) == [*OTHERS], "the others are parked")
    are_listed(client, BAD, "claim")
    run(client, "DROP TRIGGER no_update")
    eventually(lambda: ids(client, PARKED) == [*BAD, *OTHERS], "and they as well")
    are_over(client)
    stream.close()
    refuse_updates(client, "NEW.time_next < OLD.time_next")
    assert run(client, "ALTER QUEUE my_message REQUEUE PARKED") == len(OTHERS)
    warned = [text.partition(" stays: ")[0] for _, _, text in rows(client, "SHOW WARNINGS")]
    assert sorted(warned) == [str(ident) for ident in BAD]
    assert ids(client, PARKED) == [*BAD]


def test_dead_letters_move_but_for_bad_rows_which_are_parked(plain: Queue) -> None:
    client = plain.connect()
    run(client, "CREATE TABLE parent (id BIGINT PRIMARY KEY)")
    sql = f"CREATE TABLE grave (id BIGINT PRIMARY KEY, {STRICT}) COMMENT = 'vt_dead_letters_of=my_message'"
    run(client, sql)
    more = QUICK + WRITTEN + ",vt_max_attempts=1,vt_dead_letter=grave"
    plain.create(poller_interval=1, ack_wait=0.2, columns=LAX, more=more)
    refuse_deletes(client)
    insert(client, "my_message", [1, *OTHERS])
    insert_bad(client, "my_message")
    stream = plain.stream("STREAM id FROM my_message")
    assert sorted(stream.ids(8)) == [*BAD, *OTHERS]
    dead = "SELECT id FROM grave ORDER BY id"
    eventually(lambda: ids(client, dead) == [*OTHERS], "the others are dead letters")
    eventually(lambda: ids(client, PARKED) == [*BAD], "they are parked instead")


def test_dead_letters_are_requeued_but_for_bad_rows(plain: Queue) -> None:
    client = create(plain, more=",vt_max_attempts=1,vt_dead_letter=grave")
    sql = f"CREATE TABLE grave (id BIGINT PRIMARY KEY, {LAX}) COMMENT = 'vt_dead_letters_of=my_message'"
    run(client, sql)
    insert(client, "grave", OTHERS)
    insert_bad(client, "grave")
    assert run(client, "ALTER QUEUE my_message REQUEUE DEAD") == len(OTHERS)
    warned = rows(client, "SHOW WARNINGS")
    assert {row[:2] for row in warned} == {("Warning", 1105)}
    stay = [text.partition(" stays: ")[0] for _, _, text in warned]
    assert sorted(stay) == [str(ident) for ident in BAD_VALUES]
    assert ids(client, "SELECT id FROM my_message ORDER BY id") == [*OTHERS]
    assert ids(client, "SELECT id FROM grave ORDER BY id") == [*BAD_VALUES]


@pytest.mark.parametrize("order", [",vt_key=tenant_id,vt_max_per_key=1", ",vt_order=strict"])
def test_later_messages_of_their_key_go_on_without_a_poll_of_the_interval(plain, order):
    client = create(plain, poller_interval=POLL_NEVER_S, ack_wait=60, more=WRITTEN + order)
    refuse_updates(client, "NEW.epoch > OLD.epoch")
    insert(client, "my_message", [*BAD, *OTHERS])
    sql = (
        "CREATE INDEX by_key ON my_message (tenant_id, time_acked, epoch, priority, time_next)"
    )
    run(client, sql)
    stream = plain.stream("STREAM id FROM my_message")
    for ident in OTHERS:
        assert stream.ids(1) == [ident]
        assert run(client, ACK.format(ident)) == 1
    are_listed(client, BAD, "claim")
    insert(client, "my_message", [9])
    assert stream.ids(1) == [9], "also one that comes later"
    assert run(client, ACK.format(9)) == 1
    run(client, "DROP TRIGGER no_update")
    for _ in BAD:
        (ident,) = stream.ids(1)
        assert run(client, ACK.format(ident)) == 1
    are_over(client)


def test_groups_fire_but_for_bad_rows(plain: Queue) -> None:
    columns = "batch VARCHAR(20), finishes VARCHAR(20), INDEX by_group (batch, time_acked)"
    client = create(plain, columns, ack_wait=60, more=",vt_group=batch,vt_after=finishes")
    refuse_updates(client, "NEW.time_next < OLD.time_next")
    run(client, "INSERT INTO my_message (id, batch) VALUES (9, 'g')")
    insert(client, "my_message", [*BAD, *OTHERS], ", finishes", ", 'g'")
    stream = plain.stream("STREAM id FROM my_message")
    assert stream.ids(1) == [9]
    held = "SELECT COUNT(*) FROM my_message WHERE time_next = 8000000000000000000"
    eventually(lambda: value(client, held) == 8, "all wait")
    assert run(client, ACK.format(9)) == 1
    assert sorted(stream.ids(3)) == [*OTHERS]
    are_listed(client, BAD, "fire")
    run(client, "DROP TRIGGER no_update")
    assert sorted(stream.ids(5)) == [*BAD]
    are_over(client)


def test_a_restart_finds_bad_rows_and_loses_no_early_ack(
    server, database, start_proxy, consume
):
    config = keyspace_toml("plain", [server], database)
    proxy = start_proxy(config)
    client = proxy.connect(database="plain", autocommit=True)
    options: dict[str, Any] = {
        "ack_wait": 60,
        "poller_interval": 1,
        "more": ",vt_ack=early,vt_release_after=never",
    }
    run(client, message_table(columns=f"message JSON, {LAX}", **options))
    refuse_updates(client, "NEW.time_acked IS NOT NULL AND OLD.id = 1")
    stream = consume(proxy, "STREAM id FROM my_message", database="plain")
    count = 250
    values = ", ".join(f"({ident}, '1')" for ident in range(1, count + 1))
    run(client, f"INSERT INTO my_message (id, message) VALUES {values}")
    taken = 0
    while taken < count:
        idents = stream.ids(1) + [row[0] for row in iter(lambda: stream.poll(0.02), None)]
        taken += len(idents)
        for ident in idents:
            acknowledge_early(client, ident)
    assert proxy.stop() == 0
    unacked = "SELECT id FROM my_message WHERE time_acked IS NULL"
    assert execute(server, unacked, database=database) == ((1,),)
    assert '"acks not written"' in proxy.log()
    proxy = start_proxy(config)
    client = proxy.connect(database="plain", autocommit=True)
    stream = consume(proxy, "STREAM id FROM my_message", database="plain")
    assert stream.ids(1) == [1], "it comes again, and no other"
    run(client, "INSERT INTO my_message (id, message) VALUES (1001, '1')")
    assert stream.ids(1) == [1001]
    for ident in (1, 1001):
        acknowledge_early(client, ident)
    eventually(lambda: rows(client, SET_ASIDE) == (("1", "ack"),), "found again")
    eventually(lambda: rows(client, unacked) == ((1,),), "the other one is written")
