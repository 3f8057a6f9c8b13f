"""Parked messages are revived, over HTTP as the page asks for it."""

import ast
from dataclasses import replace
from types import SimpleNamespace

import pytest

from streamfrom.proxy.errors import BackendError
from tests.cases import cases
from tests.proxy.admin.conftest import MessagesServer
from tests.sim.memory_store import loaded, raw_table


QUEUE = {"keyspace": "ks", "queue": "msg"}


@pytest.fixture
async def parked(guarded):
    """Two shards with 1,001 and 2 parked messages."""
    guarded.servers = [
        MessagesServer(*((one, None) for one in range(1, 1002))),
        MessagesServer((2001, None), (2002, None)),
    ]
    for (_, shard), server in zip(
        [key for key in guarded.status.shards if key[0] == "ks"], guarded.servers, strict=True
    ):
        guarded.status.shards["ks", shard] = SimpleNamespace(name=shard, control=server)
    guarded.services.clock = guarded.status.clock
    guarded.services.registry.told = []
    guarded.services.registry.committed = lambda *told: guarded.services.registry.told.append(
        told
    )
    table = loaded(raw_table("msg"), "ks")
    guarded.status.figures[0] = replace(guarded.status.figures[0], table=table)
    return guarded


async def test_all_shards_revive_what_is_parked_and_dispatchers_hear_of_it(parked):
    await parked.browser.log_in("boss")
    status, told, _ = await parked.browser.post("/api/revive", QUEUE)
    assert (status, told) == (200, '{"revived": 1003}')
    assert [server.rows_found for server in parked.servers] == [(), ()]
    assert [told[:3] for told in parked.services.registry.told] == [
        ("ks", "0", "msg"),
        ("ks", "0", "msg"),
        ("ks", "1", "msg"),
    ]
    assert await parked.browser.post("/api/revive", QUEUE)
    assert len(parked.services.registry.told) == 3, "nothing was left"


async def test_a_shard_that_refuses_is_told_and_the_rest_can_be_revived_later(parked):
    await parked.browser.log_in("boss")
    parked.servers[1].error = BackendError(1205, "HY000", "Lock wait timeout exceeded")
    status, told, _ = await parked.browser.post("/api/revive", QUEUE)
    assert (status, "Lock wait timeout" in told) == (409, True)
    parked.servers[1].error = None
    assert (await parked.browser.post("/api/revive", QUEUE))[1] == '{"revived": 2}'


@cases(user=str, body=ast.literal_eval, expected=ast.literal_eval)
async def test_who_may_not_and_what_is_not_there(parked, user, body, expected):
    await parked.browser.log_in("boss")
    assert (await parked.browser.post("/api/revive", body))[0] == expected
    assert all(server.sent == [] for server in parked.servers)


async def test_nothing_is_revived_if_the_account_may_not_on_one_shard(parked):
    parked.services.rights.refusal = BackendError(1142, "42000", "UPDATE command denied")
    await parked.browser.log_in("app")
    status, text, _ = await parked.browser.post("/api/revive", QUEUE)
    assert (status, text) == (403, "UPDATE command denied\n")
    assert all(server.sent == [] for server in parked.servers)


async def test_a_table_whose_index_finds_none_is_not_walked(parked):
    await parked.browser.log_in("boss")
    table = replace(parked.status.figures[0].table, time_index=None)
    parked.status.figures[0] = replace(parked.status.figures[0], table=table)
    status, told, _ = await parked.browser.post("/api/revive", QUEUE)
    assert (status, "see streamfrom check" in told) == (409, True)
