"""Drivers as they are shipped, each doing what its users do: see docs/drivers.md.

Every program under drivers/ connects, creates and changes rows, rolls back, streams a large
result, receives and acknowledges messages, meets errors, is killed and comes back. Each runs over
TLS with a password, and without both over two shards; what is prepared where the driver can.
One way per server is tried here, DRIVERS=all tries them all.
"""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, user_toml
from tests.fixtures.streams import message_table, run
from tests.integration import toolchains
from tests.integration.test_prepared import ITEM
from tests.proxy.certificates import write_certificate


# A JVM that shakes hands for the first time, beside all other tests, takes its time.
GUARDED = """[server]
listen = "127.0.0.1:0"
connect_timeout = 60
[server.tls]
cert = "server.pem"
key = "server.key"
require = true
"""
# Language or program, the driver's name for it, the module that must be there, prepared or not.
PYTHON_ROWS = (
    ("dbapi", "pymysql", "pymysql", (False,)),
    ("dbapi", "mysqlclient", "MySQLdb", (False,)),
    ("dbapi", "connector", "mysql.connector", (False, True)),
    ("dbapi", "connector_c", "_mysql_connector", (False, True)),
    ("dbapi", "aiomysql", "aiomysql", (False,)),
    ("dbapi", "asyncmy", "asyncmy", (False,)),
    ("orm_sqlalchemy", "pymysql", "sqlalchemy", (False,)),
    ("orm_sqlalchemy", "mysqldb", "MySQLdb", (False,)),
    ("orm_sqlalchemy", "mysqlconnector", "sqlalchemy", (False,)),
    ("orm_django", "mysqlclient", "MySQLdb", (False,)),
)
PYTHON_CASES = [
    pytest.param(
        program, driver, module, prepared, id=f"{program}-{driver}{'-prepared' * prepared}"
    )
    for program, driver, module, both in PYTHON_ROWS
    for prepared in both
]
OTHER_ROWS = (
    ("go", "go-sql-driver"),
    ("node", "mysql2"),
    ("node", "mariadb"),
    ("php", "mysqli"),
    ("php", "pdo"),
    ("java", "mysql"),
    ("java", "mariadb2"),
    ("java", "mariadb3"),
)
# As text they do what the Python drivers do, so that is left to DRIVERS=all.
OTHER_CASES = [
    pytest.param(language, driver, prepared, id=f"{language}-{driver}{'-prepared' * prepared}")
    for language, driver in OTHER_ROWS
    for prepared in ((True, False) if toolchains.EVERYTHING else (True,))
]


@pytest.fixture(scope="session")
def guarded_proxy(shared_cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    write_certificate(folder)
    config = folder / "proxy.toml"
    config.write_text(
        GUARDED
        + user_toml("app", "secret", account="shared")
        + keyspace_toml("plain", shared_cluster.servers[:1], shared_cluster.databases["plain"])
    )
    proxy = RunningProxy(config)
    yield proxy
    proxy.close()


@pytest.fixture(params=["tls", "sharded"])
def door(request, cluster, family, guarded_proxy):
    """What the programs take of where they come in: port, database, user and whether by TLS. Their tables are there."""
    if not toolchains.EVERYTHING and (request.param == "tls") != (family is Family.MARIADB):
        pytest.skip("the other server's way in; DRIVERS=all tries both")
    if request.param == "sharded":
        found = [str(cluster.proxy.port), "commerce", "root", "0"]
        connection = cluster.proxy.connect(database="commerce", autocommit=True)
    else:
        found = [str(guarded_proxy.port), "plain", "app", "1"]
        connection = guarded_proxy.connect(
            database="plain",
            autocommit=True,
            user="app",
            password=b"secret",
            ssl_disabled=False,
            ssl_verify_cert=False,
        )
    run(connection, ITEM.format("item"))
    run(connection, message_table("my_message", columns="message VARCHAR(100)"))
    run(connection, "CREATE QUEUE job (number INT)")
    yield found
    guarded_proxy.disconnect()


def assert_at_home(command: list[str], door: list[str], *, prepared: bool) -> None:
    done = finished([*command, *door, str(int(prepared))])
    told = (done.stdout + done.stderr)[-3000:]
    assert (done.stdout.strip(), done.returncode) == ("ok", 0), told


@pytest.mark.parametrize(("program", "driver", "module", "prepared"), PYTHON_CASES)
def test_a_python_driver_as_shipped_is_at_home(door, program, driver, module, prepared):
    command = [*toolchains.python(program, module), driver]
    assert_at_home(command, door, prepared=prepared)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], list[str]]:
    folder = tmp_path_factory.mktemp("drivers")
    commands: dict[str, list[str]] = {}

    def built(language: str, driver: str) -> list[str]:
        if language == "java":
            return [*toolchains.java(folder, driver), driver]
        if language not in commands:
            commands[language] = getattr(toolchains, language)(folder)
        return [*commands[language], driver]

    return built


@pytest.mark.parametrize(("language", "driver", "prepared"), OTHER_CASES)
def test_a_driver_of_another_language_is_at_home(door, built, language, driver, prepared):
    assert_at_home(built(language, driver), door, prepared=prepared)


# Rows of one shard, of several, of a merge and of the proxy.
FETCHED = """SELECT id, name FROM item WHERE id = 3
SELECT id, name FROM item
SELECT id, name FROM item WHERE id < 0
SELECT id, name FROM item ORDER BY price DESC, id
SELECT COUNT(*), SUM(price) FROM item
SELECT name, COUNT(*) FROM item GROUP BY name ORDER BY name LIMIT 3
SHOW DATABASES
SHOW COLUMNS FROM item
SHOW VARIABLES LIKE 'auto_inc%'
DESCRIBE item
EXPLAIN SELECT id FROM item WHERE id = 3
SELECT shard, id FROM streamfrom.set_aside
"""


def test_libmariadb_fetches_by_a_cursor_what_it_reads_without(cluster, keyspace, built):
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(connection, ITEM.format("item"))
    values = ", ".join(f"({n}, 'n{n % 4}', {n % 5})" for n in range(9))
    run(connection, f"INSERT INTO item (id, name, price) VALUES {values}")
    command = [*built("c", "libmariadb")[:1], str(cluster.proxy.port), keyspace]
    done = finished(command, input=FETCHED)
    assert done.returncode == 0, done.stdout[-500:]
    answers = [sorted(each.splitlines()) for each in done.stdout.split("--\n")[:-1]]
    for sql, at in zip(FETCHED.splitlines(), range(0, len(answers), 4), strict=True):
        without, *others = answers[at : at + 4]
        assert others == [without] * 3, sql


@pytest.mark.one_server
@pytest.mark.parametrize("driver", ["mysql2", "mysql", "ruby"])
def test_drivers_keep_the_ids_of_queues_by_default(cluster, keyspace, built, driver):
    where = [str(cluster.proxy.port), keyspace, "50"]
    if driver == "ruby":
        words = ["ruby3.1", str(toolchains.PROGRAMS / "ruby" / "defaults.rb"), *where]
        command = toolchains.in_debian(["ruby-mysql2"], shlex.join(words))
    else:
        interpreter, main, _ = built("node", driver)
        command = [interpreter, str(Path(main).with_name("defaults.js")), driver, *where]
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(connection, "CREATE QUEUE job (number INT)")
    # One by one and in one statement: ids of both kinds.
    for number in range(10):
        run(connection, f"INSERT INTO job (number) VALUES ({number})")
    values = ", ".join(f"({number})" for number in range(40))
    run(connection, f"INSERT INTO job (number) VALUES {values}")
    done = finished(command, cwd=toolchains.PROGRAMS)
    assert (done.stdout.strip(), done.returncode) == ("ok", 0), done.stderr[-3000:]
