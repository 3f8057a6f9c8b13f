import asyncio

import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.errors import MemberUnreachable, NoSuchThread, NotOwner, QueryInterrupted
from streamfrom.proxy.sessions.process_list import end
from tests.proxy.fake_answers import rows_of
from tests.proxy.rigs import running_proxy


ADMIN = User("root", Secret(""), None, Role.USER)
EVE = User("eve", Secret("sesame"), None, Role.USER)


BOSS = User("boss", Secret(""), None, Role.ADMIN)


@pytest.fixture
async def three(server):
    """Users root, eve and boss, of whom the last is an admin."""
    async with running_proxy(server, users=(ADMIN, EVE, BOSS)) as proxy:
        root = await proxy.client(user="root")
        eve = await proxy.client(user="eve", password="sesame")
        boss = await proxy.client(user="boss")
        yield root, eve, boss


@pytest.mark.parametrize("form", ["KILL {}", "KILL HARD CONNECTION {}", None])
async def test_an_admin_ends_the_connections_of_others(three, form):
    root, eve, boss = three
    number = eve.greeting.connection_id
    command = b"\x0c" + number.to_bytes(4, "little")
    assert (await (boss.query(form.format(number)) if form else boss.command(command))).ok
    assert await eve.is_closed()
    assert (await root.query(f"KILL {boss.greeting.connection_id}")).code == 1095


@pytest.mark.parametrize(
    "form", ["USER eve", "QUERY ID 8", "CONNECTION_ID()", "@x", "(SELECT id FROM t)", "", "'x'"]
)
async def test_only_a_connection_id_names_what_is_killed(three, form):
    _, eve, boss = three
    told = await boss.query(f"KILL {form}")
    assert told.code == 1235
    assert told.message.endswith("; KILL a connection id of SHOW PROCESSLIST")
    assert (await eve.query("SELECT 1")).values == [b"1"]


async def test_who_kills_its_own_connection_is_told_so(three):
    _, eve, boss = three
    own = eve.greeting.connection_id
    assert (await eve.query(f"KILL QUERY {own}")).code == 1317
    assert (await eve.query(f"KILL {own}")).code == 1317
    assert await eve.is_closed()
    assert (await boss.query("SELECT 1")).values == [b"1"]


class OtherMember:
    """A member with sessions 7 and 8 of its own."""

    def __init__(self):
        self.asked = []
        self.fault: Exception | None = None

    async def kill(self, asker, connection_id, *, query_only):
        self.asked.append((asker.user, asker.is_admin, connection_id, query_only))
        if self.fault is not None:
            raise self.fault
        if connection_id not in (7, 8):
            raise NoSuchThread(connection_id)


@pytest.fixture
async def with_member(server):
    async with running_proxy(server, users=(ADMIN, EVE, BOSS)) as proxy:
        member = proxy.app.services.members = OtherMember()  # type: ignore[assignment]
        eve = await proxy.client(user="eve", password="sesame")
        boss = await proxy.client(user="boss")
        yield member, eve, boss


async def test_what_is_not_here_is_killed_elsewhere(with_member):
    member, eve, boss = with_member
    assert (await eve.query("KILL QUERY 7")).error is None
    assert (await boss.query("KILL 8")).error is None
    assert (await eve.query("KILL 9")).code == 1094
    member.fault = NotOwner(7)
    assert (await eve.query("KILL 7")).code == 1095
    member.fault = MemberUnreachable(["member 1f at 10.0.0.9:1: gone"])
    answer = await eve.query("KILL 7")
    assert (answer.code, answer.error.message) == (
        1105,
        b"No answer about its connections from member 1f at 10.0.0.9:1: gone",
    )
    assert member.asked[:3] == [
        ("eve", False, 7, True),
        ("boss", True, 8, False),
        ("eve", False, 9, False),
    ]


async def test_a_client_that_does_nothing_says_what_it_holds(server, proxy):
    server.on("GET_LOCK", rows_of(1))
    client = await proxy.client()
    (session,) = proxy.app.services.sessions.values()

    def idle():
        process = session.work.process()
        return process.command, process.state

    assert idle() == ("Sleep", "")
    await client.query("BEGIN")
    assert idle() == ("Sleep", "transaction open")
    await client.query("COMMIT")
    assert idle() == ("Sleep", "")
    await client.query("SELECT GET_LOCK('a', 1)")
    assert idle() == ("Sleep", "holds a connection")


class Ended:
    """A session that is ended, whose statement two servers must be told to stop."""

    def __init__(self):
        self.work = self
        self.told: list[object] = []
        self.servers = [asyncio.Event(), asyncio.Event()]

    def interrupt(self, error):
        self.told.append(type(error))
        return [asyncio.ensure_future(server.wait()) for server in self.servers]

    def end(self):
        self.told.append("end")


async def test_a_query_has_ended_when_all_servers_have_been_told_and_a_connection_whole():
    session = Ended()
    ending = asyncio.ensure_future(end(session, query_only=True))  # type: ignore[arg-type]
    for server in session.servers:
        await asyncio.sleep(0)
        assert not ending.done()
        server.set()
    await ending
    await end(session, query_only=False)  # type: ignore[arg-type]
    assert session.told == [QueryInterrupted, "end"]
