"""CREATE, ALTER, DROP QUEUE and what SHOW says of queues, on a keyspace of one shard and of two."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import cases, in_turn
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import keyspace_toml, write_vschema
from tests.fixtures.streams import refused, refuses, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


PROPOSAL = "CREATE QUEUE my_queue(\n\nuser_id BIGINT(10),\n\npayload VARCHAR(256),\n\n)"


@contextmanager
def prepared(cluster: SharedCluster, keyspace: str) -> Iterator[Any]:
    with cluster.proxy.connector(keyspace) as connection:
        yield connection.cursor(prepared=True)


def comments(cluster: SharedCluster, keyspace: str, table: str) -> list[str]:
    """Return the comment of a table on each shard that has it."""
    return [
        comment
        for shard in range(len(cluster.servers_of(keyspace)))
        for (comment,) in cluster.direct(
            "SELECT table_comment FROM information_schema.tables"
            f" WHERE table_schema = DATABASE() AND table_name = '{table}'",
            keyspace=keyspace,
            shard=shard,
        )
    ]


def definitions(cluster: SharedCluster, keyspace: str) -> list[Any]:
    """Return what each shard has for the table my_message."""
    return [
        cluster.direct("SHOW CREATE TABLE my_message", keyspace=keyspace, shard=shard)
        for shard in range(len(cluster.servers_of(keyspace)))
    ]


def test_the_proposals_own_example_runs_to_the_letter(queue: Queue) -> None:
    client = queue.connect()
    run(client, PROPOSAL)
    comment = (
        "vitess_message,vt_ack_wait=30,vt_max_backoff=3600,vt_purge_after=86400"
        ",vt_batch_size=100,vt_cache_size=10000,vt_poller_interval=1,vt_auto_id=on"
    )
    found = comments(queue.cluster, queue.keyspace, "my_queue")
    assert found == (
        [comment] if queue.keyspace == "plain" else [f"{comment},vt_shard_by=hash(id)"] * 2
    )
    assert value(client, "SHOW QUEUES") == "my_queue"


@pytest.mark.parametrize("ident", ["", "id BIGINT NOT NULL, ", "id INT UNSIGNED NOT NULL, "])
def test_show_create_queue_makes_it_again(cluster, keyspace, ident):
    client = cluster.proxy.connect(autocommit=True)
    run(
        client,
        f"CREATE QUEUE IF NOT EXISTS {keyspace}.my_message ({ident}tenant BIGINT NOT NULL DEFAULT 3,"
        " `it``s` JSON, note VARCHAR(20) COMMENT 'it''s, (so)', KEY by_tenant (tenant),)"
        " WITH (`ack_wait` = '0.5', message_cols = 'id|tenant', release_after = never)",
    )
    before = definitions(cluster, keyspace)
    ((name, text),) = rows(client, f"SHOW CREATE QUEUE {keyspace}.my_message")
    assert name == "my_message"
    run(client, f"USE {keyspace}")
    run(client, "DROP QUEUE my_message")
    run(client, text)
    assert definitions(cluster, keyspace) == before


@in_turn
@cases(settings=str, words=str)
def test_a_change_that_spoils_the_table_is_refused(client, cluster, keyspace, settings, words):
    run(client, "CREATE QUEUE my_message (a INT, b VARCHAR(9))")
    run(client, "ALTER TABLE my_message MODIFY epoch BIGINT NULL DEFAULT 0")
    if "delayed" in settings:
        changed = "ALTER TABLE my_message ALTER time_next SET DEFAULT (UNIX_TIMESTAMP())"
        run(client, changed)
    before = comments(cluster, keyspace, "my_message")
    refuses(client, f"ALTER QUEUE my_message SET ({settings})", 1210, words)
    assert comments(cluster, keyspace, "my_message") == before
    run(client, "DROP QUEUE my_message")


GROUPS = "`group` = batch, after = finishes"


def test_groups_are_refused_where_their_messages_are_on_several_shards(cluster, sharded):
    client, keyspace = sharded.connect(), "commerce"
    columns = "(tenant INT NOT NULL, batch VARCHAR(9), finishes VARCHAR(9))"
    for placed in ("", "SHARD BY (id)", "SHARD BY (finishes)"):
        create = f"CREATE QUEUE step {columns} {placed} WITH ({GROUPS})"
        refuses(client, create, 1210, "SHARD BY (tenant)")
        assert comments(cluster, keyspace, "step") == []
    run(client, f"CREATE QUEUE step {columns}")
    before = comments(cluster, keyspace, "step")
    refuses(client, f"ALTER QUEUE step SET ({GROUPS})", 1210, "vt_group")
    assert comments(cluster, keyspace, "step") == before
    # Of a comment that was written by hand other settings can be changed.
    run(client, f"ALTER TABLE step COMMENT '{before[0]},vt_group=batch,vt_after=finishes'")
    run(client, "ALTER QUEUE step SET (ack_wait = 7)")
    for column in ("tenant", "batch"):
        run(client, "DROP QUEUE step")
        run(client, f"CREATE QUEUE step {columns} SHARD BY ({column}) WITH ({GROUPS})")


def test_a_fault_that_a_table_has_already_hinders_no_change(client, cluster, keyspace):
    run(client, "CREATE QUEUE my_message (a INT)")
    (comment, *_) = comments(cluster, keyspace, "my_message")
    for shard in range(len(cluster.servers_of(keyspace))):
        alter = f"ALTER TABLE my_message COMMENT '{comment},vt_message_cols=b'"
        cluster.direct(alter, keyspace=keyspace, shard=shard)
    run(client, "ALTER QUEUE my_message SET (ack_wait = 9)")
    run(client, "ALTER QUEUE my_message SET (message_cols = DEFAULT)")
    assert run(client, "INSERT INTO my_message (a) VALUES (1)") == 1


def test_sharding_that_the_vschema_says(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="commerce", autocommit=True)
    run(client, "CREATE QUEUE my_message (a INT) SHARD BY hash(id)")
    run(client, "CREATE QUEUE other_message (a INT) SHARD BY (id)")
    assert refused(client, "CREATE QUEUE named (a INT) SHARD BY hash(a)")[0] == 1235


@cases(columns=str, shard_by=str, written=str)
def test_sharding_that_no_vschema_says_is_in_the_comment(sharded, columns, shard_by, written):
    client = sharded.connect()
    other = sharded.connect()
    run(client, "DROP QUEUE IF EXISTS of_no_vschema")
    run(client, f"CREATE QUEUE of_no_vschema ({columns}) {shard_by}")
    try:
        found = comments(sharded.cluster, "commerce", "of_no_vschema")
        assert len(found) == 2
        assert all(f"vt_shard_by={written}" in each for each in found)
        stream = sharded.stream("STREAM id, user_id FROM of_no_vschema")
        values = ", ".join(
            f"('{number}', 'x')" if "VARCHAR" in columns else f"({number}, 'x')"
            for number in range(16)
        )
        run(other, f"INSERT INTO of_no_vschema (user_id, payload) VALUES {values}")
        assert len(stream.take(16)) == 16
        counts = [
            sharded.cluster.direct(
                "SELECT COUNT(*) FROM of_no_vschema", keyspace="commerce", shard=shard
            )
            for shard in (0, 1)
        ]
        assert all(count[0][0] for count in counts)
        assert value(other, "SELECT COUNT(*) FROM of_no_vschema WHERE user_id = '3'") == 1
        acks = "UPDATE of_no_vschema SET state = 'acked' WHERE user_id IN ('3', '4')"
        assert run(other, acks) == 2
        shown = rows(client, "SHOW CREATE QUEUE of_no_vschema")[0][1]
        assert f"SHARD BY {written}" in shown
        stream.close()
        run(client, "DROP QUEUE of_no_vschema")
        run(client, shown)
        assert comments(sharded.cluster, "commerce", "of_no_vschema") == found
    finally:
        run(client, "DROP QUEUE IF EXISTS of_no_vschema")


def test_every_statement_of_a_queue_may_be_prepared(cluster, keyspace):
    with prepared(cluster, keyspace) as cursor:
        create = "CREATE QUEUE IF NOT EXISTS my_message (a INT) WITH (ack_wait = ?)"
        cursor.execute(create, (17,))
        cursor.execute("SHOW CREATE QUEUE my_message")
        assert "ack_wait = 17" in str(cursor.fetchall())
        cursor.execute("ALTER QUEUE my_message SET (ack_wait = ?)", (18,))
        cursor.execute("INSERT INTO my_message (a) VALUES (?)", (7,))
        cursor.execute("ALTER QUEUE my_message PAUSE")
        cursor.execute("STREAM id, a FROM my_message LIMIT ? WAIT ?", (5, 0))
        assert cursor.fetchall() == []
        cursor.execute("ALTER QUEUE my_message RESUME")
        cursor.execute("STREAM id, a FROM my_message LIMIT ? WAIT ?", (5, 60))
        ((ident, a),) = cursor.fetchall()
        assert a == 7
        for affected in (1, 0):
            cursor.execute("UPDATE my_message SET state = ? WHERE id = ?", ("acked", ident))
            assert cursor.rowcount == affected
        cursor.execute("SHOW QUEUE STATUS LIKE 'my%'")
        assert cursor.fetchall()[0][:2] == (keyspace, "my_message")
        cursor.execute("DROP QUEUE IF EXISTS my_message")
        cursor.execute("SHOW QUEUES")
        assert cursor.fetchall() == []


def test_what_is_there_already_or_not_there_is_one_note(cluster, keyspace):
    client = cluster.proxy.connect(database=keyspace, autocommit=False)
    run(client, "CREATE QUEUE my_message (a INT)")
    assert refused(client, "CREATE QUEUE my_message (a INT)")[0] == 1050
    run(client, "CREATE TABLE item (id BIGINT PRIMARY KEY)")
    for sql in ("CREATE QUEUE IF NOT EXISTS item (a INT)", "DROP QUEUE item"):
        refuses(client, sql, 1210, "no queue")
    for sql, code in (
        ("CREATE QUEUE IF NOT EXISTS my_message (a INT)", 1050),
        ("DROP QUEUE IF EXISTS other_message", 1051),
    ):
        run(client, "INSERT INTO my_message (a) VALUES (1)")
        run(client, sql)
        noted = rows(client, "SHOW WARNINGS")
        assert [(level, found) for level, found, _ in noted] == [("Note", code)]
        # Like any definition it has committed what was before it.
        run(client, "ROLLBACK")
    assert value(client, "SELECT COUNT(*) FROM my_message") == 2


# Globals that change what statements mean, how much they answer and when they commit.
MODES = "ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES,TRADITIONAL"
MODES_OF = {Family.MARIADB: f"{MODES},ORACLE,NO_TABLE_OPTIONS", Family.MYSQL: MODES}
HOSTILE = {
    "sql_select_limit": "1",
    "max_join_size": "1",
    "sql_quote_show_create": "0",
    "group_concat_max_len": "4",
    "completion_type": "'CHAIN'",
    "autocommit": "0",
}


@pytest.fixture
def hostile(breakable_servers, breakable_database, family):
    variables = {**HOSTILE, "sql_mode": f"'{MODES_OF[family]}'"}
    for server in breakable_servers:
        for name, setting in variables.items():
            execute(server, f"SET GLOBAL {name} = {setting}")
    yield breakable_servers, breakable_database
    for server in breakable_servers:
        for name in variables:
            execute(server, f"SET GLOBAL {name} = DEFAULT")


@pytest.mark.parametrize("count", [1, 2])
def test_a_queue_works_on_servers_with_hostile_globals(hostile, start_proxy, tmp_path, count):
    servers, database = hostile
    vschema = write_vschema(tmp_path, {"sharded": True}) if count == 2 else None
    proxy = start_proxy(keyspace_toml(database, servers[:count], vschema=vschema))
    client = proxy.connect(database=database, autocommit=True)
    for sql in (
        f"CREATE QUEUE job (p CHAR(8){', k INT UNIQUE' if count == 1 else ''})",
        "CREATE QUEUE other (p INT)",
        "ALTER QUEUE job SET (ack_wait = 40)",
        "ALTER QUEUE job PAUSE",
        "ALTER QUEUE job RESUME",
        "INSERT INTO job (p) VALUES ('x'), ('y'), ('z')",
    ):
        run(client, sql)
    assert "ack_wait = 40" in rows(client, "SHOW CREATE QUEUE job")[0][1]
    assert rows(client, "SHOW QUEUES") == (("job",), ("other",))
    sent = rows(client, "STREAM id, p FROM job LIMIT 3 WAIT 60")
    assert sorted(p for _, p in sent) == ["x", "y", "z"]
    for ident, _ in sent:
        assert run(client, f"UPDATE job SET time_acked = NOW() WHERE id = {ident}") == 1
    run(client, "DROP QUEUE job")
