"""The figures of many queues hold no client up."""

import asyncio

from streamfrom.proxy.admin import admin_server
from streamfrom.proxy.admin.admin_server import AdminServer
from streamfrom.proxy.admin.overview import queue_records
from streamfrom.proxy.admin.turns import QUEUES_IN_A_TURN, in_turns
from tests.proxy.admin.conftest import USERS, Status, figures, services


QUEUES = [figures(f"q{number:03}") for number in range(3 * QUEUES_IN_A_TURN + 5)]
NAMES = [queue.table.name for queue in QUEUES]


class OtherClient:
    """Notes what was worked on between two of its turns, the queues by their names."""

    def __init__(self):
        self.turns: list[list[str]] = [[]]
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self):
        self.turns.append([])
        if sum(map(len, self.turns)) < len(QUEUES):
            asyncio.get_running_loop().call_soon(self._turn)

    def saw(self, queues):
        self.turns[-1] += [queue.table.name for queue in queues]

    def check(self):
        assert sorted(name for turn in self.turns for name in turn) == NAMES
        assert max(map(len, self.turns)) == QUEUES_IN_A_TURN


async def test_others_have_a_turn_after_a_few_queues():
    other = OtherClient()
    async for some in in_turns(QUEUES):
        other.saw(some)
    other.check()


async def test_no_queues_take_no_turn():
    assert [some async for some in in_turns([])] == []


async def test_the_overview_is_made_in_turns(served, monkeypatch):
    served.status.figures = QUEUES[::-1]
    other = OtherClient()

    def made(queues, *rest):
        other.saw(queues)
        return queue_records(queues, *rest)

    monkeypatch.setattr(admin_server, "queue_records", made)
    found = await served.browser.get("/api/overview")
    assert [one["queue"] for one in found["queues"]] == NAMES
    other.check()


async def test_a_sample_is_taken_in_turns(monkeypatch):
    status = Status()
    status.figures = QUEUES
    server = AdminServer(services(status, None, USERS))
    other, done, sample = OtherClient(), asyncio.Event(), server.history.sample

    def sampled(queues, at_s):
        sample(queues, at_s)
        other.saw(queues)
        if len(server.history) == len(QUEUES):
            done.set()

    monkeypatch.setattr(server.history, "sample", sampled)
    await server.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(60):
            await done.wait()
    finally:
        await server.stop()
    other.check()
