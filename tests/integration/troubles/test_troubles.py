"""Eleven troubles, staged for real: seen as an operator sees them, and ended by the steps of docs/operations/troubles.md."""

import os
import signal
import sys
import time
from typing import Any

import pytest

from streamfrom.engine.messaging.table.message_ids import first_id
from streamfrom.engine.messaging.upkeep.partitions import SPANS, definitions
from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import execute, root
from tests.fixtures.running_proxy import StartProxy
from tests.fixtures.streams import (
    Consume,
    eventually,
    message_table,
    rows,
    run,
    tried,
    value,
)
from tests.integration.troubles.conftest import MADE, POOL, alone_before
from tests.integration.troubles.operated import KEYSPACE, QUEUE, Operated, steps_of, troubles
from tests.proxy.certificates import issued


pytestmark = pytest.mark.one_server

# The id that the guide has for an example, and the connection.
POISON, CONNECTION = 1, "4194305"
HOUR = SPANS["HOUR"]
DAY_S = 86400.0


def insert(client: Any, *ids: int) -> None:
    values = ", ".join(f"({ident}, 'work')" for ident in ids)
    run(client, f"INSERT INTO my_message (id, payload) VALUES {values}")


def ack(client: Any, *ids: int) -> None:
    some = ", ".join(map(str, ids))
    run(client, f"UPDATE my_message SET time_acked = NOW() WHERE id IN ({some})")


def test_the_guide_has_eleven() -> None:
    assert len(troubles()) == 11


def test_a_poison_message(operated: Operated, consume: Consume) -> None:
    client = operated.client()
    retries = "streamfrom_messages_redelivered_total"

    def retried() -> float:
        return operated.of_queue("StreamfromRetryRateHigh", retries) or 0.0

    run(client, "ALTER QUEUE my_message SET (ack_wait = 0.1, max_backoff = 0.1)")
    stream = consume(operated.proxy, database=KEYSPACE)
    insert(client, POISON, 2, 3)

    def fail_on_it(times: int) -> None:
        """Work as consumers do that fail on one message, until it has come so often."""
        while times:
            (ident, *_) = stream.next()
            if ident == POISON:
                times -= 1
            else:
                ack(client, ident)

    fail_on_it(6)
    sent = operated.of_queue("StreamfromRetryRateHigh", "streamfrom_messages_delivered_total")
    assert retried() > 0.5 * (sent or 0)
    assert operated.queue()["redelivered"] >= 5
    with steps_of("A poison message") as guide:
        (worst, *_) = guide.sql(client)
        assert worst[0] == POISON
        assert worst[1] >= 5
        guide.sql(client)
        sends = f"SELECT epoch FROM my_message WHERE id = {POISON}"
        last = rows(client, sends)
        # What was sent before may still be on its way here.
        insert(client, 4)
        stream.comes(4)
        ack(client, 4)
        eventually(lambda: operated.queue()["in_flight"] == 0)
        assert rows(client, sends) == last
        guide.sql(client)
        stream.comes(POISON)
        ack(client, POISON)
    eventually(lambda: operated.queue()["depth"] == 0)


def test_a_key_that_stands_still(operated: Operated, consume: Consume) -> None:
    client = operated.client()
    run(client, "DROP QUEUE my_message")
    run(
        client,
        "CREATE QUEUE my_message (tenant BIGINT, payload VARCHAR(64)) SHARD BY (tenant)"
        " WITH (key = tenant, max_per_key = 1, ack_wait = 60)",
    )
    stream = consume(operated.proxy, database=KEYSPACE)
    works = [(ident, 7 if ident < 5 else 8) for ident in (POISON, 2, 3, 5)]
    run(client, f"INSERT INTO my_message (id, tenant) VALUES {str(works)[1:-1]}")
    # Its consumer fails on the first one, which is sent again a minute later.
    assert sorted(stream.ids(2)) == [POISON, 5]
    ack(client, 5)
    late = "streamfrom_queue_oldest_message_age_seconds"
    eventually(lambda: (operated.of_queue("StreamfromQueueLatencyHigh", late) or 0) > 0)
    assert rows(client, "SELECT unacked < prefetch FROM streamfrom.streams") == ((1,),)
    shown = f"SELECT epoch FROM my_message WHERE id = {POISON}"
    eventually(lambda: rows(client, shown) == ((1,),), "its row shows that it was sent")
    with steps_of("A stalled key") as guide:
        (worst,) = guide.sql(client)
        assert (worst[0], worst[1], worst[2], worst[4]) == (POISON, 7, 1, 2)
        guide.sql(client)
        for ident in (2, 3):
            stream.comes(ident)
            ack(client, ident)
        guide.sql(client)
        stream.comes(POISON)
        ack(client, POISON)
    eventually(lambda: operated.queue()["depth"] == 0)


def test_a_dead_shard(operated, troubled_servers, consume):
    low, high = troubled_servers
    client = operated.client()
    stream = consume(operated.proxy, database=KEYSPACE)

    def is_up(shard):
        return operated.metric("StreamfromShardDown", "streamfrom_shard_up", shard=shard)

    low.start()
    high.stop()
    try:
        eventually(lambda: is_up("80-") == 0)
        assert is_up("-80") == 1
        (line,) = (one for one in operated.page()["shards"] if not one["is_up"])
        assert line["shard"] == "80-"
        with steps_of("A dead shard") as guide:
            ((keyspace, shard, server, trouble),) = guide.sql(client)
            assert (keyspace, shard, server) == (KEYSPACE, "80-", f"127.0.0.1:{high.port}")
            assert trouble
            insert(client, 1)
            stream.comes(1)
            guide.told("systemctl start mariadb")
            high.start()
            eventually(lambda: is_up("80-") == 1)
            insert(client, 4)
            stream.comes(4)

            execute(high, "SET GLOBAL read_only = 1")
            eventually(lambda: is_up("80-") == 0)
            found = rows(client, "SELECT last_error FROM streamfrom.shards WHERE is_up = 0")
            assert "read-only" in found[0][0]
            with root(high) as there:
                guide.sql(there)
            eventually(lambda: is_up("80-") == 1)
            insert(client, 6)
            stream.comes(6)
        assert rows(client, "SELECT shard FROM streamfrom.shards WHERE is_up = 0") == ()
    finally:
        high.start()
        execute(high, "SET GLOBAL read_only = 0")


def test_a_slow_consumer(operated: Operated, consume: Consume) -> None:
    client = operated.client()
    late = "streamfrom_queue_oldest_message_age_seconds"
    run(client, "ALTER QUEUE my_message SET (prefetch = 10)")
    slow = consume(operated.proxy, database=KEYSPACE)
    insert(client, *range(1, 21))
    held = slow.ids(10)
    ack(client, held.pop(0))
    held += slow.ids(1)
    eventually(lambda: (operated.of_queue("StreamfromQueueLatencyHigh", late) or 0) > 0)
    with steps_of("A slow consumer") as guide:
        eventually(lambda: operated.queue()["in_flight"] == 10)
        ((queue, due, in_flight, oldest_s, streams),) = guide.sql(client)
        assert (queue, due, in_flight, streams) == (QUEUE, 9, 10, 1)
        assert oldest_s > 0
        ((connection, user, _, holds, prefetch, stalled_s),) = guide.sql(client)
        assert (connection, user, holds, prefetch) == (slow.id, "root", 10, 10)
        # Asked after it, since both grow.
        assert stalled_s < operated.queue()["oldest_ready_age_s"]
        another = consume(operated.proxy, database=KEYSPACE)
        ack(client, *another.ids(9))
        eventually(lambda: operated.queue()["ready"] == 0)
        assert operated.of_queue("StreamfromQueueLatencyHigh", late) is None
        guide.sql(client)
        # From now on it holds less, so that most of what comes is for the other one.
        ack(client, *held)
        eventually(lambda: operated.queue()["in_flight"] == 0)
        insert(client, *range(21, 31))
        assert len(slow.ids(5)) == len(another.ids(5)) == 5


def test_a_consumer_that_acknowledges_nothing(operated: Operated, consume: Consume) -> None:
    client = operated.client()
    alert, full = "StreamfromConsumerStalled", "streamfrom_queue_consumer_stalled_seconds"
    run(client, "ALTER QUEUE my_message SET (prefetch = 2)")
    hangs = consume(operated.proxy, database=KEYSPACE)
    insert(client, 1, 2, 3, 4)
    held = hangs.ids(2)
    eventually(lambda: (operated.of_queue(alert, full) or 0) > 0)
    with steps_of("A consumer that acknowledges nothing") as guide:
        works = consume(operated.proxy, database=KEYSPACE)
        for ident in works.ids(2):
            ack(client, ident)
        (worst, *_) = guide.sql(client)
        assert (worst[0], worst[3]) == (hangs.id, 2)
        assert worst[4] > 0
        guide.sql(client, {CONNECTION: hangs.id})
    works.comes(*held)
    assert hangs.is_closed()
    ack(client, *held)
    eventually(lambda: operated.of_queue(alert, full) == 0)
    assert operated.queue()["streams"] == 1


def test_a_paused_queue(operated: Operated, consume: Consume) -> None:
    client = operated.client()
    alert, paused = "StreamfromQueuePaused", "streamfrom_queue_paused"
    stream = consume(operated.proxy, database=KEYSPACE)
    run(client, "ALTER QUEUE my_message PAUSE")
    insert(client, 1)
    assert operated.of_queue(alert, paused) == 1
    assert operated.queue()["is_paused"]
    with steps_of("A paused queue") as guide:
        assert "paused = on" in str(guide.sql(client))
        guide.sql(client)
    stream.comes(1)
    assert operated.of_queue(alert, paused) == 0
    assert not operated.queue()["is_paused"]


def test_a_full_pool(operated, troubled_servers):
    client = operated.client()
    alert = "StreamfromPoolExhausted"

    def free():
        return operated.metric(alert, "streamfrom_pool_connections", shard="80-", state="free")

    def waiting():
        return operated.metric(alert, "streamfrom_pool_waiters", shard="80-")

    idle = [operated.client() for _ in range(POOL)]
    for ident, each in zip((4, 6, 7, 8), idle, strict=True):
        run(each, "BEGIN")
        insert(each, ident)
    answer = in_thread(lambda: insert(operated.client(), 11))
    eventually(waiting)
    assert free() == 0
    (line,) = (one for one in operated.page()["shards"] if one["shard"] == "80-")
    assert line["pool_waiters"] >= 1
    with steps_of("A full pool") as guide:
        found = {
            line[0]
            for line in guide.sql(client)
            if (line[4], line[6]) == ("Sleep", "transaction open")
        }
        assert found == {each.thread_id() for each in idle}
        guide.sql(client, {CONNECTION: idle[0].thread_id()})
        assert answer() is None
        eventually(lambda: waiting() == 0)
        with root(troubled_servers[1]) as there:
            assert len(guide.sql(there)) >= POOL - 1
    assert value(client, "SELECT COUNT(*) FROM my_message") == 1, "what was begun is undone"
    for each in idle[1:]:
        run(each, "COMMIT")
    eventually(lambda: (free() or 0) > 0)


def test_a_clock_that_is_off(alone, start_proxy, tmp_path, consume):
    off = tmp_path / "seconds"
    off.write_text("-3600")
    operated = Operated(
        start_proxy(alone, {"CLOCK_OFF": str(off)}, "tests.integration.troubles.clock_off")
    )

    def behind_s() -> float:
        told = operated.metric("StreamfromClockSkew", "streamfrom_clock_seconds")
        assert told is not None
        return time.time() - told

    client = operated.client()
    run(client, MADE)
    stream = consume(operated.proxy, database=KEYSPACE)
    # Due by the producer's clock, which is right.
    run(client, f"INSERT INTO my_message (id, time_next) VALUES (1, {time.time_ns()})")
    assert behind_s() >= 3600
    told_s = operated.page()["members"][0]["clock_unix_s"]
    assert time.time() - told_s >= 3600
    eventually(lambda: operated.queue()["depth"] == 1)
    assert operated.queue()["ready"] == 0
    with steps_of("A clock that is off") as guide:
        guide.told("timedatectl set-ntp true")
        right = tmp_path / "right"
        right.write_text("0")
        right.replace(off)
    stream.comes(1)
    assert behind_s() < 3600


def test_a_purge_that_is_held_back(server, database, start_proxy):
    alert, failed = "StreamfromPurgeFailing", "streamfrom_purge_failures_total"
    account = "streamfrom@'127.%'"
    execute(server, f"CREATE USER {account}")
    rights = "SELECT, INSERT, UPDATE, CREATE, ALTER, DROP, LOCK TABLES"
    execute(server, f"GRANT {rights} ON {database}.* TO {account}")
    toml = alone_before(server, database).replace("//root@", "//streamfrom@")
    proxy = start_proxy(toml)
    operated = Operated(proxy)
    client = operated.client()
    run(client, MADE.replace("release_after", "purge_after = 0.1, release_after"))
    insert(client, 1)
    ack(client, 1)
    eventually(lambda: (operated.of_queue(alert, failed) or 0) > 0)
    with steps_of("A purge that is held back") as guide:
        guide.told("journalctl --unit streamfrom --grep 'purge failed'")
        (line,) = (one for one in proxy.log().splitlines() if "purge failed" in one)
        assert "DELETE command denied" in line
        with root(server) as there:
            guide.sql(there, {"commerce.*": f"{database}.*", "10.%": "127.%"})
        eventually(lambda: value(client, "SELECT COUNT(*) FROM my_message") == 0, "purged")
        before = operated.of_queue(alert, failed)
        purged = operated.queue()["purged"]
        insert(client, 2)
        ack(client, 2)
        eventually(lambda: operated.queue()["purged"] > purged)
        assert operated.of_queue(alert, failed) == before
        straggler, name = with_straggler(client)
        held = "StreamfromPartitionPurgeBlocked", "streamfrom_queue_partitions_overdue"
        eventually(lambda: operated.of_queue(*held) == 1, "it is held back")
        assert operated.queue()["partitions_overdue"] == 1
        guide.told("journalctl --unit streamfrom --grep 'partition overdue'")
        (line,) = (one for one in proxy.log().splitlines() if "partition overdue" in one)
        assert name in line
        assert "1 message not acknowledged" in line
        assert name in [partition for partition, _ in guide.sql(client)]
        assert guide.sql(client, {"p2026112316": name}) == ((straggler,),)
        guide.sql(client, {"id = 1": f"id = {straggler}"})
        gone = f"SELECT 1 FROM my_message PARTITION ({name})"
        eventually(lambda: tried(client, gone) is None, "the partition is dropped")
        eventually(lambda: operated.of_queue(*held) == 0, "nothing is held back")


def with_straggler(client: Any) -> tuple[int, str]:
    """Make the queue anew, by partitions; return a message of an old one, and that partition's name."""
    present_ns = HOUR.floor_ns(time.time_ns())
    old = [HOUR.partition(present_ns - hours * HOUR.length_ns) for hours in (3, 2)]
    run(client, "DROP QUEUE my_message")
    table = message_table(purge_after=0.1, poller_interval=0.5)
    run(client, f"{table} PARTITION BY RANGE (id) ({definitions(old, 'later').decode()})")
    straggler = first_id(present_ns - 3 * HOUR.length_ns) + 1
    run(client, f"INSERT INTO my_message (id) VALUES ({straggler})")
    return straggler, old[0].name


def test_a_member_that_is_gone(alone: str, start_proxy: StartProxy, consume: Consume) -> None:
    one = start_proxy(alone)
    one.wait_for_log("is dispatched from here")
    two = Operated(start_proxy(alone))
    client = two.client()
    run(client, MADE)
    answering = "SELECT COUNT(*) FROM streamfrom.members WHERE is_answering = 1"
    eventually(lambda: value(client, answering) == 2)
    stream = consume(two.proxy, database=KEYSPACE)
    insert(client, 1)
    stream.comes(1)
    one.kill()
    # Prometheus cannot scrape it, so that `up` is 0.
    with pytest.raises(OSError, match="refused"):
        Operated(one).page()
    with steps_of("A member that is gone") as guide:
        eventually(
            lambda: value(client, f"{answering} AND dispatches <> ''") == 1,
            "the member that is left dispatches",
        )
        ((_, _, dispatches, is_answering, error),) = guide.sql(client)
        assert (dispatches, is_answering, error) == (f"{KEYSPACE}/-", 1, None)
        insert(client, 2)
        stream.comes(2)
        guide.told("journalctl --unit streamfrom --lines 20", "systemctl restart streamfrom")
        back = Operated(start_proxy(alone))
    eventually(lambda: value(client, answering) == 2)
    assert len(back.page()["members"]) == 2


def test_a_certificate_that_ends_tomorrow(alone, start_proxy, tmp_path):
    issued("localhost", days=1).write(tmp_path, "server")
    tls = '[server.tls]\ncert = "server.pem"\nkey = "server.key"\n'
    proxy = start_proxy(alone.replace("[admin]", f"{tls}[admin]"))
    operated = Operated(proxy)

    def left_s() -> float:
        metric = "streamfrom_certificate_expiry_timestamp_seconds"
        ends = operated.metric("StreamfromCertificateExpiringSoon", metric)
        assert ends is not None
        return ends - time.time()

    assert left_s() < DAY_S
    assert operated.page()["members"][0]["certificate_expires_in_s"] < DAY_S
    command = {
        "streamfrom check": f"{sys.executable} -m streamfrom.proxy check",
        "streamfrom.toml": proxy.config,
    }
    with steps_of("A certificate that ends tomorrow") as guide:
        assert "warning  server.tls.cert" in guide.run(command)
        issued("localhost", days=90).write(tmp_path, "server")
        assert "notAfter=" in guide.run({"server.pem": tmp_path / "server.pem"})
        guide.told("systemctl reload streamfrom")
        os.kill(proxy.pid, signal.SIGHUP)
    proxy.wait_for_log('"certificates": "renewed"')
    assert left_s() > 14 * DAY_S
