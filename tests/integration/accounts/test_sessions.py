"""What the proxy does on a session's own connection needs no right that the session's statements do not need."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.streams import refused, refuses, rows, run, value
from tests.integration.conftest import HIGH_IDS, LOW_IDS


LOW, HIGH = LOW_IDS[0], HIGH_IDS[0]


def test_who_may_read_a_column_is_served_whole(start_proxy, accounts, config, sharded_database):
    accounts.create("eve", f"SELECT (id) ON {sharded_database}.customer")
    proxy = start_proxy(config + accounts.toml("eve"))
    crowd = [accounts.connect(proxy, "eve", database="commerce") for _ in range(10)]

    def work(number: int) -> None:
        eve = crowd[number]
        for turn in range(10):
            run(eve, f"SET NAMES latin1, @v = {number}, time_zone = '+0{number}:00'")
            assert value(eve, "SELECT @v") == number
            assert value(eve, f"SELECT COUNT(id) FROM customer WHERE id = {LOW}") == 0
            assert rows(eve, "SELECT id FROM customer ORDER BY id") == ()
            assert value(eve, "SELECT @@time_zone") == f"+0{number}:00"
            # Warnings and counts are asked for when the connection is handed over.
            run(eve, "SELECT CAST('x' AS SIGNED)")
            assert len(rows(eve, "SHOW WARNINGS")) == 1
            assert value(eve, "SELECT LAST_INSERT_ID()") == 0
            run(eve, "BEGIN")
            run(eve, f"SELECT id FROM customer WHERE id IN ({LOW}, {HIGH})")
            run(eve, "COMMIT")
            run(eve, "PREPARE s FROM 'SELECT id FROM customer WHERE id = 1'")
            run(eve, "EXECUTE s")
            run(eve, "DEALLOCATE PREPARE s")
            assert value(eve, f"SELECT GET_LOCK('l{number}.{turn}', 1)") == 1
            value(eve, f"SELECT RELEASE_LOCK('l{number}.{turn}')")
            eve.select_db("commerce:80-")
            run(eve, "SELECT SQL_CALC_FOUND_ROWS id FROM customer")
            assert value(eve, "SELECT FOUND_ROWS()") == 0
            eve.select_db("commerce")

    with ThreadPoolExecutor() as workers:
        list(workers.map(work, range(10)))
    eve = crowd[0]
    assert refused(eve, "SELECT secret FROM customer")[0] == 1143
    assert refused(eve, "SELECT secret FROM customer WHERE id = 1")[0] == 1143
    assert refused(eve, "INSERT INTO customer (id) VALUES (1)")[0] == 1142
    assert "internal error" not in proxy.log()
    assert accounts.password not in proxy.log()


@pytest.mark.parametrize("way", ["SET ROLE", "CALL"])
def test_a_role_goes_to_no_other(start_proxy, servers, accounts, config, sharded_database, way):
    reads = f"SELECT (id) ON {sharded_database}.customer"
    accounts.create("ann", reads, f"EXECUTE ON {sharded_database}.*")
    with accounts.role("boss", f"SELECT ON {sharded_database}.customer"):
        accounts.everywhere("GRANT boss TO 'ann'@'%'")
        for server in servers:
            sql = f"CREATE PROCEDURE {sharded_database}.p() SQL SECURITY INVOKER SET ROLE boss"
            execute(server, sql)
        # More sessions than connections: each statement may run on another session's connection.
        tight = config.replace("primary =", "pool_size = 4\nprimary =")
        proxy = start_proxy(tight + accounts.toml("ann"))
        first = accounts.connect(proxy, "ann", database="commerce:-80")
        secret = "SELECT secret FROM customer"
        assert refused(first, secret)[0] == 1143
        run(first, "SET ROLE boss" if way == "SET ROLE" else "CALL p()")
        assert rows(first, secret) == ()
        others = [accounts.connect(proxy, "ann", database="commerce:-80") for _ in range(8)]
        for _ in range(3):
            for other in others:
                assert refused(other, secret)[0] == 1143
        if way == "SET ROLE":
            assert rows(first, secret) == ()
        first.close()
        for _ in range(3):
            for other in others:
                assert refused(other, secret)[0] == 1143


def test_a_procedure_sets_variables(start_proxy, servers, accounts, config, sharded_database):
    accounts.create("ann", f"EXECUTE, SELECT ON {sharded_database}.*")
    for server in servers:
        execute(server, f"CREATE PROCEDURE {sharded_database}.p() SET @hidden = 7")
    proxy = start_proxy(config + accounts.toml("ann"))
    ann = accounts.connect(proxy, "ann", database="commerce:-80")
    run(ann, "CALL p()")
    ann.select_db("commerce:80-")
    assert value(ann, "SELECT @hidden") == 7


def test_two_phases_need_a_right_to_decide(start_proxy, accounts, config, sharded_database):
    accounts.create("ann", f"SELECT, INSERT ON {sharded_database}.customer")
    mode = config.replace("[server]\n", '[server]\ntransaction_mode = "twopc"\n', 1)
    ann = accounts.connect(start_proxy(mode + accounts.toml("ann")), "ann", database="commerce")
    insert = f"INSERT INTO customer (id) VALUES ({LOW}), ({HIGH})"
    needed = "it needs GRANT SELECT, INSERT ON streamfrom.decisions there"
    refuses(ann, insert, 1142, "rolled back on every shard", needed)
    assert rows(ann, "SELECT id FROM customer") == ()
    accounts.everywhere("GRANT SELECT, INSERT ON streamfrom.decisions TO 'ann'@'%'")
    assert run(ann, insert) == 2


def test_a_role_is_set_on_every_shard(start_proxy, accounts, config, sharded_database):
    accounts.create("ann", f"SELECT (id) ON {sharded_database}.customer")
    grant = f"SELECT ON {sharded_database}.customer"
    with accounts.role("boss", grant), accounts.role("half", grant):
        accounts.everywhere("GRANT boss TO 'ann'@'%'")
        execute(accounts.servers[0], "GRANT half TO 'ann'@'%'")
        proxy = start_proxy(config + accounts.toml("ann"))
        secrets = [
            "SELECT secret FROM customer",
            *(f"SELECT secret FROM customer WHERE id = {ident}" for ident in (LOW, HIGH)),
        ]
        ann = accounts.connect(proxy, "ann", database="commerce")
        for way in ("{}", "PREPARE s FROM '{}'; EXECUTE s"):
            for sql in way.format("SET ROLE boss").split("; "):
                run(ann, sql)
            for sql in secrets:
                assert rows(ann, sql) == (), way
            run(ann, "SET ROLE NONE")
            for sql in secrets:
                assert refused(ann, sql)[0] == 1143
        code, text = refused(ann, "SET ROLE half")
        assert code in {1959, 3530}, text
        assert "done before on commerce/-80" in text
        other = accounts.connect(proxy, "ann", database="commerce")
        for sql in secrets:
            assert refused(other, sql)[0] == 1143


def test_a_change_of_user_is_the_servers_too(start_proxy, accounts, config, sharded_database):
    accounts.create("ann", f"ALL ON {sharded_database}.*")
    accounts.create("eve", f"SELECT (id) ON {sharded_database}.customer")
    proxy = start_proxy(config + accounts.toml("ann", "eve"))
    client = accounts.connect(proxy, "ann", database="commerce:-80")
    run(client, "SET @a = 1")
    for user in ("eve", "ann"):
        accounts.change(client, user, "commerce:-80")
        assert value(client, "SELECT CURRENT_USER()").startswith(f"{user}@")
        assert value(client, "SELECT @a") is None


ALTER = "ALTER USER 'ann'@'%' "
REVERT = "IDENTIFIED BY 'sésame''s'"
RENAME = "RENAME USER 'ann'@'{}' TO 'ann'@'{}'"


@pytest.mark.parametrize(
    ("spoil", "mend", "codes"),
    [
        (f"{ALTER} IDENTIFIED BY 'x'", ALTER + REVERT, {1045}),
        (f"{ALTER} ACCOUNT LOCK", f"{ALTER} ACCOUNT UNLOCK", {3118, 4151}),
        (f"{ALTER} PASSWORD EXPIRE", ALTER + REVERT, {1862, 1820}),
        (f"{ALTER} REQUIRE SSL", f"{ALTER} REQUIRE NONE", {1045}),
        (RENAME.format("%", "192.0.2.1"), RENAME.format("192.0.2.1", "%"), {1045, 1130}),
    ],
)
def test_a_login_that_one_server_refuses(
    start_proxy, accounts, config, sharded_database, spoil, mend, codes
):
    """It is the first statement's error, with the server's code and the shard's name; the session goes on."""
    accounts.create("ann", f"SELECT ON {sharded_database}.*")
    proxy = start_proxy(config + accounts.toml("ann"))
    client = accounts.connect(proxy, "ann", database="commerce")
    low, high = (f"SELECT id FROM customer WHERE id = {ident}" for ident in (LOW, HIGH))
    execute(accounts.servers[1], spoil)
    assert rows(client, low) == ()
    code, text = refused(client, high)
    assert (code in codes, "'80-'" in text, accounts.password in text) == (True, True, False)
    assert refused(client, "SELECT id FROM customer")[0] == code
    assert rows(client, low) == ()
    execute(accounts.servers[1], mend)
    assert rows(client, "SELECT id FROM customer") == ()
    assert accounts.password not in proxy.log()
