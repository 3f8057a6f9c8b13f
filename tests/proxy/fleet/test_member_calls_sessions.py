"""Members that ask each other about sessions, over real sockets of this machine."""

from dataclasses import replace
from typing import Any

import grpc
import pytest
import structlog

from streamfrom.proxy.errors import MemberUnreachable, NoSuchThread, NotOwner
from streamfrom.proxy.fleet import member_calls, members_pb2 as pb
from streamfrom.proxy.fleet.grpc_links import SERVICE
from streamfrom.proxy.fleet.member_calls import FleetSessions
from streamfrom.proxy.sessions.connection_ids import first_of
from streamfrom.proxy.sessions.process_list import LocalSessions
from streamfrom.proxy.sessions.services import Asker
from tests.proxy.fleet.members import Process, Session, fleet_of


EVE, BOSS = Asker("eve", is_admin=False), Asker("boss", is_admin=True)


class OneMember(Process):
    """One process of a fleet with two sessions."""

    def __init__(self, name, prefix):
        super().__init__(name, prefix)
        self.sessions: Any = {
            first_of(prefix) + n: Session(first_of(prefix) + n, user)
            for n, user in enumerate(["eve", "root"], 1)
        }
        self.others = FleetSessions(self, self.links.channel, LocalSessions(self.sessions))
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
    monkeypatch.setattr(member_calls, "SESSIONS_TIMEOUT_S", 1)
    monkeypatch.setattr(member_calls, "KILL_TIMEOUT_S", 1)


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


async def test_a_user_is_killed_everywhere_by_itself_or_an_admin(three):
    one, two, other = three
    assert await one.others.kill_user(EVE, "root", query_only=False) == 0
    assert not any(session.told for session in two.sessions.values())
    assert await one.others.kill_user(BOSS, "eve", query_only=False) == 2
    assert await one.others.kill_user(BOSS, "nobody", query_only=False) == 0
    for process in (two, other):
        assert [s.told for s in process.sessions.values()] == [["end"], []]


@pytest.mark.usefixtures("impatient")
async def test_a_member_that_does_not_answer_has_a_line_that_says_so(three):
    one, two, _ = three
    await two.door.stop()
    first, *others = await one.others.processes(EVE)
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
        for ask in (
            one.others.processes(EVE),
            one.others.kill_user(BOSS, "eve", query_only=False),
        ):
            one.known, one.gone = [two.own, other.own], {"two"}
            await ask
        one.known = [two.own]
        with pytest.raises(NoSuchThread):
            await one.others.kill(BOSS, first_of(2) + 1, query_only=False)
    assert logs == []


@pytest.mark.usefixtures("impatient")
async def test_the_log_names_who_does_not_answer_beside_who_asked(three):
    one, two, _ = three
    await two.door.stop()
    with structlog.testing.capture_logs() as logs:
        await one.others.processes(EVE)
    (line,) = logs
    assert line["unanswering"] == f"member two at {two.own.address}"
    assert "member" not in line, "that is whose log it is"


@pytest.mark.usefixtures("impatient")
async def test_a_kill_of_what_cannot_be_reached_names_the_address(three):
    one, two, other = three
    await two.door.stop()
    with pytest.raises(MemberUnreachable, match=f"from member two at {two.own.address}: "):
        await one.others.kill(BOSS, first_of(2) + 1, query_only=False)
    with pytest.raises(MemberUnreachable):
        await one.others.kill_user(BOSS, "eve", query_only=False)
    (eve, _) = other.sessions.values()
    assert eve.told == ["end"], "who answers has done it"


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
