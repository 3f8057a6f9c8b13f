"""Members that ask each other for figures, over real sockets of this machine."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.engine.messaging.figures.figures import (
    QueueFigures,
    ShardFigures,
    StreamFigures,
)
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.fleet import member_calls as fleet_status
from streamfrom.proxy.fleet.member_calls import FleetCalls
from streamfrom.proxy.sessions.process_list import LocalSessions
from streamfrom.proxy.status.status_rows import MemberStatus
from streamfrom.proxy.status.status_source import StatusSource, Viewer
from tests.proxy.fleet.members import Process, Session, fleet_of, runtime
from tests.sim.memory_store import loaded, raw_table
from tests.virtual_loop import VirtualClock


TABLE = loaded(raw_table("msg"))
ALL = ("queues", "streams", "shards", "members")
EVE = Viewer(User("eve", Secret(""), None, Role.USER), False, [])
BOSS = Viewer(User("boss", Secret(""), None, Role.ADMIN), True, [])


class OneMember(Process):
    """One process of a fleet with figures."""

    def __init__(self, name, number):
        super().__init__(name, number)
        self.looks = 0
        self.gone: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.ids = [number * 10 + 1, number * 10 + 2]
        users = dict(zip(self.ids, ("eve", "root"), strict=True))
        sessions: Any = {number: Session(number, user) for number, user in users.items()}
        self.known_by_it: Any = StatusSource(
            SimpleNamespace(known_queues=self.queues, streams=self.streams),  # type: ignore[arg-type]
            SimpleNamespace(),  # type: ignore[arg-type]
            VirtualClock(),
            {("ks", "0"): runtime("ks")},
            lambda: MemberStatus(name, "1", 1.0, 2, 3, 4, is_stopping=False),
        )
        self.sessions = LocalSessions(sessions)
        fleet: Any = self
        self.others = FleetCalls(fleet, self.links, self.known_by_it, self.sessions)
        self.door.add(self.others.methods)

    async def queues(self):
        await self.gate.wait()
        shard = ShardFigures("0", Counters(delivered=self.ids[0]), 1, 1, 1, True, 1, 1, 0)
        return [QueueFigures(TABLE, (shard,), 1)]

    def streams(self):
        made = [StreamFigures(TABLE, one, None, 0, 1, 1, 0, 1, None) for one in self.ids]
        return [*made, StreamFigures(TABLE, 99, None, 0, 1, 1, 0, 1, None, is_for_member=True)]

    async def present(self):
        self.looks += 1
        return [member for member in self.known if member.id not in self.gone]


@pytest.fixture
async def three(monkeypatch):
    monkeypatch.setattr(fleet_status, "STATUS_TIMEOUT_S", 60.0)
    names = enumerate(["one", "two", "three"], 1)
    async with fleet_of(*(OneMember(name, number) for number, name in names)) as fleet:
        yield fleet
        for process in fleet:
            process.gate.set()


async def test_all_members_tell_what_they_are_asked_for(three):
    one, *_ = three
    found = await one.others.ask(ALL, BOSS)
    assert found.unanswered == ()
    assert [answer.member.member for answer in found.answers] == ["three", "two"], (
        "by their ids"
    )
    three_, two = found.answers
    assert two.member.address == three[1].own.address
    assert [part.shards[0].counters.delivered for part in two.queues] == [21]
    assert [stream.connection_id for stream in two.streams] == [21, 22, 99]
    assert two.streams[-1].client is None
    assert [(shard.member, shard.pool_in_use) for shard in three_.shards] == [("three", 2)]
    (only,) = (await one.others.ask(["members"], BOSS)).answers[1:]
    assert (only.queues, only.streams, only.shards) == ((), (), ())


async def test_each_member_judges_which_streams_one_may_see_and_who_is_alone_asks_nobody(three):
    one, *_ = three
    found = (await one.others.ask(["streams"], EVE)).answers[1]
    clients = [stream.client.user for stream in found.streams if stream.client is not None]
    assert clients == ["eve"]
    for_nobody = (await one.others.ask(["streams"])).answers[1]
    assert [stream.connection_id for stream in for_nobody.streams] == [99]
    one.known, looks = [], one.looks
    alone = await one.others.ask(ALL, BOSS)
    assert (alone.answers, alone.unanswered, one.looks) == ((), (), looks)


async def test_a_member_that_hangs_is_named(three, monkeypatch):
    one, two, _ = three
    two.gate.clear()
    one.known = [two.own]
    monkeypatch.setattr(fleet_status, "STATUS_TIMEOUT_S", 0.2)
    found = await one.others.ask(ALL, BOSS)
    (silent,) = found.unanswered
    assert (found.answers, one.looks) == ((), 1)
    assert (silent.member, silent.version, silent.address) == ("two", "1", two.own.address)
    assert silent.error


async def test_a_member_that_has_left_since_is_not_missing(three):
    one, two, other = three
    one.known = [two.own, replace(other.own, address="")]
    one.gone = {"three"}
    found = await one.others.ask(ALL, BOSS)
    assert [answer.member.member for answer in found.answers] == ["two"]
    assert found.unanswered == ()
