"""Servers with an account that may only read, and the statements that must not get past it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import DatabaseServer, execute, names
from tests.fixtures.running_proxy import write_vschema


VSCHEMA = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {"item": {"column_vindexes": [{"column": "id", "name": "hash"}]}},
}
# 1 and 2 are on shard -80, 4 and 6 on 80-.
ROWS = ((1, "a"), (2, "b"), (4, "d"), (6, "f"))

WRITES = (
    "DELETE FROM item",
    "DELETE FROM item WHERE id = 1",
    "UPDATE item SET name = 'pwn'",
    "UPDATE item SET name = 'pwn' WHERE id IN (1, 4)",
    "INSERT INTO item (id, name) VALUES (9, 'pwn')",
    "INSERT INTO item (id, name) VALUES (3, 'pwn'), (7, 'pwn')",
    "REPLACE INTO item (id, name) VALUES (1, 'pwn')",
    "TRUNCATE TABLE item",
    "DROP TABLE item",
    "ALTER TABLE item ADD COLUMN pwn INT",
    "CREATE TABLE pwn (id INT)",
    "CREATE TABLE pwn AS SELECT 1",
    "CREATE VIEW pwn AS SELECT 1",
    "CREATE INDEX pwn ON item (name)",
    "RENAME TABLE item TO pwn",
    "/*! DELETE */ FROM item",
    "SET GLOBAL max_connections = 11",
)
# Of an unsharded keyspace alone: a sharded one refuses what it cannot split.
DRESSED = (
    "LOCK TABLES item WRITE",
    "INSERT INTO item SELECT id + 10, name FROM item",
    "SELECT 1 INTO OUTFILE '/tmp/streamfrom-pwn'",
    "GRANT ALL ON *.* TO {ro}@'%'",
    "CREATE USER pwn@'%'",
    "DROP DATABASE {beta}",
    "CREATE DATABASE pwn",
    "DELETE FROM {beta}.secret",
    "INSERT INTO {beta}.secret VALUES ('pwn')",
    "SELECT s FROM {beta}.secret",
    "SET @x = (SELECT s FROM {beta}.secret)",
    "SHOW TABLES WHERE (SELECT s FROM {beta}.secret)",
    "SHOW CREATE TABLE {beta}.secret",
    "SELECT i.id, b.s FROM item i, {beta}.secret b",
    "SELECT user FROM mysql.user",
    "USE {beta}",
)
# What only MariaDB reads, or reads so.
OF_MARIADB = (
    "/*!50700 SELECT */ DELETE FROM item",
    "/*!50701 SHOW */ INSERT INTO item VALUES (9, 'pwn')",
    "EXECUTE IMMEDIATE 'DELETE FROM item'",
    "BEGIN NOT ATOMIC DELETE FROM item; END",
    "INSERT INTO item VALUES (9, 'pwn') RETURNING (SELECT s FROM {beta}.secret)",
    "SET STATEMENT max_statement_time = 5 FOR DELETE FROM item",
    "ANALYZE DELETE FROM item",
)
OF_MYSQL = (
    "WITH x AS (SELECT 1 AS id) DELETE FROM item WHERE id IN (SELECT id FROM x)",
    "/*M! SELECT */ DELETE FROM item",
    "/*!99999 SELECT */ DELETE FROM item",
    "EXPLAIN ANALYZE SELECT * FROM {beta}.secret",
)


@dataclass(frozen=True)
class Walled:
    """Keyspaces alpha and beta (unsharded, one server) and commerce (both), with two accounts.

    ro: the account of users who may only read; rw: the other one, which may do everything.
    """

    servers: Sequence[DatabaseServer]
    family: Family
    prefix: str

    @property
    def ro(self) -> str:
        return f"ro_{self.prefix}"

    @property
    def rw(self) -> str:
        return f"rw_{self.prefix}"

    def database(self, keyspace: str) -> str:
        return f"{self.prefix}_{keyspace}"

    def statements(self, *, sharded: bool) -> list[str]:
        """Return what the account for reading must not be able to do."""
        family = OF_MARIADB if self.family is Family.MARIADB else OF_MYSQL
        found = WRITES if sharded else (*WRITES, *DRESSED, *family)
        return [
            sql.replace("{beta}", self.database("beta")).replace("{ro}", self.ro)
            for sql in found
        ]

    def contents(self) -> list[Any]:
        """Return everything that must not change."""
        found: list[Any] = []
        for server, keyspace in (
            (self.servers[0], "alpha"),
            (self.servers[0], "beta"),
            (self.servers[0], "commerce"),
            (self.servers[1], "commerce"),
        ):
            database = self.database(keyspace)
            for (table,) in execute(server, f"SHOW TABLES FROM {database}"):
                found.append(
                    (keyspace, table, execute(server, f"SELECT * FROM {database}.{table}"))
                )
                found.append(execute(server, f"SHOW CREATE TABLE {database}.{table}"))
        for server in self.servers:
            found += execute(server, "SELECT @@GLOBAL.max_connections")
            found += execute(server, f"SHOW GRANTS FOR {self.ro}@'%'")
            found += execute(server, "SHOW DATABASES")
            found += execute(server, "SELECT user, host FROM mysql.user ORDER BY 1, 2")
        return found

    def accounts_of(self, mark: str) -> set[str]:
        """Return which of the two accounts' statements have *mark* in them, by the general log."""
        return {
            account
            for server in self.servers
            for (account,) in execute(
                server,
                "SELECT DISTINCT SUBSTRING_INDEX(user_host, '[', 1) FROM mysql.general_log"
                f" WHERE argument LIKE '%{mark}%'"
                f" AND SUBSTRING_INDEX(user_host, '[', 1) IN ('{self.ro}', '{self.rw}')",
            )
        }


def toml(walled: Walled, *, readonly: bool = True, settings: str = "") -> str:
    """Return the configuration of a proxy before *walled*."""
    lines = ["[server]", 'listen = "127.0.0.1:0"', "failover_buffer = 120", settings]
    for name, role, allowed in (
        ("root", "readwrite", None),
        ("reader", "readonly", None),
        ("areader", "readonly", ["alpha"]),
    ):
        lines += ["[[users]]", f'name = "{name}"', 'password = ""', f'role = "{role}"']
        lines += [f"keyspaces = {json.dumps(allowed)}"] if allowed else []
    for keyspace, shards in (("alpha", ("0",)), ("beta", ("0",)), ("commerce", ("-80", "80-"))):
        lines.append(f"[keyspaces.{keyspace}]")
        if len(shards) > 1:
            lines.append('vschema = "vschema.json"')
        for shard, server in zip(shards, walled.servers, strict=False):
            database = walled.database(keyspace)
            lines += [
                f"[[keyspaces.{keyspace}.shards]]",
                f'name = "{shard}"',
                f'primary = "mysql://{walled.rw}:rw@127.0.0.1:{server.port}/{database}"',
            ]
            if readonly and keyspace != "beta":
                lines.append(f'readonly = "mysql://{walled.ro}:ro@"')
    return "\n".join(lines) + "\n"


def with_accounts(
    servers: Sequence[DatabaseServer], family: Family, directory: Path
) -> Iterator[Walled]:
    """Make the keyspaces and accounts on two servers, log what is sent there, and undo it all."""
    prefix = next(names).replace("test", "w")
    made = Walled(servers, family, prefix)
    write_vschema(directory, VSCHEMA)
    for index, server in enumerate(servers):
        for keyspace in ("alpha", "beta", "commerce"):
            execute(server, f"CREATE DATABASE {made.database(keyspace)} CHARACTER SET utf8mb4")
        held = ROWS[2 * index : 2 * index + 2]
        for keyspace, some in (("alpha", ROWS), ("commerce", held)):
            database = made.database(keyspace)
            execute(
                server, f"CREATE TABLE {database}.item (id INT PRIMARY KEY, name VARCHAR(20))"
            )
            values = ", ".join(map(str, some))
            execute(server, f"INSERT INTO {database}.item VALUES {values}")
        execute(server, f"CREATE TABLE {made.database('beta')}.secret (s VARCHAR(20))")
        execute(server, f"INSERT INTO {made.database('beta')}.secret VALUES ('TOPSECRET')")
        execute(server, f"CREATE USER {made.rw}@'%' IDENTIFIED BY 'rw'")
        execute(server, f"GRANT ALL ON *.* TO {made.rw}@'%' WITH GRANT OPTION")
        execute(server, f"CREATE USER {made.ro}@'%' IDENTIFIED BY 'ro'")
        for keyspace in ("alpha", "commerce"):
            execute(server, f"GRANT SELECT ON {made.database(keyspace)}.* TO {made.ro}@'%'")
        execute(server, "SET GLOBAL log_output = 'TABLE'")
        execute(server, "SET GLOBAL general_log = 1")
    yield made
    for server in servers:
        server.start()
        execute(server, "SET GLOBAL general_log = 0")
        execute(server, "SET GLOBAL log_output = 'FILE'")
        execute(server, "TRUNCATE mysql.general_log")
        for keyspace in ("alpha", "beta", "commerce"):
            execute(server, f"DROP DATABASE IF EXISTS {made.database(keyspace)}")
        for account in (made.ro, made.rw):
            execute(server, f"DROP USER {account}@'%'")
