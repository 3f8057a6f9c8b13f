import asyncio
import itertools

import pytest

from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.sessions.session import Session
from streamfrom.proxy.vtgate.inner_client import READ_BYTES, InnerClient, run_as
from tests.proxy.fake_answers import Ok, Rows, Silence, until
from tests.proxy.rigs import running_proxy


@pytest.fixture
async def proxy(server):
    async with running_proxy(server) as made:
        yield made


async def client_of(proxy, host="127.0.0.1", user="root", password="", database=""):
    services, numbers = proxy.app.services, itertools.count(1 << 20)
    return await InnerClient.open(
        lambda link: Session(services, link, next(numbers)), host, user, password, database
    )


async def test_a_session_that_is_ended_is_lost(server, proxy):
    client = await client_of(proxy)
    (session,) = proxy.app.services.sessions.values()
    session.end()
    with pytest.raises(BackendError) as lost:
        await client.run(b"UPDATE t SET a = 1")
    assert lost.value.wire_code()[0] == 2013
    client.close()


async def test_what_is_not_taken_is_not_read(server, proxy):
    client = await client_of(proxy)
    many = 400
    server.on("SELECT a", Rows(("a",), ((b"x" * READ_BYTES,),) * many))
    rows = client.rows(b"SELECT a FROM t")
    assert await anext(rows) == []
    (session,) = proxy.app.services.sessions.values()
    await until(lambda: session.work.process().info is not None)
    count = 0
    async for each in rows:
        assert len(each) <= 2
        count += len(each)
    assert count == many
    client.close()


async def test_a_user_of_the_page_needs_no_password_and_is_nobody_else(server):
    boss = User("boss", Secret("secret"), None, Role.ADMIN)
    async with running_proxy(server, users=(boss,)) as proxy:
        services, numbers = proxy.app.services, itertools.count(1 << 20)

        def accept(trusting, link):
            return Session(trusting, link, next(numbers))

        def run(user):
            return run_as(services, accept, user, "192.0.2.1", "", b"UPDATE t SET a = 1")

        gate = asyncio.Event()
        server.on("UPDATE t", Silence(gate, Ok(affected_rows=3)))
        running = asyncio.create_task(run("boss"))
        await until(lambda: any("UPDATE t" in each for each in server.heard))
        (session,) = services.sessions.values()
        line = session.work.process()
        assert line is not None
        assert (line.user, line.host.partition(":")[0]) == ("boss", "192.0.2.1")
        gate.set()
        assert await running == 3
        with pytest.raises(BackendError, match="'gone': it was removed"):
            await run("gone")
        # Its password is no way in for anybody else, and the user's own still is one.
        with pytest.raises(BackendError) as refused:
            await client_of(proxy, user="boss", password="guessed")
        assert refused.value.wire_code()[0] == 1045
        (await client_of(proxy, user="boss", password="secret")).close()
