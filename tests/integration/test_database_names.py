"""A keyspace's or target's name where servers take a database's: as on the database itself, whatever that is called."""

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import mysql.connector
import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import lines
from tests.fixtures.database_servers import DatabaseServer, execute, names, root
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, write_vschema
from tests.integration.conftest import VSCHEMA


pytestmark = pytest.mark.db

# Behind the family or the session they are for. {db} is the database in backticks, {name} in a literal. Each statement is on what the ones before it left.
STATEMENTS = lines(__file__, "test_each_statement_does_what_it_does_on_the_database_itself")


# Each name, and each place that a session may be in, a few times; all of them by --all.
CHOSEN = {
    ("same", "nowhere"), ("shop", "there"), ("shop", "elsewhere"), ("two:-80", "nowhere"), ("two:-80", "elsewhere"),
    ("two", "there"),
}  # fmt: skip


def ways(*keyspaces: str) -> list[Any]:
    """Return each of *keyspaces* with each place for a session; what is not CHOSEN runs by --all."""
    return [
        pytest.param(*way, marks=[] if way in CHOSEN else pytest.mark.thorough)
        for way in itertools.product(keyspaces, ("nowhere", "there", "elsewhere"))
    ]


class Rig(NamedTuple):
    proxy: RunningProxy
    server: DatabaseServer
    family: Family
    prefix: str

    def script(self, name: str, where: str) -> list[str]:
        """Return the statements on the database *name*, for a session that is *where*."""
        lines = []
        for line in STATEMENTS:
            family, _, sql = line.rpartition(": ")
            if family in ("", self.family.value, where):
                db = f"`{name}`"
                lines.append((sql or line).replace("{db}", db).replace("{name}", name))
        return lines

    def plain(self, value: Any) -> Any:
        """Return what an answer says without the names of databases, moments and plans that differ from run to run."""
        text = re.sub(r"datetime\.datetime\([^)]*\)", "then", str(value))
        for end in ("_two:-80", "_two_real", "_shop_real", "_direct", "_two", "_shop", "_same"):
            text = text.replace(self.prefix + end, "#")
        return text


@pytest.fixture
def rig(servers, family, start_proxy, tmp_path):
    prefix = next(names)
    real = [f"{prefix}_{end}" for end in ("direct", "same", "shop_real", "two_real")]
    for server in servers:
        for database in real:
            execute(server, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    config = (
        '[server]\nlisten = "127.0.0.1:0"\n'
        + keyspace_toml(f"{prefix}_same", servers[:1])
        + keyspace_toml(f"{prefix}_shop", servers[:1], f"{prefix}_shop_real")
        + keyspace_toml(
            f"{prefix}_two", servers, f"{prefix}_two_real", write_vschema(tmp_path, VSCHEMA)
        )
    )
    yield Rig(start_proxy(config), servers[0], family, prefix)
    for server in servers:
        for database in real:
            execute(server, f"DROP DATABASE {database}")


def answers(connection: Any, script: list[str], rig: Rig) -> list[tuple[str, str]]:
    """Run all statements; return each with its rows, or its error."""
    found = []
    for sql in script:
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql)
                rows: Any = cursor.fetchall() if cursor.description else cursor.rowcount
                while cursor.nextset():
                    rows = (rows, cursor.fetchall())
            except pymysql.MySQLError as error:
                rows = error.args
        found.append((rig.plain(sql), rig.plain(rows)))
    return found


def compare(
    rig: Rig, name: str, where: str, script: Callable[[str], list[str]], refused: str = "never"
) -> None:
    """Run a script on a database itself and, for a session that is *where*, on a keyspace's; what is *refused* is no difference."""
    direct = root(rig.server, database=f"{rig.prefix}_direct")
    expected = answers(direct, script(f"{rig.prefix}_direct"), rig)
    direct.close()
    other = "same" if name == "shop" else "shop"
    database = {"nowhere": None, "there": name, "elsewhere": other}[where]
    client = rig.proxy.connect(
        database=None if database is None else f"{rig.prefix}_{database}", autocommit=True
    )
    found = answers(client, script(f"{rig.prefix}_{name}"), rig)
    wrong = [
        pair
        for pair in zip(found, expected, strict=True)
        if pair[0] != pair[1] and refused not in pair[0][1]
    ]
    assert not wrong, "\n".join(f"{through}\n{direct[1]}" for through, direct in wrong)


@pytest.mark.parametrize(("name", "where"), ways("same", "shop", "two:-80"))
def test_each_statement_does_what_it_does_on_the_database_itself(rig, name, where):
    compare(rig, name, where, lambda database: rig.script(database, where))


@pytest.mark.parametrize("name", ["shop", "two"])
def test_a_program_that_uses_what_database_returns_stays_in_the_keyspace(rig, name):
    with rig.proxy.connect(database=f"{rig.prefix}_{name}").cursor() as cursor:
        cursor.execute("SELECT DATABASE()")
        database = cursor.fetchone()[0]
        for sql in (
            "USE information_schema",
            f"USE {database}",
            "CREATE QUEUE job (n INT)",
            f"USE {database}",
        ):
            cursor.execute(sql)
        cursor.executemany("INSERT INTO job (n) VALUES (%s)", [(n,) for n in range(8)])
        cursor.execute("COMMIT")
        cursor.execute(f"STREAM n FROM {database}.job LIMIT 8 WAIT 60")
        assert cursor.rowcount > 0


# Each says something of the database NAME, which has `item` and `f`: as phpMyAdmin, Prisma and drivers ask.
DESCRIBING = lines(__file__, "test_what_servers_tell_of_databases_has_the_names_of_keyspaces")


@pytest.mark.parametrize(("name", "where"), ways("same", "shop", "two:-80", "two"))
def test_what_servers_tell_of_databases_has_the_names_of_keyspaces(rig, name, where):
    def script(database: str) -> list[str]:
        lines = (line.rpartition(": ") for line in DESCRIBING)
        chosen = [sql for family, _, sql in lines if family in ("", rig.family.value)]
        if name == "two:-80" and where != "there":
            # No text of the statement says which of the names of that shard's database is meant.
            chosen = [sql for sql in chosen if "@s" not in sql and "PREPARE t" not in sql]
        return [
            f"CREATE TABLE `{database}`.item (id INT PRIMARY KEY, n INT)",
            f"CREATE FUNCTION `{database}`.f() RETURNS INT DETERMINISTIC RETURN 1",
            f"SET @s = '{database}'",
            *(re.sub(r"\bNAME\b", database, sql) for sql in chosen),
        ]

    compare(rig, name, where, script, refused="unsupported")


def test_show_tables_calls_its_column_after_the_keyspace(rig):
    client = rig.proxy.connect(autocommit=True)
    for name in (f"{rig.prefix}_{end}" for end in ("same", "shop", "two", "two:-80")):
        with client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS `{name}`.item (id INT PRIMARY KEY)")
            cursor.execute(f"SHOW TABLES FROM `{name}` WHERE `tables_in_{name}` = 'item'")
            assert (cursor.description[0][0], *cursor) == (f"Tables_in_{name}", ("item",))
            cursor.execute(f"USE `{name}`")
            cursor.execute("SHOW FULL TABLES LIKE 'it%'")
            assert cursor.description[0][0] == f"Tables_in_{name} (it%)"
        prepares: Any = mysql.connector.connect(port=rig.proxy.port, user="root", database=name)
        cursor = prepares.cursor(prepared=True)
        for place in ("", f"FROM `{name}`"):
            cursor.execute(f"SHOW TABLES {place} WHERE `Tables_in_{name}` = %s", ("item",))
            assert (*cursor.column_names, *cursor) == (f"Tables_in_{name}", ("item",))
        prepares.close()
