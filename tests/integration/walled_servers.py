"""Two keyspaces on one server behind one account that may do everything: the proxy is the only wall.

What counts is what the server itself holds afterwards, and what its secret's text is never seen in.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import DatabaseServer, execute, names, root
from tests.fixtures.running_proxy import RunningProxy, with_port
from tests.fixtures.streams import message_table


# No name of a keyspace is in it, which `Walls.sql` would replace.
SECRET = "TOPSECRETOFB"
# What alpha.other holds, which the users "narrow" and "producer" may not see.
HIDDEN = "HIDDENFROMNARROW"
ACCOUNT = "sf"
USERS = """
[[users]]
name = "boss"
account = "shared"
password = "x"
role = "admin"
[[users]]
name = "writer"
account = "shared"
password = "x"
[[users]]
name = "reader"
account = "shared"
password = "x"
role = "readonly"
[[users]]
name = "areader"
account = "shared"
password = "x"
role = "readonly"
keyspaces = ["{alpha}"]
[[users]]
name = "awriter"
account = "shared"
password = "x"
keyspaces = ["{alpha}"]
[[users]]
name = "narrow"
account = "shared"
password = "x"
tables = ["{alpha}.t", "{alpha}.msg"]
[[users]]
name = "producer"
account = "shared"
password = "x"
role = "producer"
keyspaces = ["{alpha}"]
[[users]]
name = "consumer"
account = "shared"
password = "x"
role = "consumer"
keyspaces = ["{alpha}"]
"""
KEYSPACE = """
[keyspaces.{name}]
[[keyspaces.{name}.shards]]
name = "0"
primary = "mysql://sf:sf@127.0.0.1:{port}/{name}"
"""


@dataclass
class Walls:
    """A proxy, its server, and what the server held at first.

    alpha, beta: the keyspaces, and the databases behind them.
    """

    proxy: RunningProxy
    server: DatabaseServer
    alpha: str
    beta: str
    clients: dict[str, Any] = field(default_factory=dict)

    def sql(self, text: str) -> str:
        """Return *text* with the names of this cluster for ALPHA and BETA."""
        return text.replace("ALPHA", self.alpha).replace("BETA", self.beta)

    def client(self, user: str) -> Any:
        """Return the connection of *user*, in its keyspace; a new one where it was lost."""
        found = self.clients.get(user)
        if found is None or not found.open:
            found = self.clients[user] = self.proxy.connect(
                user=user, password="x", database=self.alpha, autocommit=True,
                client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
            )  # fmt: skip
        return found

    def say(self, user: str, text: str) -> str:
        """Send *text* as *user* and return all that comes back, as one text."""
        seen = []
        client = self.client(user)
        try:
            with client.cursor() as cursor:
                cursor.execute(self.sql(text))
                seen.append(repr(cursor.fetchall()))
                while cursor.nextset():
                    seen.append(repr(cursor.fetchall()))
        except (pymysql.MySQLError, UnicodeError, OSError) as error:
            seen.append(repr(error))
            if not isinstance(error, pymysql.MySQLError) or error.args[:1] in (
                (2006,),
                (2013,),
            ):
                with suppress(Exception):
                    client.close()
                del self.clients[user]
        return " ".join(seen)

    def direct(self, text: str) -> tuple[tuple[Any, ...], ...]:
        """Run *text* on the server itself."""
        return execute(self.server, self.sql(text))

    def build(self) -> None:
        """Make both databases as they are meant to be."""
        connection = root(self.server)
        with connection.cursor() as cursor:
            for name in (self.alpha, self.beta):
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
            for statement in (
                "CREATE TABLE ALPHA.t (id INT PRIMARY KEY, s VARCHAR(40), n INT)",
                "CREATE TABLE ALPHA.other (id INT PRIMARY KEY, s VARCHAR(40))",
                "INSERT INTO ALPHA.t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)",
                f"INSERT INTO ALPHA.other VALUES (1, '{HIDDEN}')",
                "CREATE TABLE BETA.secret (id INT PRIMARY KEY, s VARCHAR(40))",
                f"INSERT INTO BETA.secret VALUES (1, '{SECRET}')",
                f"CREATE FUNCTION BETA.fn() RETURNS VARCHAR(40) DETERMINISTIC RETURN '{SECRET}'",
                "CREATE PROCEDURE BETA.p() SELECT s FROM BETA.secret",
                message_table("ALPHA.msg"),
                "INSERT INTO ALPHA.msg (id, time_next, epoch, priority, message)"
                " VALUES (1, 9000000000000000000, 0, 0, '1')",
            ):
                cursor.execute(self.sql(statement))
            if self.server.family is Family.MARIADB:
                cursor.execute(self.sql("CREATE SEQUENCE BETA.seq"))
                cursor.execute(self.sql("CREATE SEQUENCE ALPHA.seq"))
        connection.close()

    def state(self, *databases: str) -> tuple[Any, ...]:
        """Return what the server holds in *databases*: tables, programs, rows, settings."""
        found: list[Any] = []
        connection = root(self.server)
        with connection.cursor() as cursor:
            for name in databases or (self.alpha, self.beta):
                found.append(_names(cursor, name))
                cursor.execute(f"SHOW FULL TABLES FROM {name} WHERE Table_type = 'BASE TABLE'")
                for table, _ in cursor.fetchall():
                    cursor.execute(f"SELECT * FROM {name}.`{table}`")
                    found.append((table, cursor.fetchall()))
                if self.server.family is Family.MARIADB:
                    with suppress(pymysql.MySQLError):
                        cursor.execute(f"SELECT next_not_cached_value FROM {name}.seq")
                        found.append(cursor.fetchall())
        connection.close()
        return tuple(found)

    def account(self) -> Any:
        """Return what the server knows of the proxy's account and of others."""
        column = "Priv" if self.server.family is Family.MARIADB else "authentication_string"
        table = "global_priv" if self.server.family is Family.MARIADB else "user"
        return execute(
            self.server, f"SELECT user, host, {column} FROM mysql.{table} ORDER BY 1, 2"
        )


def is_told(user: str, seen: str) -> bool:
    """Return whether an answer that *user* was given shows what it must not see."""
    sees_beta = user in ("boss", "writer", "reader")
    sees_other = user not in ("narrow", "producer")
    return (SECRET in seen and not sees_beta) or (HIDDEN in seen and not sees_other)


def _names(cursor: Any, name: str) -> Any:
    cursor.execute(
        "SELECT default_character_set_name FROM information_schema.schemata WHERE schema_name = %s",
        (name,),
    )
    found = [cursor.fetchall()]
    for query in (
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s",
        "SELECT routine_name FROM information_schema.routines WHERE routine_schema = %s",
        "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = %s",
        "SELECT table_name, column_name, column_type FROM information_schema.columns"
        " WHERE table_schema = %s",
    ):
        cursor.execute(query, (name,))
        found.append(sorted(cursor.fetchall()))
    return found


def walls(server: DatabaseServer, folder: Path) -> Iterator[Walls]:
    """Yield a cluster of this kind on *server*."""
    prefix = next(names)
    alpha, beta = f"{prefix}_alpha", f"{prefix}_beta"
    for statement in (
        f"CREATE USER IF NOT EXISTS {ACCOUNT}@'%' IDENTIFIED BY 'sf'",
        f"GRANT ALL ON *.* TO {ACCOUNT}@'%' WITH GRANT OPTION",
    ):
        execute(server, statement)
    config = folder / "walls.toml"
    config.write_text(
        with_port(
            USERS.replace("{alpha}", alpha)
            + KEYSPACE.format(name=alpha, port=server.port)
            + KEYSPACE.format(name=beta, port=server.port)
        )
    )
    cluster = Walls(None, server, alpha, beta)  # type: ignore[arg-type]
    cluster.build()
    cluster.proxy = RunningProxy(config)
    yield cluster
    cluster.proxy.close()
    for statement in (
        f"DROP DATABASE IF EXISTS {alpha}",
        f"DROP DATABASE IF EXISTS {beta}",
        f"DROP USER IF EXISTS {ACCOUNT}@'%'",
    ):
        execute(server, statement)
