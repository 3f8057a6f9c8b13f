"""Questions to a member over real sockets of this machine: what comes back when there is no answer."""

from dataclasses import fields, replace
from typing import Any

import grpc
import pytest
import structlog
from hypothesis import given, strategies as st

from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.errors import MemberUnreachable, NoSuchThread, NotOwner
from streamfrom.proxy.fleet import member_calls, members_pb2 as pb
from streamfrom.proxy.fleet.grpc_links import SERVICE
from streamfrom.proxy.fleet.member_calls import (
    ASKERS,
    INFO_BYTES_MAX,
    MEMBERS,
    NO_ADDRESS,
    QUEUES,
    SHARDS,
    STREAMS,
    FleetCalls,
    ask,
    decode_process,
    decode_stream,
    encode_process,
    encode_queue,
)
from streamfrom.proxy.local_statements.show_processlist import Process as Line
from streamfrom.proxy.sessions.connection_ids import first_of
from streamfrom.proxy.sessions.process_list import LocalSessions
from streamfrom.proxy.sessions.services import Asker
from streamfrom.proxy.status.fleet_figures import QueueAtMember
from streamfrom.proxy.status.status_rows import (
    MemberStatus,
    ShardStatus,
    StreamClient,
    StreamStatus,
)
from tests.proxy.fleet.members import Process, Session, fleet_of
from tests.sim.memory_store import loaded, raw_table


@pytest.fixture
async def asker():
    """One that asks, and a member of a version before, which has no method of the service."""
    async with fleet_of(Process("one"), Process("two", version="0.9")) as (one, two):
        yield one, two.own


async def asked(one, member, timeout_s):
    request = pb.StatusRequest()
    return await ask(one.links.channel, member, "Status", request, pb.StatusReply, timeout_s)


async def test_a_version_that_does_not_know_the_question_and_a_member_without_address(asker):
    one, member = asker
    assert await asked(one, member, 60.0) == "version 0.9 does not know the question"
    assert await asked(one, replace(member, address=""), 60.0) == NO_ADDRESS


# Members that ask each other about sessions, over real sockets of this machine.
EVE, BOSS = Asker("eve", is_admin=False), Asker("boss", is_admin=True)


class OneMember(Process):
    """One process of a fleet with two sessions."""

    def __init__(self, name, prefix):
        super().__init__(name, prefix)
        self.sessions: Any = {
            first_of(prefix) + n: Session(first_of(prefix) + n, user)
            for n, user in enumerate(["eve", "root"], 1)
        }
        fleet: Any = self
        no_figures: Any = None
        sessions = LocalSessions(self.sessions)
        self.others = FleetCalls(fleet, self.links, no_figures, sessions)
        self.door.add(self.others.methods)
        self.gone: set[str] = set()  # who is known, and leaves at the first look

    async def present(self):
        found = self.known
        self.known = [member for member in found if member.id not in self.gone]
        return found


@pytest.fixture
async def three():
    names = enumerate(["one", "two", "three"], 1)
    async with fleet_of(*(OneMember(name, prefix) for prefix, name in names)) as fleet:
        yield fleet


@pytest.fixture
def impatient(monkeypatch):
    """Wait for the member two, whose door is shut, for a moment alone, and for others as long as it takes."""

    async def asks(channel, member, method, request, answer, _timeout_s):
        timeout_s = 0.02 if member.id == "two" else 60.0
        return await ask(channel, member, method, request, answer, timeout_s)

    monkeypatch.setattr(member_calls, "ask", asks)


async def test_all_members_have_one_list_and_a_kill_goes_by_its_id_and_the_rules_of_one(three):
    one, two, other = three
    lines = [session.line for process in (two, other) for session in process.sessions.values()]
    assert await one.others.processes(BOSS) == lines
    assert await one.others.processes(EVE) == [line for line in lines if line.user == "eve"]
    with pytest.raises(NotOwner):
        await one.others.kill(EVE, first_of(2) + 2, query_only=False)
    for number in (first_of(2) + 3, first_of(9) + 1, first_of(1) + 1, 1):
        with pytest.raises(NoSuchThread):
            await one.others.kill(BOSS, number, query_only=False)
    await one.others.kill(EVE, first_of(2) + 1, query_only=True)
    await one.others.kill(BOSS, first_of(3) + 2, query_only=False)
    told = [[s.told for s in process.sessions.values()] for process in (two, other)]
    assert told == [[["Query execution was interrupted"], []], [[], ["end"]]]


async def test_members_that_drew_the_same_prefix_are_both_asked(three):
    one, two, other = three
    one.known = [two.own, replace(other.own, id_prefix=2)]
    number = first_of(2) + 7
    other.sessions[number] = Session(number, "eve")
    await one.others.kill(EVE, number, query_only=False)
    assert other.sessions[number].told == ["end"]


@pytest.mark.usefixtures("impatient")
async def test_a_member_that_does_not_answer_has_a_line_that_says_so_and_one_in_the_log(three):
    one, two, _ = three
    await two.door.stop()
    with structlog.testing.capture_logs() as logs:
        first, *others = await one.others.processes(EVE)
    (line,) = logs
    assert line["peer"] == f"member two at {two.own.address}"
    assert "member" not in line, "that is whose log it is"
    assert (first.connection_id, first.user, first.host) == (
        first_of(2),
        "unreachable member",
        two.own.address,
    )
    assert first.state.startswith(f"member two at {two.own.address}: ")
    assert [line.connection_id for line in others] == [first_of(3) + 1]


@pytest.mark.usefixtures("impatient")
async def test_a_member_that_leaves_while_it_is_asked_is_not_missing(three):
    one, two, other = three
    await two.door.stop()
    with structlog.testing.capture_logs() as logs:
        one.known, one.gone = [two.own, other.own], {"two"}
        await one.others.processes(EVE)
        one.known = [two.own]
        with pytest.raises(NoSuchThread):
            await one.others.kill(BOSS, first_of(2) + 1, query_only=False)
    assert logs == []


@pytest.mark.usefixtures("impatient")
async def test_a_kill_of_what_cannot_be_reached_names_the_address(three):
    one, two, _ = three
    await two.door.stop()
    with pytest.raises(MemberUnreachable, match=f"from member two at {two.own.address}: "):
        await one.others.kill(BOSS, first_of(2) + 1, query_only=False)


async def test_who_is_no_member_any_more_is_refused_on_a_connection_that_stands(three):
    one, two, _ = three
    async with one.links.channel(two.own) as channel:
        ask = channel.unary_unary(
            f"/{SERVICE}/Sessions",
            request_serializer=pb.SessionsRequest.SerializeToString,
            response_deserializer=pb.SessionsReply.FromString,
        )
        request = pb.SessionsRequest(asker=pb.Asker(user="boss", is_admin=True))
        assert len((await ask(request)).sessions) == 2
        two.known = []
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(request)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


# Figures that travel between members come as they were.
TABLE = loaded(raw_table("msg"))
NOW_NS, THERE_NS = 10**18, 7 * 10**17  # of the clock of one member and of another
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.integers(0, (1 << 63) - 1)
MOMENTS = st.none() | st.integers(0, NOW_NS)


def there(moment_ns):
    """Return a moment by the other clock."""
    return None if moment_ns is None else moment_ns - NOW_NS + THERE_NS


KINDS = {
    "bool": st.booleans(),
    "bytes | None": st.none() | st.binary(),
    "float": st.floats(0, 1e9),
    "float | None": st.none() | st.floats(-1e10, 1e10),
    "int": COUNTS,
    "int | None": MOMENTS,
    "str": TEXTS,
    "str | None": st.none() | TEXTS,
    "tuple[str, ...]": st.lists(TEXTS).map(tuple),
}
IDS = st.integers(0, (1 << 32) - 1)
A1 = st.just("a1")


def any_of(made, **narrower):
    """Return objects of a class, by what its fields are declared as."""
    kinds = {each.name: str(each.type) for each in fields(made)}
    wanted = {name: KINDS[kind] for name, kind in kinds.items() if name not in narrower}
    return st.builds(made, **wanted, **narrower)


@given(
    any_of(MemberStatus, member=A1, address=st.just("h:1"), connections_max=st.just(0)),
    any_of(ShardStatus, member=A1),
    any_of(Line, connection_id=IDS),
    any_of(Asker),
)
def test_a_member_a_shard_a_session_and_who_asks_come_as_they_were(member, shard, line, asker):
    told = pb.MemberStatus.FromString(MEMBERS.encode(member).SerializeToString())
    assert MEMBERS.decode(told, member="a1", address="h:1") == member
    sent = pb.ShardStatus.FromString(SHARDS.encode(shard).SerializeToString())
    assert SHARDS.decode(sent, member="a1") == shard
    data = encode_process(line).SerializeToString()
    assert decode_process(pb.Session.FromString(data)) == line
    data = ASKERS.encode(asker).SerializeToString()
    assert ASKERS.decode(pb.Asker.FromString(data)) == asker
    long = replace(line, info=b"x" * (INFO_BYTES_MAX + 1))
    assert decode_process(encode_process(long)).info == b"x" * INFO_BYTES_MAX


CLIENTS = any_of(StreamClient, opened_ns=st.integers(0, NOW_NS), member=A1)


@given(any_of(StreamStatus, connection_id=IDS, client=st.none() | CLIENTS))
def test_a_stream_comes_as_it_was_by_the_other_clock(stream):
    told = pb.StreamStatus.FromString(STREAMS.encode(stream, NOW_NS).SerializeToString())
    client = stream.client and replace(stream.client, opened_ns=there(stream.client.opened_ns))
    assert decode_stream(told, "a1", THERE_NS) == replace(
        stream,
        client=client,
        oldest_unacked_ns=there(stream.oldest_unacked_ns),
        stalled_since_ns=there(stream.stalled_since_ns),
    )


def counted():
    counters = Counters(1, 2, 3, 4, 5, 6, 7, 8, 9)
    counters.delivery_latency.observe(1)
    counters.ack_latency.observe(10**15, 3)
    return counters


def carried(*shards, streams=2):
    queue = QueueFigures(TABLE, shards, streams)
    data = encode_queue(queue, NOW_NS).SerializeToString()
    return QUEUES.decode(pb.QueueStatus.FromString(data), THERE_NS)


def plain(shard):
    """Return all that a shard tells as values that can be compared."""
    counters = shard.counters
    times = counters.delivery_latency, counters.ack_latency
    counted = replace(counters, delivery_latency=None, ack_latency=None)
    return replace(shard, counters=counted), [(each.counts, each.sum_ns) for each in times]


def test_a_shard_that_is_dispatched_comes_whole():
    others = {"blocked": 7, "partitions_overdue": 8, "set_aside": 9}
    shard = ShardFigures("-80", counted(), 1, 2, 3, True, 4, 5, NOW_NS - 6, **others)  # type: ignore[arg-type]
    part = carried(shard)
    assert (part.keyspace, part.table, part.streams) == ("ks", "msg", 2)
    (found,) = part.shards
    assert plain(found) == plain(replace(shard, oldest_ready_ns=THERE_NS - 6))


def test_what_memory_does_not_know_and_what_others_dispatch_is_not_told():
    shard = ShardFigures("-80", Counters(), 1, 2, 3, False, 4, 5, None)
    (found,) = carried(shard).shards
    assert (found.depth, found.is_whole, found.oldest_ready_ns) == (None, False, None)
    assert found.is_dispatched
    (empty,) = carried(replace(shard, is_whole=True, depth=0)).shards
    assert (empty.depth, empty.is_whole) == (0, True)
    # Only what has happened there.
    shard = ShardFigures("-80", counted(), 1, 2, 3, True, 4, 5, 6, is_dispatched=False)
    (found,) = carried(shard).shards
    assert (found.counters.delivered, found.ready, found.is_dispatched) == (1, 0, False)
    assert carried(replace(shard, counters=Counters())) == QueueAtMember("ks", "msg", 2, ())


def test_times_in_other_buckets_than_ones_own_are_left_out():
    told = encode_queue(
        QueueFigures(TABLE, (ShardFigures("0", counted(), 0, 0, 0, True, 0, 0, None),), 0), 0
    )
    told.shards[0].counters.delivery_latency.counts.append(1)
    (found,) = QUEUES.decode(told, 0).shards
    assert (found.counters.delivery_latency.total, found.counters.ack_latency.total) == (0, 3)
