"""A table moves from two shards to four, copied live, killed, run again, and compared."""

import dataclasses
import time

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs import reshard
from tests.fixtures.database_servers import execute as on_server, fresh_database
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema
from tests.fixtures.streams import message_table, rows as rows_of, run as execute
from tests.spark.killed import on_mysql_with_kills, run_killed


LOW = 1_700_000_000 * 10**9
ACKED = 3000
WAITING = 40
WIDE = ("-40", "40-80", "80-c0", "c0-")
COLUMNS = "body VARBINARY(40), at TIMESTAMP NULL, size INT AS (LENGTH(body)) VIRTUAL"


@pytest.fixture
def proxy(server_pool, job_family, start_proxy, tmp_path):
    """Keyspaces commerce, two shards, and wide, four, on servers of which one is in another zone."""
    servers = [server_pool.server(job_family, index) for index in range(4)]
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    narrow, wide = fresh_database(*servers[:2]), fresh_database(*servers)
    config = keyspace_toml("commerce", servers[:2], next(narrow), vschema)
    config += keyspace_toml("wide", servers, next(wide), vschema)
    on_server(servers[1], "SET GLOBAL time_zone = '+05:30'")
    try:
        yield start_proxy(config)
    finally:
        on_server(servers[1], "SET GLOBAL time_zone = 'SYSTEM'")
    for name in (narrow, wide):
        next(name, None)


def everything(proxy, keyspace):
    connection = proxy.connect(database=keyspace)
    execute(connection, "SET time_zone = '+00:00'")
    return sorted(rows_of(connection, "SELECT * FROM my_message"))


@on_mysql_with_kills
@pytest.mark.spark
@pytest.mark.db
@pytest.mark.slow
def test_it_is_copied_live_killed_run_again_and_cut_over(proxy, spark, tmp_path, monkeypatch):
    source = proxy.connect(database="commerce", autocommit=True)
    target = proxy.connect(database="wide", autocommit=True)
    execute(source, message_table(purge_after=10**9, columns=COLUMNS))
    values = ", ".join(f"({n}, {LOW + n}, 0x00FF27, NOW())" for n in range(1, ACKED + 1))
    execute(source, f"INSERT INTO my_message (id, time_acked, body, at) VALUES {values}")
    values = ", ".join(f"({n}, 'waits')" for n in range(ACKED + 1, ACKED + 1 + WAITING))
    execute(source, f"INSERT INTO my_message (id, body) VALUES {values}")
    live = reshard.ReshardConfig(
        Endpoint("127.0.0.1", proxy.port, "root", "commerce"),
        "my_message",
        "copy",
        Endpoint("127.0.0.1", proxy.port, "root", "wide"),
        LOW + 10**6,
    )

    def step(name, config=live):
        return reshard.run(spark, dataclasses.replace(config, step=name)).counts

    with pytest.raises(RequestError, match="cannot read"):
        step("plan")
    execute(target, message_table(columns="body TEXT"))
    with pytest.raises(RequestError, match="other columns"):
        step("plan")
    execute(target, "DROP TABLE my_message")
    execute(target, message_table(purge_after=10**9, columns=COLUMNS))
    with pytest.raises(RequestError, match="a minute back"):
        step("copy", dataclasses.replace(live, until_ns=time.time_ns()))

    planned = step("plan")
    assert planned["rows"] == ACKED == sum(planned[f"to {shard}"] for shard in WIDE)
    before = everything(proxy, "commerce")
    # One batch waits for a lock, and no other: the copy is never whole when it is killed.
    blocker = proxy.connect(database="wide", autocommit=False)
    execute(blocker, "INSERT INTO my_message (id) VALUES (1)")
    run_killed("reshard", live, "SELECT COUNT(*) FROM my_message", tmp_path)
    blocker.rollback()
    with pytest.raises(JobError, match="never switch over"):
        step("verify")

    monkeypatch.setattr(reshard, "SLICE_ROWS", 1000)
    done = step("copy")
    assert done["rows"] == ACKED == done["copied"] + done["there before"]
    assert done["there before"]
    assert step("copy") == {"rows": ACKED, "copied": 0, "there before": ACKED}
    verified = step("verify")
    assert verified == {key.replace("to ", "on "): rows for key, rows in planned.items()}

    # Writes stop, and what waited comes over too.
    stopped = dataclasses.replace(live, until_ns=None)
    assert step("copy", stopped)["copied"] == WAITING
    assert step("verify", stopped)["rows"] == ACKED + WAITING
    assert everything(proxy, "wide") == everything(proxy, "commerce") == before

    execute(target, "UPDATE my_message SET body = 'other' WHERE id = 5")
    with pytest.raises(JobError, match=r"has \d+ rows of \d+, others"):
        step("verify", stopped)
