"""A look at the messages of a queue, over HTTP as the page asks for it; the servers' answers are made up."""

import ast
from dataclasses import replace

import pytest

from streamfrom.proxy.admin import queue_messages
from streamfrom.proxy.admin.queue_messages import PAGE_ROWS
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from tests.cases import cases, in_turn
from tests.proxy.admin.conftest import MessagesServer, figures
from tests.sim.memory_store import loaded, raw_table


PAGE = "/api/messages?keyspace=ks&queue=msg&state=parked"
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
async def peeked(guarded):
    """Two shards with messages, behind USERS and a producer."""
    guarded.shards = guarded.with_shards(
        "ks",
        "0",
        "1",
        **{
            "0": MessagesServer(*((number, HOSTILE) for number in range(1, 31))),
            "1": MessagesServer(
                (101, b"\xff\x00"), (102, None), (103, "x" * 201), (104, "\x01")
            ),
        },
    )
    raw = raw_table("msg")
    guarded.status.figures[0] = replace(guarded.status.figures[0], table=loaded(raw, "ks"))
    return guarded


async def pages(peeked, path=PAGE):
    found, missing = [], []
    cursor: str | None = ""
    while cursor is not None:
        page = await peeked.browser.get(f"{path}&cursor={cursor}")
        assert len(page["rows"]) <= PAGE_ROWS
        found += page["rows"]
        missing += page["missing"]
        cursor = page["next"]
    return found, missing


async def test_without_the_right_or_the_index_no_message_is_seen(peeked):
    await peeked.browser.log_in("app")
    peeked.services.rights.refusal = BackendError(1143, "42000", "SELECT command denied")
    assert (await peeked.ask(PAGE))[:2] == (403, "SELECT command denied\n")
    peeked.services.rights.refusal = None
    table = replace(figures().table, time_index=None)
    peeked.status.figures[0] = replace(peeked.status.figures[0], table=table)
    status, told, _ = await peeked.ask(PAGE)
    assert (status, "index" in told) == (409, True)
    assert all(shard.control.sent == [] for shard in peeked.shards)


async def test_messages_come_shard_by_shard_each_once(peeked):
    await peeked.browser.log_in("app")
    rows, missing = await pages(peeked)
    assert missing == []
    assert [row["id"] for row in rows] == [
        str(number) for number in (*range(1, 31), *range(101, 105))
    ]
    assert {row["shard"] for row in rows[:30]} == {"0"}
    assert rows[0]["values"][-1] == HOSTILE
    bodies = [row["values"][-1] for row in rows[30:]]
    assert bodies == ["0xff00", None, "x" * 200 + "…", "0x01"]


async def test_a_shard_that_is_down_or_late_or_refuses_is_named(peeked, monkeypatch):
    await peeked.browser.log_in("boss")
    first, last = peeked.shards
    first.trouble = "gone"
    rows, missing = await pages(peeked)
    assert [row["shard"] for row in rows] == ["1"] * 4
    assert missing == [{"shard": "0", "reason": "gone"}]
    first.trouble = None
    last.control.error = BackendUnavailable("ks", "1", "refused")
    rows, missing = await pages(peeked)
    assert (len(rows), missing[0]["shard"]) == (30, "1")
    assert "refused" in missing[0]["reason"]
    monkeypatch.setattr(queue_messages, "PATIENCE_S", 0.0)
    first.control.gate.clear()
    assert "no answer within" in (await pages(peeked))[1][0]["reason"]


@in_turn
@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "%FF",
        "A" * 5000,
        "no such shard",
        "0,5",
        "0,5,1,9,31,31",
        f"0,5,1,{10**30},31",
        f"0,{'5' * 4000},1,9,31",
        "0,5,1,9,no hex",
        f"0,5,1,9,{b'1 OR 1=1'.hex()}",
        "0,1e999,1,9,31",
        "0,5,yes,9,31",
    ],
)
async def test_a_cursor_that_no_page_told_is_refused(peeked, text):
    await peeked.browser.log_in("app")
    status, told, _ = await peeked.browser.ask(f"{PAGE}&cursor={text}")
    assert (status, "cursor" in told) == (400, True)
    assert [shard.control.sent for shard in peeked.shards] == [[], []]


@cases(query=str, expected=ast.literal_eval)
async def test_what_there_is_not_is_refused_with_a_reason(peeked, query, expected):
    await peeked.browser.log_in("app")
    status, told, _ = await peeked.browser.ask(f"/api/messages?{query}")
    assert (status, bool(told.strip())) == (expected, True)
