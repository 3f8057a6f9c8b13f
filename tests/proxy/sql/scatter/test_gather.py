"""Answers gathered from two shards; tests/integration/test_scatter*.py compare what comes of them with one server."""

import asyncio

import pytest

from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.fake_answers import Error, HangUp, Rows, Silence, until


ORDERED = "SELECT a FROM t ORDER BY a"
# What the shards are asked for that: the value to sort by comes first.
ASKED = "streamfrom:1"


def sorted_rows(*numbers):
    rows = tuple((b"%d" % n, b"%d" % n) for n in numbers)
    return Rows(("a", "a"), rows, types=(FieldType.LONGLONG,) * 2)


@pytest.fixture(autouse=True)
def described(server):
    """The first shard says what types there are."""
    server.on("FROM t", Rows(("a",), types=(FieldType.LONGLONG,)))


@pytest.mark.parametrize("is_client", [True, False])
async def test_who_is_behind_stops_those_that_run_ahead(
    server, other_server, client, is_client
):
    gate = asyncio.Event()
    large = tuple((b"%d" % n, b"x" * 1_000_000) for n in range(16))
    for each in (server, other_server):
        each.on(ASKED, Rows(("a", "a"), large, types=(FieldType.LONGLONG, FieldType.BLOB)))
    if is_client:
        client.stop_reading()
    else:
        other_server.once(ASKED, Silence(gate, sorted_rows(17)))
    client.send(ORDERED)
    await until(lambda: any(each.is_stalled for each in server.relays))
    gate.set()
    client.read_on()
    assert len((await client.answer())[0].rows) == (32 if is_client else 17)


async def test_an_error_of_one_shard_ends_the_answer_and_the_other_shards_query(
    server, other_server, client
):
    server.once(ASKED, Silence())
    other_server.once(ASKED, Error(1317, "Query execution was interrupted"))
    assert (await client.query(ORDERED)).code == 1317
    await until(lambda: any("KILL" in text for text in server.controlled))


@pytest.mark.parametrize("answer", [Error(1053, "Server shutdown in progress"), HangUp()])
async def test_a_read_of_which_the_client_has_seen_nothing_is_asked_again(
    server, other_server, client, answer
):
    server.on(ASKED, sorted_rows(1, 4))
    other_server.on(ASKED, sorted_rows(2, 3))
    other_server.once(ASKED, answer)
    assert (await client.query(ORDERED)).values == [b"1", b"2", b"3", b"4"]
