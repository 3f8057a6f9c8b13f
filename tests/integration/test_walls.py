"""What `streamfrom check` and the log say of accounts, and that the statements they print cure it."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import DatabaseServer, execute, names, root
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.running_proxy import HERE, StartProxy
from tests.fixtures.streams import refused, rows, value


pytestmark = pytest.mark.db
PASSWORD = "correct-horse"


class Places:
    """Two keyspaces, alpha and beta, on one server, and the accounts that a test makes there."""

    def __init__(self, server: DatabaseServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.prefix = next(names).replace("test", "w")
        self.one = f"one_{self.prefix}"
        self.accounts = {
            "alpha": {
                "primary": f"mysql://{self.one}:x@127.0.0.1:{server.port}/{self.of('alpha')}"
            },
            "beta": {
                "primary": f"mysql://{self.one}:x@localhost:{server.port}/{self.of('beta')}"
            },
        }

    def of(self, keyspace: str) -> str:
        return f"{self.prefix}_{keyspace}"

    def config(self) -> str:
        lines = ["[server]", 'listen = "127.0.0.1:0"']
        for name, role, allowed in (
            ("root", "readwrite", ""),
            ("areader", "readonly", '["alpha"]'),
            ("awriter", "readwrite", '["alpha"]'),
        ):
            lines += ["[[users]]", f'name = "{name}"', 'password = ""', f'role = "{role}"']
            lines += [f"keyspaces = {allowed}"] if allowed else []
        for keyspace, keys in self.accounts.items():
            lines += [
                f"[keyspaces.{keyspace}]",
                f"[[keyspaces.{keyspace}.shards]]",
                'name = "0"',
            ]
            lines += [f'{key} = "{text}"' for key, text in keys.items()]
        return "\n".join(lines) + "\n"

    def check(self) -> list[str]:
        """Return the lines of `streamfrom check` that are about accounts; it finds no fault."""
        path = self.folder / "checked.toml"
        path.write_text(self.config())
        found = run_to_end(["check", "--config", str(path)], self.folder)
        assert found.returncode == 0, found.stdout + found.stderr
        assert PASSWORD not in found.stdout
        return [line for line in found.stdout.splitlines() if "account" in line]

    def cure(self, line: str) -> None:
        """Paste the statements of a line, as an operator would."""
        for sql in re.search(r"(?:run on its server|run there)[:;] (.*)", line)[1].split("; "):  # type: ignore[index]
            execute(self.server, sql.replace("<password>", PASSWORD))

    def new_account(self, line: str) -> str:
        """Return the user that a line's statements make."""
        found = re.search(r"CREATE USER '(\w+)'@", line)
        assert found is not None
        return found[1]


@pytest.fixture
def places(server: DatabaseServer, tmp_path: Path) -> Iterator[Places]:
    made = Places(server, tmp_path)
    before = {user for (user,) in execute(server, "SELECT user FROM mysql.user")}
    for keyspace in ("alpha", "beta"):
        execute(server, f"CREATE DATABASE {made.of(keyspace)} CHARACTER SET utf8mb4")
        execute(server, f"CREATE TABLE {made.of(keyspace)}.item (s VARCHAR(20))")
        execute(server, f"INSERT INTO {made.of(keyspace)}.item VALUES ('{keyspace}')")
    execute(server, f"CREATE USER {made.one}@'%' IDENTIFIED BY 'x'")
    execute(server, f"GRANT ALL ON *.* TO {made.one}@'%'")
    yield made
    for user, host in execute(server, "SELECT user, host FROM mysql.user"):
        if user not in {*before, "PUBLIC"}:
            execute(server, f"DROP USER '{user}'@'{host}'")
    for keyspace in ("alpha", "beta"):
        execute(server, f"DROP DATABASE {made.of(keyspace)}")


def as_account(server: DatabaseServer, user: str, sql: str) -> Any:
    connection = root(server, user=user, password=PASSWORD)
    try:
        return value(connection, sql) if sql.startswith("SELECT") else refused(connection, sql)
    finally:
        connection.close()


def test_the_statements_that_are_printed_make_the_walls(
    places: Places, start_proxy: StartProxy, family: Family
) -> None:
    server = places.server
    reading, reaching = places.check()
    assert reading.startswith(
        "warning  alpha/0: only the proxy keeps user areader from writing, as the shard has no readonly"
    )
    assert reaching.startswith(
        f"warning  alpha/0: account '{places.one}'@'%' of primary reaches keyspace beta too, which users"
        " areader, awriter must not see and only the proxy hides;"
    )
    # The log says the same.
    proxy = start_proxy(places.config())
    proxy.wait_for_log("only the proxy keeps user areader from writing")
    proxy.wait_for_log("reaches keyspace beta too")
    proxy.close()

    for line, key in ((reading, "readonly"), (reaching, "primary")):
        places.cure(line)
        account = f"{places.new_account(line)}:{PASSWORD}"
        place = f"127.0.0.1:{server.port}/{places.of('alpha')}" if key == "primary" else ""
        places.accounts["alpha"][key] = f"mysql://{account}@{place}"
    assert places.check() == [
        "ok       alpha/0: readonly account 'streamfrom_alpha_reader'@'%' may read and no more"
    ]
    reader, writer = places.new_account(reading), places.new_account(reaching)
    table = f"{places.of('alpha')}.item"
    assert as_account(server, reader, f"SELECT s FROM {table}") == "alpha"
    assert as_account(server, reader, f"DELETE FROM {table}")[0] == 1142
    assert as_account(server, writer, f"SELECT s FROM {table}") == "alpha"
    for user in (reader, writer):
        if family is Family.MYSQL:
            # Whoever gets a text past the proxy cannot lock the proxy out.
            assert as_account(server, user, "SET PASSWORD = 'stolen'")[0] == 3892
        assert as_account(server, user, f"DELETE FROM {places.of('beta')}.item")[0] == 1142
    proxy = start_proxy(places.config())
    for user in ("areader", "awriter"):
        client = proxy.connect(user=user, database="alpha", autocommit=True)
        assert value(client, "SELECT s FROM item") == "alpha"
    assert "only the proxy" not in proxy.log()


@pytest.mark.parametrize("way", ["itself", "role", "role of a role", "everybody", "a routine"])
def test_an_account_of_readers_that_can_write_is_found_and_cured(
    places: Places, family: Family, way: str
) -> None:
    if way == "everybody" and family is Family.MYSQL:
        pytest.skip("MySQL has no PUBLIC")
    server, table = places.server, f"{places.of('alpha')}.item"
    reader, inner, outer = (f"{what}_{places.prefix}" for what in ("ro", "inner", "outer"))
    execute(server, f"CREATE USER {reader}@'%' IDENTIFIED BY '{PASSWORD}'")
    execute(server, f"GRANT SELECT ON {places.of('alpha')}.* TO {reader}@'%'")
    places.accounts["alpha"]["readonly"] = f"mysql://{reader}:{PASSWORD}@"
    ok = f"ok       alpha/0: readonly account '{reader}'@'%' may read and no more"
    assert ok in places.check()
    match way:
        case "itself":
            execute(server, f"GRANT INSERT (s) ON {table} TO {reader}@'%'")
        case "everybody":
            execute(server, f"GRANT INSERT ON {table} TO PUBLIC")
        case "a routine":
            execute(server, f"GRANT EXECUTE ON {places.of('alpha')}.* TO {reader}@'%'")
        case _:
            for role in (inner, outer):
                execute(server, f"CREATE ROLE {role}")
            execute(server, f"GRANT INSERT ON {places.of('alpha')}.* TO {inner}")
            execute(server, f"GRANT {inner} TO {outer}")
            execute(server, f"GRANT {inner if way == 'role' else outer} TO {reader}@'%'")
    try:
        (line,) = [line for line in places.check() if f"'{reader}'" in line]
        assert line.startswith(
            f"warning  alpha/0: readonly account '{reader}'@'%' may do more than "
        )
        assert ("EXECUTE" if way == "a routine" else "INSERT") in line
        places.cure(line)
        assert ok in places.check()
        assert as_account(server, reader, f"SELECT s FROM {table}") == "alpha"
        assert as_account(server, reader, f"INSERT INTO {table} VALUES (1)")[0] == 1142
    finally:
        if "role" in way:
            for role in (inner, outer):
                execute(server, f"DROP ROLE {role}")


def test_one_that_cannot_log_in_is_a_fault(places: Places) -> None:
    places.accounts["alpha"]["readonly"] = f"mysql://nobody_{places.prefix}:{PASSWORD}@"
    with pytest.raises(
        AssertionError, match=r"fault +alpha/0: readonly account 'nobody_\w+'@'%': .*Acc"
    ):
        places.check()


# What the image of MariaDB has its scripts call, with SQL on standard output.
ENTRYPOINT = r"""
docker_process_sql() { cat; }
docker_sql_escape_string_literal() { printf %s "$1" | sed "s/\\\\/&&/g; s/'/''/g"; }
. examples/reader.sh
"""


def test_the_script_of_the_compose_file_makes_an_account_that_reads(
    mariadb: DatabaseServer,
) -> None:
    password = "it's\\here"
    found = subprocess.run(
        ["bash", "-c", ENTRYPOINT],
        cwd=HERE,
        env={"READER_PASSWORD": password, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    create, grant = found.stdout.strip().splitlines()
    try:
        execute(mariadb, create)
        execute(mariadb, grant)
        connection = root(mariadb, user="streamfrom_reader", password=password)
        granted = [line for (line,) in rows(connection, "SHOW GRANTS")]
        connection.close()
        assert "GRANT SELECT, SHOW VIEW ON `commerce`.* TO `streamfrom_reader`@`%`" in granted
    finally:
        execute(mariadb, "DROP USER streamfrom_reader@'%'")
