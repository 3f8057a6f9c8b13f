"""What users do to queues and messages over HTTP, as the page asks for it: the statements that it becomes, and what is refused."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.upkeep.peek import PeekState
from streamfrom.proxy.admin.admin_server import AT_ONCE_MAX
from streamfrom.proxy.admin.queue_api import Action, change
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.status.status_source import Sight
from tests.cases import in_turn
from tests.proxy.admin.conftest import USERS, Acting, Client, stream_of
from tests.sim.memory_store import loaded, raw_table


QUEUE = {"keyspace": "ks", "queue": "msg"}
ONE = {"shard": "1", "key": b"17".hex()}
ACT = QUEUE | {"action": "ack", "messages": [ONE]}


@pytest.mark.parametrize(
    ("path", "body", "target", "statement"),
    [
        ("/api/pause", {}, "ks", "ALTER QUEUE `msg` PAUSE"),
        ("/api/resume", {}, "ks", "ALTER QUEUE `msg` RESUME"),
        ("/api/requeue", {"source": "parked", "limit": 7}, "ks", "ALTER QUEUE `msg` REQUEUE PARKED LIMIT 7"),
        ("/api/requeue", {"source": "dead"}, "ks", "ALTER QUEUE `msg` REQUEUE DEAD LIMIT 500"),
        ("/api/act", {"action": "ack", "messages": [ONE]}, "ks:1", "UPDATE `msg` SET time_acked = NOW() WHERE `id` IN (17) AND time_acked IS NULL"),
        ("/api/act", {"action": "retry", "messages": [ONE]}, "ks:1", "UPDATE `msg` SET time_next = 0, epoch = 0 WHERE `id` IN (17) AND time_acked IS NULL"),
        ("/api/act", {"action": "park", "messages": [ONE]}, "ks:1", f"UPDATE `msg` SET time_next = {PARKED_NS} WHERE `id` IN (17) AND time_acked IS NULL"),
        ("/api/act", {"action": "delete", "messages": [ONE]}, "ks:1", "DELETE FROM `msg` WHERE `id` IN (17)"),
    ],
)  # fmt: skip
async def test_an_action_is_a_statement_of_the_user(seen, path, body, target, statement):
    await seen.browser.log_in("app")
    status, text, _ = await seen.browser.post(path, QUEUE | body)
    assert status in {200, 204}, text
    assert seen.acting.sent == [("app", target, statement)]


@pytest.fixture
async def seen(guarded):
    """A queue whose messages indexes find, on two shards."""
    table = loaded(raw_table("msg"), "ks")
    guarded.status.figures[0] = replace(guarded.status.figures[0], table=table)
    guarded.with_shards("ks", "0", "1")
    return guarded


@in_turn
@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/api/pause", QUEUE | {"queue": "nothing"}, 404),
        ("/api/resume", {"keyspace": "ks"}, 400),
        ("/api/resume", None, 415),
        ("/api/requeue", QUEUE | {"source": "acked"}, 400),
        ("/api/requeue", QUEUE | {"source": "dead", "limit": "1; DROP TABLE msg"}, 400),
        ("/api/act", ACT | {"action": "drop"}, 400),
        ("/api/act", ACT | {"messages": [ONE | {"shard": "2"}]}, 400),
        ("/api/act", ACT | {"messages": [ONE | {"key": "no hex"}]}, 400),
        ("/api/act", ACT | {"messages": [ONE | {"key": b"1 OR 1=1".hex()}]}, 400),
        ("/api/act", ACT | {"messages": [ONE] * 201}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "gone"}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "all", "cursor": 5}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "all", "column": "none", "value": "1"}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "all", "column": "id", "value": "\ud800"}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "all", "column": "epoch", "value": "3x"}, 400),
        ("/api/act", QUEUE | {"action": ["ack"], "state": "all"}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "all", "limit": 0}, 400),
        ("/api/act", QUEUE | {"action": "ack", "state": "all", "limit": True}, 400),
        ("/api/act", [ACT], 400),
        ("/api/act", ACT | {"comment": "x" * 200_000}, 413),
        ("/api/end-stream", {"connection_id": 99}, 404),
        ("/api/end-stream", {"connection_id": "7"}, 400),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_refused_with_a_reason(seen, path, body, expected):
    await seen.browser.log_in("boss")
    status, text, _ = await seen.browser.post(path, body)
    assert status == expected, text
    assert text.strip()
    assert seen.acting.sent == []


async def test_what_the_server_says_is_the_answer_and_what_one_does_not_see_is_not_there(seen):
    await seen.browser.log_in("app")
    for code, expected in ((1142, 403), (1094, 404), (1095, 403), (1205, 409), (1040, 409)):
        seen.acting.error = BackendError(code, "HY000", "what it says")
        answer = await seen.browser.post("/api/act", ACT)
        assert answer[:2] == (expected, "what it says\n")
    seen.acting.sent.clear()
    seen.services.rights.seen = Sight({"ks": frozenset({"another"})})
    for path, body in (("/api/pause", QUEUE), ("/api/act", ACT)):
        assert (await seen.browser.post(path, body))[0] == 404
    assert seen.acting.sent == []


async def test_actions_that_wait_for_locks_leave_the_figures_free(seen):
    await seen.browser.log_in("app")
    seen.acting.gate.clear()
    acts = [
        asyncio.create_task(seen.browser.post("/api/act", ACT)) for _ in range(AT_ONCE_MAX + 1)
    ]
    done, pending = await asyncio.wait(acts, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result()[0] for task in done] == [503]
    assert (await seen.ask("/metrics"))[0] == 200
    seen.acting.gate.set()
    assert {(await task)[0] for task in pending} == {200}


async def test_a_stream_is_ended_by_who_sees_it(seen):
    seen.services.sessions[7] = Client(USERS["app"], 7)
    seen.services.sessions[8] = Client(USERS["boss"], 8)
    queue = seen.status.figures[0]
    seen.status.open_streams = [stream_of(queue, 7), stream_of(queue, 8)]
    await seen.browser.log_in("app")
    assert (await seen.browser.post("/api/end-stream", {"connection_id": 8}))[0] == 404
    assert (await seen.browser.post("/api/end-stream", {"connection_id": 7}))[0] == 204
    await seen.browser.log_in("boss")
    assert (await seen.browser.post("/api/end-stream", {"connection_id": 7}))[0] == 204
    assert seen.acting.sent == [("app", "", "KILL QUERY 7"), ("boss", "", "KILL QUERY 7")]


@pytest.mark.parametrize(
    "path", ["/api/pause", "/api/resume", "/api/requeue", "/api/act", "/api/end-stream"]
)
async def test_a_user_acts_only_with_the_token_of_its_session(seen, path):
    body = ACT | {"connection_id": 7, "source": "dead"}
    assert (await seen.browser.post(path, body))[0] == 401
    await seen.browser.log_in("app")
    token = {"X-CSRF-Token": "another"}
    assert (await seen.browser.post(path, body, **token))[0] == 403
    elsewhere = {"Origin": "http://evil.example"}
    assert (await seen.browser.post(path, body, **elsewhere))[0] == 403
    assert seen.acting.sent == []


# Actions on messages of several shards, and what is no longer in the state that was meant.
TABLE = loaded(raw_table("a`b", id_type="varchar"), "ks")


@pytest.fixture
def acting():
    return Acting()


async def test_each_shard_gets_its_own_messages_as_literals_until_one_refuses(acting):
    ids = {"-80": [b"x'y", b"z"], "80-": [], "c0-": [b"w"]}
    act = partial(change, partial(acting, "app", "::1"), TABLE, by="app")
    assert await act(Action.DELETE, ids) == 2
    assert acting.sent == [
        ("app", "ks:-80", "DELETE FROM `a``b` WHERE `id` IN ('x''y', 'z')"),
        ("app", "ks:c0-", "DELETE FROM `a``b` WHERE `id` IN ('w')"),
    ]
    acting.sent.clear()
    acting.error = BackendError(1205, "HY000", "Lock wait timeout exceeded")
    with pytest.raises(BackendError, match="Lock wait"):
        await act(Action.ACK, {"0": [b"1"], "1": [b"2"]})
    assert [target for _, target, _ in acting.sent] == ["ks:0"]


async def test_what_has_left_the_parked_is_left_alone(acting):
    act = partial(change, partial(acting, "app", "::1"), TABLE, by="app")
    for state, guard in (
        (PeekState.PARKED, f" AND time_next = {PARKED_NS}"),
        (PeekState.READY, ""),
    ):
        await act(Action.RETRY, {"0": [b"1"]}, state)
        assert ("time_next = 9" in acting.sent[-1][2]) == bool(guard)
        assert acting.sent[-1][2].endswith(guard)
