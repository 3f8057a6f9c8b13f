"""What clients see when a server or the proxy itself goes down, comes back, or is not itself.

The servers of this module are for breaking. Each test has a proxy of its own, with short waits.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from proxy.embedded.servers import EmbeddedServer, Family
from tests.fixtures.fix_load import Audit
from tests.fixtures.fix_proxy import (
    MESSAGE_VSCHEMA,
    RunningProxy,
    StartProxy,
    keyspace_toml,
    write_vschema,
)
from tests.fixtures.fix_servers import DatabaseServer, execute, free_port
from tests.fixtures.fix_streams import (
    Consume,
    eventually,
    message_table,
    refused,
    rows,
    run,
    value,
)


pytestmark = [pytest.mark.db, pytest.mark.slow]

LOW, HIGH = 1, 4  # ids on shard -80 and on shard 80-
LATE_S = 3.0
SECOND_NS = 10**9

Servers = tuple[DatabaseServer, DatabaseServer]
StartFaulty = Callable[..., RunningProxy]


@pytest.fixture
def start(
    start_proxy: StartProxy,
    tmp_path: Path,
    breakable_servers: Servers,
    breakable_database: str,
) -> StartFaulty:
    """A function that starts a proxy before the breakable servers; options are [server] keys."""
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)

    def start(port: int = 0, user: str = "root", **options: Any) -> RunningProxy:
        settings = {"stream_grace": 20, "failover_buffer": 20, "schema_reload": 1} | options
        lines = ["[server]", f'listen = "127.0.0.1:{port}"']
        lines += [f"{key} = {setting}" for key, setting in settings.items()]
        keyspace = keyspace_toml("commerce", breakable_servers, breakable_database, vschema)
        config = "\n".join([*lines, keyspace]).replace("//root@", f"//{user}@")
        return start_proxy(config)

    return start


@pytest.fixture(autouse=True)
def writable(breakable_servers: Servers) -> Iterator[None]:
    yield
    for server in breakable_servers:
        server.start()
        execute(server, "SET GLOBAL read_only = 0")


def ordinary_user(servers: Servers, database: str) -> str:
    """Make a user whom read_only binds, unlike root, and return its name."""
    for server in servers:
        execute(server, "CREATE USER IF NOT EXISTS app@'%'")
        execute(server, f"GRANT ALL ON {database}.* TO app@'%'")
    return "app"


def create(proxy: RunningProxy, **options: Any) -> Any:
    """Create the message table and return an autocommitting connection."""
    connection = proxy.connect(database="commerce", autocommit=True)
    run(connection, message_table(**options))
    return connection


def insert(connection: Any, *idents: int) -> None:
    values = ", ".join(f"({ident})" for ident in idents)
    run(connection, f"INSERT INTO my_message (id) VALUES {values}")


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start *work* and return a function that waits for its result."""
    results: list[Any] = []

    def keep() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()

    def result(seconds: float = 40) -> Any:
        thread.join(seconds)
        assert results, "it hangs"
        return results[0]

    return result


def running(server: DatabaseServer, text: str) -> list[tuple[Any, ...]]:
    """Return the server's connections that run something with *text* in it."""
    found = execute(server, "SELECT id, info FROM information_schema.processlist")
    return [row for row in found if row[1] and text in row[1] and "processlist" not in row[1]]


# --- starting ----------------------------------------------------------------------------------


def test_a_proxy_starts_before_its_servers_and_serves_once_they_are_there(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
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

    eventually(inserted, "an INSERT works", 20)

    def opened() -> Any:
        try:
            return consume(proxy, database="commerce")
        except pymysql.MySQLError:
            return None

    stream = eventually(opened, "the stream opens", 20)
    assert sorted(stream.ids(2, LATE_S)) == [LOW, HIGH]


# --- restarts under load -----------------------------------------------------------------------


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_server_that_restarts_under_load_loses_nothing(
    start: StartFaulty, breakable_servers: Servers, audit: Audit, end: str
) -> None:
    proxy = start()
    connection = create(proxy, ack_wait=1, poller_interval=1, more=",vt_max_backoff=2")
    for _ in range(2):
        audit.produce(proxy.port)
        audit.receive(proxy.port)
    for server in breakable_servers:
        audit.sends_more()
        getattr(server, end)()
        server.start()
    audit.sends_more()
    audit.check(connection)
    assert proxy.process.poll() is None


def test_a_stream_survives_a_restart_that_is_shorter_than_its_grace(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
    proxy = start()
    producer = create(proxy)
    stream = consume(proxy, database="commerce")
    insert(producer, LOW, HIGH)
    stream.take(2, LATE_S)
    breakable_servers[0].stop()
    insert(producer, 6)  # the other shard goes on meanwhile
    assert stream.next(LATE_S)[0] == 6
    breakable_servers[0].start()
    insert(producer, 2)
    assert stream.next(20)[0] == 2


def test_a_stream_ends_with_an_error_that_names_the_shard_when_the_grace_is_over(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
    proxy = start(stream_grace=1, failover_buffer=0)
    producer = create(proxy)
    stream = consume(proxy, database="commerce")
    healthy = consume(proxy, "STREAM * FROM `commerce:-80`.my_message")
    breakable_servers[1].kill()
    started = time.monotonic()
    code, text = stream.error(20)
    assert time.monotonic() - started >= 0.9
    assert code == 1105
    assert text.startswith(
        "message stream from commerce/80- has repeatedly failed for longer than 1s: "
    )
    # Streams that have nothing to do with that shard go on, and so does the session.
    insert(producer, LOW)
    assert healthy.next(LATE_S)[0] == LOW
    assert value(stream.connection, "SELECT id FROM my_message WHERE id = 1") == LOW


def test_a_stream_opens_while_one_shard_is_down_and_gets_its_rows_when_it_is_back(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
    proxy = start()
    producer = create(proxy)
    insert(producer, LOW, HIGH)
    breakable_servers[0].stop()
    stream = consume(proxy, database="commerce")
    assert stream.next(LATE_S)[0] == HIGH
    breakable_servers[0].start()
    assert stream.next(20)[0] == LOW


# --- a server dies in the middle ---------------------------------------------------------------


def test_a_read_that_a_restart_cut_off_is_read_again(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    reader = create(proxy)
    insert(reader, LOW)
    server = breakable_servers[0]
    answer = in_thread(
        lambda: rows(reader, "SELECT id, SLEEP(1.5) FROM my_message WHERE id = 1")
    )
    eventually(lambda: running(server, "SLEEP"), "the query runs")
    server.kill()
    server.start()
    assert answer() == ((LOW, 0),)


def test_a_write_that_was_cut_off_is_reported_and_not_sent_twice(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    writer = create(proxy)
    insert(writer, LOW)
    server = breakable_servers[0]
    write = "UPDATE my_message SET tenant_id = IFNULL(tenant_id, 0) + 1 + SLEEP(1) WHERE id = 1"
    answer = in_thread(lambda: refused(writer, write))
    eventually(lambda: running(server, "SLEEP"), "the update runs")
    server.kill()
    server.start()
    code, text = answer()
    assert code == 1105
    assert "lost the connection to shard '-80'" in text
    assert "whether it took effect is unknown" in text
    assert value(writer, "SELECT tenant_id FROM my_message WHERE id = 1") is None


def test_a_result_that_breaks_off_ends_with_an_error_and_the_session_goes_on(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    connection = create(proxy)
    insert(connection, LOW)
    reader = proxy.connect(
        database="commerce:-80", autocommit=True, cursorclass=pymysql.cursors.SSCursor
    )
    numbers = "(SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3)"
    sql = f"SELECT a.n, REPEAT('x', 100000), SLEEP(0.05) FROM {numbers} a" + "".join(
        f", {numbers} {name}" for name in "bcdef"
    )
    with reader.cursor() as cursor:
        cursor.execute(sql)
        assert cursor.fetchone()
        breakable_servers[0].kill()
        with pytest.raises(pymysql.MySQLError, match="lost the connection to shard '-80'"):
            cursor.fetchall()
    breakable_servers[0].start()
    assert value(reader, "SELECT id FROM my_message") == LOW


@pytest.mark.parametrize("way", ["BEGIN", "autocommit off"])
@pytest.mark.parametrize("target", ["commerce", "commerce:-80"])
def test_a_transaction_whose_server_restarted_cannot_be_committed(
    start: StartFaulty, breakable_servers: Servers, target: str, way: str
) -> None:
    proxy = start()
    create(proxy)
    connection = proxy.connect(database=target, autocommit=way == "BEGIN")
    if way == "BEGIN":
        run(connection, "BEGIN")
    insert(connection, LOW)
    if target == "commerce":
        insert(connection, HIGH)
    breakable_servers[0].kill()
    breakable_servers[0].start()
    code, text = refused(connection, "COMMIT")
    assert code == 1105
    assert "lost" in text
    connection.rollback()
    assert not rows(connection, "SELECT id FROM my_message")
    insert(connection, 2)
    connection.commit()
    assert rows(connection, "SELECT id FROM my_message") == ((2,),)


def test_after_a_lost_branch_nothing_runs_outside_the_transaction(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    create(proxy)
    connection = proxy.connect(database="commerce")
    insert(connection, LOW, HIGH)
    breakable_servers[0].kill()
    breakable_servers[0].start()
    for sql in (
        "INSERT INTO my_message (id) VALUES (2)",
        "INSERT INTO my_message (id) VALUES (2)",
        "INSERT INTO my_message (id) VALUES (6)",
        "SELECT * FROM my_message WHERE id = 4",
    ):
        assert (
            "rolled back because shard 'commerce/-80' lost its" in refused(connection, sql)[1]
        )
    connection.rollback()
    assert not rows(connection, "SELECT id FROM my_message")


def test_state_that_died_with_its_server_ends_the_session(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    create(proxy)
    connection = proxy.connect(database="commerce:-80", autocommit=True)
    run(connection, "CREATE TEMPORARY TABLE scratch (n INT)")
    breakable_servers[0].kill()
    breakable_servers[0].start()
    code, text = refused(connection, "SELECT * FROM scratch")
    assert code == 2013
    assert "connect again" in text


def test_a_claim_that_hangs_on_a_stopped_server_delivers_once_it_goes_on(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
    server = breakable_servers[0]
    assert isinstance(server, EmbeddedServer)
    proxy = start()
    producer = create(proxy)
    stream = consume(proxy, database="commerce")
    moment_ns = time.time_ns() + SECOND_NS // 2
    run(producer, f"INSERT INTO my_message (id, time_next) VALUES ({LOW}, {moment_ns})")
    assert server.pid is not None
    subprocess.run(["kill", "-STOP", str(server.pid)], check=True)
    try:
        insert(producer, HIGH)
        assert stream.next(LATE_S)[0] == HIGH
        stream.nothing(0.7)
    finally:
        subprocess.run(["kill", "-CONT", str(server.pid)], check=True)
    assert stream.next(20)[0] == LOW


# --- read-only ---------------------------------------------------------------------------------


def test_a_write_waits_for_a_server_that_turned_read_only(
    start: StartFaulty, breakable_servers: Servers, breakable_database: str, consume: Consume
) -> None:
    user = ordinary_user(breakable_servers, breakable_database)
    proxy = start(user=user)
    producer = create(proxy, ack_wait=1, poller_interval=0.5)
    stream = consume(proxy, database="commerce")
    insert(producer, LOW, HIGH)
    stream.take(2, LATE_S)
    for server in breakable_servers:
        execute(server, "SET GLOBAL read_only = 1")
    answer = in_thread(lambda: insert(producer, 2))
    other = proxy.connect(database="commerce", autocommit=True)
    split = in_thread(lambda: insert(other, 3, 6))
    # Nothing is delivered, although both messages are due again.
    stream.nothing(2.5)
    epochs = rows(proxy.connect(database="commerce:-80"), "SELECT epoch FROM my_message")
    assert epochs == ((1,),)
    for server in breakable_servers:
        execute(server, "SET GLOBAL read_only = 0")
    assert answer() is None
    assert split() is None
    assert set(stream.ids(5, 20)) == {1, 2, 3, 4, 6}


def test_a_write_that_waited_too_long_gets_the_servers_own_error(
    start: StartFaulty, breakable_servers: Servers, breakable_database: str
) -> None:
    user = ordinary_user(breakable_servers, breakable_database)
    proxy = start(user=user, failover_buffer=0.5)
    producer = create(proxy)
    execute(breakable_servers[0], "SET GLOBAL read_only = 1")
    code, text = refused(producer, "INSERT INTO my_message (id) VALUES (1)")
    assert code == 1290
    assert "read-only" in text
    # Reads are not affected, and neither is the other shard.
    assert rows(producer, "SELECT id FROM my_message") == ()
    insert(producer, HIGH)


def test_in_a_transaction_a_read_only_server_is_an_error_at_once(
    start: StartFaulty, breakable_servers: Servers, breakable_database: str
) -> None:
    user = ordinary_user(breakable_servers, breakable_database)
    proxy = start(user=user)
    create(proxy)
    connection = proxy.connect(database="commerce", autocommit=True)
    execute(breakable_servers[0], "SET GLOBAL read_only = 1")
    run(connection, "BEGIN")
    started = time.monotonic()
    assert refused(connection, "INSERT INTO my_message (id) VALUES (1)")[0] == 1290
    assert time.monotonic() - started < 5
    run(connection, "ROLLBACK")


# --- clocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", ["+1h", "-1h"])
def test_a_server_whose_clock_is_wrong_changes_no_moment(
    start_proxy: StartProxy,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    consume: Consume,
    family: Family,
    shift: str,
) -> None:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None or family is not Family.MARIADB:
        pytest.skip("needs libfaketime, which MySQL's own loader does not take")
    server = EmbeddedServer(tmp_path_factory.mktemp("wrong-clock"))
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(library))
        patch.setenv("FAKETIME", shift)
        patch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        server.start()
    try:
        ((seen,),) = execute(server, "SELECT UNIX_TIMESTAMP()")
        assert abs(float(seen) - time.time()) > 3000, "the clock is not wrong"
        execute(server, "CREATE DATABASE skewed")
        proxy = start_proxy(keyspace_toml("skewed", [server]))
        producer = proxy.connect(database="skewed", autocommit=True)
        run(producer, message_table(ack_wait=0.5, purge_after=2, poller_interval=0.3))
        stream = consume(proxy, database="skewed")
        moment_ns = time.time_ns() + SECOND_NS
        run(producer, "INSERT INTO my_message (id, time_next) VALUES (1, NOW())")
        run(producer, f"INSERT INTO my_message (id, time_next) VALUES (2, {moment_ns})")
        assert stream.next(0.9)[0] == 1
        assert run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1") == 1
        assert stream.next(LATE_S)[0] == 2
        assert moment_ns <= time.time_ns() <= moment_ns + SECOND_NS
        acked_ns = value(producer, "SELECT time_acked FROM my_message WHERE id = 1")
        assert abs(acked_ns - time.time_ns()) < 3 * SECOND_NS
        eventually(
            lambda: not rows(producer, "SELECT 1 FROM my_message WHERE id = 1"), "purged"
        )
        assert time.time_ns() - acked_ns >= 2 * SECOND_NS
    finally:
        server.kill()


# --- the proxy itself --------------------------------------------------------------------------


def test_sigterm_ends_streams_with_1053_lets_statements_end_and_exits_0(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
    proxy = start(shutdown_grace=5)
    connection = create(proxy)
    insert(connection, LOW, HIGH)
    stream = consume(proxy, database="commerce")
    stream.take(2, LATE_S)
    idle = proxy.connect(database="commerce")
    insert(idle, 2)  # in a transaction that nobody ends
    statement = in_thread(
        lambda: rows(connection, "SELECT id, SLEEP(1) FROM my_message WHERE id = 1")
    )
    eventually(lambda: running(breakable_servers[0], "SLEEP"), "the statement runs")
    proxy.process.send_signal(signal.SIGTERM)
    assert stream.error(LATE_S) == (1053, "Server shutdown in progress")
    assert stream.is_closed()
    assert statement() == ((LOW, 0),)
    assert proxy.process.wait(10) == 0
    with pytest.raises(pymysql.MySQLError):
        proxy.connect()
    proxy = start()
    assert (
        rows(proxy.connect(database="commerce"), "SELECT id FROM my_message WHERE id = 2") == ()
    )


def test_sigterm_does_not_wait_longer_than_the_grace(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start(shutdown_grace=0.5)
    connection = create(proxy)
    insert(connection, LOW)
    statement = in_thread(
        lambda: rows(connection, "SELECT id, SLEEP(60) FROM my_message WHERE id = 1")
    )
    eventually(lambda: running(breakable_servers[0], "SLEEP"), "the statement runs")
    assert proxy.stop(8) == 0
    assert isinstance(statement(), pymysql.MySQLError)
    eventually(lambda: not running(breakable_servers[0], "SLEEP"), "the server stopped too")


def test_a_proxy_that_is_killed_under_load_loses_nothing(
    start: StartFaulty, audit: Audit
) -> None:
    port = free_port()
    proxy = start(port)
    create(proxy, ack_wait=1, poller_interval=1, more=",vt_max_backoff=2")
    for _ in range(2):
        audit.produce(port)
        audit.receive(port)
    for _ in range(2):
        audit.sends_more()
        proxy.kill()
        proxy = start(port)
    audit.sends_more()
    audit.check(proxy.connect(database="commerce", autocommit=True))


def test_two_proxies_on_one_table_deliver_each_attempt_once(
    start: StartFaulty, audit: Audit
) -> None:
    proxies = [start(), start()]
    connection = create(proxies[0], ack_wait=0.5, poller_interval=0.2, batch_size=3)
    eventually(
        lambda: rows(proxies[1].connect(database="commerce"), "SHOW TABLES"), "both know it"
    )
    for proxy in proxies:
        audit.produce(proxy.port)
        audit.receive(proxy.port, acks=False)
        audit.receive(proxy.port, acks=False)
    eventually(
        lambda: sum(len(r.received) for r in audit.receivers) > 1500, "many attempts", 40
    )
    for receiver in audit.receivers:
        receiver._acks = True
    audit.check(connection)
    attempts = [attempt for receiver in audit.receivers for attempt in receiver.received]
    assert len(attempts) == len(set(attempts))
    assert max(epoch for _, epoch in attempts) >= 1
    assert all(receiver.received for receiver in audit.receivers)


def test_a_proxy_that_is_killed_holds_up_its_messages_no_longer_than_their_wait(
    start: StartFaulty, consume: Consume
) -> None:
    first, second = start(), start()
    producer = create(first, ack_wait=1, poller_interval=0.5)
    doomed = consume(first, database="commerce")
    insert(producer, LOW, HIGH)
    doomed.take(2, LATE_S)
    first.kill()

    def opened() -> Any:
        try:
            return consume(second, database="commerce")
        except pymysql.MySQLError:
            return None

    stream = eventually(opened, "the other proxy knows the table")
    assert sorted(stream.ids(2, 2 + LATE_S)) == [LOW, HIGH]
