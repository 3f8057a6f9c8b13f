"""What SIGHUP changes in a running proxy, and what it does not."""

import ast
import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import structlog

from streamfrom.proxy.app.application import Application
from streamfrom.proxy.config.file import Role, Secret, User
from tests.cases import cases
from tests.proxy.fake_answers import Silence, until
from tests.proxy.rigs import ProxyRig, add_message_table, config_of
from tests.proxy.sessions.test_session import refused


APP = User("app", Secret("one"), None, Role.USER)
EVE = User("eve", Secret("sesame"), None, Role.USER)


class Reloading(ProxyRig):
    """A proxy whose configuration a test may change."""

    def __init__(self, config):
        self.config = config
        self.hangup = asyncio.Event()
        super().__init__(Application(config, self.hangup, None, lambda: self.config))

    async def reload(self, *, users=None, keyspaces=None, **settings):
        """Change the configuration, hang up, and return the lines of the log behind it."""
        config = self.config
        if users is not None:
            config = replace(config, users=users)
        if keyspaces is not None:
            config = replace(config, keyspaces=keyspaces)
        self.config = replace(config, server=replace(config.server, **settings))
        with structlog.testing.capture_logs() as logs:
            self.hangup.set()
            await until(
                lambda: any(line["event"].startswith("configuration ") for line in logs)
            )
        return logs


@asynccontextmanager
async def reloading(*servers, users=(APP, EVE), **settings):
    config = config_of(*servers, users=users, **settings)
    made = Reloading(config)
    async with made.app:
        try:
            yield made
        finally:
            await made.close()


@pytest.fixture
async def proxy(server):
    async with reloading(server) as made:
        yield made


async def test_other_rights_count_once_a_session_is_at_rest(server, proxy):
    in_transaction, idle = [await proxy.client(user="eve", password="sesame") for _ in range(2)]
    await in_transaction.query("BEGIN")
    await proxy.reload(users=(APP, replace(EVE, role=Role.ADMIN)))
    assert (await idle.farewell()).code == 1045
    assert (await in_transaction.query("INSERT INTO t VALUES (1)")).ok
    assert (await in_transaction.query("COMMIT")).ok
    assert (await in_transaction.farewell()).code == 1045
    again = await proxy.client(user="eve", password="sesame")
    assert (await again.query("INSERT INTO t VALUES (1)")).ok


async def test_a_stream_of_a_user_with_other_rights_ends(server):
    add_message_table(server)
    async with reloading(server) as proxy:
        client = await proxy.client(user="eve", password="sesame")
        client.send("STREAM * FROM msg")
        await client.head()
        await proxy.reload(users=(APP, replace(EVE, role=Role.ADMIN)))
        assert (await refused(client.row())).code == 1045
        assert (await client.farewell()).code == 1045
        assert await client.is_closed()


async def test_sessions_of_a_keyspace_that_goes_end_once_they_are_at_rest(server, other_server):
    async with reloading(server, other_server, users=()) as proxy:
        plain, commerce = proxy.config.keyspaces
        in_transaction, idle = [await proxy.client("commerce:-80") for _ in range(2)]
        described = await proxy.client("commerce")
        assert (await described.query("USE information_schema")).ok
        outside = await proxy.client("plain")
        await in_transaction.query("BEGIN")
        assert (await in_transaction.query("SELECT 1")).values == [b"1"]
        logs = await proxy.reload(keyspaces=(plain,))
        assert logs[-1]["keys"] == ["keyspaces.commerce"]
        for ended in (idle, described):
            error = await ended.farewell()
            assert error.code == 1049
            assert error.message.startswith(b"Unknown database 'commerce': it was removed")
        assert (await in_transaction.query("SELECT 1")).values == [b"1"]
        assert (await in_transaction.query("COMMIT")).ok
        assert (await in_transaction.farewell()).code == 1049
        assert (await outside.query("SELECT 1")).values == [b"1"]
        assert (await outside.query("USE commerce")).code == 1049
        await until(lambda: not other_server.connections)
        await proxy.reload(keyspaces=(plain, commerce))
        assert (await outside.query("USE commerce")).ok
        assert other_server.connections


async def test_after_a_reload_that_fails_by_a_fault_of_ours_comes_another(proxy):
    right, proxy.config = proxy.config, None
    with structlog.testing.capture_logs() as logs:
        proxy.hangup.set()
        await until(lambda: logs)
    assert logs[0]["event"] == "background work failed"
    assert isinstance(logs[0]["exc_info"], AttributeError)
    proxy.config = right
    assert (await proxy.reload(users=(APP,)))[-1]["users_removed"] == ["eve"]


async def test_a_stop_ends_a_reload_under_way(server, other_server):
    async with reloading(server, users=()) as proxy:
        other_server.once("@@global.read_only", Silence())
        client = await proxy.client("plain")
        await client.query("BEGIN")
        both = config_of(server, other_server, users=())
        proxy.config = replace(proxy.config, keyspaces=both.keyspaces)
        proxy.hangup.set()
        await until(lambda: other_server.controlled)
        stopping = asyncio.create_task(proxy.app.stop())
        await until(lambda: not other_server.connections)
        assert [each.name for each in proxy.app.services.catalog.keyspaces] == ["plain"]
        assert (await client.query("COMMIT")).ok
        await stopping


async def test_a_login_under_way_is_decided_by_one_configuration(proxy):
    client = await proxy.greeted()
    await proxy.reload(users=(APP,))
    assert (await refused(client.log_in("eve", "sesame"))).code == 1045


async def test_limits_count_at_once(server, proxy):
    await proxy.reload(max_connections=1, statement_timeout_s=0.05)
    client = await proxy.client(user="app", password="one")
    assert (await refused(proxy.greeted())).code == 1040
    server.once("SLEEP", Silence())
    assert (await client.query("SELECT SLEEP(9)")).code == 3024


@cases(field=str, value=ast.literal_eval, code=ast.literal_eval, words=str.encode)
async def test_limits_count_for_sessions_that_are_there(proxy, field, value, code, words):
    client = await proxy.client(user="app", password="one")
    text = " + 1" * 20
    await client.prepare("SELECT 1" + text)
    await proxy.reload(**{field: value})
    error = await refused(client.prepare("SELECT 2 - 1" + text))
    assert (error.code, words in error.message) == (code, True)
    await proxy.reload(**{field: 1_000_000})
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_what_needs_a_restart_is_named_and_the_rest_counts(proxy):
    (line,) = await proxy.reload()
    assert line["event"] == "configuration unchanged"
    logs = await proxy.reload(users=(APP,), unix_socket_mode=0o700)
    (warning,) = [line for line in logs if line["log_level"] == "warning"]
    assert warning["keys"] == ["server.unix_socket_mode"]
    assert logs[-1]["event"] == "configuration reloaded"
    assert logs[-1]["users_removed"] == ["eve"]
