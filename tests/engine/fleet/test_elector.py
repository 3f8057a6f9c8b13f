"""The shell of an election, on servers in memory; its histories are in tests/sim/test_fleet_sim.py."""

import asyncio
import logging
from dataclasses import replace

import pytest

from streamfrom.engine.errors import NotDispatched, StoreError, TableGone
from streamfrom.engine.fleet.directory import MemberDifferences, Stranger
from streamfrom.engine.fleet.election import ANSWER_NS, LEASE_NS
from streamfrom.engine.fleet.elector import Elector
from streamfrom.engine.fleet.lock_connection import acquire
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from tests.sim.servers import FakeShard, Network, Work, now_ns
from tests.sim.ways import member_of
from tests.virtual_loop import VirtualLoop


DATABASE = "commerce"
LEASE_S = LEASE_NS / 10**9


class Part:
    """One member's tables, as far as an election is concerned."""

    def __init__(self, server, name):
        self.server, self.network = server, Network()
        self.said: list[int | str] = []
        self.members: list[MemberDifferences] = []
        self.doubts = self.opened = 0
        self.is_busy = asyncio.Event()
        self.is_busy.set()
        own = member_of(name, ord(name[0]))
        self.elector = Elector("ks/-", DATABASE, own, self, self._open, now_ns, self._doubted)
        self.elector.start()

    async def _open(self, _on_lost):
        self.opened += 1
        return await self.server.open(self.network)

    def _doubted(self):
        self.doubts += 1

    def dispatch(self, term):
        self.said.append(term)

    def withhold(self, reason):
        self.said.append(reason)

    def not_elected(self, _reason):
        pass

    async def drain(self):
        await self.is_busy.wait()

    def changed(self, differences):
        self.members.append(differences)


def stand_still(seconds):
    """Let time pass in which the process does nothing: its timers are as late as it is."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.skip(seconds)


async def started():
    """Return a server and a member that dispatches from it."""
    server = FakeShard()
    part = Part(server, "a")
    await asyncio.sleep(0.1)
    return server, part


async def elected(server):
    """Return which of two members dispatches, and which waits."""
    parts = [Part(server, "a"), Part(server, "b")]
    await asyncio.sleep(0.1)
    parts.sort(key=lambda part: not part.elector.may_send())
    assert [part.elector.may_send() for part in parts] == [True, False]
    return parts


def write(text="done"):
    async def work():
        return text

    def transaction():
        done = Work(work)
        yield StoreQuery(done)  # type: ignore[arg-type]
        return done.result[0]

    return transaction


async def test_the_lines_of_an_election_name_its_shards(caplog):
    caplog.set_level(logging.INFO, logger="streamfrom.engine.fleet.elector")
    _, part = await started()
    await part.elector.stop()
    dispatched, *_ = caplog.records
    assert dispatched.message == "shard is dispatched from here"
    assert {vars(record)["shards"] for record in caplog.records} == {"ks/-"}


async def test_who_does_not_dispatch_may_not_write():
    server = FakeShard()
    sender, other = await elected(server)
    with pytest.raises(NotDispatched, match="is not dispatched from here"):
        await other.elector.write(write())
    assert other.said == []
    assert other.members[-1].dispatcher == sender.elector.directory.own


async def test_who_waits_for_a_stranger_knows_that_it_is_one():
    server = FakeShard()
    stranger = await server.open(Network())
    assert await stranger.converse(acquire(DATABASE, None, 0))
    part = Part(server, "a")
    await asyncio.sleep(0.1)
    assert part.elector.directory.dispatcher == Stranger(1, None)


async def test_a_shard_that_moves_is_dispatched_and_waited_for_at_its_new_server():
    server, moved_to = FakeShard(), FakeShard()
    parts = await elected(server)
    for part in parts:
        part.server = moved_to
        part.elector.moved("it has another server")
        part.elector.moved("it has another server")  # a start that is due anyway comes once
        own = replace(part.elector.directory.own, configuration="another")
        part.elector.reconfigured(own)
        assert not part.elector.may_send()
    await asyncio.sleep(LEASE_S)
    dispatcher, other = sorted(parts, key=lambda part: not part.elector.may_send())
    assert (dispatcher.elector.may_send(), other.elector.may_send()) == (True, False)
    assert [part.opened for part in parts] == [2, 2]
    await other.elector.look()
    seen = other.elector.directory.members[dispatcher.elector.directory.own.id]
    assert seen == dispatcher.elector.directory.own


async def test_another_configuration_of_a_member_is_written_at_its_next_look():
    server = FakeShard()
    parts = await elected(server)
    for part in parts:
        part.elector.reconfigured(replace(part.elector.directory.own, configuration="another"))
        await part.elector.look()
    await parts[0].elector.look()
    for part in parts:
        own = part.elector.directory.own
        assert parts[0].elector.directory.members[own.id].configuration == "another"


async def test_who_waits_doubts_the_server_as_soon_as_the_dispatcher_finds_it_read_only():
    server = FakeShard()
    dispatcher, other = await elected(server)
    assert other.doubts == 0
    server.is_read_only = True
    await asyncio.sleep(0.1)
    assert other.doubts == 0
    dispatcher.elector.turned_read_only()
    await asyncio.sleep(0.1)
    assert other.doubts == 1


async def test_who_waits_for_a_server_that_has_vanished_connects_anew_once_that_is_known():
    server = FakeShard()
    dispatcher, other = await elected(server)
    other.network.is_whole.clear()
    before = other.elector.session
    other.elector.unreachable("no answer within 10 s")
    dispatcher.elector.unreachable("no answer within 10 s")  # its own proof decides that
    other.network.is_whole.set()
    await asyncio.sleep(1)
    assert other.elector.session not in {None, before}
    assert dispatcher.elector.may_send()


async def test_a_write_that_the_connection_does_not_survive_ends_the_term():
    server, part = await started()
    server.write_s = 1
    writing = asyncio.ensure_future(part.elector.write(write()))
    await asyncio.sleep(0.5)
    server.end(part.elector.session)
    with pytest.raises(StoreError, match="gone away"):
        await writing
    assert part.said == [1, "server has gone away"]
    await asyncio.sleep(1)
    assert part.said[2:] == [2], "and another one begins"


async def test_a_write_refused_as_read_only_ends_the_term():
    server, part = await started()
    server.is_read_only = True
    with pytest.raises(StoreError, match="read-only"):
        await part.elector.write(write())
    assert part.said == [1, "the server is read-only"]
    await asyncio.sleep(5)
    assert part.said[2:] == []
    server.is_read_only = False
    await asyncio.sleep(2)
    assert part.said[2:] == [2]


async def test_a_write_refused_for_another_reason_does_not():
    _, part = await started()

    async def fail():
        raise errors.pop()

    def refused():
        yield StoreQuery(Work(fail))  # type: ignore[arg-type]

    errors = [ServerRefused(1146, "No such table"), ServerRefused(1213, "Deadlock found")]
    with pytest.raises(StoreError, match="Deadlock"):
        await part.elector.write(refused)
    with pytest.raises(TableGone, match="No such table"):
        await part.elector.write(refused)
    assert part.said == [1]
    assert part.elector.may_send()


async def test_whoever_asks_whether_it_may_send_is_told_before_it_hears_no():
    _, part = await started()
    part.network.is_whole.clear()
    stand_still(LEASE_S + 20)
    assert not part.elector.may_send()
    assert part.said == [1, "no answer of the server within 2 s"]


async def test_a_slow_write_is_a_pause_and_no_end():
    server, part = await started()
    server.write_s = 3
    assert await part.elector.write(write()) == "done"
    assert part.said == [1, "no answer of the server within 2 s"]
    await asyncio.sleep(0.1)
    assert part.said[2:] == [1], "the same term goes on"


async def test_a_candidate_looks_without_waiting_for_the_lock():
    server = FakeShard()
    first = Part(server, "a")
    await asyncio.sleep(1)
    second = Part(server, "b")
    await asyncio.sleep(1)
    third = Part(server, "c")
    await asyncio.sleep(1)
    sessions = len(server.sessions)
    second.elector.look()
    await asyncio.sleep(0.1)
    assert [member.id for member in second.members[-1].joined] == ["c"]
    assert len(server.sessions) == sessions, "the connection for it is closed"
    await asyncio.gather(*(part.elector.stop() for part in (first, second, third)))


async def test_a_connection_that_does_not_open_is_given_up():
    server = FakeShard()
    server.runs.clear()
    part = Part(server, "a")
    await asyncio.sleep(ANSWER_NS / 10**9 - 0.1)
    assert part.doubts == 0
    await asyncio.sleep(0.2)
    assert part.doubts == 1
    server.runs.set()
    await asyncio.sleep(2)
    assert part.said == [1]


@pytest.mark.parametrize("name", ["plain", "secret"])
async def test_who_has_one_name_of_the_lock_waits_until_others_would_have_noticed(name):
    server = FakeShard()
    if name == "secret":
        client = await server.open(Network(account="client"))
        client.silence.cancel()
        assert await client.converse(acquire(DATABASE, None, 0))
    part = Part(server, "a")
    part.network.may_use = name == "secret"
    await asyncio.sleep(LEASE_S - 0.1)
    assert part.said == []
    await asyncio.sleep(0.3)
    assert part.said == [1 if name == "secret" else 0]


async def test_who_has_long_known_the_secret_need_not_wait():
    server = FakeShard()
    first, second = await elected(server)
    await asyncio.sleep(LEASE_S)
    client = await server.open(Network(account="client"))
    client.silence.cancel()
    taking = asyncio.ensure_future(client.converse(acquire(DATABASE, None, 60)))
    await asyncio.sleep(0.1)
    await first.elector.stop()
    await asyncio.sleep(0.5)
    assert await taking
    assert second.said == [2]


async def test_what_an_earlier_connection_says_counts_no_more():
    server, part = await started()
    server.write_s = 1
    writing = asyncio.ensure_future(part.elector.write(write()))
    await asyncio.sleep(0.5)
    part.elector.turned_read_only()
    with pytest.raises(StoreError, match="gone away"):
        await writing
    await asyncio.sleep(5)
    assert part.opened == 2
    assert part.said == [1, "the server is read-only", 2]


async def test_by_the_secret_alone_it_goes_on_until_another_proxy_has_the_plain_name():
    server = FakeShard()
    client = await server.open(Network(account="client"))
    client.silence.cancel()
    await client.converse(acquire(DATABASE, None, 0))
    knowing = Part(server, "a")
    await asyncio.sleep(LEASE_S + 1)
    assert knowing.said == [1]
    other = Part(server, "b")
    other.network.may_use = False
    await asyncio.sleep(1)
    server.end(client)
    await asyncio.sleep(LEASE_S - 0.5)
    reason = "a proxy that does not know the directory has the lock"
    assert (knowing.said, other.said) == ([1, reason], [])
    await asyncio.sleep(1)
    assert other.said == [0]
