"""The HTTP side: who is answered, and with what."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from streamfrom.proxy.admin.admin_server import AT_ONCE_MAX, AdminServer
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.status.status_rows import MEMBERS, MemberStatus, ShardStatus
from tests.virtual_loop import VirtualClock


class Status:
    def __init__(self):
        self.troubles = [None, "gone"]
        self.is_stopping = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.clock = VirtualClock()

    def member(self):
        return MemberStatus(None, "1.0", 1.0, 2, 3, 4, is_stopping=self.is_stopping)

    def shard_status(self):
        return [ShardStatus("ks", "0", "h", "10", one, 1, 1, 0, 0) for one in self.troubles]

    def streams(self):
        return []

    async def queues(self):
        await self.gate.wait()
        return []

    async def rows(self, names, user, processes):
        assert user.role is Role.ADMIN
        assert list(processes) == ["process"]
        return {name: [tuple(range(len(MEMBERS)))] for name in names}


@pytest.fixture
async def served():
    """A server, its figures, and a function that asks it."""
    status = Status()
    with ThreadPoolExecutor(1) as readers:
        administrator = User("", None, None, Role.ADMIN, None)
        processes: Any = lambda: ["process"]  # noqa: E731
        server = AdminServer(status, readers, administrator, processes)  # type: ignore[arg-type]
        await server.start("127.0.0.1", 0)
        async with aiohttp.ClientSession() as session:

            async def ask(path, method="GET", **headers):
                url = f"http://127.0.0.1:{server.port}{path}"
                async with session.request(method, url, headers=headers) as answer:
                    return answer.status, await answer.text(), answer.headers

            yield SimpleNamespace(server=server, status=status, ask=ask)
        await server.stop()
        await server.stop()


async def test_it_is_alive_and_ready_as_long_as_one_shard_answers(served):
    assert (await served.ask("/healthz"))[:2] == (200, "alive\n")
    assert (await served.ask("/readyz"))[:2] == (200, "ready\n")
    served.status.troubles = ["gone", "gone"]
    assert (await served.ask("/readyz"))[:2] == (503, "no shard answers\n")
    assert (await served.ask("/healthz"))[0] == 200
    served.status.troubles = [None]
    served.status.is_stopping = True
    assert (await served.ask("/readyz"))[:2] == (503, "stopping\n")


async def test_metrics_are_prometheus_text(served):
    status, text, headers = await served.ask("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "\nstreamfrom_connections 2.0\n" in text


async def test_tables_are_json_by_column(served):
    status, text, _ = await served.ask("/api/members")
    assert status == 200
    assert json.loads(text) == [{column.name: at for at, column in enumerate(MEMBERS)}]


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        ("/api/nothing", "GET", 404),
        ("/nothing", "GET", 404),
        ("/api/queues", "POST", 405),
        ("/metrics", "DELETE", 405),
        ("/api/../metrics/x", "GET", 404),
    ],
)
async def test_what_there_is_not_is_refused(served, path, method, expected):
    assert (await served.ask(path, method))[0] == expected
    assert (await served.ask("/healthz"))[0] == 200


async def test_a_page_of_elsewhere_learns_nothing(served):
    assert (await served.ask("/api/members", Host="evil.example"))[0] == 403
    assert (await served.ask("/api/members", Host="localhost"))[0] == 200


async def test_headers_without_an_end_are_refused(served):
    assert (await served.ask("/healthz", x="y" * 20_000))[0] == 400
    assert (await served.ask("/healthz"))[0] == 200


async def test_of_many_requests_at_once_some_are_refused_and_it_lives(served):
    served.status.gate.clear()
    waiting = [asyncio.create_task(served.ask("/metrics")) for _ in range(AT_ONCE_MAX + 1)]
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result()[0] for task in done] == [503]
    assert (await served.ask("/healthz"))[0] == 200
    served.status.gate.set()
    assert {(await task)[0] for task in pending} == {200}
    assert (await served.ask("/metrics"))[0] == 200


async def test_an_address_in_use_is_an_error(served):
    other = AdminServer(served.status, None, None, list)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="in use"):
        await other.start("127.0.0.1", served.server.port)
