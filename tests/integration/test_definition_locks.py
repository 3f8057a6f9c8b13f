"""A lock on a table's definition holds up no answer of the proxy's, and hides no other table."""

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import execute
from tests.fixtures.fork_server import run_to_end
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


def test_a_table_that_a_forgotten_transaction_locks_is_what_the_log_and_the_check_say(
    server, database, connect, start_proxy, consume, tmp_path
):
    """Both waited for 60 s, and then said that the shard is not available."""
    config = SETTINGS + keyspace_toml(database, [server])
    proxy = start_proxy(config)
    client = proxy.connect(database=database, autocommit=True)
    run(client, message_table("known", poller_interval=1))
    stream = consume(proxy, "STREAM * FROM known", database=database)
    forgotten = connect(server, database=database, autocommit=False)
    run(forgotten, "SELECT 1 FROM known")
    alter = "ALTER TABLE known ADD COLUMN extra INT"
    changed = in_thread(lambda: execute(server, alter, database=database))
    try:
        proxy.wait_for_log("Lock wait timeout exceeded")
        (tmp_path / "check.toml").write_text(config)
        done = run_to_end(["check", "--config", str(tmp_path / "check.toml")], tmp_path)
    finally:
        forgotten.rollback()
        changed()
    fix = "; end the session that locks the table, and run this again"
    assert f"known: Lock wait timeout exceeded; try restarting transaction{fix}" in done.stdout
    run(client, "INSERT INTO known (id, message) VALUES (1, '{}')")
    assert stream.next()
