"""Databases that no configuration names, beside an unsharded keyspace: as on the server itself."""

from collections.abc import Iterator

import pytest

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.streams import refused, rows, run, value


pytestmark = pytest.mark.db


@pytest.fixture
def beside(server: DatabaseServer, database: str) -> Iterator[str]:
    """The name of a database that the test may make; it is gone afterwards."""
    name = f"{database}_beside"
    yield name
    execute(server, f"DROP DATABASE IF EXISTS {name}")


def test_a_suite_makes_its_own_database_and_drops_it(proxy, database, beside):
    client = proxy.connect(database=database, autocommit=True)
    run(client, "CREATE TABLE home (n INT)")
    run(client, "INSERT INTO home VALUES (1), (2)")
    assert refused(client, f"USE {beside}")[0] == 1049
    run(client, f"CREATE DATABASE {beside}")
    run(client, f"USE {beside}")
    assert value(client, "SELECT DATABASE()") == beside
    run(client, "CREATE TABLE t (n INT)")
    run(client, f"INSERT INTO t SELECT n + 1 FROM {database}.home")
    assert rows(client, f"SELECT t.n FROM t JOIN {database}.home USING (n)") == ((2,),)
    assert rows(client, "SHOW TABLES") == (("t",),)
    # One connection has both, and so has one transaction.
    run(client, "BEGIN")
    run(client, "DELETE FROM t")
    client.select_db(database)
    run(client, "DELETE FROM home")
    assert value(client, f"SELECT COUNT(*) FROM {beside}.t") == 0
    run(client, "ROLLBACK")
    assert value(client, "SELECT COUNT(*) FROM home") == 2
    client.select_db(beside)
    assert value(client, "SELECT COUNT(*) FROM t") == 2
    other = proxy.connect(database=beside, autocommit=True)
    assert value(other, "SELECT COUNT(*) FROM t") == 2
    run(client, f"DROP DATABASE {beside}")
    assert value(client, "SELECT DATABASE()") is None
    assert refused(client, "CREATE TABLE t (n INT)")[0] == 1046
    assert refused(client, f"USE {beside}")[0] == 1049
    run(client, f"CREATE DATABASE {beside}")
    client.select_db(beside)
    assert rows(client, "SHOW TABLES") == ()
    # So it is on a connection that is the session's own, and stays in a database till it leaves.
    client.select_db(database)
    run(client, "SET @kept = 1")
    client.select_db(beside)
    run(client, f"DROP DATABASE {beside}")
    assert rows(client, "SELECT DATABASE(), @kept") == ((None, 1),)


def test_what_a_definition_does_not_qualify_is_of_the_current_database(
    proxy, server, database, beside
):
    """As on the server, whatever database the names beside it lead to."""
    client = proxy.connect(database=database, autocommit=True)
    run(client, "CREATE TABLE t (n INT)")
    run(client, "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1")
    run(client, f"CREATE DATABASE {beside}")
    for here, there in ((beside, database), (database, beside)):
        client.select_db(here)
        run(client, "CREATE TABLE IF NOT EXISTS t (n INT)")
        wrong = f"CREATE TRIGGER tg AFTER INSERT ON {there}.t FOR EACH ROW SET @r = 18"
        assert refused(client, wrong)[0] == 1435
        assert rows(client, f"SHOW TRIGGERS FROM {there}") == ()
        run(
            client,
            f"CREATE TRIGGER {there}.tg AFTER INSERT ON {there}.t FOR EACH ROW SET @r = 1",
        )
        assert len(rows(client, f"SHOW TRIGGERS FROM {there}")) == 1
        run(client, f"DROP TRIGGER {there}.tg")
        run(client, f"CREATE INDEX i ON {there}.t (n)")
        run(client, f"CREATE VIEW v AS SELECT n FROM {there}.t")
        run(client, f"CREATE PROCEDURE p() SELECT n FROM {there}.t")
        run(client, f"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM {there}.t")
        assert rows(client, "SHOW FULL TABLES WHERE table_type = 'VIEW'") == (("v", "VIEW"),)
        routines = f"WHERE Db = '{here}' AND Name = 'p'"
        assert len(rows(client, f"SHOW PROCEDURE STATUS {routines}")) == 1
        assert len(rows(client, f"SHOW EVENTS FROM {here}")) == 1
        for what in ("VIEW v", "PROCEDURE p", "EVENT e"):
            run(client, f"DROP {what}")
        run(client, f"DROP INDEX i ON {there}.t")
    run(client, f"INSERT INTO {beside}.t VALUES (f())")
    assert rows(client, f"SELECT n, f(), DATABASE() FROM {beside}.t") == ((1, 1, database),)
    client.select_db(beside)
    assert refused(client, f"SELECT f() FROM {database}.t")[0] == 1305
