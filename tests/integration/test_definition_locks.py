"""A lock on a table's definition holds up no answer of the proxy's, and hides no other table."""

from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import message_table, refused, run, value
from tests.integration.conftest import SETTINGS


def test_who_locks_tables_is_not_kept_waiting_nor_are_others(
    server, database, start_proxy, consume
):
    """Discovery waited for 60 s, and so did the client."""
    settings = SETTINGS.replace("schema_reload = 1", "schema_reload = 600")
    proxy = start_proxy(settings + keyspace_toml(database, [server]))
    client = proxy.connect(database=database, autocommit=True)
    run(client, "CREATE TABLE l1 (i INT, KEY (i)) ENGINE = MyISAM")
    run(client, "CREATE TABLE l2 (i INT)")
    run(client, message_table("known"))
    run(client, "LOCK TABLES l1 WRITE, l2 WRITE, known WRITE")
    run(client, "REPAIR TABLE l1")
    run(client, "DROP TABLE l2")
    # What others make meanwhile is known when they are told that it is made.
    other = proxy.connect(database=database, autocommit=True)
    run(other, message_table("fresh"))
    run(other, "INSERT INTO fresh (id, message) VALUES (1, '{}')")
    assert value(other, "SELECT time_next FROM fresh") is not None
    stream = consume(proxy, "STREAM * FROM fresh", database=database)
    assert stream.next()
    run(client, "UNLOCK TABLES")
    assert refused(other, "STREAM * FROM l1")[0] != 0
    run(other, "INSERT INTO known (id, message) VALUES (1, '{}')")
    assert consume(proxy, "STREAM * FROM known", database=database).next()
