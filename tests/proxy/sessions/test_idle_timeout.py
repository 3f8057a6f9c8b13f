import asyncio
from typing import Any

import structlog

from streamfrom.proxy.sessions.idle_timeout import IdleTimeout
from streamfrom.proxy.wire.constants import Capability
from tests.proxy.rigs import RecordingLink
from tests.virtual_loop import running


class Client:
    """One client whose silence is kept, in virtual time."""

    is_mariadb = False
    capabilities = Capability.PROTOCOL_41

    def __init__(self, idle_timeout_s):
        self.idle_timeout_s = idle_timeout_s
        self.since_s: float | None = self.now_s
        self.link = RecordingLink()
        wire: Any = self
        self.timeout = IdleTimeout(
            self.link.link,
            wire,
            structlog.get_logger(),
            lambda: self.since_s,
            lambda: self.idle_timeout_s,
        )

    @property
    def now_s(self):
        return asyncio.get_running_loop().time()

    def is_away(self):
        return self.link.closed

    def wait_timeout(self, limit_s):
        self.timeout.wait_timeout_s = limit_s
        self.timeout.look()


@running
async def test_who_has_spoken_gets_the_rest_of_the_time():
    client = Client(10)
    await asyncio.sleep(6)
    client.since_s = client.now_s
    await asyncio.sleep(9.9)
    assert not client.is_away()
    await asyncio.sleep(0.2)
    assert client.is_away()


@running
async def test_who_waits_for_an_answer_is_not_silent():
    client = Client(10)
    client.since_s = None
    await asyncio.sleep(100)
    assert not client.is_away()
    client.since_s = client.now_s
    await asyncio.sleep(20)
    assert client.is_away()


@running
async def test_the_sooner_limit_counts_and_a_silent_client_is_told_unless_mariadb_says_nothing():
    for configured_s, own_s, is_mariadb in (
        *((0, 5, False), (10, 5, False), (5, 10, False), (5, None, False)),
        (10, 5, True),
    ):
        client = Client(configured_s)
        client.is_mariadb = is_mariadb
        client.wait_timeout(own_s)
        await asyncio.sleep(4.9)
        assert not client.is_away()
        await asyncio.sleep(0.2)
        assert client.is_away()
        words = b"disconnected by the server because of inactivity"
        assert words in client.link.written or (is_mariadb and not client.link.written)


@running
async def test_without_a_limit_nobody_is_sent_away_and_who_is_gone_is_not_looked_at():
    client, gone = Client(0), Client(10)
    gone.timeout.stop()
    await asyncio.sleep(1_000_000)
    assert (client.is_away(), gone.is_away()) == (False, False)
    client.idle_timeout_s = 10
    client.timeout.look()
    assert client.is_away()
