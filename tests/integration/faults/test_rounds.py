"""Rounds of faults at random, one after another under load, and the audit of sets at their end.

One seed is one history. A round kills, stops or fails one part, lets it come back, and goes on once
messages flow again. `FAULT_ROUNDS=100 FAULT_SEED=7` runs that many.
"""

import contextlib
import os
import random
import signal
import time

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.load import Audit
from tests.fixtures.streams import WAIT_S
from tests.integration.faults.breaking import (
    Servers,
    StartFaulty,
    create,
    ordinary_user,
)


ROUNDS = int(os.environ.get("FAULT_ROUNDS", "4"))
SEED = int(os.environ.get("FAULT_SEED", "1"))
# Longer than a claim may hang on a stopped server before somebody else takes its messages.
PAUSE_S = 3.0
READ_ONLY_S = 1.5
# Both pools, the control connections, listeners and files of one proxy that no client uses.
DESCRIPTORS_MAX = 120
# What may lie between a row on its way to the watcher and an ack answered in another thread.
SENT_MARGIN_S = 1.0

pytestmark = [pytest.mark.db, pytest.mark.slow]


class Rounds:
    """The faults, each of which returns once everything runs again.

    proxy: the one at work; a fault may put another one in its place, on the same port.
    """

    def __init__(
        self, start: StartFaulty, servers: Servers, database: str, dice: random.Random
    ) -> None:
        self._start = start
        self._servers = servers
        self._user = ordinary_user(servers, database)
        self._dice = dice
        self.proxy = start(user=self._user)
        self._proxies = [self.proxy]
        self.faults = (
            self.kill_one,
            self.kill_both,
            self.restart_one,
            self.read_only,
            self.pause,
            self.kill_connections,
            self.kill_proxy,
        )

    def kill_one(self) -> None:
        server = self._any()
        server.kill()
        server.start()

    def kill_both(self) -> None:
        for server in self._servers:
            server.kill()
        for server in self._servers:
            server.start()

    def restart_one(self) -> None:
        server = self._any()
        server.stop()
        server.start()

    def read_only(self) -> None:
        server = self._any()
        execute(server, "SET GLOBAL read_only = 1")
        time.sleep(READ_ONLY_S)
        execute(server, "SET GLOBAL read_only = 0")

    def pause(self) -> None:
        server = self._any()
        assert isinstance(server, EmbeddedServer)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)
        finally:
            os.kill(server.pid, signal.SIGCONT)

    def kill_connections(self) -> None:
        server = self._any()
        for (thread,) in execute(
            server,
            f"SELECT id FROM information_schema.processlist WHERE user = '{self._user}'",
        ):
            with contextlib.suppress(pymysql.MySQLError):  # it has ended by itself
                execute(server, f"KILL {thread}")

    def kill_proxy(self) -> None:
        port = self.proxy.port
        self.proxy.kill()
        self.proxy = self._start(port=port, user=self._user)
        self._proxies.append(self.proxy)

    def logs(self) -> list[str]:
        """Return what each proxy has logged."""
        return [proxy.log() for proxy in self._proxies]

    def _any(self) -> DatabaseServer:
        return self._dice.choice(self._servers)


def test_rounds_of_faults_lose_nothing_and_leave_nothing_open(
    start: StartFaulty, breakable_servers: Servers, breakable_database: str, audit: Audit
) -> None:
    dice = random.Random(SEED)
    rounds = Rounds(start, breakable_servers, breakable_database, dice)
    connection = create(rounds.proxy, ack_wait=1, poller_interval=1, more=",vt_max_backoff=2")
    connection.close()
    port = rounds.proxy.port
    for _ in range(2):
        audit.produce(port)
        audit.receive(port)
    watcher = audit.receive(port, acks=False)
    for number in range(ROUNDS):
        audit.sends_more()
        fault = dice.choice(rounds.faults)
        print(f"round {number}: {fault.__name__}")
        fault()
    audit.sends_more()
    watcher.stopping.set()
    watcher.join(WAIT_S)
    audit.check(rounds.proxy.connect(database="commerce", autocommit=True))
    assert not audit.sent_after_ack(SENT_MARGIN_S)
    rounds.proxy.disconnect()
    left = len(os.listdir(f"/proc/{rounds.proxy.pid}/fd"))
    assert left <= DESCRIPTORS_MAX, f"{left} descriptors without a client"
    for log in rounds.logs():
        assert "internal error" not in log, log[-5000:]
