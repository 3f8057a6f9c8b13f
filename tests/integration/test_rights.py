"""What the proxy does for users with accounts of their own, it does only if these accounts may do it.

`consumer` may take and acknowledge messages of `jobs`, by grants on columns. `reader` may read it, and `stranger` may do
everything in another queue, `secret`. Two members serve them, and the first of them dispatches.
"""

import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import mysql.connector
import pytest

from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from tests.fixtures.database_servers import DatabaseServer, execute, free_port
from tests.fixtures.page_visitor import PageVisitor
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, user_toml
from tests.fixtures.streams import (
    Consume,
    Consumer,
    eventually,
    message_table,
    refused,
    refuses,
    rows,
    run,
    value,
)
from tests.integration.test_message_service import Calls, error_of


USERS = ("consumer", "reader", "stranger", "owner")
SETTINGS = """[server]
listen = "127.0.0.1:0"
schema_reload = 1
auth_backoff = 0
failover_buffer = 5
"""
BOSS = user_toml("boss", "boss", account="shared", role="admin")
GRANTS = {
    "consumer": (
        "SELECT (id, message, epoch, time_next, time_acked), UPDATE (epoch, time_next, time_acked)"
        " ON {database}.jobs",
    ),
    "reader": ("SELECT ON {database}.jobs",),
    "stranger": ("ALL ON {database}.secret",),
    "owner": ("ALL ON {database}.*",),
}


@dataclass
class Cluster:
    """Two members before one server, and its accounts."""

    server: DatabaseServer
    database: str
    members: tuple[RunningProxy, RunningProxy]
    admin_port: int
    grpc_port: int
    consume: Consume

    def direct(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        return execute(self.server, sql.format(database=self.database), database=self.database)

    def connect(self, user: str, member: int = 0, **options: Any) -> Any:
        options = {"database": self.database, "autocommit": True} | options
        return self.members[member].connect(user=user, password=user, **options)

    def connector(self, user: str, member: int = 0) -> Any:
        return self.members[member].connector(self.database, user=user, password=user)

    def stream(self, user: str, sql: str, member: int = 0) -> Consumer:
        return self.consume(
            self.members[member], sql, database=self.database, user=user, password=user
        )

    def insert(self, *ids: int, queue: str = "jobs") -> None:
        boss = self.connect("boss")
        values = ", ".join(f"({ident}, '{ident}')" for ident in ids)
        run(boss, f"INSERT INTO {queue} (id, message) VALUES {values}")

    def acked(self, ident: int) -> bool:
        sql = f"SELECT time_acked IS NOT NULL FROM jobs WHERE id = {ident}"
        return bool(self.direct(sql)[0][0])


@pytest.fixture
def cluster(server, database, start_proxy, consume):
    execute(server, message_table("jobs"), database=database)
    execute(server, message_table("secret"), database=database)
    for user in USERS:
        execute(server, f"CREATE USER {user}@'%' IDENTIFIED BY '{user}'")
        for grant in GRANTS[user]:
            execute(server, f"GRANT {grant.format(database=database)} TO {user}@'%'")
    users = BOSS + "".join(user_toml(user, user) for user in USERS)
    admin_port, grpc_port = free_port(), free_port()
    settings = SETTINGS + users + keyspace_toml(database, [server])
    more = f'[admin]\nlisten = "127.0.0.1:{admin_port}"\n[grpc]\nlisten = "127.0.0.1:{grpc_port}"\n'
    first = start_proxy(settings + more)
    second = start_proxy(settings)
    try:
        made = Cluster(server, database, (first, second), admin_port, grpc_port, consume)
        asked = "SELECT * FROM streamfrom.members"
        eventually(lambda: len(rows(made.connect("boss", 1), asked)) == 2)
        yield made
    finally:
        execute(server, "SET GLOBAL read_only = 0")
        for user in USERS:
            execute(server, f"DROP USER {user}@'%'")


# It passes through a member, which asks for all rights again.
CHANGE = "GRANT USAGE ON *.* TO reader@'%'"
TAKES = "GRANT SELECT (`id`, `message`), UPDATE (`time_next`, `time_acked`) ON "


@pytest.mark.parametrize("member", [0, 1])
def test_a_stream_takes_what_the_account_may_take(cluster: Cluster, member: int) -> None:
    cluster.insert(1, 2)
    wanted = "STREAM id, message FROM jobs"
    for user, code in (("reader", 1142), ("stranger", 1142)):
        client = cluster.connect(user, member)
        for sql in (wanted, f"{wanted} LIMIT 1 WAIT 0"):
            found, text = refused(client, sql)
            assert found in {code, 1143}, text
            assert f"{TAKES}`{cluster.database}`.`jobs`" in text
        with cluster.connector(user, member) as prepared:
            cursor = prepared.cursor(prepared=True)
            with pytest.raises(mysql.connector.Error) as caught:
                cursor.execute(f"{wanted} LIMIT 1 WAIT 0")
            assert caught.value.errno in {1142, 1143}
    consumer = cluster.connect("consumer", member)
    refuses(consumer, "STREAM * FROM jobs LIMIT 1 WAIT 0", 1143, "tenant_id")
    refuses(consumer, "VEXPLAIN PLAN STREAM * FROM jobs", 1143, "tenant_id")
    assert cluster.direct("SELECT id FROM jobs WHERE epoch <> 0 OR time_next <> 0") == ()
    stream = cluster.stream("consumer", wanted, member)
    assert sorted(stream.take(2)) == [(1, "1"), (2, "2")]
    assert run(consumer, "UPDATE jobs SET time_acked = NOW() WHERE id = 1") == 1
    assert cluster.acked(1)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "prepared"])
def test_a_consumer_needs_no_right_on_other_columns(cluster: Cluster, binary: bool) -> None:
    """Its acks do not count the first send, of which only the dispatcher knows."""
    cluster.direct("REVOKE ALL ON {database}.jobs FROM reader@'%'")
    cluster.direct(
        "GRANT SELECT (id, message, time_acked), UPDATE (time_next, time_acked)"
        " ON {database}.jobs TO reader@'%'"
    )
    for user, epoch in (("reader", 0), ("consumer", 1)):
        cluster.insert(epoch)
        with cluster.connector(user) as connection:
            cursor = connection.cursor(prepared=binary)
            cursor.execute("STREAM id, message FROM jobs LIMIT 1 WAIT 60")
            assert [next(iter(row)) for row in cursor.fetchall()] == [epoch]
            update = "UPDATE jobs SET time_acked = NOW() WHERE id = %s AND time_acked IS NULL"
            cursor.execute(update, (epoch,))
            assert cursor.rowcount == 1
        sql = f"SELECT time_acked IS NOT NULL, epoch FROM jobs WHERE id = {epoch}"
        assert cluster.direct(sql) == ((1, epoch),)


@pytest.mark.one_server  # it waits for the next look at the rights
def test_a_right_that_is_taken_away_ends_streams_and_says_what_is_missing(cluster):
    streams = [cluster.stream("consumer", "STREAM id FROM jobs", member) for member in (0, 1)]
    cluster.direct("REVOKE UPDATE (time_next) ON {database}.jobs FROM consumer@'%'")
    for stream in streams:
        code, text = stream.error()
        assert code == 1143, text
        assert "GRANT SELECT (`id`), UPDATE (`time_next`, `time_acked`) ON" in text
    cluster.insert(1)
    assert cluster.direct("SELECT epoch FROM jobs") == ((0,),)
    cluster.direct("GRANT UPDATE (time_next) ON {database}.jobs TO consumer@'%'")
    assert run(cluster.connect("boss"), CHANGE) == 0
    stream = cluster.stream("consumer", "STREAM id FROM jobs")
    assert stream.ids(1) == [1]
    # By a statement through the member itself it is noticed at once.
    sql = f"REVOKE SELECT (id) ON `{cluster.database}`.jobs FROM consumer@'%'"
    assert run(cluster.connect("boss"), sql) == 0
    assert stream.error()[0] == 1143


@pytest.mark.parametrize("settings", [",vt_ack=early", ",vt_order=strict", ""])
def test_acks_that_the_dispatcher_writes_are_those_of_accounts_that_may(cluster, settings):
    comment = cluster.direct(
        "SELECT table_comment FROM information_schema.tables WHERE"
        " table_schema = DATABASE() AND table_name = 'jobs'"
    )[0][0]
    run(cluster.connect("boss"), f"ALTER TABLE jobs COMMENT = '{comment}{settings}'")
    for member in (0, 1):
        ids = [10 * member + number for number in (1, 2, 3)]
        cluster.insert(*ids)
        stream = cluster.stream("consumer", "STREAM id FROM jobs")
        assert stream.ids(1) == ids[:1]
        for user in ("reader", "stranger"):
            client = cluster.connect(user, member)
            for change in ("time_acked = NOW()", "time_next = time_next + INTERVAL 1 MINUTE"):
                for _ in range(3):
                    code, _ = refused(client, f"UPDATE jobs SET {change} WHERE id = {ids[0]}")
                    assert code in {1142, 1143}
        assert not cluster.acked(ids[0])
        client = cluster.connect("consumer", member)
        for ident in ids:
            assert ident == ids[0] or settings != ",vt_order=strict" or stream.ids(1) == [ident]
            assert run(client, f"UPDATE jobs SET time_acked = NOW() WHERE id = {ident}") == 1
        for ident in ids:
            eventually(partial(cluster.acked, ident))
        stream.close()


KEYSPACES = "SHOW DATABASES WHERE `Database` <> 'information_schema'"


def test_lists_show_what_the_account_sees(cluster: Cluster) -> None:
    cases = {
        "consumer": ["jobs"],
        "reader": ["jobs"],
        "stranger": ["secret"],
        "owner": ["jobs", "secret"],
        "boss": ["jobs", "secret"],
    }
    for user, queues in cases.items():
        for member in (0, 1):
            client = cluster.connect(user, member)
            assert [name for (name,) in rows(client, "SHOW QUEUES")] == queues
            found = rows(client, "SELECT queue FROM streamfrom.queues ORDER BY queue")
            assert [name for (name,) in found] == queues
            assert len(rows(client, "SHOW QUEUE STATUS")) == len(queues)
            (shown,) = rows(client, "SHOW VSCHEMA KEYSPACES")
            assert shown[0] == cluster.database
            assert rows(client, KEYSPACES) == ((cluster.database,),)
            assert len(rows(client, "SELECT * FROM streamfrom.shards")) == 2
    run(cluster.connect("owner"), "CREATE QUEUE fresh (message INT)")
    assert rows(cluster.connect("owner"), "SHOW QUEUES")[0] == ("fresh",)
    cluster.direct("REVOKE ALL ON {database}.secret FROM stranger@'%'")
    run(cluster.connect("boss"), CHANGE)
    client = cluster.connect("stranger", database=None)
    assert rows(client, "SELECT * FROM streamfrom.queues") == ()
    assert rows(client, "SELECT * FROM streamfrom.shards") == ()
    assert rows(client, "SHOW VSCHEMA KEYSPACES") == ()
    assert rows(client, KEYSPACES) == ()


def test_dead_letters_go_into_no_table_of_others(cluster: Cluster) -> None:
    stranger = cluster.connect("stranger")
    settings = "ack_wait = 0.3, min_backoff = 0.3, max_attempts = 1, poller_interval = 0.5"
    code, _ = refused(stranger, f"ALTER QUEUE secret SET ({settings}, dead_letter = jobs)")
    assert code == 1142
    # It may write any comment for its own table, which the other table has not agreed to.
    sql = "SELECT table_comment FROM information_schema.tables WHERE table_name = 'secret'"
    comment = value(stranger, f"{sql} AND table_schema = DATABASE()")
    comment = comment.replace("vt_ack_wait=30", "vt_ack_wait=0.3,vt_max_attempts=1")
    run(stranger, f"ALTER TABLE secret COMMENT = '{comment},vt_dead_letter=jobs'")
    stream = cluster.stream("stranger", "STREAM id FROM secret")
    cluster.insert(1, queue="secret")
    assert stream.ids(1) == [1]
    parked = "SELECT id FROM secret WHERE time_next = 9000000000000000000"
    eventually(lambda: rows(stranger, parked) == ((1,),))
    assert cluster.direct("SELECT COUNT(*) FROM jobs") == ((0,),)


def test_sequences_give_values_to_accounts_that_could_take_them(cluster: Cluster) -> None:
    cluster.direct(
        "CREATE TABLE numbers (id INT PRIMARY KEY, next_id BIGINT, cache BIGINT)"
        " COMMENT 'vitess_sequence'"
    )
    cluster.direct("INSERT INTO numbers VALUES (0, 1, 10)")
    sql = "SELECT NEXT 2 VALUES FROM numbers"
    for user in ("reader", "stranger"):
        code, text = refused(cluster.connect(user), sql)
        assert code in {1142, 1143}
        assert "UPDATE (`next_id`)" in text
    cluster.direct("GRANT SELECT (id, next_id, cache) ON {database}.numbers TO reader@'%'")
    run(cluster.connect("boss"), CHANGE)
    assert refused(cluster.connect("reader"), sql)[0] in {1142, 1143}
    assert cluster.direct("SELECT next_id FROM numbers") == ((1,),)
    assert rows(cluster.connect("owner"), sql) == ((1,),)


TAKE = "STREAM id FROM jobs LIMIT 1 WAIT 0"


@pytest.fixture
def with_role(cluster: Cluster) -> Iterator[Cluster]:
    """A message, and `stranger` with a role that may take it."""
    cluster.direct("CREATE ROLE takes_jobs")
    cluster.direct("GRANT SELECT, UPDATE ON {database}.jobs TO takes_jobs")
    cluster.direct("GRANT takes_jobs TO stranger@'%'")
    cluster.insert(1)
    yield cluster
    cluster.direct("DROP ROLE takes_jobs")


def test_roles_of_the_server_count_as_a_login_has_them(with_role: Cluster) -> None:
    cluster = with_role
    assert refused(cluster.connect("stranger"), TAKE)[0] in {1142, 1143}
    to = "FOR" if "MariaDB" in str(cluster.direct("SELECT VERSION()")) else "TO"
    cluster.direct(f"SET DEFAULT ROLE takes_jobs {to} stranger@'%'")
    run(cluster.connect("boss"), CHANGE)
    assert rows(cluster.connect("stranger"), TAKE) == ((1,),)
    stream = cluster.stream("stranger", "STREAM id FROM jobs")
    cluster.direct("REVOKE takes_jobs FROM stranger@'%'")
    run(cluster.connect("boss"), CHANGE)
    assert stream.error()[0] in {1142, 1143}


def test_roles_that_a_session_sets_count_for_it_alone(with_role: Cluster) -> None:
    client = with_role.connect("stranger")
    assert refused(client, TAKE)[0] in {1142, 1143}
    run(client, "SET ROLE takes_jobs")
    assert rows(client, TAKE) == ((1,),)
    assert rows(client, "SHOW QUEUES") == (("jobs",), ("secret",))
    other = with_role.connect("stranger")
    assert refused(other, TAKE)[0] in {1142, 1143}
    assert rows(other, "SHOW QUEUES") == (("secret",),)
    run(client, "SET ROLE NONE")
    assert refused(client, TAKE)[0] in {1142, 1143}


def test_the_page_shows_and_does_what_the_account_may(cluster: Cluster) -> None:
    cluster.insert(1)
    cluster.direct("UPDATE jobs SET time_next = 9000000000000000000, epoch = 3 WHERE id = 1")
    place = {"keyspace": cluster.database, "queue": "jobs"}
    look = f"/api/messages?keyspace={cluster.database}&queue=jobs&state=parked"
    owner, reader, stranger, consumer = (
        PageVisitor(f"http://127.0.0.1:{cluster.admin_port}", user)
        for user in ("owner", "reader", "stranger", "consumer")
    )
    for visitor in (owner, reader):
        status, page = visitor.get(look)
        assert (status, [row["id"] for row in page["rows"]]) == (200, ["1"])
    one = {"shard": reader.get(look)[1]["rows"][0]["shard"], "key": b"1".hex()}
    whole = f"/api/message?{urllib.parse.urlencode(place | one)}"
    assert reader.get(whole)[1]["attempts"] == 3
    # Every column is shown, and it may not read all.
    for path in (look, f"{look}&column=id&value=1", look.replace("parked", "in_flight"), whole):
        assert consumer.get(path)[0] == 403, path
        assert stranger.get(path)[0] == 404, path
    assert [one["queue"] for one in stranger.get("/api/overview")[1]["queues"]] == ["secret"]
    status, text = reader.post("/api/pause", **place)
    assert (status, "ALTER command denied" in text) == (403, True)
    acts: list[tuple[str, dict[str, Any]]] = [
        ("/api/requeue", {"source": "parked"}),
        *(("/api/act", {"action": action, "state": "all"}) for action in ("ack", "retry", "park")),
        ("/api/act", {"action": "delete", "messages": [one]}),
    ]  # fmt: skip
    for path, body in acts:
        status, text = reader.post(path, **place, **body)
        assert (status, "command denied" in text) == (403, True), (path, body, text)
    assert stranger.post("/api/pause", **place)[0] == 404
    assert owner.post("/api/pause", **place)[0] == 204
    assert "vt_paused=on" in cluster.direct("SHOW CREATE TABLE jobs")[0][1]
    assert owner.post("/api/resume", **place)[0] == 204
    assert owner.post("/api/requeue", **place, source="parked") == (200, {"done": 1})
    status, answer = owner.post("/api/act", **place, action="delete", state="all")
    assert (status, answer["done"]) == (200, 1)


def test_grpc_serves_what_the_account_may(cluster: Cluster) -> None:
    cluster.insert(1)
    ack = pb.MessageAckRequest(
        keyspace=cluster.database, name="jobs", ids=[pb.Value(type=pb.INT64, value=b"1")]
    )

    with grpc.insecure_channel(f"127.0.0.1:{cluster.grpc_port}") as channel:
        calls = Calls(channel)

        def of(user: str) -> Any:
            return {"metadata": (("username", user), ("password", user)), "timeout": 60}

        wanted = pb.MessageStreamRequest(keyspace=cluster.database, name="jobs")
        for user in ("reader", "stranger", "consumer"):
            # STREAM * takes every column, and `consumer` may not read all.
            error = error_of(partial(calls.stream, wanted, **of(user)))
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        for user in ("reader", "stranger"):
            error = error_of(partial(calls.ack, ack, **of(user)))
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        assert not cluster.acked(1)
        results = calls.stream(wanted, **of("owner"))
        assert next(results).result.fields
        assert next(results).result.rows
        assert calls.ack(ack, **of("consumer")).result.rows_affected == 1
        results.cancel()
    assert value(cluster.connect("boss"), "SELECT time_acked IS NOT NULL FROM jobs") == 1
