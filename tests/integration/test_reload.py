"""What changes under a running proxy: users, limits, certificates and the vschema, with real clients of both families."""

import json
import os
import shutil
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import no_defaults
from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import by_hash, keyspace_toml, user_toml
from tests.fixtures.streams import message_table, refused, rows, run, value
from tests.proxy.certificates import issued


pytestmark = pytest.mark.one_server

Connect = Callable[..., str]
ROOT = user_toml("root", account="shared")
USERS = ROOT + user_toml("app", "one", account="shared")


def by_pymysql(port: int, cert: tuple[str, str] | None) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if cert is not None:
        context.load_cert_chain(*cert)
    try:
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", ssl=context)
    except pymysql.MySQLError as error:
        return str(error)
    with connection:
        return str(value(connection, "SELECT 'let in'"))


def by_program(program: str, *options: str) -> Connect:
    def connect(port: int, cert: tuple[str, str] | None) -> str:
        pair = () if cert is None else (f"--ssl-cert={cert[0]}", f"--ssl-key={cert[1]}")
        login = (program, *no_defaults(Path(program)), "-h127.0.0.1", f"-P{port}", "-uroot")
        done = finished([*login, *options, *pair, "-e", "SELECT 'let in'"])
        return done.stdout + done.stderr

    return connect


PROGRAMS = {
    "mariadb": ("mariadb", "--ssl", "--skip-ssl-verify-server-cert"),
    "mysql": ("/opt/mysql9/bin/mysql", "--ssl-mode=REQUIRED"),
}


@pytest.fixture(params=["pymysql", *PROGRAMS])
def log_in(request: pytest.FixtureRequest) -> Connect:
    if request.param == "pymysql":
        return by_pymysql
    name, *options = PROGRAMS[request.param]
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} on this machine")
    return by_program(program, *options)


@pytest.fixture
def tls(tmp_path: Path) -> str:
    """The table [server.tls] with an authority for clients."""
    issued("localhost").write(tmp_path, "server")
    issued("ca").write(tmp_path, "ca")
    return '[server.tls]\ncert = "server.pem"\nkey = "server.key"\nclient_ca = "ca.pem"\n'


def config(server: DatabaseServer, database: str, *parts: str) -> str:
    head = '[server]\nlisten = "127.0.0.1:0"\n'
    return head + "".join(parts) + keyspace_toml(database, [server])


@pytest.mark.parametrize("require", ["true", "false"])
def test_clients_must_have_a_certificate_that_the_authority_signed(
    server, database, start_proxy, tmp_path, tls, log_in, require
):
    log = '[log]\nlevel = "debug"\n'
    proxy = start_proxy(config(server, database, tls, f"require = {require}\n", USERS, log))
    good = issued("worker", "ca").write(tmp_path, "good")
    assert "let in" in log_in(proxy.port, good)
    assert '"subject": "CN=worker"' in proxy.log()
    told = log_in(proxy.port, None)
    assert "let in" not in told
    assert "a client certificate is required" in told
    foreign = issued("worker", "other ca").write(tmp_path, "foreign")
    assert "let in" not in log_in(proxy.port, foreign)
    expired = issued("worker", "ca", days=-1).write(tmp_path, "expired")
    assert "let in" not in log_in(proxy.port, expired)
    proxy.wait_for_log("certificate has expired")
    assert "TLS failed" in proxy.log()
    assert "let in" in log_in(proxy.port, good)


def test_a_new_authority_counts_at_the_next_login(server, database, start_proxy, tmp_path, tls):
    text = config(server, database, tls, USERS)
    proxy = start_proxy(text)
    good = issued("worker", "ca").write(tmp_path, "good")
    new = issued("worker", "new ca").write(tmp_path, "new")
    assert "let in" in by_pymysql(proxy.port, good)
    assert "let in" not in by_pymysql(proxy.port, new)
    issued("new ca").write(tmp_path, "ca")
    proxy.reload(text)
    assert '"certificates": "renewed"' in proxy.log()
    assert "let in" in by_pymysql(proxy.port, new)
    assert "let in" not in by_pymysql(proxy.port, good)
    issued("other").write(tmp_path, "wrong")
    (tmp_path / "wrong.key").replace(tmp_path / "server.key")
    proxy.reload(text)
    assert '"key": "server.tls.key"' in proxy.log()
    assert str(tmp_path / "server.key") in proxy.log()
    assert "let in" in by_pymysql(proxy.port, new)


def test_users_and_limits_are_reloaded_and_no_statement_fails(server, database, start_proxy):
    proxy = start_proxy(config(server, database, USERS))
    setup = proxy.connect(database=database, autocommit=True)
    run(setup, "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT)")
    is_over: list[bool] = []

    def work() -> int:
        written = 0
        connection = proxy.connect(database=database, autocommit=True)
        while not is_over:
            run(connection, "INSERT INTO t (a) VALUES (1)")
            with proxy.connect(database=database) as another:
                assert value(another, "SELECT COUNT(*) >= 1 FROM t") == 1
            written += 1
        return written

    workers = [in_thread(work) for _ in range(4)]
    for number in range(15):
        app = user_toml("app", f"p{number}", account="shared")
        limit = f"max_connections = {1000 + number}\n"
        proxy.reload(config(server, database, limit, ROOT, app if number % 3 else ""))
    is_over.append(True)
    written = [worker() for worker in workers]
    assert all(isinstance(count, int) and count > 0 for count in written), written
    assert value(setup, "SELECT COUNT(*) FROM t") == sum(written)
    log = proxy.log()
    assert log.count("configuration reloaded") == 15
    for number in range(15):
        assert f"p{number}" not in log.replace("proxy", "")


def test_a_user_that_is_gone_is_sent_away_and_its_work_undone(server, database, start_proxy):
    proxy = start_proxy(config(server, database, USERS))
    setup = proxy.connect(database=database, autocommit=True)
    run(setup, "CREATE TABLE t (id BIGINT PRIMARY KEY)")
    options: dict[str, Any] = {"user": "app", "password": "one", "database": database}
    client = proxy.connect(**options)
    run(client, "INSERT INTO t VALUES (1)")
    proxy.reload(config(server, database, ROOT))
    with pytest.raises(pymysql.MySQLError):
        client.commit()
    assert rows(setup, "SELECT * FROM t") == ()
    with pytest.raises(pymysql.MySQLError, match="Access denied"):
        proxy.connect(**options)


IDS = "SELECT id FROM customer ORDER BY id"
LOW, HIGH = 1, 4  # what hash says of them: -80 and 80-


def shard_customer(tmp_path: Path, column: str) -> None:
    """Write another vschema at once, as tools that deploy files do."""
    other = tmp_path / "other.json"
    other.write_text(json.dumps(by_hash(my_message="id", customer=column)))
    os.replace(other, tmp_path / "vschema.json")


def test_sessions_and_streams_go_on_when_the_vschema_changes(sharded_proxy, tmp_path, consume):
    client = sharded_proxy.connect(database="commerce", autocommit=True)
    run(client, message_table("my_message"))
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    consumer = consume(sharded_proxy, database="commerce")
    assert refused(client, "SELECT * FROM customer")[0] == 1235

    shard_customer(tmp_path, "id")
    sharded_proxy.wait_for_log("vschema reloaded")
    run(client, f"INSERT INTO customer (id, ref) VALUES ({LOW}, {HIGH}), ({HIGH}, {LOW})")
    assert rows(client, IDS) == ((LOW,), (HIGH,))

    shard_customer(tmp_path, "ref")
    os.kill(sharded_proxy.pid, signal.SIGHUP)
    sharded_proxy.wait_for_log('"vschema reloaded"', times=2)
    # Rows are looked for where their `ref` would have put them.
    assert rows(client, f"SELECT id FROM customer WHERE ref = {LOW}") == ()

    (tmp_path / "vschema.json").write_text('{"sharded": tru')
    sharded_proxy.wait_for_log("vschema not reloaded, the old one is still used")
    assert rows(client, IDS) == ((LOW,), (HIGH,))
    ((_, _, _, comment),) = rows(client, "SHOW VSCHEMA KEYSPACES")
    assert "is no JSON" in comment

    run(client, f"INSERT INTO my_message (id, message) VALUES ({HIGH}, '{{}}')")
    assert consumer.take(1)[0][0] == HIGH
    assert sharded_proxy.process.poll() is None


def test_a_prepared_statement_routes_anew(sharded_proxy, servers, sharded_database, tmp_path):
    shard_customer(tmp_path, "id")
    sharded_proxy.wait_for_log("vschema reloaded")
    client = sharded_proxy.connector("commerce")
    client.cursor().execute("CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    prepared = client.cursor(prepared=True)
    insert = "INSERT INTO customer (id, ref) VALUES (?, ?)"
    prepared.execute(insert, (LOW, HIGH))
    shard_customer(tmp_path, "ref")
    sharded_proxy.wait_for_log("vschema reloaded", times=2)
    prepared.execute(insert, (LOW + 1, HIGH))
    client.close()
    assert [execute(server, IDS, database=sharded_database) for server in servers] == [
        ((LOW,),),
        ((LOW + 1,),),
    ]
