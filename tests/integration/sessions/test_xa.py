"""A client's own XA transactions: what it prepared outlives it, and nothing of ours ends them."""

import contextlib
from collections.abc import Callable
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import eventually, refused, refuses, reset, rows, run, value
from tests.integration.conftest import Queue


STEPS = ("XA START 'x'", "INSERT INTO t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
BODY = "; ".join(STEPS)
FAILS = "SIGNAL SQLSTATE '45000'"
Way = Callable[["Connection[Any]"], None]


def prepare(connection: "Connection[Any]", sql: str) -> int:
    """Prepare a statement in the binary protocol and return its id."""
    connection._execute_command(COMMAND.COM_STMT_PREPARE, sql)
    head = connection._read_packet()
    assert head.get_all_data()[5:9] == bytes(4), "neither columns nor parameters"
    return int.from_bytes(head.get_all_data()[1:5], "little")


def as_text(connection: "Connection[Any]") -> None:
    for sql in STEPS:
        run(connection, sql)


def prepared(connection: "Connection[Any]") -> None:
    for sql in STEPS:
        execute_prepared(connection, sql)
        assert connection._read_packet().is_ok_packet()


def execute_prepared(connection: "Connection[Any]", sql: str) -> None:
    number = prepare(connection, sql)
    connection._execute_command(
        COMMAND.COM_STMT_EXECUTE, number.to_bytes(4, "little") + b"\0\1\0\0\0"
    )


def as_batch(connection: "Connection[Any]") -> None:
    connection.query(BODY)
    for _ in STEPS[1:]:
        connection.next_result()


def failing_prepared_procedure(connection: "Connection[Any]") -> None:
    run(connection, FAILING)
    execute_prepared(connection, "CALL p()")
    with pytest.raises(pymysql.MySQLError):
        connection._read_packet()


def texts(*statements: str) -> Way:
    """Return what runs texts; the last one fails where it says FAILS, or is to."""

    def way(connection: "Connection[Any]") -> None:
        *first, last = statements
        for sql in first:
            run(connection, sql)
        (refused if FAILS in "".join(statements) else run)(connection, last)

    return way


FAILING = f"CREATE PROCEDURE p() BEGIN {BODY}; {FAILS}; END"
EVERYWHERE: dict[str, Way] = {
    "text": as_text,
    "batch": as_batch,
    "procedure": texts(f"CREATE PROCEDURE p() BEGIN {BODY}; END", "CALL p()"),
    "failing procedure": texts(FAILING, "CALL p()"),
    "failing prepared procedure": failing_prepared_procedure,
}
SET_STATEMENT = "SET STATEMENT max_statement_time = 100 FOR"
MARIADB_ONLY: dict[str, Way] = {  # MySQL prepares no statement of XA (1295)
    "prepared": prepared,
    "PREPARE": texts(
        *(
            part
            for sql in STEPS
            for part in ("PREPARE p FROM '{}'".format(sql.replace("'", "''")), "EXECUTE p")
        )
    ),
    "EXECUTE IMMEDIATE": texts(*(f'EXECUTE IMMEDIATE "{sql}"' for sql in STEPS)),
    "SET STATEMENT": texts(*(f"{SET_STATEMENT} {sql}" for sql in STEPS)),
    "failing procedure in SET STATEMENT": texts(FAILING, f"{SET_STATEMENT} CALL p()"),
    "block": texts(f"BEGIN NOT ATOMIC {BODY}; END"),
    "failing block": texts(f"BEGIN NOT ATOMIC {BODY}; {FAILS}; END"),
    "failing IF": texts(f"IF 1 THEN {BODY}; {FAILS}; END IF"),
}


@pytest.fixture(
    params=[1, pytest.param(2, marks=pytest.mark.thorough)],
    ids=["one connection", "two connections"],
)
def proxy(request, server, database, start_proxy):
    """A proxy with a small pool, so that a connection that is left comes to others soon."""
    proxy = start_proxy(keyspace_toml(database, [server]) + f"pool_size = {request.param}\n")
    yield proxy
    proxy.close()
    for _ in execute(server, "XA RECOVER"):
        # Of a test that failed; its locks would hold up all others.
        execute(server, "XA ROLLBACK 'x'")


@pytest.fixture
def client(proxy: RunningProxy, database: str) -> Callable[..., Any]:
    def client(**options: Any) -> Any:
        options = {"client_flag": CLIENT.MULTI_STATEMENTS} | options
        return proxy.connect(database=database, autocommit=True, **options)

    return client


@pytest.fixture
def left(client: Callable[..., Any]) -> Any:
    """A client that begins and leaves; the table is there."""
    first = client()
    run(first, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE = InnoDB")
    return first


def commit(connection: "Connection[Any]", sql: str = "XA COMMIT 'x'") -> bool:
    """Commit what somebody else has prepared; False while its connection still has it."""
    try:
        run(connection, sql)
    except pymysql.MySQLError as error:
        assert error.args[0] == 1397, error  # noqa: PT017 - XAER_NOTA, all others are faults
        return False
    return True


def check_is_whole(client: Callable[..., Any], sql: str = "XA COMMIT 'x'") -> None:
    """Commit the transaction of who has left, as another session, and see that all is well."""
    second = client()
    eventually(lambda: [row[3] for row in rows(second, "XA RECOVER")] in (["x"], [b"x"]))
    eventually(lambda: commit(second, sql), "XA COMMIT by another session")
    expected = ((1,),) if "COMMIT" in sql else ()
    assert rows(second, "SELECT a FROM t") == expected
    assert rows(second, "XA RECOVER") == ()
    second.close()
    for number in range(10, 14):
        later = client()
        run(later, f"INSERT INTO t VALUES ({number})")
        run(later, f"CREATE TABLE later{number} (a INT) ENGINE = InnoDB")
        later.close()
    assert value(client(), "SELECT COUNT(*) FROM t") == len(expected) + 4


def changes_its_user(left: Any, other: Any) -> None:
    left._execute_command(COMMAND.COM_CHANGE_USER, b"root\0\0\0")
    with contextlib.suppress(pymysql.MySQLError):
        left._read_packet()


LEAVES: dict[str, Callable[[Any, Any], Any]] = {
    "vanishes": lambda left, other: left._force_close(),
    "is killed": lambda left, other: run(other, f"KILL {left.thread_id()}"),
    "changes its user": changes_its_user,
    "resets its connection": lambda left, other: reset(left),
}


class TestPrepared:
    @pytest.mark.parametrize("way", [*EVERYWHERE, *MARIADB_ONLY])
    def test_what_a_client_prepared_outlives_it(self, server, left, client, way):
        if way in MARIADB_ONLY and server.family is not Family.MARIADB:
            pytest.skip("MariaDB's alone")
        (EVERYWHERE | MARIADB_ONLY)[way](left)
        left.close()
        check_is_whole(client, "XA ROLLBACK 'x'" if way == "batch" else "XA COMMIT 'x'")

    @pytest.mark.parametrize("way", LEAVES)
    def test_a_client_that_goes_leaves_it(self, left, client, way):
        other = client()  # before the one connection is in use
        as_text(left)
        LEAVES[way](left, other)
        other.close()
        check_is_whole(client)

    def test_a_proxy_that_stops_leaves_it(self, proxy, left, connect, server, database):
        as_text(left)
        proxy.stop()
        check_is_whole(lambda: connect(server, database=database))

    @pytest.mark.parametrize("steps", [1, 2, 3])
    def test_what_was_not_prepared_is_undone(self, left, client, steps):
        for sql in STEPS[:steps]:
            run(left, sql)
        left.close()
        second = client()
        assert value(second, "SELECT COUNT(*) FROM t") == 0
        assert rows(second, "XA RECOVER") == ()
        eventually(lambda: run(second, "INSERT INTO t VALUES (1)"))
        run(second, "XA START 'x'")
        run(second, "XA END 'x'")
        run(second, "XA COMMIT 'x' ONE PHASE")


def test_a_transaction_that_a_failed_call_left_open_stays_open(left, client):
    """An error says nothing of the transaction."""
    body = f"START TRANSACTION; INSERT INTO t VALUES (1); {FAILS}"
    run(left, f"CREATE PROCEDURE p() BEGIN {body}; END")
    refused(left, "CALL p()")
    run(left, "ROLLBACK")
    assert value(left, "SELECT COUNT(*) FROM t") == 0
    refused(left, "CALL p()")
    run(left, "COMMIT")
    assert value(client(), "SELECT COUNT(*) FROM t") == 1


def test_a_transaction_of_xa_is_not_spread_over_shards(plain: Queue, sharded: Queue) -> None:
    sharded.create()
    first = plain.connect()
    run(first, "CREATE TABLE named (n INT AUTO_INCREMENT PRIMARY KEY)")
    run(first, "XA START 'spread'")
    run(first, "INSERT INTO named VALUES ()")
    spread = "INSERT INTO commerce.my_message (id) VALUES (1)"
    refuses(first, spread, 1235, "a transaction of XA over several shards")
    run(first, "XA END 'spread'")
    refuses(first, spread, 1235, "a transaction of XA over several shards")
    run(first, "XA COMMIT 'spread' ONE PHASE")
    assert rows(first, "SELECT n FROM named") == ((1,),)
    run(first, spread)
