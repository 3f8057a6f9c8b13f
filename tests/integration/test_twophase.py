"""transaction_mode = "twopc": everywhere or nowhere, whoever is killed at whichever step.

A transaction here begins in the unsharded keyspace `plain`, so that is its first shard, and goes on
to both shards of `commerce`. Each shard stands behind a `Relay`, which stops the proxy at
a chosen statement of the commit.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import DatabaseServer, execute, names
from tests.fixtures.relay import Relay
from tests.fixtures.running_proxy import RunningProxy, StartProxy, keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, refused, rows, run


LOW, HIGH = 1, (1 << 63) + 1  # ids on shard -80 and on shard 80-
DECIDE = b"SELECT 'streamfrom:"
PREPARE = b"XA PREPARE"
COMMIT = b"\x03COMMIT"
XA_COMMIT = b"XA COMMIT"
VSCHEMA = {
    "sharded": True,
    "vindexes": {"numeric": {"type": "numeric"}},
    "tables": {"customer": {"column_vindexes": [{"column": "id", "name": "numeric"}]}},
}
SETTINGS = """[server]
listen = "127.0.0.1:0"
transaction_mode = "twopc"
recovery_grace = 0.3
failover_buffer = 2
schema_reload = 1
"""


class Stage:
    """Three shards on two servers, each behind a relay: plain, commerce/-80, commerce/80-."""

    def __init__(
        self,
        servers: tuple[DatabaseServer, DatabaseServer],
        folder: Path,
        start_proxy: StartProxy,
    ) -> None:
        prefix = next(names)
        self.servers = (servers[0], servers[0], servers[1])
        self.databases = (f"{prefix}_plain", f"{prefix}_shop", f"{prefix}_shop")
        for server, database in zip(self.servers, self.databases, strict=True):
            execute(server, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
            create = "CREATE TABLE customer (id BIGINT UNSIGNED PRIMARY KEY, n INT)"
            execute(server, create, database=database)
        self.wires = tuple(Relay(server.port) for server in self.servers)
        plain, low, high = self.wires
        self.config = (
            SETTINGS
            + keyspace_toml("plain", [plain], self.databases[0])
            + keyspace_toml(
                "commerce", [low, high], self.databases[1], write_vschema(folder, VSCHEMA)
            )
        )
        self._start_proxy = start_proxy

    def proxy(self, config: str | None = None) -> RunningProxy:
        return self._start_proxy(config or self.config)

    def direct(self, shard: int, sql: str) -> tuple[tuple[Any, ...], ...]:
        return execute(self.servers[shard], sql, database=self.databases[shard])

    def ids(self) -> list[list[int]]:
        asked = "SELECT id FROM customer ORDER BY id"
        return [[ident for (ident,) in self.direct(shard, asked)] for shard in range(3)]

    def decisions(self) -> int:
        """How many transactions that began on the first shard have a decision there."""
        asked = "SELECT COUNT(*) FROM streamfrom.decisions WHERE id LIKE 'streamfrom:%'"
        ((count,),) = self.direct(0, asked)
        return int(count)

    def prepared(self) -> list[Any]:
        tables = [
            self.direct(
                shard,
                "SELECT branches FROM streamfrom.decisions"
                " WHERE id = CONCAT('self ', LEFT(SHA2(DATABASE(), 256), 32))",
            )
            for shard in range(3)
        ]
        own = [value.split()[0].decode() for ((value,),) in tables]
        return [
            name
            for server in self.servers[1:]
            for *_, name in execute(server, "XA RECOVER")
            if any(table in str(name) for table in own)
        ]

    def looks(self) -> int:
        """How often somebody has looked for what is prepared on the second server."""
        ((_, number),) = execute(self.servers[2], "SHOW GLOBAL STATUS LIKE 'Com_xa_recover'")
        return int(number)

    def commit_killed_at(self, client: Any, shard: int, text: bytes, *, after: bool) -> str:
        """Commit, and kill a shard's server at *text*; return the words of the error."""
        self.wires[shard].arm(text, after=after)
        committing = in_thread(lambda: refused(client, "COMMIT"))
        self.wires[shard].wait()
        self.servers[shard].kill()
        self.release()
        code, words = committing()
        assert code == 1105
        return str(words)

    def release(self) -> None:
        for wire in self.wires:
            wire.release()

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        for server, database in zip(self.servers, self.databases, strict=True):
            execute(server, f"DROP DATABASE IF EXISTS {database}")


@pytest.fixture
def stage(servers, tmp_path, start_proxy):
    made = Stage(servers, tmp_path, start_proxy)
    yield made
    made.close()


@pytest.fixture
def breakable_stage(breakable_servers, tmp_path, start_proxy):
    made = Stage(breakable_servers, tmp_path, start_proxy)
    yield made
    for server in breakable_servers:
        server.start()
    made.close()


def insert_everywhere(
    proxy: RunningProxy, *, plus: int = 0, **options: Any
) -> "pymysql.Connection[Any]":
    """Return a client with an open transaction that has one row on each shard."""
    client = proxy.connect(database="plain", **options)
    run(client, "BEGIN")
    run(client, f"INSERT INTO customer (id) VALUES ({LOW + plus})")
    run(client, f"INSERT INTO commerce.customer (id) VALUES ({LOW + plus}), ({HIGH + plus})")
    return client


# --- without trouble -----------------------------------------------------------------------


def test_a_transaction_over_shards_commits_and_leaves_nothing_behind(stage: Stage) -> None:
    proxy = stage.proxy()
    others = stage.decisions()  # of proxies that are gone
    client = insert_everywhere(proxy)
    assert stage.ids() == [[], [], []]
    client.commit()
    assert stage.ids() == [[LOW], [LOW], [HIGH]]
    assert stage.prepared() == []
    eventually(lambda: stage.decisions() == others, "the decision is forgotten")
    client = insert_everywhere(proxy, plus=100)
    run(client, "SAVEPOINT here")
    run(client, "UPDATE commerce.customer SET n = 7")
    run(client, "ROLLBACK TO here")
    client.rollback()
    assert stage.ids() == [[LOW], [LOW], [HIGH]]
    # The connections that took part are as good as any.
    run(client, "BEGIN")
    run(client, "SELECT * FROM customer")
    client.commit()


def test_without_autocommit_and_for_one_write_to_several_shards_it_is_the_same(stage):
    proxy = stage.proxy()
    client = proxy.connect(database="commerce", autocommit=False)
    assert rows(client, "SELECT id FROM customer ORDER BY id") == ()
    run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
    run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
    run(client, "SHOW TABLES")
    client.commit()
    run(client, "DELETE FROM customer")
    client.rollback()
    assert stage.ids() == [[], [LOW], [HIGH]]
    client.autocommit(True)
    run(client, f"INSERT INTO customer (id) VALUES ({LOW + 1}), ({HIGH + 1})")
    assert refused(client, f"INSERT INTO customer (id) VALUES ({LOW + 2}), ({HIGH})")[0] == 1062
    assert stage.ids() == [[], [LOW, LOW + 1], [HIGH, HIGH + 1]]
    assert stage.prepared() == []


def test_what_may_commit_by_itself_is_refused_beside_other_shards(stage: Stage) -> None:
    stage.direct(0, "CREATE PROCEDURE p() COMMIT")
    proxy = stage.proxy()
    client = insert_everywhere(proxy)
    for sql in ("CALL p()", "LOCK TABLES customer WRITE", "XA START 'x'"):
        code, text = refused(client, sql)
        assert (code, text.partition(":")[0]) == (1235, "unsupported"), sql
        assert 'transaction_mode = "twopc"' in text
    client.commit()
    assert stage.ids() == [[LOW], [LOW], [HIGH]]
    # On one shard they are that server's own affair. XA would refuse most of them there too.
    for sql in (
        "CALL p()",
        "CREATE TEMPORARY TABLE scratch (n INT)",
        "SELECT * FROM scratch",
        "LOCK TABLES customer WRITE",
        "UNLOCK TABLES",
        "TRUNCATE customer",
    ):
        run(client, "BEGIN")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW + 1})")
        run(client, sql)
        run(client, f"DELETE FROM customer WHERE id = {LOW + 1}")
        client.commit()


# --- somebody dies -------------------------------------------------------------------------

# What is known, the relay's shard, its text, behind the text or before, does it survive.
STEPS = (
    ("the decision is not written", 0, DECIDE, False, False),
    ("the decision is written, nothing prepared", 0, DECIDE, True, False),
    ("one of two is prepared", 1, PREPARE, False, False),
    ("both are prepared, one is not known to be", 1, PREPARE, True, False),
    ("all is prepared", 0, COMMIT, False, False),
    ("it is committed, which is not known", 0, COMMIT, True, True),
    ("one of two has followed", 1, XA_COMMIT, False, True),
    ("both have followed, one is not known to have", 1, XA_COMMIT, True, True),
)


@pytest.fixture
def ann(stage: Stage) -> Iterator[dict[str, str]]:
    """A user whose account may write to the tables and note decisions, and nothing else."""
    stage.proxy().stop()  # it has made the table of decisions
    try:
        for shard, (server, database) in enumerate(
            zip(stage.servers, stage.databases, strict=True)
        ):
            if shard != 1:  # its server is the first one's
                execute(server, "CREATE USER ann@'%' IDENTIFIED BY 'x'")
                execute(server, "GRANT SELECT, INSERT ON streamfrom.decisions TO ann@'%'")
            execute(server, f"GRANT SELECT, INSERT ON {database}.customer TO ann@'%'")
        yield {"user": "ann", "password": "x"}
    finally:
        for server in stage.servers[1:]:
            execute(server, "DROP USER IF EXISTS ann@'%'")


@pytest.mark.slow
def test_a_proxy_killed_at_any_step_leaves_all_or_nothing(stage, ann):
    config = stage.config + '[[users]]\nname = "ann"\npassword = "x"\n'
    proxy = stage.proxy(config)
    expected: list[list[int]] = [[], [], []]
    for number, (what, shard, text, is_after, survives) in enumerate(STEPS):
        client = insert_everywhere(proxy, plus=number, **ann)
        stage.wires[shard].arm(text, after=is_after)
        committing = in_thread(client.commit)
        stage.wires[shard].wait()
        proxy.kill()
        stage.release()
        committing()
        if survives:
            for ids, first in zip(expected, (LOW, LOW, HIGH), strict=True):
                ids.append(first + number)
        proxy = stage.proxy(config)
        eventually(lambda: stage.prepared() == [], f"{what}: nothing is in doubt")
        assert stage.ids() == expected, what


@pytest.mark.slow
def test_two_proxies_agree_on_what_a_third_one_left(stage: Stage) -> None:
    proxy = stage.proxy()
    for number, (text, is_after) in enumerate(((COMMIT, True), (COMMIT, False))):
        client = insert_everywhere(proxy, plus=number)
        others = [stage.proxy(), stage.proxy()]
        stage.wires[0].arm(text, after=is_after)
        committing = in_thread(client.commit)
        stage.wires[0].wait()
        if not is_after:
            # It is alive, only slow: the others leave its transaction alone.
            eventually(lambda: len(stage.prepared()) == 2, "it is prepared")
            enough = stage.looks() + 20
            eventually(lambda: stage.looks() >= enough, "the others look often")  # noqa: B023
            assert len(stage.prepared()) == 2
        proxy.kill()
        stage.release()
        committing()
        eventually(lambda: stage.prepared() == [], "nothing is in doubt")
        assert stage.ids() == [[LOW], [LOW], [HIGH]]
        proxy, unused = others
        unused.stop()


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_the_deciding_server_killed_in_its_commit(breakable_stage, is_after):
    stage = breakable_stage
    proxy = stage.proxy()
    client = proxy.connect(database="commerce")
    run(client, "BEGIN")
    run(client, f"INSERT INTO customer (id) VALUES ({LOW}), ({HIGH})")
    text = stage.commit_killed_at(client, 1, COMMIT, after=is_after)
    assert text.startswith(
        "whether the transaction is committed is not known: shard 'commerce/-80' was lost while"
        " it committed. It is prepared on commerce/80- and will be completed or rolled back there"
    )
    stage.servers[1].start()
    eventually(lambda: stage.prepared() == [], "nothing is in doubt")
    assert stage.ids() == ([[], [LOW], [HIGH]] if is_after else [[], [], []])


@pytest.mark.slow
def test_another_server_killed_before_it_could_follow(breakable_stage: Stage) -> None:
    stage = breakable_stage
    client = insert_everywhere(stage.proxy())
    text = stage.commit_killed_at(client, 2, XA_COMMIT, after=False)
    assert text.startswith(
        "the transaction is committed, but not to be seen yet on commerce/80- ("
    )
    assert text.endswith("it is prepared there and will be completed: do not repeat it")
    stage.servers[2].start()
    eventually(lambda: stage.prepared() == [], "nothing is in doubt")
    assert stage.ids() == [[LOW], [LOW], [HIGH]]
