"""`streamfrom check` over real servers, and what a table with an error says to its statements."""

import json
from collections import Counter

from tests.fixtures.database_servers import execute
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema
from tests.fixtures.streams import message_table, run


KEYS = (
    "vt_ack_wait=30,vt_purge_after=60,vt_batch_size=10,vt_cache_size=100,vt_poller_interval=1"
)
COLUMNS = {
    "id": "BIGINT PRIMARY KEY",
    "priority": "TINYINT NOT NULL DEFAULT 50",
    "epoch": "BIGINT NOT NULL DEFAULT 0",
    "time_next": "BIGINT DEFAULT 0",
    "time_acked": "BIGINT DEFAULT NULL",
    "message": "VARCHAR(64)",
}
INDEX = "INDEX poller_idx (time_acked, priority, time_next)"


def table(name: str, comment: str = f"vitess_message,{KEYS}", **columns: str) -> str:
    """Return a CREATE TABLE whose columns differ from the recommended ones in *columns*."""
    parts = [f"{column} {kind}" for column, kind in (COLUMNS | columns).items()]
    return f"CREATE TABLE {name} ({', '.join(parts)}, {INDEX}) COMMENT '{comment}'"


def test_differences_between_shards_are_found(tmp_path, servers, sharded_database):
    one, other = servers
    execute(one, table("my_message"), database=sharded_database)
    comment = "vitess_message," + KEYS.replace("wait=30", "wait=5")
    ident = "BIGINT AUTO_INCREMENT PRIMARY KEY"
    other_table = table("my_message", comment, message="VARCHAR(9)", id=ident)
    execute(other, other_table, database=sharded_database)
    execute(one, table("alone"), database=sharded_database)
    execute(other, table("odd", f"vitess_mesage,{KEYS}"), database=sharded_database)
    config = tmp_path / "streamfrom.toml"
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    config.write_text(keyspace_toml("commerce", servers, sharded_database, vschema))
    done = run_to_end(["check", "--json", "--config", str(config)], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    levels = Counter(finding["level"] for finding in document["findings"])
    assert document["summary"] == {
        level: levels[level] for level in ("ok", "info", "warning", "error")
    }
    told = {
        (finding["level"], finding["place"], finding["text"].partition(":")[0])
        for finding in document["findings"]
    }
    assert {
        ("error", "commerce/80-.my_message", "column message is varchar(9), on commerce/-80 varchar(64)"),
        ("warning", "commerce/80-.my_message", "vt_ack_wait is 5, on commerce/-80 30"),
        ("error", "commerce/80-.alone", "no such table, which commerce/-80 has"),
        ("warning", "commerce/80-.odd", "an ordinary table, though its comment looks like a message table's"),
        ("warning", "commerce/80-.my_message", "id is AUTO_INCREMENT, which counts on each shard alone"),
    } <= told  # fmt: skip


WORKING = ("BIGINT UNSIGNED", "DECIMAL(20,0)", "VARCHAR(20)")


def test_whatever_a_moment_fits_into_delivers_and_acknowledges(cluster, consume):
    connection = cluster.proxy.connect(database="plain", autocommit=True)
    for number, kind in enumerate(WORKING):
        cluster.direct(
            table(
                f"kind_{number}",
                time_next=f"{kind} DEFAULT 0",
                time_acked=f"{kind} DEFAULT NULL",
            )
        )
    run(connection, message_table("my_message"))
    for number in range(len(WORKING)):
        name = f"kind_{number}"
        run(connection, f"INSERT INTO {name} (id, message) VALUES (1, 'x')")
        consumer = consume(cluster.proxy, f"STREAM * FROM {name}", database="plain")
        assert consumer.take(1)
        run(connection, f"UPDATE {name} SET time_acked = NOW() WHERE id = 1")
        ((acked,),) = cluster.direct(f"SELECT time_acked > 1.7e18 FROM {name}")
        assert acked == 1
