"""A client's own XA transactions: what it prepared outlives it, and nothing of ours ends them."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy, StartProxy, keyspace_toml
from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

STEPS = ("XA START 'x'", "INSERT INTO t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
BODY = "; ".join(STEPS)
COM_RESET_CONNECTION = 0x1F  # PyMySQL has no name for it
FAILS = "SIGNAL SQLSTATE '45000'"


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
        number = prepare(connection, sql)
        connection._execute_command(
            COMMAND.COM_STMT_EXECUTE, number.to_bytes(4, "little") + b"\0\1\0\0\0"
        )
        assert connection._read_packet().is_ok_packet()


def as_prepare_text(connection: "Connection[Any]") -> None:
    for sql in STEPS:
        text = sql.replace("'", "''")
        run(connection, f"PREPARE p FROM '{text}'")
        run(connection, "EXECUTE p")


def as_batch(connection: "Connection[Any]") -> None:
    connection.query(BODY)
    for _ in STEPS[1:]:
        connection.next_result()


def immediate(connection: "Connection[Any]") -> None:
    for sql in STEPS:
        run(connection, f'EXECUTE IMMEDIATE "{sql}"')


def set_statement(connection: "Connection[Any]") -> None:
    for sql in STEPS:
        run(connection, f"SET STATEMENT max_statement_time = 100 FOR {sql}")


def procedure(connection: "Connection[Any]") -> None:
    run(connection, f"CREATE PROCEDURE p() BEGIN {BODY}; END")
    run(connection, "CALL p()")


def failing_procedure(connection: "Connection[Any]") -> None:
    run(connection, f"CREATE PROCEDURE p() BEGIN {BODY}; {FAILS}; END")
    refused(connection, "CALL p()")


def failing_procedure_in_set_statement(connection: "Connection[Any]") -> None:
    run(connection, f"CREATE PROCEDURE p() BEGIN {BODY}; {FAILS}; END")
    refused(connection, "SET STATEMENT max_statement_time = 100 FOR CALL p()")


def failing_prepared_procedure(connection: "Connection[Any]") -> None:
    run(connection, f"CREATE PROCEDURE p() BEGIN {BODY}; {FAILS}; END")
    number = prepare(connection, "CALL p()")
    connection._execute_command(
        COMMAND.COM_STMT_EXECUTE, number.to_bytes(4, "little") + b"\0\1\0\0\0"
    )
    with pytest.raises(pymysql.MySQLError):
        connection._read_packet()


def block(connection: "Connection[Any]") -> None:
    run(connection, f"BEGIN NOT ATOMIC {BODY}; END")


def failing_block(connection: "Connection[Any]") -> None:
    refused(connection, f"BEGIN NOT ATOMIC {BODY}; {FAILS}; END")


def failing_if(connection: "Connection[Any]") -> None:
    refused(connection, f"IF 1 THEN {BODY}; {FAILS}; END IF")


Way = Callable[["Connection[Any]"], None]
EVERYWHERE: tuple[Way, ...] = (
    as_text,
    as_batch,
    procedure,
    failing_procedure,
    failing_prepared_procedure,
)
MARIADB_ONLY: tuple[Way, ...] = (  # MySQL prepares no statement of XA (1295)
    prepared,
    as_prepare_text,
    immediate,
    set_statement,
    failing_procedure_in_set_statement,
    block,
    failing_block,
    failing_if,
)


@pytest.fixture(params=[1, 2], ids=["one connection", "two connections"])
def proxy(
    request: pytest.FixtureRequest,
    server: DatabaseServer,
    database: str,
    start_proxy: StartProxy,
) -> Iterator[RunningProxy]:
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


class TestPrepared:
    @pytest.mark.parametrize("way", [*EVERYWHERE, *MARIADB_ONLY])
    def test_what_a_client_prepared_outlives_it(
        self, server: DatabaseServer, left: Any, client: Callable[..., Any], way: Way
    ) -> None:
        if way in MARIADB_ONLY and server.family is not Family.MARIADB:
            pytest.skip("MariaDB's alone")
        way(left)
        left.close()
        check_is_whole(client)

    def test_it_may_be_rolled_back_too(self, left: Any, client: Callable[..., Any]) -> None:
        as_text(left)
        left.close()
        check_is_whole(client, "XA ROLLBACK 'x'")

    def test_a_client_that_vanishes_leaves_it(
        self, left: Any, client: Callable[..., Any]
    ) -> None:
        as_text(left)
        left._force_close()
        check_is_whole(client)

    def test_a_client_that_is_killed_leaves_it(
        self, left: Any, client: Callable[..., Any]
    ) -> None:
        killer = client()
        as_text(left)
        run(killer, f"KILL {left.thread_id()}")
        killer.close()
        check_is_whole(client)

    def test_a_client_that_changes_its_user_leaves_it(
        self, left: Any, client: Callable[..., Any]
    ) -> None:
        as_text(left)
        left._execute_command(COMMAND.COM_CHANGE_USER, b"root\0\0\0")
        with contextlib.suppress(pymysql.MySQLError):
            left._read_packet()
        check_is_whole(client)

    def test_a_client_that_resets_its_connection_leaves_it(
        self, left: Any, client: Callable[..., Any]
    ) -> None:
        as_text(left)
        left._execute_command(COM_RESET_CONNECTION, b"")
        assert left._read_packet().is_ok_packet()
        check_is_whole(client)

    def test_a_proxy_that_stops_leaves_it(
        self,
        proxy: RunningProxy,
        left: Any,
        connect: Callable[..., Any],
        server: DatabaseServer,
        database: str,
    ) -> None:
        as_text(left)
        proxy.stop()
        check_is_whole(lambda: connect(server, database=database))

    def test_who_prepared_it_may_commit_it(self, left: Any) -> None:
        as_text(left)
        assert rows(left, "SELECT 1") == ((1,),)
        run(left, "XA COMMIT 'x'")
        assert rows(left, "SELECT a FROM t") == ((1,),)

    @pytest.mark.parametrize("steps", [1, 2, 3])
    def test_what_was_not_prepared_is_undone(
        self, left: Any, client: Callable[..., Any], steps: int
    ) -> None:
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


class TestFailedCalls:
    def test_a_transaction_that_a_failed_call_left_open_stays_open(
        self, left: Any, client: Callable[..., Any]
    ) -> None:
        """An error says nothing of the transaction."""
        body = f"START TRANSACTION; INSERT INTO t VALUES (1); {FAILS}"
        run(left, f"CREATE PROCEDURE p() BEGIN {body}; END")
        refused(left, "CALL p()")
        run(left, "ROLLBACK")
        assert value(left, "SELECT COUNT(*) FROM t") == 0
        refused(left, "CALL p()")
        run(left, "COMMIT")
        assert value(client(), "SELECT COUNT(*) FROM t") == 1

    def test_a_failed_call_keeps_its_connection_no_longer_than_to_the_next_statement(
        self, left: Any, client: Callable[..., Any]
    ) -> None:
        run(left, f"CREATE PROCEDURE p() BEGIN {FAILS}; END")
        others = [client() for _ in range(2)]
        for one in (left, *others):
            refused(one, "CALL p()")
            assert value(one, "SELECT 1") == 1
        for one in (left, *others):
            run(one, "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1")


COMMITTING = (
    "CREATE DATABASE IF NOT EXISTS not_made",
    "CREATE TABLE u (a INT)",
    "DROP TABLE t",
    "TRUNCATE t",
    "BEGIN",
    "START TRANSACTION READ ONLY",
    "COMMIT",
    "ROLLBACK",
    "COMMIT RELEASE",
    "COMMIT AND CHAIN",
    "LOCK TABLES t WRITE",
    "ANALYZE TABLE t",
    "XA START 'y'",
    "SAVEPOINT a",
)


class TestActive:
    """What commits is refused, as on a server, and the transaction goes on."""

    @pytest.mark.parametrize("steps", [2, 3])
    def test_nothing_that_is_refused_ends_it(self, left: Any, steps: int) -> None:
        for sql in COMMITTING:
            for step in STEPS[:steps]:
                run(left, step)
            try:
                run(left, sql)
            except pymysql.MySQLError as error:
                assert error.args[0] == 1399, (sql, error)  # noqa: PT017
            else:
                assert sql in ("SAVEPOINT a", "ANALYZE TABLE t")
            if steps == 2:
                assert rows(left, "SELECT a FROM t") == ((1,),)
                run(left, "XA END 'x'")
            run(left, "XA PREPARE 'x'")
            run(left, "XA COMMIT 'x'")
            assert run(left, "DELETE FROM t") == 1

    def test_a_refused_begin_is_none_to_the_next_statement(self, left: Any) -> None:
        run(left, "XA START 'x'")
        assert refused(left, "BEGIN")[0] == 1399
        run(left, "INSERT INTO t VALUES (1)")
        run(left, "XA END 'x'")
        run(left, "XA ROLLBACK 'x'")
        assert rows(left, "SELECT a FROM t") == ()


def test_a_transaction_of_xa_is_not_spread_over_shards(plain: Queue, sharded: Queue) -> None:
    sharded.create()
    first = plain.connect()
    run(first, "CREATE TABLE named (n INT AUTO_INCREMENT PRIMARY KEY)")
    run(first, "XA START 'spread'")
    run(first, "INSERT INTO named VALUES ()")
    code, text = refused(first, "INSERT INTO commerce.my_message (id) VALUES (1)")
    assert (code, "a transaction of XA over several shards" in text) == (1235, True)
    run(first, "XA END 'spread'")
    code, text = refused(first, "INSERT INTO commerce.my_message (id) VALUES (1)")
    assert (code, "a transaction of XA over several shards" in text) == (1235, True)
    run(first, "XA COMMIT 'spread' ONE PHASE")
    assert rows(first, "SELECT n FROM named") == ((1,),)
    run(first, "INSERT INTO commerce.my_message (id) VALUES (1)")
