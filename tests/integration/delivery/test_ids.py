"""Ids of every type, and both layouts."""

import time
from collections import Counter
from typing import Any

import pytest

from tests.fixtures.streams import message_table, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert


pytestmark = pytest.mark.db

SECOND_NS = 10**9
QUIET_S = 1.0
IDS: dict[str, list[Any]] = {
    "id VARCHAR(40) NOT NULL": ["a", "b'c", 'q"r', "back\\slash", "ünïcode ✓", "", "5"],
    "id VARBINARY(16) NOT NULL": [b"\x00\xff'", b"plain", b"\\", b"'"],
    "id BINARY(4) NOT NULL": [b"\x00\x01\x02\x03", b"\xff\x00\xff\x00"],
    "id BIGINT NOT NULL": [-9223372036854775808, -1, 0, 9223372036854775807],
    "id BIGINT UNSIGNED NOT NULL": [0, 18446744073709551615],
    "id DECIMAL(30, 0) NOT NULL": [10000000000000000000000000, -5],
    "id CHAR(36) COLLATE utf8mb4_bin NOT NULL": ["A", "a", "b"],
}


def test_every_type_of_id_is_sent_acknowledged_and_then_left_alone(plain: Queue) -> None:
    producer = plain.connect()
    tables = {f"of_type_{number}": each for number, each in enumerate(IDS.items())}
    sends: dict[str, Counter[str]] = {}
    streams = {}
    for name, (ident, ids) in tables.items():
        run(
            producer, message_table(name, ident=ident, ack_wait=0.5, more=",vt_max_backoff=0.5")
        )
        streams[name] = plain.stream(f"STREAM id, epoch FROM {name}")
        with producer.cursor() as cursor:
            for number in ids:
                cursor.execute(f"INSERT INTO {name} (id) VALUES (%s)", (number,))
        sends[name] = Counter({str(number): 0 for number in ids})
    # Every one comes, and comes again, although the first wake-up named it as the client
    # wrote it.  One may be on its third attempt while another waits for its second.
    for name, stream in streams.items():
        while min(sends[name].values()) < 2:
            sent, epoch = stream.next()
            assert epoch == sends[name][str(sent)], name
            sends[name][str(sent)] += 1
        assert len(sends[name]) == len(tables[name][1]), name
    for name, (_, ids) in tables.items():
        with producer.cursor() as cursor:
            for number in ids:
                sql = f"UPDATE {name} SET time_acked = NOW() WHERE id = %s"
                assert cursor.execute(sql, (number,)) == 1, (name, number)
    epochs = {name: rows(producer, f"SELECT SUM(epoch) FROM {name}") for name in tables}
    time.sleep(QUIET_S)
    for name, before in epochs.items():
        assert rows(producer, f"SELECT SUM(epoch) FROM {name}") == before, name


def test_generated_ids(plain: Queue) -> None:
    producer = plain.connect()
    run(producer, message_table(ident="id BIGINT NOT NULL AUTO_INCREMENT"))
    stream = plain.stream()
    run(producer, "INSERT INTO my_message (tenant_id) VALUES (5)")
    assert producer.insert_id() == 1
    run(producer, "INSERT INTO my_message (id, tenant_id) VALUES (NULL, 6), (0, 7)")
    assert producer.insert_id() == 2
    assert [row[:2] for row in stream.take(3)] == [(1, 5), (2, 6), (3, 7)]


def test_an_id_in_another_case_is_the_same_message(plain: Queue) -> None:
    producer = plain.connect()
    run(producer, message_table(ident="id VARCHAR(20) NOT NULL", ack_wait=0.4))
    stream = plain.stream()
    insert(producer, "Order-1")
    assert stream.next()[0] == "Order-1"
    sql = "UPDATE my_message SET time_acked = NOW() WHERE id = 'ORDER-1'"
    assert run(producer, sql) == 1
    stream.nothing_new(producer)


def test_the_first_layout(plain: Queue) -> None:
    producer = plain.connect()
    run(
        producer,
        "CREATE TABLE my_message (time_scheduled BIGINT, id BIGINT, time_next BIGINT,"
        " epoch BIGINT, time_created BIGINT, time_acked BIGINT, message VARCHAR(128),"
        " PRIMARY KEY (time_scheduled, id), UNIQUE INDEX id_idx (id),"
        " INDEX next_idx (time_next, epoch)) COMMENT 'vitess_message,vt_ack_wait=0.5,"
        "vt_purge_after=86400,vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30'",
    )
    stream = plain.stream()
    assert stream.columns == ("id", "time_scheduled", "message")
    moment_ns = time.time_ns() + SECOND_NS // 2
    run(producer, "INSERT INTO my_message (id, message) VALUES (1, 'a')")
    run(
        producer,
        f"INSERT INTO my_message (time_scheduled, id, message) VALUES ({moment_ns}, 2, 'b')",
    )
    now_ns = time.time_ns()
    ident, scheduled, message = stream.next()
    assert (ident, message) == (1, "a")
    assert abs(scheduled - now_ns) < 60 * SECOND_NS
    assert run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id IN (1)") == 1
    # The first may have been sent again before it was acked.
    second = next(row for row in iter(stream.next, None) if row[0] == 2)
    assert second == (2, moment_ns, "b")
    assert time.time_ns() >= moment_ns
    assert stream.next()[0] == 2
