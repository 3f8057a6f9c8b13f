"""Servers that are not there yet, restart or stay away: nothing is lost, streams wait their grace."""

from typing import Any

import pymysql
import pytest

from tests.fixtures.streams import eventually, refused, rows, run
from tests.integration.faults.breaking import HIGH, LOW, create, insert


pytestmark = [pytest.mark.db, pytest.mark.slow]


def test_a_proxy_starts_before_its_servers_and_serves_once_they_are_there(
    start, breakable_servers, consume
):
    proxy = start()
    create(proxy)
    proxy.stop()
    for server in breakable_servers:
        server.stop()
    proxy = start(failover_buffer=0.3)
    with pytest.raises(pymysql.MySQLError, match="shard '-80' of keyspace 'commerce' is not"):
        proxy.connect(database="commerce")  # the driver's own SET NAMES
    for server in breakable_servers:
        server.start()

    def inserted() -> bool:
        try:
            connection = proxy.connect(database="commerce", autocommit=True)
            run(connection, "INSERT INTO my_message (id) VALUES (1), (4)")
        except pymysql.MySQLError:
            return False
        return True

    eventually(inserted, "an INSERT works")

    def opened() -> Any:
        try:
            return consume(proxy, database="commerce")
        except pymysql.MySQLError:
            return None

    stream = eventually(opened, "the stream opens")
    assert sorted(stream.ids(2)) == [LOW, HIGH]


def test_a_server_that_is_killed_under_load_loses_and_repeats_nothing(
    start, breakable_servers, audit
):
    proxy = start()
    connection = create(proxy, ack_wait=3600, poller_interval=1)
    audit.produce(proxy.port)
    audit.receive(proxy.port)
    holder = audit.receive(proxy.port, acks=False)
    eventually(lambda: bool(holder.received), "a message for who acks none")
    for server in breakable_servers:
        audit.sends_more()
        # What came within the last second has no lease in its row.
        held = {ident for ident, _ in holder.received}
        counts = [(receiver, len(receiver.received)) for receiver in audit.receivers]
        server.kill()
        server.start()
        audit.sends_more()
        again = {ident for one, count in counts for ident, _ in one.received[count:]} & held
        assert held
        assert not again
    assert holder.failures == []
    holder.stopping.set()
    audit.check(connection)
    assert proxy.process.poll() is None


def test_an_answer_with_an_end_gives_what_other_shards_have_while_one_is_down(
    start, breakable_servers
):
    proxy = start(stream_grace=1)
    producer = create(proxy)
    insert(producer, LOW, HIGH)
    breakable_servers[0].stop()
    take = "STREAM id FROM my_message LIMIT 5 WAIT 0"
    assert rows(producer, take) == ((HIGH,),)
    # Whether nothing is due nobody can tell now: an empty answer would be a lie.
    code, text = refused(producer, take)
    assert code == 1105
    assert text.startswith("message stream from commerce/-80 has repeatedly failed for longer")
    breakable_servers[0].start()
    assert eventually(lambda: _taken(producer, take), "the shard is back") == ((LOW,),)
    assert rows(producer, take) == ()


def _taken(connection: Any, take: str) -> Any:
    try:
        return rows(connection, take)
    except pymysql.MySQLError:
        return None
