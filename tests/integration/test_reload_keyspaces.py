"""Keyspaces that come to a running proxy, and go, with the configuration that is read again."""

import pymysql
import pytest

from tests.fixtures.database_servers import execute, fresh_database
from tests.fixtures.running_proxy import by_hash, keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, message_table, refused, refuses, rows, run
from tests.integration.conftest import DISPATCHED


pytestmark = pytest.mark.one_server

TWOPC = '[server]\nlisten = "127.0.0.1:0"\ntransaction_mode = "twopc"\n'
# As a driver reads the error of a connection that is closed, if it comes to it.
ENDED = (1049, 2006, 2013)
# The server says it where it has more databases than the keyspaces'.
UNKNOWN = (1049, 1146)
# A message is found by what members say to each other, or not at all.
QUEUE = message_table(poller_interval=10_000)


@pytest.fixture
def other(server):
    """Another fresh database on `server`, with a queue."""
    for name in fresh_database(server):
        execute(server, QUEUE, database=name)
        yield name


def both(server, database, other, name="other"):
    """The configuration of two keyspaces, the second of which is *name* and has the database *other*."""
    return keyspace_toml(database, [server]) + keyspace_toml(name, [server], other)


def insert(client, *idents, keyspace=None):
    queue = "my_message" if keyspace is None else f"{keyspace}.my_message"
    for ident in idents:
        run(client, f"INSERT INTO {queue} (id) VALUES ({ident})")


def is_removed(error):
    code, text = error
    return code == 1049 and "it was removed from the configuration" in text


def shown(client):
    databases = {row[0] for row in rows(client, "SHOW DATABASES")}
    shards = {row[0] for row in rows(client, "SELECT keyspace FROM streamfrom.shards")}
    return databases - {"information_schema"}, shards


def test_a_keyspace_that_comes_is_served_as_at_start(
    server, database, other, start_proxy, consume, tmp_path
):
    alone = keyspace_toml(database, [server])
    proxy = start_proxy(alone)
    client = proxy.connect(database=database, autocommit=True)
    refuses(client, "USE other", 1049)

    # All or nothing: a vschema that cannot be used keeps the user out as well.
    vschema = tmp_path / "broken.json"
    vschema.write_text("{")
    user = (
        '[[users]]\nname = "new"\naccount = "shared"\n[[users]]\nname = "root"\npassword = ""\n'
    )
    proxy.reload(user + alone + keyspace_toml("other", [server], other, vschema))
    assert '"key": "keyspaces.other.vschema"' in proxy.log()
    assert shown(client) == ({database}, {database})
    refuses(client, "USE other", 1049)

    execute(server, "CREATE TABLE plain (id INT PRIMARY KEY)", database=other)
    proxy.reload(both(server, database, other))
    proxy.wait_for_log(DISPATCHED, times=2)
    assert shown(client) == ({database, "other"}, {database, "other"})
    insert(client, 1, keyspace="other")
    stream = consume(proxy, database="other")
    stream.comes(1)
    insert(client, 2, keyspace="other")
    stream.comes(2)
    run(client, "CREATE TABLE my_message (id INT PRIMARY KEY)")
    assert rows(client, "SELECT keyspace, queue FROM streamfrom.queues") == (
        ("other", "my_message"),
    )
    run(client, "USE other")
    acked = "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (1, 2)"
    assert run(client, acked) == 2


def test_what_runs_of_a_keyspace_that_goes_ends_and_it_may_come_back(
    server, database, other, start_proxy, consume
):
    text, alone = both(server, database, other), keyspace_toml(database, [server])
    proxy = start_proxy(TWOPC + text)
    client = proxy.connect(database=database, autocommit=True)
    run(client, "CREATE TABLE plain (id INT PRIMARY KEY)")
    insert(client, 1, keyspace="other")
    inside, outside = (
        consume(proxy, database="other"),
        consume(proxy, "STREAM /*vt+ PREFETCH=1 */ * FROM other.my_message", database=database),
    )
    eventually(lambda: inside.poll(0.01) or outside.poll(0.01), "the message comes")
    idle = proxy.connect(database="other", autocommit=True)
    writing, reading = (proxy.connect(database="other") for _ in range(2))
    prepared = proxy.connector(database).cursor(prepared=True)
    prepared.execute("SELECT COUNT(*) FROM other.my_message WHERE id > ?", (5,))
    prepared.fetchall()
    insert(writing, 7)
    from_outside = proxy.connect(database=database)
    insert(from_outside, 8, keyspace="other")
    rows(reading, "SELECT * FROM my_message")

    proxy.reload(TWOPC + alone)
    assert is_removed(inside.error())
    assert is_removed(outside.error())
    assert refused(idle, "SELECT 1")[0] in ENDED
    assert refused(client, "INSERT INTO other.my_message (id) VALUES (9)")[0] in UNKNOWN
    refuses(client, "STREAM * FROM other.my_message", 1049)
    with pytest.raises(pymysql.MySQLError, match="1049"):
        proxy.connect(database="other")
    # What is under way may end.
    writing.commit()
    from_outside.commit()
    assert refused(writing, "SELECT 1")[0] in ENDED
    reading.rollback()
    assert refused(from_outside, "SELECT * FROM other.my_message")[0] in UNKNOWN
    eventually(lambda: shown(client) == ({database}, {database}), "nothing of it is shown")
    with pytest.raises(Exception, match="1049"):
        prepared.execute("SELECT COUNT(*) FROM other.my_message WHERE id > ?", (5,))
    left = f"SELECT * FROM information_schema.processlist WHERE db = '{other}'"
    eventually(lambda: not execute(server, left), "no connection is left")
    assert {row[0] for row in execute(server, "SELECT id FROM my_message", database=other)} == {
        1,
        7,
        8,
    }

    proxy.reload(TWOPC + text)
    again = consume(proxy, database="other")
    again.comes(7, 8)
    insert(client, 9, keyspace="other")
    again.comes(9)

    # Another name, in one step: the database has its next election once the last one is over.
    proxy.reload(TWOPC + both(server, database, other, "renamed"))
    assert is_removed(again.error())
    renamed = consume(proxy, database="renamed")
    run(client, "BEGIN")
    run(client, "INSERT INTO plain VALUES (10)")
    insert(client, 10, keyspace="renamed")
    run(client, "COMMIT")
    renamed.comes(10)
    assert proxy.stop() == 0
    for line in proxy.log().splitlines():
        assert '"level": "error"' not in line


def test_members_that_read_it_at_different_moments_lose_nothing(
    server, database, other, start_proxy, consume
):
    text, alone = both(server, database, other), keyspace_toml(database, [server])
    first = start_proxy(text)
    first.wait_for_log(DISPATCHED, times=2)
    second = start_proxy(text)
    at_second = consume(
        second, "STREAM /*vt+ PREFETCH=10 */ * FROM my_message", database="other"
    )
    producer = second.connect(database="other", autocommit=True)
    insert(producer, 1)
    assert at_second.ids(1) == [1]

    first.reload(alone)
    second.wait_for_log(DISPATCHED)
    insert(producer, 2)
    assert at_second.ids(1) == [2], "and not what it holds"
    refuses(first.connect(database=database), "STREAM * FROM other.my_message", 1049)
    assert rows(producer, "SELECT queue FROM streamfrom.queues") == (("my_message",),)

    first.reload(text)
    at_first = consume(first, "STREAM /*vt+ PREFETCH=10 */ * FROM my_message", database="other")
    at_second.close()
    insert(producer, 3)
    at_first.comes(1, 2, 3)

    second.reload(alone)
    first.wait_for_log(DISPATCHED, times=3)
    insert(first.connect(database="other", autocommit=True), 4)
    at_first.comes(4)


def test_a_keyspace_may_have_another_vschema_but_no_other_shards(
    servers, sharded_database, start_proxy, tmp_path
):
    vschema = write_vschema(tmp_path, by_hash(customer="id"))
    text = keyspace_toml("commerce", servers, sharded_database, vschema)
    proxy = start_proxy(text)
    client = proxy.connect(database="commerce", autocommit=True)
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    run(client, "INSERT INTO customer VALUES (1, 4)")
    other = tmp_path / "other"
    other.mkdir()
    by_ref = write_vschema(other, by_hash(customer="ref"))
    proxy.reload(text.replace(str(vschema), str(by_ref)))
    assert rows(client, "SELECT id FROM customer WHERE ref = 4") == ()
    # Keys would go to other shards while transactions run: no change of keyspaces is taken, and the log has all of them.
    proxy.reload(
        text.replace('"-80"', '"-40"').replace('"80-"', '"40-"')
        + keyspace_toml("more", servers[:1], "more")
    )
    assert (
        '"keys": ["keyspaces.more", "keyspaces.commerce.vschema", "keyspaces.commerce.shards"]'
        in proxy.log()
    )
    assert "changes that need a restart" in proxy.log()
    assert [row[0] for row in rows(client, "SHOW VITESS_SHARDS")] == [
        "commerce/-80",
        "commerce/80-",
    ]
