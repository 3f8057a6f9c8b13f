"""A login makes a session whole; another login makes another one."""

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.wire.constants import Status
from tests.proxy.rigs import running_proxy


ADMIN = User("root", Secret(""), None, Role.USER)
GUEST = User("guest", Secret("sesame"), None, Role.USER)


async def test_after_a_change_of_user_nothing_of_the_one_before_is_left(server, other_server):
    async with running_proxy(server, other_server, users=(ADMIN, GUEST)) as proxy:
        client = await proxy.client("plain")
        prepared, _, _ = await client.prepare("SELECT 1")
        for sql in ("BEGIN", "INSERT INTO t VALUES (1)", "SET sql_mode = ''"):
            assert (await client.query(sql)).error is None
        await client.change_user("guest", "sesame", "plain")
        result = await client.query("SELECT 1")
        assert not result.status & Status.IN_TRANS
        assert (await client.execute(prepared)).code == 1243
        assert (await client.query("SELECT USER()")).error is None
        assert any("'guest@" in text for text in server.heard)
