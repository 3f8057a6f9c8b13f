"""Pause, resume, and the end of a stream, over HTTP as the page asks for them."""

import ast
from dataclasses import replace
from types import SimpleNamespace

import pytest

from streamfrom.proxy.config.file import SessionAccount
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendError, MemberUnreachable, QueryInterrupted
from streamfrom.proxy.status.fleet_figures import MemberFigures, MembersFigures
from streamfrom.proxy.status.status_rows import MemberStatus, StreamClient, StreamStatus
from streamfrom.proxy.status.status_source import Sight
from tests.cases import cases
from tests.proxy.admin.conftest import USERS, Client, stream_of


QUEUE = {"keyspace": "ks", "queue": "msg"}


async def test_a_queue_is_paused_and_resumed_on_all_its_shards(guarded):
    await guarded.browser.log_in("boss")
    controls = [shard.control for shard in guarded.status.shards.values()]
    before = [control.comments["msg"] for control in controls]
    assert (await guarded.browser.post("/api/pause", QUEUE))[0] == 204
    assert all("vt_paused=on" in control.comments["msg"] for control in controls)
    found = await guarded.browser.get("/api/queue?keyspace=ks&queue=msg")
    assert found["queue"]["is_paused"]
    assert (await guarded.browser.post("/api/pause", QUEUE))[0] == 204
    assert (await guarded.browser.post("/api/resume", QUEUE))[0] == 204
    assert [control.comments["msg"] for control in controls] == before
    assert guarded.services.registry.changed == ["ks"] * 3


@cases(path=str, body=ast.literal_eval, expected=ast.literal_eval)
async def test_what_cannot_be_done_is_refused_with_a_reason(guarded, path, body, expected):
    await guarded.browser.log_in("boss")
    status, text, _ = await guarded.browser.post(path, body)
    assert status == expected
    assert text.strip()
    assert guarded.services.registry.changed == []


async def test_a_shard_that_refuses_is_told_and_what_was_done_is_read_again(guarded):
    await guarded.browser.log_in("boss")
    last = guarded.status.shards["ks", "1"].control
    last.error = BackendError(1205, "HY000", "Lock wait timeout exceeded")
    status, text, _ = await guarded.browser.post("/api/pause", QUEUE)
    assert (status, "Lock wait timeout" in text) == (409, True)
    assert guarded.services.registry.changed == ["ks"]
    last.error = None
    assert (await guarded.browser.post("/api/pause", QUEUE))[0] == 204
    assert "vt_paused=on" in last.comments["msg"]


async def test_a_table_that_is_no_queue_any_more_is_left_alone(guarded):
    await guarded.browser.log_in("boss")
    last = guarded.status.shards["ks", "1"].control
    last.comments["msg"] = "something else"
    status, text, _ = await guarded.browser.post("/api/pause", QUEUE)
    assert (status, "no queue" in text) == (409, True)
    assert not last.said


async def test_a_stream_is_ended(guarded):
    await guarded.browser.log_in("boss")
    guarded.services.sessions[7] = client = Client(USERS["app"], 7)
    other = guarded.services.sessions[8] = Client(USERS["app"], 8)
    guarded.status.open_streams = [stream_of(guarded.status.figures[0], 7)]
    # A connection that streams nothing is nobody's stream.
    assert (await guarded.browser.post("/api/end-stream", {"connection_id": 8}))[0] == 404
    assert (await guarded.browser.post("/api/end-stream", {"connection_id": 7}))[0] == 204
    assert [type(error) for error in client.interrupted] == [QueryInterrupted]
    assert other.interrupted == []


async def test_a_stream_of_another_member_is_ended_there(guarded):
    await guarded.browser.log_in("boss")
    killed = []

    async def kill(asker, connection_id, *, query_only):
        killed.append((asker.user, asker.is_admin, connection_id, query_only))
        if len(killed) > 1:
            raise MemberUnreachable(["member two at h:1: late"])

    guarded.services.members = SimpleNamespace(kill=kill)
    client = StreamClient("app", "10.0.0.9", 0, 100, None, "two")
    streams = (
        StreamStatus(9, "ks", "msg", client, 1, 1, None, None),
        StreamStatus(10, "ks", "msg", None, 1, 1, None, None),
    )
    member = MemberStatus("two", "1", 1.0, 1, 1, 1, is_stopping=False)
    guarded.status.others.told = MembersFigures((MemberFigures(member, (), streams),))
    # What that member's connection 11 runs is no stream, and 10 is at a third one, which says nothing.
    for connection_id in (10, 11):
        body = {"connection_id": connection_id}
        assert (await guarded.browser.post("/api/end-stream", body))[0] == 404
    assert killed == []
    assert (await guarded.browser.post("/api/end-stream", {"connection_id": 9}))[0] == 204
    assert killed == [("boss", True, 9, True)]
    status, text, _ = await guarded.browser.post("/api/end-stream", {"connection_id": 9})
    assert (status, "member two at h:1: late" in text) == (409, True)


@pytest.mark.parametrize("path", ["/api/pause", "/api/resume", "/api/end-stream"])
async def test_a_user_acts_only_with_the_token_of_its_session(guarded, path):
    body = QUEUE | {"connection_id": 7}
    assert (await guarded.browser.post(path, body))[0] == 401
    await guarded.browser.log_in("app")
    token = {"X-CSRF-Token": "another"}
    assert (await guarded.browser.post(path, body, **token))[0] == 403
    elsewhere = {"Origin": "http://evil.example"}
    assert (await guarded.browser.post(path, body, **elsewhere))[0] == 403
    assert guarded.services.registry.changed == []


async def test_a_user_pauses_on_connections_of_its_account_what_it_sees(guarded):
    own = replace(USERS["app"], password=Secret(""), account=SessionAccount.OWN)
    guarded.services.users["app"] = own
    rights = guarded.services.rights
    await guarded.browser.log_in("app")
    assert (await guarded.browser.post("/api/pause", QUEUE))[0] == 204
    assert rights.ran == [("app", "0"), ("app", "1")]
    rights.seen = Sight({"ks": frozenset({"another"})})
    assert (await guarded.browser.post("/api/pause", QUEUE))[0] == 404
    rights.seen = Sight({})
    assert (await guarded.browser.get("/api/overview"))["queues"] == []


async def test_what_the_server_refuses_the_account_is_forbidden(guarded):
    await guarded.browser.log_in("app")
    shard = guarded.status.shards["ks", "0"]
    shard.control.error = BackendError(1142, "42000", "ALTER command denied to user 'app'")
    status, text, _ = await guarded.browser.post("/api/pause", QUEUE)
    assert (status, text) == (403, "ALTER command denied to user 'app'\n")


async def test_only_an_admin_ends_streams_of_others(guarded):
    await guarded.browser.log_in("app")
    guarded.services.sessions[7] = own = Client(USERS["app"], 7)
    guarded.services.sessions[8] = other = Client(USERS["boss"], 8)
    queue = guarded.status.figures[0]
    guarded.status.open_streams = [stream_of(queue, 7), stream_of(queue, 8)]
    assert (await guarded.browser.post("/api/end-stream", {"connection_id": 8}))[0] == 403
    assert (await guarded.browser.post("/api/end-stream", {"connection_id": 7}))[0] == 204
    assert (len(own.interrupted), other.interrupted) == (1, [])
