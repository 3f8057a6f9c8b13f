"""A login makes a session whole; another login makes another one."""

import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.wire.constants import Status
from tests.proxy.rigs import running_proxy


ADMIN = User("root", Secret(""), None, Role.USER)
GUEST = User("guest", Secret("sesame"), None, Role.USER)


@pytest.mark.parametrize("how", ["reset", "change_user"])
async def test_a_fresh_session_has_nothing_of_the_one_before(server, other_server, how):
    async with running_proxy(server, other_server, users=(ADMIN, GUEST)) as proxy:
        client = await proxy.client("plain")
        prepared, _, _ = await client.prepare("SELECT 1")
        for sql in (
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "SET @secret = 1",
            "SET sql_mode = 'ANSI'",
        ):
            assert (await client.query(sql)).error is None
        if how == "reset":
            assert (await client.command(b"\x1f")).ok is not None
        else:
            await client.change_user("guest", "sesame", "plain")
            assert (await client.query("SELECT USER()")).error is None
            assert any("'guest@" in text for text in server.heard)
        result = await client.query("SELECT 1")
        assert not result.status & Status.IN_TRANS
        assert (await client.execute(prepared)).code == 1243
        for connection in server.relays:
            assert connection.user_variables == set()
            assert connection.variables.get("sql_mode") != "ANSI"
            assert not connection.in_transaction
