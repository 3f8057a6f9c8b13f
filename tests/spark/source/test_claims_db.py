"""Claims on real servers: nobody gets what another has, and only what is ours is renewed."""

import threading
import time

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.fetching import fetch_columns
from streamfrom.spark.source.claims import ClaimShard
from tests.fixtures.streams import message_table, rows as rows_of, run as execute


pytestmark = [pytest.mark.spark, pytest.mark.db]

LEASE_S = 600.0


@pytest.fixture
def table(sharded_proxy):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table())
    endpoint = Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce")
    columns = {"id": "bigint", "priority": "tinyint"}
    return connection, lambda: ClaimShard(endpoint, "-80", "my_message", columns)


def test_each_message_goes_to_one_of_several(table, sharded_proxy):
    connection, opened = table
    one_shard = sharded_proxy.connect(database="commerce:-80", autocommit=True)
    values = ", ".join(f"({n}, {n % 3})" for n in range(1, 601))
    execute(connection, f"INSERT INTO my_message (id, priority) VALUES {values}")
    ours = {int(row[0]) for row in rows_of(one_shard, "SELECT id FROM my_message")}
    taken: list[int | str] = []

    def take():
        shard = opened()
        while won := shard.claim(50, LEASE_S):
            assert list(won) == [1]
            taken.extend(won[1])
        shard.close()

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken))
    assert set(taken) == ours
    shard = opened()
    assert shard.count_due() == 0
    shard.ack(taken)
    shard.ack(taken)
    shard.close()
    acked = rows_of(
        connection, "SELECT COUNT(time_acked), COUNT(time_next), MAX(epoch) FROM my_message"
    )
    assert acked[0][0] == len(ours)
    assert acked[0][1] == 600 - len(ours)


def test_one_claim_takes_many_times_what_a_batch_or_a_cache_holds_and_leases_all(
    table, sharded_proxy
):
    connection, opened = table
    one_shard = sharded_proxy.connect(database="commerce:-80", autocommit=True)
    for low in range(0, 12_000, 2_000):
        values = ", ".join(f"({n})" for n in range(low, low + 2_000))
        execute(connection, f"INSERT INTO my_message (id) VALUES {values}")
    count = rows_of(one_shard, "SELECT COUNT(*) FROM my_message")[0][0]
    assert count > 5_500, "more than is taken at once"
    shard = opened()
    won = shard.claim(count - 3, LEASE_S)
    assert {epoch: len(ids) for epoch, ids in won.items()} == {1: count - 3}
    assert len(shard.claim(10, LEASE_S)[1]) == 3
    leased = f"SELECT COUNT(*) FROM my_message WHERE time_next > {time.time_ns() + 500 * 10**9}"
    assert rows_of(one_shard, leased) == ((count,),)
    shard.close()


def test_what_was_acked_before_it_was_leased_is_not_taken(table, monkeypatch):
    connection, opened = table
    execute(connection, "INSERT INTO my_message (id) VALUES (1), (2), (3)")

    def slowly(*given):
        found = list(fetch_columns(*given))
        execute(connection, "UPDATE my_message SET time_acked = NOW() WHERE id = 2")
        execute(
            connection, "UPDATE my_message SET epoch = 5 WHERE id = 3 AND time_acked IS NULL"
        )
        return found

    monkeypatch.setattr("streamfrom.spark.source.claims.fetch_columns", slowly)
    assert opened().claim(9, LEASE_S) == {1: [1]}


def test_a_null_is_priority_0_and_no_send_as_for_a_stream(table):
    connection, opened = table
    execute(connection, "ALTER TABLE my_message MODIFY priority TINYINT, MODIFY epoch BIGINT")
    execute(
        connection,
        "INSERT INTO my_message (id, priority, epoch) VALUES (1, NULL, NULL), (2, 1, NULL), (3, -1, 0)",
    )
    shard = opened()
    assert [shard.claim(1, LEASE_S) for _ in range(3)] == [{1: [3]}, {1: [1]}, {1: [2]}]
    # What had no epoch is known again by the one that it got.
    late_ns = time.time_ns() + int(2 * LEASE_S * 1e9)
    shard.renew({1: [1, 2, 3]}, 3 * LEASE_S)
    kept = f"SELECT COUNT(*) FROM my_message WHERE time_next > {late_ns}"
    assert rows_of(connection, kept) == ((3,),)


def test_what_another_took_after_the_lease_is_neither_renewed_nor_put_back(table):
    connection, opened = table
    execute(connection, "INSERT INTO my_message (id) VALUES (1), (2)")
    first, second = opened(), opened()
    held = first.claim(2, 0.0)
    assert second.claim(1, LEASE_S) in ({2: [1]}, {2: [2]})

    def times():
        told = rows_of(connection, "SELECT epoch, time_next FROM my_message ORDER BY epoch")
        return dict(told)

    before = times()
    first.renew(held, 2 * LEASE_S)
    renewed = times()
    assert renewed[1] > before[2] == renewed[2]
    for epoch, ids in held.items():
        first.put_back(epoch, ids, 2000.0, "failed")
    assert 1900 < (times()[1] - time.time_ns()) / 1e9 <= 2000
    assert times()[2] == before[2]
