"""`[grpc]` of a real proxy: MessageStream and MessageAck as clients of Vitess 5 call them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from tests.fixtures.database_servers import root
from tests.fixtures.programs import finished
from tests.fixtures.relay import Relay
from tests.fixtures.running_proxy import (
    MESSAGE_VSCHEMA,
    RunningProxy,
    keyspace_toml,
    user_toml,
    write_vschema,
)
from tests.fixtures.streams import eventually, message_table, rows, run
from tests.integration import toolchains


pytestmark = pytest.mark.one_server

SERVICE = "/vtgateservice.Vitess"
# It ends a test that hangs.
PATIENCE_S = 120
PASSWORD = ("password", "sesame")
APP = (("username", "app"), PASSWORD)
CONFIG = """
[server]
listen = "127.0.0.1:0"
auth_backoff = 0
shutdown_grace = 0
[grpc]
listen = "127.0.0.1:0"
"""
CONFIG += user_toml("app", "sesame", account="shared")
CONFIG += user_toml("boss", "sesame", account="shared", role="admin")
WHOLE = pb.MessageStreamRequest(keyspace="ks", name="my_message")


class Calls:
    def __init__(self, channel: grpc.Channel) -> None:
        self.stream = channel.unary_stream(
            f"{SERVICE}/MessageStream",
            pb.MessageStreamRequest.SerializeToString,
            pb.MessageStreamResponse.FromString,
        )
        self.ack = channel.unary_unary(
            f"{SERVICE}/MessageAck",
            pb.MessageAckRequest.SerializeToString,
            pb.MessageAckResponse.FromString,
        )

    def open(self, request: pb.MessageStreamRequest = WHOLE) -> Any:
        return self.stream(request, metadata=APP, timeout=PATIENCE_S)

    def acked(self, *ids: int) -> int:
        values = [pb.Value(type=pb.INT64, value=b"%d" % number) for number in ids]
        answer = self.ack(acks(values), metadata=APP, timeout=PATIENCE_S)
        affected: int = answer.result.rows_affected
        return affected


def acks(values: list[pb.Value]) -> pb.MessageAckRequest:
    return pb.MessageAckRequest(keyspace="ks", name="my_message", ids=values)


@pytest.fixture
def proxy(servers, sharded_database, start_proxy, tmp_path):
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    made = start_proxy(CONFIG + keyspace_toml("ks", servers, sharded_database, vschema))
    run(connect(made), message_table())
    return made


def connect(proxy: RunningProxy, user: str = "app", database: str = "ks") -> Any:
    return proxy.connect(user=user, password="sesame", database=database, autocommit=True)


def address_of(proxy: RunningProxy) -> str:
    (line,) = [line for line in proxy.log().splitlines() if '"event": "grpc"' in line]
    (address,) = re.findall(r"127\.0\.0\.1:\d+", line)
    return str(address)


def messages(call) -> Iterator[dict[str, bytes | None]]:
    names: list[str] = []
    for answer in call:
        result = answer.result
        names = names or [field.name for field in result.fields]
        for row in result.rows:
            values, place = [], 0
            for length in row.lengths:
                values.append(None if length < 0 else row.values[place : place + length])
                place += max(length, 0)
            yield dict(zip(names, values, strict=True))


def taken(call, count: int) -> set[bytes | None]:
    found = messages(call)
    return {next(found)["id"] for _ in range(count)}


def streams(client) -> list[tuple[int, str, str]]:
    """Return the id, the target and the host of each stream that a client may see."""
    lines = rows(client, "SHOW PROCESSLIST")
    return [(line[0], line[3], line[2]) for line in lines if "STREAM" in str(line[7])]


def error_of(call: Callable[[], Any]) -> Any:
    with pytest.raises(grpc.RpcError) as refused:
        list(call())
    return refused.value


def test_messages_are_streamed_and_acked(proxy: RunningProxy) -> None:
    client = connect(proxy)
    run(client, "INSERT INTO my_message (id, message) VALUES (1, '\"é\"'), (2, NULL)")
    with grpc.insecure_channel(address_of(proxy)) as channel:
        calls = Calls(channel)
        call = calls.open()
        head = next(call).result
        assert (head.fields[0].name, head.fields[0].type) == ("id", pb.INT64)
        assert not head.rows
        call.cancel()
        eventually(lambda: not streams(client), "the cancelled call's session has ended")

        call = calls.open()
        came = messages(call)
        found = {message["id"]: message["message"] for message in (next(came), next(came))}
        assert found == {b"1": '"é"'.encode(), b"2": None}
        ((_, _, host),) = streams(client)
        assert host.startswith("127.0.0.1")
        assert calls.acked(1, 2, 3) == 2
        assert calls.acked(1, 2, 3) == 0
        assert calls.acked() == 0
        one = pb.MessageAckRequest(name="my_message", ids=[pb.Value(type=pb.INT64, value=b"1")])
        assert calls.ack(one, metadata=APP, timeout=PATIENCE_S).result.rows_affected == 0
        run(client, "INSERT INTO my_message (id) VALUES (4)")
        assert next(came)["id"] == b"4"


def test_a_shard_is_named_or_given_by_its_range_and_anybody_may_be_ended(proxy):
    boss = connect(proxy, "boss")
    run(boss, "INSERT INTO my_message (id) VALUES (4), (5), (6), (7)")
    with grpc.insecure_channel(address_of(proxy)) as channel:
        calls = Calls(channel)
        by_name = pb.MessageStreamRequest(keyspace="ks", shard="-80", name="my_message")
        bounds = pb.KeyRange(start=b"\x80")
        by_range = pb.MessageStreamRequest(keyspace="ks", key_range=bounds, name="my_message")
        low, high = calls.open(by_name), calls.open(by_range)
        for call, shard in ((low, "ks:-80"), (high, "ks:80-")):
            there = rows(connect(proxy, database=shard), "SELECT id FROM my_message")
            assert there
            assert taken(call, len(there)) == {b"%d" % row[0] for row in there}
        (victim,) = [number for number, target, _ in streams(boss) if target == "ks:-80"]
        run(boss, f"KILL QUERY {victim}")
        assert error_of(lambda: low).code() is grpc.StatusCode.ABORTED
        proxy.stop()
        over = error_of(lambda: high)
        assert over.code() is grpc.StatusCode.UNAVAILABLE
        assert "1053" in over.details()
    assert "internal error" not in proxy.log()


def test_what_is_wrong_is_told_in_words_that_a_client_of_vitess_reads(proxy):
    with grpc.insecure_channel(address_of(proxy)) as channel:
        calls = Calls(channel)

        def refusal(of, request, metadata=APP) -> tuple[str, str]:
            error = error_of(lambda: of(request, metadata=metadata, timeout=PATIENCE_S))
            return error.code().name, error.details()

        status, words = refusal(calls.stream, WHOLE, (("username", "app"), ("password", "x")))
        assert status == "UNAUTHENTICATED"
        assert "(errno 1045) (sqlstate 28000)" in words
        assert refusal(calls.stream, WHOLE, ())[0] == "UNAUTHENTICATED"
        for keyspace, shard, name, status in [
            ("nowhere", "", "my_message", "NOT_FOUND"),
            ("ks", "", "no`where", "NOT_FOUND"),
            ("ks", "40-", "my_message", "UNKNOWN"),
        ]:
            request = pb.MessageStreamRequest(keyspace=keyspace, shard=shard, name=name)
            assert refusal(calls.stream, request)[0] == status, request
        misspelt = pb.MessageAckRequest(
            keyspace="ks", name="nowhere", ids=[pb.Value(type=pb.INT64, value=b"1")]
        )
        status, words = refusal(calls.ack, misspelt)
        assert (status, "(errno 1146) (sqlstate 42S02)" in words) == ("NOT_FOUND", True)
        evil = acks([pb.Value(type=pb.INT64, value=b"1) OR (1")])
        assert refusal(calls.ack, evil)[0] == "INVALID_ARGUMENT"
        error = error_of(lambda: calls.stream(WHOLE, metadata=APP, timeout=0.2))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        boss = connect(proxy, "boss")
        eventually(lambda: not streams(boss), "a call that is over has no session")

        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service="vtgateservice.Vitess")
        )
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        told = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        )
        names = {each.name for each in next(told).list_services_response.service}
        assert "vtgateservice.Vitess" in names


@pytest.mark.parametrize("leaving", ["cancels", "closes", "is cut off"])
def test_a_client_that_leaves_in_an_answer_leaves_nothing_behind(proxy, consume, leaving):
    boss = connect(proxy, "boss")
    run(boss, "DROP TABLE my_message")
    # What it held comes again long before its lease is over.
    run(boss, message_table(ack_wait=600, more=",vt_release_after=0.5,vt_prefetch=1000"))
    # More than goes into a connection that nobody reads.
    text = "x" * 100_000
    for first in range(1, 201, 20):
        values = ", ".join(f"({id_}, '\"{text}\"')" for id_ in range(first, first + 20))
        run(boss, f"INSERT INTO my_message (id, message) VALUES {values}")
    way = Relay(int(address_of(proxy).rpartition(":")[2]))
    channel = grpc.insecure_channel(f"127.0.0.1:{way.port}")
    call = Calls(channel).open()
    assert taken(call, 1)
    held = "SELECT COALESCE(SUM(unacked), 0) FROM streamfrom.streams"
    eventually(lambda: rows(boss, held)[0][0] > 20, "it holds more than it has read")
    if leaving == "cancels":
        call.cancel()
    elif leaving == "closes":
        channel.close()
    elif leaving == "is cut off":
        way.close()
    eventually(lambda: not streams(boss), "its session has ended")
    eventually(lambda: rows(boss, held) == ((0,),), "and so has its stream")
    assert rows(boss, "SELECT COUNT(*) FROM streamfrom.streams") == ((0,),)
    sql = "STREAM id FROM my_message"
    stream = consume(proxy, sql, database="ks", user="app", password="sesame")
    assert sorted(stream.ids(200)) == list(range(1, 201))
    channel.close()
    way.close()
    assert "internal error" not in proxy.log()


@pytest.mark.parametrize("leaving", ["cancels", "is cut off"])
def test_an_ack_whose_client_leaves_is_stopped(proxy, servers, sharded_database, leaving):
    boss = connect(proxy, "boss")
    run(boss, "INSERT INTO my_message (id) VALUES (1), (2)")
    way = Relay(int(address_of(proxy).rpartition(":")[2]))
    channel = grpc.insecure_channel(f"127.0.0.1:{way.port}")
    with root(servers[0], database=sharded_database) as holder:
        run(holder, "BEGIN")
        assert rows(holder, "SELECT id FROM my_message WHERE id = 1 FOR UPDATE") == ((1,),)
        waiting = (
            "SELECT COUNT(*) FROM information_schema.processlist"
            f" WHERE db = '{sharded_database}' AND info LIKE 'UPDATE%my\\_message%'"
        )
        request = acks([pb.Value(type=pb.INT64, value=b"1")])
        call = Calls(channel).ack.future(request, metadata=APP, timeout=PATIENCE_S)
        eventually(lambda: rows(holder, waiting) == ((1,),), "it waits for the row")
        if leaving == "cancels":
            call.cancel()
        elif leaving == "is cut off":
            way.close()
        eventually(lambda: rows(holder, waiting) == ((0,),), "its UPDATE is killed")
        run(holder, "ROLLBACK")
    others = "SELECT id FROM information_schema.processlist WHERE user = 'app'"
    eventually(lambda: not rows(boss, others), "its session has ended")
    unacked = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL"
    assert rows(boss, unacked) == ((2,),)
    with grpc.insecure_channel(address_of(proxy)) as again:
        assert Calls(again).acked(1, 2) == 2
    channel.close()
    way.close()
    assert "internal error" not in proxy.log()


@pytest.mark.slow
def test_a_client_made_of_vitess_own_files_consumes_a_queue(proxy, tmp_path):
    program = toolchains.go(tmp_path, toolchains.PROGRAMS / "vitess_go")
    client = connect(proxy)
    insert = "INSERT INTO my_message (id, tenant_id, message) VALUES (1, 7, '\"é\"'), (2, NULL, NULL)"
    run(client, insert)
    done = finished([*program, address_of(proxy), "app", "sesame", "2"], check=True)
    fields, *lines, acked = done.stdout.splitlines()
    assert "id:INT64" in fields
    assert "tenant_id:INT64" in fields
    assert sorted(lines) == ['1 7 "é"', "2 NULL NULL"]
    assert acked == "acked 2"
    assert rows(client, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL") == ((0,),)
