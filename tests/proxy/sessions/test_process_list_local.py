"""What members may do with each other's sessions; through KILL itself it is in `test_process_list`."""

import asyncio

import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.errors import NoSuchThread, NotOwner, QueryInterrupted
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.process_list import LocalSessions, end
from streamfrom.proxy.sessions.services import Asker


EVE, BOSS = Asker("eve", is_admin=False), Asker("boss", is_admin=True)


class Session:
    """A session as far as `LocalSessions` asks."""

    def __init__(self, name):
        self.user = name and User(name, Secret(""), None, Role.USER)
        self.work = self
        self.told: list[object] = []
        self.server_is_told = asyncio.Event()

    def process(self):
        return Process(0, self.user.name, "h", None, "Sleep", 0, "", None)

    def interrupt(self, error):
        self.told.append(type(error))
        return [asyncio.ensure_future(self.server_is_told.wait())]

    def end(self):
        self.told.append("end")


@pytest.fixture
def sessions():
    return {1: Session("eve"), 2: Session("root"), 3: Session(None), 4: Session("eve")}


def test_a_session_is_seen_and_found_by_who_may_end_it(sessions):
    local = LocalSessions(sessions)
    assert local.find(EVE, 1) is sessions[1]
    assert local.find(BOSS, 2) is sessions[2]
    with pytest.raises(NotOwner, match="thread 2"):
        local.find(EVE, 2)
    for number in (3, 5):
        with pytest.raises(NoSuchThread, match=f"id: {number}"):
            local.find(BOSS, number)
    assert [line.user for line in local.processes(EVE)] == ["eve", "eve"]
    assert [line.user for line in local.processes(BOSS)] == ["eve", "root", "eve"]
    assert local.of_user("eve") == [sessions[1], sessions[4]]


async def test_a_query_has_ended_when_all_servers_have_been_told_and_a_connection_whole(
    sessions,
):
    ending = asyncio.ensure_future(end([sessions[1], sessions[4]], query_only=True))
    sessions[1].server_is_told.set()
    await asyncio.sleep(0)
    assert not ending.done()
    sessions[4].server_is_told.set()
    await ending
    assert sessions[1].told == sessions[4].told == [QueryInterrupted]
    await end([sessions[2]], query_only=False)
    assert sessions[2].told == ["end"]
    await end([], query_only=True)
