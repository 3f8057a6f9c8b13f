import asyncio
import gc
import subprocess
import sys
from dataclasses import replace
from unittest.mock import Mock, call

import pytest
import structlog

from streamfrom.proxy.app.application import Application, run
from streamfrom.proxy.errors import BackendUnavailable
from streamfrom.proxy.process import ServiceManager
from streamfrom.proxy.wire.constants import Capability
from tests.proxy.fake_answers import until
from tests.proxy.fake_client import Client
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of, running_proxy


async def test_a_proxy_starts_serves_and_stops(server):
    stop, hangup = asyncio.Event(), asyncio.Event()
    config = config_of(server)
    with structlog.testing.capture_logs() as logs:
        manager = Mock(ServiceManager)
        running = asyncio.ensure_future(
            run(config, stop, hangup, asyncio.Event(), lambda: config, None, manager)
        )
        await until(lambda: any(line["event"] == "listening" for line in logs))
        port = next(line["port"] for line in logs if line["event"] == "listening")
        client = await Client.connect(port, database="plain")
        assert (await client.query("SELECT 1")).values == [b"1"]
        remembered: list[list[int]] = [[]]
        assert manager.method_calls == [call.ready()]
        hangup.set()
        await until(
            lambda: manager.method_calls == [call.ready(), call.reloading(), call.ready()]
        )
        stop.set()
        assert (await client.farewell()).code == 1053
        assert await client.is_closed()
        await running
        await client.close()
    assert logs[-1]["event"] == "stopped"
    assert not any(each is remembered for each in gc.get_objects()), "searched as it ends"
    await until(lambda: not server.connections)


IDLE = """
import asyncio, sys
from pathlib import Path
import streamfrom.proxy.cli
from streamfrom.proxy.app.application import Application
from streamfrom.proxy.config.file import load
from streamfrom.sqlparse_ext.cache import StatementCache

async def main():
    async with Application(load(Path(sys.argv[1]), {})):
        for statement in (
            b"INSERT INTO msg (id, message) VALUES (1, 'a'), (2, 'b')",
            b"SELECT * FROM msg WHERE id IN (1, 2) ORDER BY id LIMIT 5",
            b"STREAM * FROM msg",
            b"UPDATE msg SET time_acked = NOW() WHERE id = 1",
        ):
            StatementCache().get(statement)
        print("loaded:", *{"aiohttp", "google", "grpc", "rich", "sqlglot"}.intersection(sys.modules))

asyncio.run(main())
"""


def test_an_idle_proxy_loads_nothing_that_it_does_not_need_yet(tmp_path):
    config = tmp_path / "proxy.toml"
    config.write_text(
        "[server]\nlisten = '127.0.0.1:0'\n[keyspaces.ks]\n[[keyspaces.ks.shards]]\nname = '-'\n"
        "primary = 'mysql://root@127.0.0.1:1/db'\n"
    )
    done = subprocess.run([sys.executable, "-c", IDLE, config], capture_output=True, check=True)
    assert b"loaded:\n" in done.stdout


async def test_extended_metadata_is_offered_where_all_servers_have_it(server):
    server.version = "10.11.6-MariaDB"
    async with FakeServer("10.4.1-MariaDB") as older, running_proxy(server, older) as proxy:
        greeting = (await proxy.greeted()).greeting
        assert not greeting.capabilities & Capability.EXTENDED_METADATA
        for shard in proxy.app.shards.values():
            shard.version = server.version
        greeting = (await proxy.greeted()).greeting
        assert greeting.capabilities & Capability.EXTENDED_METADATA


async def test_a_port_that_is_taken_ends_the_start_and_what_had_begun(server):
    async with running_proxy(server) as proxy:
        config = config_of(server)
        config = replace(config, server=replace(config.server, port=proxy.port))
        with pytest.raises(OSError, match="Address already in use"):
            async with Application(config):
                pass
        assert (await (await proxy.client()).query("SELECT 1")).values == [b"1"]
    await until(lambda: not server.connections)


async def test_background_work_that_fails_is_logged_and_a_fault_of_ours_with_its_trace(server):
    async def fail(error):
        raise error

    async with running_proxy(server) as proxy:
        with structlog.testing.capture_logs() as logs:
            proxy.app.services.spawn(fail(BackendUnavailable("ks", "-", "down")))
            proxy.app.services.spawn(fail(KeyError("a fault")))
            await until(lambda: len(logs) == 2)
    assert [line["event"] for line in logs] == ["background work failed"] * 2
    assert logs[0]["exc_info"] is None
    assert isinstance(logs[1]["exc_info"], KeyError)


async def test_a_shard_that_comes_back_is_asked_for_its_collations_again(server):
    async with running_proxy(server) as proxy:
        shard = proxy.app.shards["plain", "-"]
        server.read_only = True
        shard.suspect()
        await until(lambda: shard.trouble is not None)
        asked = sum("COLLATIONS" in text for text in server.controlled)
        server.read_only = False
        await until(lambda: sum("COLLATIONS" in t for t in server.controlled) > asked)
