import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.sessions.session import SWEEP_S_MAX, SWEEP_S_MIN, keep_time_limits
from streamfrom.proxy.wire.resultset import Tracker
from tests.proxy.fake_answers import Ok, Silence, rows_of, until
from tests.proxy.rigs import running_proxy
from tests.proxy.sessions.test_session import refused
from tests.virtual_loop import running


class Session:
    """Notes when it is looked at."""

    def __init__(self, user="u"):
        self.user, self.work = user, self
        self.looks: list[float] = []

    def keep_limits(self, now_s, limits):
        self.looks.append(now_s)


@running
async def test_sweeps_are_as_frequent_as_the_limit_in_force_wants_and_leave_out_strangers():
    session, stranger = Session(), Session(user=None)
    services: Any = SimpleNamespace(sessions={1: session, 2: stranger})
    for limit_s, sweep_s in ((2, 0.2), (0.01, SWEEP_S_MIN), (28_800, SWEEP_S_MAX), (0, 1)):
        services.config = SimpleNamespace(statement_timeout_s=limit_s)
        task = asyncio.ensure_future(keep_time_limits(services))
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(sweep_s * 3.5)
        task.cancel()
        assert session.looks == pytest.approx([began + sweep_s * n for n in (1, 2, 3)])
        session.looks.clear()
    assert not stranger.looks


@pytest.mark.parametrize(
    ("configured_s", "own_s", "version"),
    [
        (0, "5", "8.4.3"),
        (10, "5", "8.4.3"),
        (5, "10", "8.4.3"),
        (5, None, "8.4.3"),
        (10, "5", "10.11.6-MariaDB"),
    ],
)
async def test_the_sooner_limit_of_silence_counts_and_mariadb_says_nothing_of_a_clients_own(
    server, configured_s, own_s, version
):
    server.version = version
    server.on("SET wait_timeout", Ok(trackers=(Tracker(0, "wait_timeout", own_s or ""),)))
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        await client.query("SET wait_timeout = 5" if own_s else "SELECT 1")
        (session,) = proxy.app.services.sessions.values()
        limits = replace(proxy.app.services.config, idle_timeout_s=configured_s)
        now_s = asyncio.get_running_loop().time()
        session.work.keep_limits(now_s + 4, limits)
        assert (await client.query("SELECT 1")).values == [b"1"]
        session.work.keep_limits(now_s + 6, limits)
        if "MariaDB" not in version:
            assert (await refused(client.packet(0))).code == 4031
        assert await client.is_closed()


async def test_who_waits_for_an_answer_is_not_silent_and_without_a_limit_nobody_is_sent_away(
    server,
):
    gate = asyncio.Event()
    server.once("SLEEP", Silence(gate, rows_of(1)))
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        (session,) = proxy.app.services.sessions.values()
        limits = replace(proxy.app.services.config, idle_timeout_s=0)
        session.work.keep_limits(1e9, limits)
        client.send("SELECT SLEEP(9)")
        await until(lambda: session.work.process().command == "Query")
        session.work.keep_limits(1e9, replace(limits, idle_timeout_s=5))
        gate.set()
        assert (await client.answer())[0].values == [b"1"]
