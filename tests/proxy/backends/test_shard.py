import ast
import asyncio
import errno
import time

import pytest
import structlog

from streamfrom.proxy import net
from streamfrom.proxy.backends import shard as module
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.backends.shard import (
    Health,
    ReplicaHealth,
    ShardRuntime,
    lag_trouble,
)
from streamfrom.proxy.errors import NoDescriptor, ServerFull
from streamfrom.proxy.wire.constants import FieldType
from tests.cases import cases
from tests.proxy.backends.pools import Tenant
from tests.proxy.fake_answers import Error, Rows, Silence, until
from tests.proxy.fake_server import PASSWORD
from tests.proxy.rigs import shard_config


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Ask a shard that is down a hundred times a second."""
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(module, "RETRY_LAST_S", 0.02)


class Watcher:
    """Hears of every change."""

    def __init__(self):
        self.troubles = []

    def __call__(self, shard):
        self.troubles.append(shard.trouble)


async def started(server, watcher=None, **dsn):
    runtime = ShardRuntime(
        "plain", shard_config(server, **dsn), pool_timeout_s=1, on_change=watcher or Watcher()
    )
    await runtime.start()
    return runtime


@pytest.fixture
async def shard(server):
    made = await started(server)
    yield made
    await made.stop()


def soon(seconds=60.0):
    return asyncio.get_running_loop().time() + seconds


async def test_a_server_that_is_down_at_the_start_is_told_once_and_found_later(server):
    server.stop()
    watcher = Watcher()
    with structlog.testing.capture_logs() as logs:
        shard = await started(server, watcher, user="app")
        assert shard.version == ""
        assert len(watcher.troubles) == 1
        await server.start()
        await until(lambda: shard.trouble is None)
    assert [entry["event"] for entry in logs] == ["shard not available", "shard available"]
    assert PASSWORD not in str(logs)
    assert logs[0]["reason"].count("mysql://app@127.0.0.1") == 1
    await shard.stop()


async def test_a_server_without_room_is_named_to_clients_and_in_the_log(server, shard):
    server.refusal = Error(1040, "Too many connections", "08004")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(ServerFull):
                await shard.open_backend(SHARDS_ACCOUNT, "db", 0)
        with pytest.raises(ServerFull) as caught:
            await shard.open_backend(SHARDS_ACCOUNT, "db", 0)
    assert caught.value.wire_code() == (1040, "08004")
    assert f"127.0.0.1:{server.port} answers" in str(caught.value)
    assert "max_connections of the server, not of the proxy" in str(caught.value)
    (line,) = [each for each in logs if each["event"] == "the server takes no more connections"]
    assert (line["keyspace"], line["shard"]) == ("plain", "-")
    assert line["server"] == f"127.0.0.1:{server.port}"


async def test_a_process_without_file_descriptors_is_told_so(server, monkeypatch, shard):

    async def no_descriptor(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    with structlog.testing.capture_logs() as logs:
        monkeypatch.setattr(net, "connect", no_descriptor)
        with pytest.raises(NoDescriptor, match="LimitNOFILE"):
            await shard.open_backend(SHARDS_ACCOUNT, "db", 0)
    events = [each["event"] for each in logs]
    assert "no file descriptor left for a connection to a shard" in events


async def test_a_server_that_turns_read_only_is_noticed_and_its_connections_are_given_up(
    server,
):
    """Behind the address another server may be the primary soon, while the former one lives on."""
    watcher = Watcher()
    shard = await started(server, watcher)
    lent, backend = [await shard.pool.acquire(Tenant(), "db") for _ in range(2)]
    shard.pool.release(backend)
    line = shard.shared_connections.matching(
        SHARDS_ACCOUNT, Settings({"autocommit": "ON"}.items()), 0, "db"
    )
    assert line is not None
    line.connection(0.0)
    await until(lambda: line.is_held)
    server.read_only = True
    shard.suspect()
    await until(lambda: shard.trouble == "the server is read-only")
    assert backend.is_closed
    assert not line.is_held
    shard.pool.release(lent)
    assert lent.is_closed
    await shard.probe()
    await until(lambda: not server.connections)
    server.read_only = False
    await until(lambda: shard.trouble is None)
    assert watcher.troubles == [None, "the server is read-only", None]
    await shard.stop()


async def test_the_quickest_look_says_how_far_the_server_is(server, shard):
    assert shard.way_s == 0.0  # the first one had to open a connection
    for _ in range(3):
        await shard.probe()
    assert shard.way_s > 0
    line = shard.shared_connections.matching(
        SHARDS_ACCOUNT, Settings({"autocommit": "ON"}.items()), 0, "db"
    )
    assert line is not None
    assert line.patience_s > 2 * shard.way_s
    before_s = line.patience_s
    shard.way_s += 1.0
    assert line.patience_s == pytest.approx(before_s + 2.0)
    server.read_only = True
    await shard.probe()
    assert shard.way_s == 0.0


async def test_a_server_that_hangs_is_in_trouble_and_found_again(server, monkeypatch):
    monkeypatch.setattr(module, "CHECK_TIMEOUT_S", 0.02)
    server.once("@@global.read_only", Silence(), Silence())
    shard = await started(server)
    assert shard.trouble is not None
    assert shard.trouble.endswith("no answer within 0.02 s")
    await until(lambda: shard.trouble is None)
    await shard.stop()


async def test_others_are_asked_before_one_that_seems_to_hang(server, monkeypatch, shard):
    assert shard.is_answering
    monkeypatch.setattr(module, "ANSWERS_WITHIN_S", 0.02)
    server.once("@@global.read_only", Silence())
    shard.suspect()
    await until(lambda: not shard.is_answering)
    assert shard.trouble is None


def with_a_global(server, value):
    values = (b"0", server.version.encode(), value)
    kinds = (FieldType.LONGLONG, FieldType.VAR_STRING, FieldType.VAR_STRING)
    return Rows(("0", "VERSION()", "@@global.autocommit"), (values,), types=kinds)


async def test_a_global_variable_that_others_change_outdates_the_connections(server, shard):
    server.on("@@global.autocommit", with_a_global(server, b"1"))
    await shard.probe()
    backend = await shard.pool.acquire(Tenant(), "db")
    await shard.probe()
    later = Tenant()
    later.began_s = time.monotonic()
    assert backend.may_serve(later)
    server.on("@@global.autocommit", with_a_global(server, b"0"))
    await shard.probe()
    assert not backend.may_serve(later)
    shard.pool.release(backend)


async def test_a_server_that_lacks_a_global_variable_is_asked_without_them(server, shard):
    server.on("@@global.autocommit", Error(1193, "Unknown system variable 'completion_type'"))
    for _ in range(2):
        await shard.probe()
        assert shard.trouble is None
    assert sum("@@global.autocommit" in text for text in server.controlled) == 1


async def test_waiting_has_an_end(server, shard):
    server.read_only = True
    assert not await shard.wait_available(soon(0.03))
    assert not await shard.wait_available(soon(-1))


class Control:
    """A server that answers from a dictionary of texts."""

    def __init__(self, **channel):
        self.channels = [channel] if channel else []

    async def rows(self, sql):
        assert sql == "SELECT VERSION(), @@global.x"
        return [("8.4.3", 7)]

    async def records(self, sql):
        assert sql == "SHOW REPLICA STATUS"
        return self.channels


@pytest.mark.parametrize("column", ["Seconds_Behind_Source", "Seconds_Behind_Master"])
async def test_a_replica_must_be_near_its_primary(column):
    ask = ReplicaHealth(30)

    async def found(lag_s: int) -> Health:
        return await ask(Control(**{column: lag_s}), ", @@global.x")  # type: ignore[arg-type]

    assert await found(30) == ("8.4.3", None, [7])
    assert (await found(31)).trouble == "31 s behind, more than replica_max_lag"
    ask.lag_max_s = 31
    assert await found(31) == ("8.4.3", None, [7])


@cases(channels=ast.literal_eval, trouble=str)
def test_what_keeps_a_replica_from_being_read_is_told(channels, trouble):
    assert lag_trouble(channels, 5) == trouble
