"""The rights that `streamfrom grants` prints are what a job needs, and none of them too much; what it refuses to print."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pymysql
import pytest

from tests.fixtures.database_servers import DatabaseServer, execute, root
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, user_toml
from tests.fixtures.streams import Consumer, message_table, refused, run, value


JOBS = ("producer", "consumer", "reader", "operator")
QUEUE = message_table(
    "q",
    columns="tenant_id BIGINT, message JSON, last_error VARCHAR(1000),"
    " shown BIGINT GENERATED ALWAYS AS (tenant_id + 1) VIRTUAL",
    more=",vt_max_attempts=3,vt_dead_letter=grave",
)
GRAVE = (
    "CREATE TABLE grave (id BIGINT PRIMARY KEY, message JSON, dead_time BIGINT)"
    " COMMENT 'vt_dead_letters_of=q'"
)
_GRANT = re.compile(r"GRANT (.+) ON (\S+) TO (.+);")
_RIGHT = re.compile(r"([A-Z]+(?: [A-Z]+)*)(?: \(([^)]*)\))?")
_ids = count(1)


class Jobs:
    """A proxy before one server, with an account for each job that has what was printed for it."""

    def __init__(self, server: DatabaseServer, database: str, folder: Path) -> None:
        self.server = server
        self.database = database
        self.config = folder / "jobs.toml"
        self.folder = folder
        self.names = {job: f"{job}_{database}" for job in JOBS}
        users = "".join(user_toml(name, "x") for name in self.names.values())
        users += user_toml("root", account="shared")
        self.toml = users + keyspace_toml(database, [server])
        self.config.write_text(self.toml)
        self.proxy: RunningProxy  # once the accounts are there
        self.created = ""
        self.accounts: list[str] = []

    def printed(self, job: str, *more: str) -> list[str]:
        argv = ["grants", "--config", str(self.config), "--for", job, *more, self.names[job]]
        found = run_to_end(argv, self.folder)
        assert (found.returncode, found.stderr) == (0, ""), found.stderr
        comment, *lines = found.stdout.splitlines()
        assert comment.startswith(f"-- {self.database}/- at 127.0.0.1:{self.server.port}, ")
        self.created = comment.partition(": ")[2].replace("<password>", "x")
        return lines

    def client(self, job: str) -> "pymysql.connections.Connection[pymysql.cursors.Cursor]":
        return self.proxy.connect(
            user=self.names[job], password="x", database=self.database, autocommit=True
        )

    def direct(self, sql: str) -> None:
        execute(self.server, sql, database=self.database)

    def admin(self, sql: str) -> None:
        """Run *sql* on the shards' account through the proxy, which then asks anew who may do what."""
        run(self.proxy.connect(database=self.database, autocommit=True), sql)

    def produce(self) -> None:
        """Insert a message with all that one can have."""
        client = self.client("producer")
        sql = (
            "INSERT INTO q (id, priority, time_next, tenant_id, message)"
            f" VALUES ({next(_ids)}, 1, NOW(), 5, '{{}}')"
        )
        assert run(client, sql) == 1

    def consume(self) -> None:
        """Stream messages, keep one longer, send one back with the reason, acknowledge by itself and in a transaction."""
        self.direct("DELETE FROM q")
        client = self.client("consumer")
        # As the worker library does, which wants all columns, and the settings in the comment.
        run(client, "SHOW CREATE TABLE q")
        columns = "id, epoch, tenant_id, message, shown, last_error"
        stream = Consumer(self.client("consumer"), f"STREAM {columns} FROM q")
        try:
            one, two, three = (next(_ids) for _ in range(3))
            self.admin(f"INSERT INTO q (id) VALUES ({one}), ({two}), ({three})")
            stream.comes(one, two)
            moved = "UPDATE q SET time_next = time_next + INTERVAL 1 MINUTE WHERE id = {}"
            assert run(client, moved.format(two) + " AND time_acked IS NULL") == 1
            failed = "UPDATE q SET time_next = NOW() + INTERVAL 1 HOUR, last_error = 'no' WHERE id = {}"
            assert run(client, failed.format(two) + " AND time_acked IS NULL") == 1
            acked = "UPDATE q SET time_acked = NOW() WHERE id = {}"
            assert run(client, acked.format(one)) == 1
            run(client, "BEGIN")
            assert run(client, acked.format(two)) == 1
            run(client, "COMMIT")
        finally:
            stream.close()

    def read(self) -> None:
        client = self.client("reader")
        value(client, "SELECT COUNT(*) FROM q WHERE priority >= 0")
        run(client, "SELECT * FROM q")
        assert run(client, "SHOW CREATE TABLE q") == 1

    def operate(self) -> None:
        """Pause, look, send back, delete, requeue a dead letter, and make both tables anew."""
        self.direct("DELETE FROM q")
        self.direct("DELETE FROM grave")
        one, two = next(_ids), next(_ids)
        self.direct(f"INSERT INTO q (id, time_next) VALUES ({one}, 0)")
        self.direct(f"INSERT INTO grave (id) VALUES ({two})")
        client = self.client("operator")
        try:
            run(client, "ALTER QUEUE q PAUSE")
            run(client, "SELECT * FROM q")
            assert run(client, f"UPDATE q SET time_next = 7, epoch = 0 WHERE id = {one}") == 1
            assert run(client, f"DELETE FROM q WHERE id = {one}") == 1
            run(client, "ALTER TABLE grave COMMENT 'vt_dead_letters_of=q'")
            run(client, f"INSERT INTO q (id) VALUES ({two})")
            assert value(client, "SELECT COUNT(*) FROM grave") == 1
            assert run(client, f"DELETE FROM grave WHERE id = {two}") == 1
            run(client, "ALTER QUEUE q RESUME")
            run(client, "DROP QUEUE q")
            run(client, QUEUE)
            run(client, "DROP TABLE grave")
            run(client, GRAVE)
        finally:
            for table in (QUEUE, GRAVE):
                self.direct(table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))


@pytest.fixture
def jobs(server, database, tmp_path, start_proxy):
    made = Jobs(server, database, tmp_path)
    for table in (QUEUE, GRAVE):
        made.direct(table)
    for job in JOBS:
        lines = made.printed(job)
        execute(server, made.created)
        made.accounts.append(lines[0].partition(" TO ")[2].rstrip(";"))
        for line in lines:
            execute(server, line.rstrip(";"))
    made.proxy = start_proxy(made.toml)
    yield made
    made.proxy.close()
    for account in made.accounts:
        execute(server, f"DROP USER {account}")


def one_by_one(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each single right of GRANT statements: what, where and to whom."""
    for line in lines:
        found = _GRANT.fullmatch(line)
        assert found is not None, line
        for word, columns in _RIGHT.findall(found[1]):
            for column in columns.split(", ") if columns else [""]:
                yield f"{word} ({column})" if column else word, found[2], found[3]


def refusal(work: Callable[[], None]) -> int:
    try:
        work()
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


@pytest.mark.parametrize("job", JOBS)
def test_what_is_printed_is_enough_and_nothing_of_it_is_too_much(jobs: Jobs, job: str) -> None:
    work: Callable[[], None] = {
        "producer": jobs.produce,
        "consumer": jobs.consume,
        "reader": jobs.read,
        "operator": jobs.operate,
    }[job]
    work()
    rights = [*one_by_one(jobs.printed(job))]
    assert len(rights) >= {"producer": 5, "consumer": 13, "reader": 1, "operator": 12}[job]
    spared = []
    for right, place, account in rights:
        jobs.admin(f"REVOKE {right} ON {place} FROM {account}")
        code = refusal(work)
        if not code:
            spared.append(right)
        assert code in (0, 1044, 1142, 1143, 1146), right
        jobs.admin(f"GRANT {right} ON {place} TO {account}")
    assert spared == []
    work()


def asked(folder: Path, toml: str, *argv: str) -> tuple[int, str, str]:
    path = folder / "asked.toml"
    path.write_text(toml)
    found = run_to_end(["grants", "--config", str(path), *argv], folder)
    return found.returncode, found.stdout, found.stderr


def test_every_queue_of_every_keyspace_at_every_shard(servers, sharded_database, tmp_path):
    odd, quoted = "it's `a` 日本 queue", "`it's ``a`` 日本 queue`"
    for server in servers:
        connection = root(server, database=sharded_database, autocommit=True)
        run(connection, message_table(quoted))
        run(connection, message_table("plain"))
        run(connection, "CREATE TABLE other (id INT)")
        connection.close()
    vschema = tmp_path / "vschema.json"
    vschema.write_text('{"sharded": true}')
    toml = keyspace_toml("shop.eu", servers, sharded_database, vschema)
    code, out, errors = asked(tmp_path, toml, "--for", "reader", "o'neil")
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 6
    host = "localhost" if "`@`localhost`" in out else "127.0.0.1" if "`127." in out else "%"
    for index, server in enumerate(servers):
        comment, first, second = lines[index * 3 : index * 3 + 3]
        assert comment.startswith(
            f"-- shop.eu/{('-80', '80-')[index]} at 127.0.0.1:{server.port}"
        )
        # As it stands it makes the account, and the statements are its rights.
        execute(server, comment.partition(": ")[2].replace("<password>", "x"))
        try:
            for line in (first, second):
                assert line.endswith(f" TO `o'neil`@`{host}`;")
                execute(server, line.rstrip(";"))
            reader = root(server, user="o'neil", password="x", database=sharded_database)
            assert refused(reader, "SELECT * FROM other")[0] == 1142
            run(reader, f"SELECT * FROM {quoted}")
            reader.close()
        finally:
            execute(server, f"DROP USER `o'neil`@`{host}`")
    one = asked(tmp_path, toml, "--for", "reader", "--queue", f"shop.eu.{odd}", "o'neil")
    assert [line for line in one[1].splitlines() if not line.startswith("--")] == [
        lines[1],
        lines[4],
    ]


def test_what_cannot_be_printed_is_refused(server, database, tmp_path):
    execute(server, message_table("q"), database=database)
    execute(server, message_table("bad", more=",vt_max_rate=none"), database=database)
    toml = keyspace_toml(database, [server])
    # The operator makes it.
    code, out, _ = asked(
        tmp_path, toml, "--for", "operator", "--queue", f"{database}.none", "op"
    )
    assert code == 0
    assert f"GRANT SELECT, UPDATE, DELETE, CREATE, ALTER, DROP ON `{database}`.`none` TO" in out
    # One that cannot be used spares the others.
    code, out, _ = asked(tmp_path, toml, "--for", "reader", "r")
    assert code == 1
    assert "-- not usable: message table 'bad' failed to load: " in out
    assert f"GRANT SELECT ON `{database}`.`q` TO `r`@" in out
    nobody = toml.replace("root@", "nobody@")
    code, out, errors = asked(tmp_path, nobody, "--for", "reader", "r")
    assert (code, out) == (1, "")
    assert f"{database}/-: " in errors
    assert "Access denied" in errors


def test_commits_in_two_phases_need_a_right_of_their_own(server, database, tmp_path):
    execute(server, message_table("q"), database=database)
    toml = keyspace_toml(database, [server])
    twopc = f'[server]\ntransaction_mode = "twopc"\n{toml}'
    for job, more in (("reader", 0), ("producer", 2), ("consumer", 2), ("operator", 2)):
        _, plain, _ = asked(tmp_path, toml, "--for", job, "app")
        code, out, _ = asked(tmp_path, twopc, "--for", job, "app")
        assert code == 0
        assert out.startswith(plain)
        note_and_grant = out.removeprefix(plain).splitlines()
        assert len(note_and_grant) == more
        if more:
            assert note_and_grant[0].startswith("-- ")
            grant = "GRANT SELECT, INSERT ON streamfrom.decisions TO `app`@"
            assert note_and_grant[1].startswith(grant)
