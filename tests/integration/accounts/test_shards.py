"""Own accounts at shards of which one refuses, is busy, restarts or fails over; what they run is killed by themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, message_table, refused, refuses, rows, run, value
from tests.integration.accounts.conftest import Accounts
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SETTINGS, VSCHEMA


Servers = tuple[DatabaseServer, DatabaseServer]
LOW, HIGH = LOW_IDS[0], HIGH_IDS[0]
BOSS = '[[users]]\nname = "boss"\npassword = "x"\naccount = "shared"\n'
# It has all rights asked for again.
CHANGE = "GRANT USAGE ON *.* TO 'ann'@'%'"
CONSUMES = "SELECT, UPDATE ON {}.my_message"


def with_queue(servers: Servers, database: str, folder: Path) -> str:
    """Make the queue on both *servers*; return the configuration but for its users."""
    for server in servers:
        execute(server, message_table(), database=database)
    vschema = write_vschema(folder, VSCHEMA)
    return SETTINGS + keyspace_toml("commerce", servers, database, vschema)


def test_a_right_that_one_shard_revokes_is_gone_there_alone(
    start_proxy, servers, accounts, sharded_database, consume, tmp_path
):
    config = with_queue(servers, sharded_database, tmp_path)
    accounts.create("ann", CONSUMES.format(sharded_database))
    proxy = start_proxy(config + BOSS + accounts.toml("ann"))
    boss = proxy.connect(user="boss", password="x", database="commerce", autocommit=True)
    boss_of_one = proxy.connect(user="boss", password="x", database="commerce:-80")
    ann = {"user": "ann", "password": accounts.password.encode()}
    whole = consume(proxy, database="commerce", **ann)
    part = consume(proxy, database="commerce:-80", **ann)
    run(boss, f"INSERT INTO my_message (id) VALUES ({HIGH})")
    assert whole.ids(1) == [HIGH]
    table = f"{sharded_database}.my_message"
    execute(servers[1], f"REVOKE UPDATE ON {table} FROM 'ann'@'%'")
    run(boss_of_one, CHANGE)
    code, text = whole.error()
    assert (code, "commerce/80-" in text, "commerce/-80" in text) == (1142, True, False), text
    client = accounts.connect(proxy, "ann", database="commerce")
    refuses(client, "STREAM * FROM my_message", 1142, "commerce/80-")
    ack = "UPDATE my_message SET time_acked = NOW() WHERE time_acked IS NULL AND id"
    assert refused(client, f"{ack} = {HIGH}")[0] == 1142
    run(boss, f"INSERT INTO my_message (id) VALUES ({LOW})")
    assert part.ids(1) == [LOW]
    assert run(client, f"{ack} = {LOW}") == 1
    # Of an ack on both shards nothing is done on either where the session's transaction holds them.
    run(boss, f"INSERT INTO my_message (id) VALUES ({LOW_IDS[1]})")
    run(client, "BEGIN")
    assert refused(client, f"{ack} IN ({LOW_IDS[1]}, {HIGH})")[0] == 1142
    run(client, "ROLLBACK")
    unacked = "SELECT id FROM my_message WHERE time_acked IS NULL ORDER BY id"
    assert rows(boss, unacked) == tuple((ident,) for ident in sorted((LOW_IDS[1], HIGH)))
    execute(servers[1], f"GRANT UPDATE ON {table} TO 'ann'@'%'")
    run(boss_of_one, CHANGE)
    again = consume(proxy, database="commerce", **ann)
    run(boss, f"INSERT INTO my_message (id) VALUES ({HIGH_IDS[1]})")
    again.comes(HIGH_IDS[1])
    assert run(accounts.connect(proxy, "ann", database="commerce"), f"{ack} = {HIGH}") == 1


def test_a_pool_that_others_fill_takes_no_right_away(
    start_proxy, servers, accounts, sharded_database, consume, tmp_path
):
    config = with_queue(servers, sharded_database, tmp_path)
    accounts.create("ann", CONSUMES.format(sharded_database))
    config = config.replace("[server]\n", "[server]\npool_timeout = 0.5\n", 1)
    config = config.replace("primary =", "pool_size = 2\nprimary =")
    proxy = start_proxy(config + BOSS + accounts.toml("ann"))
    stream = consume(
        proxy, database="commerce", user="ann", password=accounts.password.encode()
    )
    ann = accounts.connect(proxy, "ann", database="commerce")
    hogs = [proxy.connect(user="boss", password="x", database="commerce") for _ in range(2)]
    for hog in hogs:
        run(hog, "BEGIN")
        rows(hog, "SELECT id FROM my_message WHERE id IN (1000, 1001, 1002, 1003, 1004)")
    ack = f"UPDATE my_message SET time_acked = NOW() WHERE time_acked IS NULL AND id = {LOW}"
    for sql in (ack, "STREAM * FROM my_message LIMIT 1 WAIT 0"):
        refuses(ann, sql, 1105, "no free connection")
    proxy.reload(
        config.replace("pool_timeout = 0.5", "pool_timeout = 60") + BOSS + accounts.toml("ann")
    )
    run(hogs[0], f"INSERT INTO my_message (id) VALUES ({LOW})")
    stream.nothing(0.5)
    run(hogs[0], "COMMIT")
    assert stream.ids(1) == [LOW]
    assert run(ann, ack) == 1


def test_sessions_go_on_when_their_password_is_changed(
    start_proxy, servers, accounts, sharded_database, tmp_path
):
    """As on one server, where none of them logs in again; here their statements go from connection to connection."""
    config = with_queue(servers, sharded_database, tmp_path)
    accounts.create("ann", CONSUMES.format(sharded_database))
    config = config.replace("primary =", "pool_size = 2\nprimary =")
    proxy = start_proxy(config + BOSS + accounts.toml("ann"))
    boss = proxy.connect(user="boss", password="x", database="commerce:-80")
    crowd = [accounts.connect(proxy, "ann", database="commerce") for _ in range(5)]

    def read() -> None:
        for ann in crowd:
            assert rows(ann, f"SELECT id FROM my_message WHERE id IN ({LOW}, {HIGH})") == ()

    read()
    accounts.everywhere("ALTER USER 'ann'@'%' IDENTIFIED BY 'another one'")
    run(boss, CHANGE)
    read()


@pytest.fixture
def own_accounts(breakable_servers: Servers) -> Iterator[Accounts]:
    made = Accounts(breakable_servers)
    yield made
    for server in breakable_servers:
        server.start()
    made.close()


def test_sessions_and_streams_of_own_accounts_outlive_a_restart(
    start_proxy, breakable_servers, own_accounts, breakable_database, consume, tmp_path
):
    config = with_queue(breakable_servers, breakable_database, tmp_path)
    own_accounts.create("ann", f"SELECT, INSERT, UPDATE ON {breakable_database}.my_message")
    proxy = start_proxy(config + own_accounts.toml("ann"))
    ann = own_accounts.connect(proxy, "ann", database="commerce")
    stream = consume(
        proxy, database="commerce", user="ann", password=own_accounts.password.encode()
    )
    for server, idents in zip(breakable_servers, (LOW_IDS, HIGH_IDS), strict=True):
        run(ann, f"INSERT INTO my_message (id) VALUES ({idents[0]})")
        stream.comes(idents[0])
        server.kill()
        server.start()
        # The statement waits for the shard, and its connection is the account's own again.
        run(ann, f"INSERT INTO my_message (id) VALUES ({idents[1]})")
        stream.comes(idents[1])
        ack = "UPDATE my_message SET time_acked = NOW() WHERE time_acked IS NULL AND id"
        assert run(ann, f"{ack} IN ({idents[0]}, {idents[1]})") == 2
        assert value(ann, "SELECT CURRENT_USER()") == "ann@%"
        assert refused(ann, f"DELETE FROM my_message WHERE id = {idents[0]}")[0] == 1142


WAITS = "SELECT SLEEP(100) /* theirs */"


def runs(server: DatabaseServer) -> int:
    sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE info = %s AND user = 'ann'"
    return int(execute(server, sql.replace("%s", f"'{WAITS}'"))[0][0])


def test_an_account_and_an_admin_see_and_kill_its_statements(
    start_proxy, server, accounts, database
):
    accounts.create("shards", f"SELECT, INSERT, UPDATE, DELETE ON {database}.*")
    for name in ("ann", "boss", "eve"):
        accounts.create(name, f"SELECT ON {database}.*")
    config = keyspace_toml("plain", [server], database)
    password = "s%C3%A9same%27s"
    config = config.replace("mysql://root@", f"mysql://shards:{password}@")
    users = accounts.toml("ann", "eve") + accounts.toml("boss", more='role = "admin"\n')
    proxy = start_proxy(SETTINGS + config + users)
    ann, other, boss, eve = (
        accounts.connect(proxy, name, database="plain")
        for name in ("ann", "ann", "boss", "eve")
    )

    def listed(client: Any) -> set[str]:
        return {str(row[1]) for row in rows(client, "SHOW PROCESSLIST")}

    for killer in (other, other, boss):
        outcome = in_thread(lambda: value(ann, WAITS))
        eventually(lambda: runs(server) == 1)
        assert listed(eve) == {"eve"}
        assert listed(boss) >= {"ann", "boss", "eve"}
        assert refused(eve, f"KILL QUERY {ann.thread_id()}")[0] == 1095
        assert runs(server) == 1
        killer.query(f"KILL QUERY {ann.thread_id()}")
        # MariaDB's SLEEP is interrupted by an error, MySQL's returns 1.
        ended = outcome()
        assert ended == 1 or ended.args[0] == 1317
        eventually(lambda: runs(server) == 0)
        assert value(ann, "SELECT 1") == 1
