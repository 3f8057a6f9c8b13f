"""Polls after commits of which nobody knows what they wrote: coalesced, and within their share of a core."""

import asyncio

from streamfrom.engine.messaging.shell.unseen_writes import (
    KEY_S,
    POLL_S,
    SAVED_S,
    SHARE,
    UnseenWrites,
)
from tests.fixtures.logged import logged


class State:
    """Of every shard the same."""

    def __init__(self, known, *, has_streams=True):
        self.known, self.hears_news = known, has_streams

    def shard(self, _name):
        return self


class Table:
    named = {"keyspace": "ks", "queue": "q"}  # noqa: RUF012


class Polled:
    """A runner that notes when it was told to poll."""

    table = Table()

    def __init__(self, known=0, *, has_streams=True):
        self.state = State(known, has_streams=has_streams)
        self.moments = []

    def post(self, _event):
        self.moments.append(asyncio.get_running_loop().time())


async def test_many_commits_and_queues_take_their_share_of_a_core_and_none_is_forgotten(caplog):
    queues = [Polled(known=200) for _ in range(100)]
    unseen = UnseenWrites()
    for _ in range(2000):
        unseen.happened("0", queues)  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
    await asyncio.sleep(60)
    counts = [len(queue.moments) for queue in queues]
    spent_s = sum(counts) * (POLL_S + 200 * KEY_S)
    assert spent_s <= SHARE * 20 + SAVED_S + 100 * (POLL_S + 200 * KEY_S)
    assert min(counts) > 0
    assert max(counts) - min(counts) <= 1, "in turn"
    last = [queue.moments[-1] for queue in queues]
    assert min(last) > 19.9 - 100 * (POLL_S + 200 * KEY_S) / SHARE, "what came last is polled"
    ((event, percent),) = logged(caplog, "core_percent")
    assert event.startswith("commits that may write to any queue are too many")
    assert percent == 5
