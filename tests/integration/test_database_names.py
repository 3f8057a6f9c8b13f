"""A keyspace's or target's name where servers take a database's: as on the database itself, whatever that is called."""

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import DatabaseServer, execute, names, root
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, write_vschema
from tests.integration.conftest import VSCHEMA


pytestmark = pytest.mark.db

# Behind the family or the session they are for. {db} is the database in backticks, {name} in a literal. Each statement is on what the ones before it left.
STATEMENTS = """
DROP TABLE IF EXISTS {db}.item, {db}.copy, {db}.renamed, {db}.log
CREATE TABLE {db}.item (id INT PRIMARY KEY, n INT, KEY (n))
CREATE TABLE {db}.log LIKE {db}.item
INSERT INTO {db}.item (id, n) VALUES (1, 10), (2, 20)
REPLACE INTO {db}.item VALUES (3, 30)
UPDATE {db}.item SET n = n + 1 WHERE {db}.item.id = 1
DELETE FROM {db}.item WHERE id = 3
SELECT {db}.item.n FROM {db}.item ORDER BY {db}.item.id
SELECT i.n, j.n FROM {db}.item i, {db}.item AS j WHERE i.id = j.id ORDER BY 1
SELECT n FROM {db}.item WHERE id IN (SELECT id FROM {db}.item WHERE n > 15)
INSERT INTO {db}.log SELECT * FROM {db}.item
EXPLAIN SELECT * FROM {db}.item WHERE id = 1
EXPLAIN FORMAT=JSON UPDATE {db}.item SET n = 1 WHERE id = 77
DESCRIBE {db}.item
DESC {db}.item n
mariadb: ANALYZE SELECT * FROM {db}.item WHERE id = 77
mysql: EXPLAIN FOR SCHEMA {db} SELECT * FROM item WHERE id = 1
CREATE FUNCTION {db}.f(x INT) RETURNS INT DETERMINISTIC RETURN x + 5
CREATE PROCEDURE {db}.p(x INT) SELECT n FROM {db}.item WHERE id = x
CREATE PROCEDURE {db}.q() BEGIN DECLARE item INT; SELECT {db}.f(i.n) INTO item FROM {db}.item i WHERE i.id = 1; INSERT INTO {db}.log VALUES (50, item); CALL {db}.p(1); END
CALL {db}.p(2)
CALL {db}.q()
SELECT n FROM {db}.log WHERE id = 50
SELECT {db}.f(1) AS a
SELECT {db}.f({db}.f(n)) AS b FROM {db}.item WHERE n > {db}.f(1) ORDER BY b
DO {db}.f(1)
SET @a = {db}.f(2), @b = (SELECT MAX(n) FROM {db}.item)
SELECT @a, @b
SHOW CREATE FUNCTION {db}.f
SHOW CREATE PROCEDURE {db}.p
SHOW PROCEDURE STATUS WHERE Db = '{name}' AND Name = 'nothing'
ALTER PROCEDURE {db}.p COMMENT 'x'
ALTER FUNCTION {db}.f COMMENT 'x'
CREATE TABLE {db}.copy (a INT DEFAULT 1, b INT CHECK (b > 0))
mysql: ALTER TABLE {db}.copy ADD FOREIGN KEY (a) REFERENCES {db}.item (id)
CREATE VIEW {db}.v AS SELECT i.n, {db}.f(i.n) AS m FROM {db}.item i
SELECT * FROM {db}.v ORDER BY n
SHOW CREATE VIEW {db}.v
ALTER VIEW {db}.v AS SELECT {db}.item.n FROM {db}.item
SELECT * FROM {db}.v ORDER BY n
CREATE TRIGGER {db}.tg AFTER INSERT ON {db}.item FOR EACH ROW INSERT INTO {db}.log VALUES (NEW.id, {db}.f(NEW.n))
INSERT INTO {db}.item VALUES (9, 90)
SELECT n FROM {db}.log WHERE id = 9
SHOW CREATE TRIGGER {db}.tg
DROP TRIGGER {db}.tg
DROP TRIGGER IF EXISTS {db}.tg
CREATE EVENT {db}.ev ON SCHEDULE AT '2030-01-01' DISABLE DO DELETE FROM {db}.log
ALTER EVENT {db}.ev RENAME TO {db}.ew
SHOW CREATE EVENT {db}.ew
DROP EVENT {db}.ew
mariadb: CREATE SEQUENCE {db}.sq START WITH 5
mariadb: SELECT NEXTVAL({db}.sq), LASTVAL({db}.sq), SETVAL({db}.sq, 9), NEXT VALUE FOR {db}.sq
mariadb: SHOW CREATE SEQUENCE {db}.sq
mariadb: ALTER SEQUENCE {db}.sq RESTART 3
mariadb: CREATE OR REPLACE TABLE {db}.copy (a INT DEFAULT NEXTVAL({db}.sq))
mariadb: DROP TABLE {db}.copy
mariadb: DROP SEQUENCE {db}.sq
PREPARE s FROM 'SELECT n FROM {db}.item WHERE id = 1'
EXECUTE s
PREPARE s FROM 'SELECT ''it''''s'', {db}.f(n) FROM {db}.item i WHERE i.id = ?'
EXECUTE s USING @a
SET @t = 'INSERT INTO {db}.log VALUES (60, {db}.f(1))'
PREPARE s FROM @t
EXECUTE s
DEALLOCATE PREPARE s
mariadb: EXECUTE IMMEDIATE 'SELECT n FROM {db}.log WHERE id = 60'
mariadb: BEGIN NOT ATOMIC DECLARE x INT DEFAULT {db}.f(1); DELETE FROM {db}.log WHERE id = x; SELECT COUNT(*) FROM {db}.log; END
CHECKSUM TABLE {db}.item, {db}.log
CHECK TABLE {db}.item
OPTIMIZE TABLE {db}.log
REPAIR TABLE {db}.log
ANALYZE TABLE {db}.item
LOCK TABLES {db}.item READ, {db}.log AS l WRITE
SELECT COUNT(*) FROM {db}.item
UNLOCK TABLES
FLUSH TABLES {db}.item
HANDLER {db}.item OPEN AS h
there: HANDLER h READ FIRST
there: HANDLER h CLOSE
CREATE INDEX i2 ON {db}.item (n, id)
DROP INDEX i2 ON {db}.item
ALTER TABLE {db}.log RENAME TO {db}.renamed
RENAME TABLE {db}.renamed TO {db}.log
TRUNCATE TABLE {db}.log
SHOW COLUMNS FROM {db}.item
SHOW INDEX FROM item FROM {db}
SHOW CREATE TABLE {db}.item
SHOW TABLES FROM {db} LIKE 'ite%'
SHOW FULL TABLES IN {db} WHERE Table_type = 'VIEW'
SHOW TRIGGERS FROM {db}
SHOW EVENTS FROM {db}
SHOW CREATE DATABASE {db}
ALTER DATABASE {db} CHARACTER SET utf8mb4
DROP VIEW {db}.v
DROP PROCEDURE {db}.p
DROP PROCEDURE {db}.q
DROP FUNCTION {db}.f
DROP TABLE {db}.nothing
SELECT * FROM {db}.nothing
""".strip().splitlines()


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


TABLES = "SELECT table_name FROM information_schema.tables WHERE table_name = 'item' AND "
# Each says something of the database NAME, which has `item` and `f`: as phpMyAdmin, Prisma and drivers ask.
DESCRIBING = f"""
{TABLES}table_schema = 'NAME'
{TABLES}table_schema COLLATE utf8mb3_bin = 'NAME'
{TABLES}(table_schema, table_name) IN (('NAME', 'item'))
SELECT `TABLE_SCHEMA` AS `Db`, `TABLE_NAME` AS `Name` FROM `information_schema`.`TABLES` t WHERE `TABLE_SCHEMA` COLLATE utf8mb3_bin IN ('NAME') AND t.`TABLE_NAME` COLLATE utf8mb3_bin = 'item' ORDER BY Name ASC
SELECT *, CAST(BIN_NAME AS CHAR CHARACTER SET utf8mb3) AS SCHEMA_NAME FROM (SELECT BINARY s.SCHEMA_NAME AS BIN_NAME, s.DEFAULT_COLLATION_NAME, COUNT(t.TABLE_SCHEMA) > 0 FROM `information_schema`.SCHEMATA s LEFT JOIN `information_schema`.TABLES t ON BINARY t.TABLE_SCHEMA = BINARY s.SCHEMA_NAME WHERE SCHEMA_NAME COLLATE utf8mb3_bin = 'NAME' GROUP BY BINARY s.SCHEMA_NAME, s.DEFAULT_COLLATION_NAME) a
SELECT TRIGGER_SCHEMA FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA COLLATE utf8mb3_bin= 'NAME'
{TABLES}LOWER(table_schema) = 'NAME'
{TABLES}table_schema = IFNULL('NAME', DATABASE())
{TABLES}table_schema REGEXP '^NAME$'
{TABLES}CONCAT(table_schema, '.', table_name) = 'NAME.item'
{TABLES}table_schema = @s
{TABLES}table_schema IN (SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'NAME')
SELECT table_schema AS s, table_name FROM information_schema.tables WHERE table_name = 'item' HAVING s = 'NAME'
SELECT COUNT(*) > 0 FROM information_schema.tables GROUP BY table_schema HAVING table_schema = 'NAME'
SELECT * FROM information_schema.schemata WHERE schema_name = 'NAME'
SELECT information_schema.tables.table_schema FROM information_schema.tables WHERE table_name = 'item' AND table_schema LIKE 'NAME'
SELECT c.column_name FROM information_schema.tables t JOIN information_schema.columns AS c USING (table_schema, table_name) WHERE t.table_schema = 'NAME' AND table_name = 'item' ORDER BY 1
SELECT COUNT(*) FROM information_schema.statistics s WHERE EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = s.table_schema AND c.table_schema = 'NAME' AND c.table_name = 'item') AND table_name = 'item'
SELECT routine_name FROM information_schema.routines WHERE BINARY routine_schema = 'NAME'
mariadb: SELECT name FROM mysql.proc WHERE db = 'NAME'
SHOW FUNCTION STATUS WHERE LOWER(Db) = 'NAME' AND Name = 'nothing'
PREPARE s FROM 'SELECT table_name FROM information_schema.tables WHERE LOWER(table_schema) = ''NAME'' AND table_name = ''item'''
EXECUTE s
PREPARE t FROM 'SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_name = ''item'''
EXECUTE t USING @s
SELECT DISTINCT BINARY t.table_name AS table_name, t.create_options AS create_options FROM information_schema.tables AS t JOIN information_schema.columns AS c ON BINARY c.table_name = BINARY t.table_name WHERE t.table_schema = 'NAME' AND c.table_schema = 'NAME' AND t.table_type = 'BASE TABLE' AND t.table_name = 'item' ORDER BY BINARY t.table_name
SELECT index_name AS index_name, sub_part AS part, collation AS direction FROM information_schema.statistics WHERE table_schema = 'NAME' AND table_name = 'item' ORDER BY table_name, index_name, seq_in_index
SELECT tc.table_schema AS namespace, LOWER(LEFT(tc.constraint_type, 1)) AS kind, cc.check_clause FROM information_schema.TABLE_CONSTRAINTS tc LEFT JOIN information_schema.CHECK_CONSTRAINTS cc ON cc.constraint_schema = tc.table_schema AND cc.constraint_name = tc.constraint_name WHERE tc.table_schema = 'NAME' AND tc.table_name = 'item' ORDER BY namespace, kind
""".strip().splitlines()  # fmt: skip


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
