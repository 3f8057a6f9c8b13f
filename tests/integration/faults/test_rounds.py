"""Rounds of faults of one proxy and of a fleet of three before two shards, under load, and the audit of sets.

One seed is one history. A round kills, stops or cuts off one part, lets it come back, and goes on once messages flow again.
`FAULT_ROUNDS=1000 FAULT_SEED=7` runs that many; with `--all` those of a fleet, too, which take some seven seconds each.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer
from tests.fixtures.database_servers import DatabaseServer, execute, free_port
from tests.fixtures.relay import Relay
from tests.fixtures.running_proxy import (
    MESSAGE_VSCHEMA,
    RunningProxy,
    StartProxy,
    keyspace_toml,
    write_vschema,
)
from tests.fixtures.streams import WAIT_S, rows
from tests.integration.faults.breaking import Servers, create, ordinary_user


ROUNDS = int(os.environ.get("FAULT_ROUNDS", "4"))
SEED = int(os.environ.get("FAULT_SEED", "1"))
# Shorter, as long as an election, and longer than a server waits for a silent dispatcher.
PAUSES_S = (0.5, 3.0, 8.0)
READ_ONLY_S = 1.5
# Both pools, the control connections, listeners and files of one proxy that no client uses.
DESCRIPTORS_MAX = 120
pytestmark = pytest.mark.slow


class Rounds:
    """Members, each with ways of its own to both shards and from the other members, and what may happen to them.

    A fault returns once everything runs again.
    """

    def __init__(
        self,
        start_proxy: StartProxy,
        servers: Servers,
        database: str,
        vschema: Path,
        dice: random.Random,
        members: int,
    ) -> None:
        self._start_proxy = start_proxy
        self._servers = servers
        self._database = database
        self._vschema = vschema
        self._dice = dice
        self._user = ordinary_user(servers, database)
        self._started: list[RunningProxy] = []
        self.to_shards = [[Relay(server.port) for server in servers] for _ in range(members)]
        self.to_member = [Relay(free_port()) for _ in range(members)]
        self.ports = [0] * members
        self.members = [self._start(number) for number in range(members)]
        self.ports = [member.port for member in self.members]
        # Longer than a claim may hang on a stopped server before somebody else takes its messages.
        self.pauses_s = PAUSES_S if members > 1 else PAUSES_S[1:2]
        self.faults: tuple[Callable[[], None], ...] = (
            self.kill_member,
            self.kill_shard,
            self.kill_shards,
            self.restart_shard,
            self.pause_shard,
            self.read_only_shard,
            self.kill_connections,
        )
        if members > 1:
            self.faults += (
                self.stop_member,
                self.pause_member,
                self.cut_member_off,
                self.cut_member_off_a_shard,
                self.cut_member_off_everything,
            )

    def kill_member(self) -> None:
        number = self._number()
        self.members[number].kill()
        self.members[number] = self._start(number)

    def stop_member(self) -> None:
        number = self._number()
        assert self.members[number].stop() == 0
        self.members[number] = self._start(number)

    def pause_member(self) -> None:
        self._pause(self.members[self._number()].pid)

    def cut_member_off(self) -> None:
        self._cut(self.to_member[self._number()])

    def cut_member_off_a_shard(self) -> None:
        self._cut(self._dice.choice(self.to_shards[self._number()]))

    def cut_member_off_everything(self) -> None:
        number = self._number()
        self._cut(self.to_member[number], *self.to_shards[number])

    def kill_shard(self) -> None:
        server = self._any_server()
        server.kill()
        server.start()

    def kill_shards(self) -> None:
        for server in self._servers:
            server.kill()
        for server in self._servers:
            server.start()

    def restart_shard(self) -> None:
        server = self._any_server()
        server.stop()
        server.start()

    def pause_shard(self) -> None:
        server = self._any_server()
        assert isinstance(server, EmbeddedServer)
        assert server.pid is not None
        self._pause(server.pid)

    def read_only_shard(self) -> None:
        server = self._any_server()
        execute(server, "SET GLOBAL read_only = 1")
        time.sleep(READ_ONLY_S)
        execute(server, "SET GLOBAL read_only = 0")

    def kill_connections(self) -> None:
        server = self._any_server()
        listed = f"SELECT id FROM information_schema.processlist WHERE user = '{self._user}'"
        for (thread,) in execute(server, listed):
            with contextlib.suppress(pymysql.MySQLError):  # it has ended by itself
                execute(server, f"KILL {thread}")

    def logs(self) -> list[str]:
        return [proxy.log() for proxy in self._started]

    def close(self) -> None:
        for ways in (self.to_member, *self.to_shards):
            for way in ways:
                way.close()

    def _start(self, number: int) -> RunningProxy:
        keyspace = keyspace_toml(
            "commerce", self.to_shards[number], self._database, self._vschema
        )
        way = self.to_member[number]
        lines = (
            "[server]",
            f'listen = "127.0.0.1:{self.ports[number]}"',
            "stream_grace = 120",
            "failover_buffer = 120",
            "schema_reload = 1",
            keyspace.replace("//root@", f"//{self._user}@"),
            "[fleet]",
            'name = "rounds"',
            f'listen = "127.0.0.1:{way.target_port}"',
            f'advertise = "127.0.0.1:{way.port}"',
        )
        proxy = self._start_proxy("\n".join(lines))
        self._started.append(proxy)
        return proxy

    def _pause(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self._dice.choice(self.pauses_s))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _cut(self, *ways: Relay) -> None:
        for way in ways:
            way.cut()
        time.sleep(self._dice.choice(self.pauses_s))
        for way in ways:
            way.mend()

    def _number(self) -> int:
        return self._dice.randrange(len(self.members))

    def _any_server(self) -> DatabaseServer:
        return self._dice.choice(self._servers)


@pytest.fixture(params=[1, pytest.param(3, marks=pytest.mark.thorough)], ids=["one", "fleet"])
def rounds(request, start_proxy, breakable_servers, breakable_database, tmp_path):
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    dice = random.Random(SEED)
    rounds = Rounds(
        start_proxy, breakable_servers, breakable_database, vschema, dice, request.param
    )
    yield rounds
    rounds.close()


def test_rounds_of_faults_lose_nothing_and_send_nothing_that_was_acked(rounds, audit):
    create(rounds.members[0], ack_wait=1, poller_interval=1, more=",vt_max_backoff=2").close()
    is_alone = len(rounds.members) == 1
    for port in rounds.ports * (2 if is_alone else 1):
        audit.produce(port)
        audit.receive(port)
    watchers = [audit.receive(port, acks=False) for port in rounds.ports]
    dice = random.Random(SEED)
    for number in range(ROUNDS):
        audit.sends_more()
        fault = dice.choice(rounds.faults)
        print(f"round {number}: {fault.__name__}")
        fault()
    audit.sends_more()
    for watcher in watchers:
        watcher.stopping.set()
        watcher.join(WAIT_S)
    connection = rounds.members[0].connect(database="commerce", autocommit=True)
    audit.check(connection, seconds=120)
    # A send that came after the ack would carry the number that the ack left in the row.
    sends: dict[int, int] = dict(rows(connection, "SELECT id, epoch FROM my_message"))
    late = [
        (ident, epoch)
        for receiver in audit.receivers
        for ident, epoch in receiver.received
        if epoch >= sends[ident]
    ]
    assert not late, "sent after the ack"
    for member in rounds.members:
        member.disconnect()
        left = len(os.listdir(f"/proc/{member.pid}/fd"))
        assert left <= DESCRIPTORS_MAX, f"{left} descriptors without a client"
    for log in rounds.logs():
        assert "internal error" not in log, log[-5000:]
