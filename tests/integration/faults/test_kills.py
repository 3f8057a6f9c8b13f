"""Workers of the library, the proxy and servers are killed at random moments under load, and every run is accounted for.

One seed is one history. `WORKER_KILLS=200 FAULT_SEED=7` kills that many. The figures are printed.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.load import Worker
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import eventually, run
from tests.integration.faults.breaking import Servers, StartFaulty


pytestmark = [pytest.mark.db, pytest.mark.one_server, pytest.mark.slow]

KILLS = int(os.environ.get("WORKER_KILLS", "8"))
SEED = int(os.environ.get("FAULT_SEED", "1"))
LIBRARY = Path(__file__).parents[3] / "clients" / "python"
WORKERS = 3
BATCH = 10
END_S = 120.0
# How often each is killed, of ten times.
SHARES = ("worker",) * 5 + ("proxy",) * 3 + ("server",) * 2
# What a worker may have been given before another one's ack was committed, and come to after it. Had the ack been lost, the
# message would come when its lease of ACK_WAIT_S has ended.
ACK_WAIT_S = 10
MARGIN_S = ACK_WAIT_S - 2
PROGRAM = """
import asyncio, os, random, sys, time
from streamfrom_worker import Worker

worker = Worker(sys.argv[1])
out = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@worker.queue("job", concurrency=4, prefetch=20)
async def work(message):
    os.write(out, f"{message['n']} {os.getpid()} {time.time()}\\n".encode())
    await asyncio.sleep(random.uniform(0, 0.02))

worker.run()
"""


class Ran(NamedTuple):
    pid: int
    begun_s: float


class Kill(NamedTuple):
    """What was killed when, and when it was back."""

    what: str
    pid: int
    from_s: float
    to_s: float


class Producer(Worker):
    """Sends messages until it is stopped; what was not confirmed is sent again under the same ids."""

    sent = 0

    def work(self) -> None:
        with self.connection(read_timeout=END_S) as connection:
            while not self.stopping.wait(0.05):
                ids = range(self.sent + 1, self.sent + BATCH + 1)
                values = ", ".join(f"({n}, {n})" for n in ids)
                run(connection, f"INSERT IGNORE INTO job (id, n) VALUES {values}")
                self.sent += BATCH


class Team:
    def __init__(self, folder: Path, port: int) -> None:
        self._program = folder / "jobs.py"
        self._program.write_text(PROGRAM)
        self._port = port
        self.out = folder / "runs"
        self._log = folder / "workers.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        url = f"mysql://root@127.0.0.1:{self._port}/commerce"
        with self._log.open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, str(self._program), url, str(self.out)],
                    env={"PYTHONPATH": str(LIBRARY)},
                    stderr=log,
                )
            )

    def kill(self, number: int) -> int:
        process = self.processes.pop(number)
        assert process.poll() is None, self._log.read_text()[-5000:]
        process.kill()
        process.wait()
        return process.pid

    def wait_for_more(self) -> None:
        seen = self._size()
        eventually(lambda: self._size() > seen, "messages flow", END_S)

    def _size(self) -> int:
        return self.out.stat().st_size if self.out.exists() else 0

    def runs(self) -> dict[int, list[Ran]]:
        found: dict[int, list[Ran]] = defaultdict(list)
        for line in self.out.read_text().splitlines():
            n, pid, begun_s = line.split()
            found[int(n)].append(Ran(int(pid), float(begun_s)))
        return {n: sorted(ran, key=lambda one: one.begun_s) for n, ran in found.items()}


@pytest.fixture
def team(tmp_path: Path, start: StartFaulty) -> Iterator[tuple[RunningProxy, Team]]:
    proxy = start()
    team = Team(tmp_path, proxy.port)
    yield proxy, team
    while team.processes:
        team.kill(0)


def test_kills_lose_nothing_and_repeat_only_what_they_cut_off(
    team: tuple[RunningProxy, Team],
    start: StartFaulty,
    breakable_servers: Servers,
    breakable_database: str,
) -> None:
    proxy, workers = team
    client = proxy.connect(database="commerce", autocommit=True)
    create = f"CREATE QUEUE job (n BIGINT) WITH (ack_wait = {ACK_WAIT_S}, max_backoff = {ACK_WAIT_S})"
    run(client, create)
    port, dice, kills = proxy.port, random.Random(SEED), list[Kill]()
    producer = Producer(port, "commerce")
    producer.start()
    for _ in range(WORKERS):
        workers.start()
    for _ in range(KILLS):
        workers.wait_for_more()
        time.sleep(dice.uniform(0, 0.5))
        what, began_s, pid = dice.choice(SHARES), time.time(), 0
        if what == "worker":
            pid = workers.kill(dice.randrange(WORKERS))
            workers.start()
        elif what == "proxy":
            proxy.kill()
            proxy = start(port=port)
        else:
            server = dice.choice(breakable_servers)
            server.kill()
            server.start()
        kills.append(Kill(what, pid, began_s, time.time()))
    producer.stopping.set()
    producer.join(END_S)

    def acks() -> dict[int, int | None]:
        sql = "SELECT n, time_acked FROM job"
        tables = (execute(each, sql, database=breakable_database) for each in breakable_servers)
        return {n: acked for table in tables for n, acked in table}

    eventually(lambda: None not in acks().values(), "all is acknowledged", END_S)
    acked_s = {n: (acked or 0) / 1e9 for n, acked in acks().items()}
    runs = workers.runs()
    assert set(range(1, producer.sent + 1)) <= set(runs), "a message was lost"
    again = [
        (before, after, _cause(kills, before, after))
        for ran in runs.values()
        for before, after in pairwise(ran)
    ]
    late = [
        n
        for n, ran in runs.items()
        if ran[-1].begun_s > _committed_s(kills, acked_s[n]) + MARGIN_S
    ]
    print(
        f"{KILLS} kills ({Counter(one.what for one in kills)}), {producer.sent} messages, none lost; "
        f"run again: {Counter(cause for *_, cause in again)}; run after their ack: {len(late)}"
    )
    assert not [one for one in again if one[-1] is None], "run twice without a kill"
    assert not late, "run again after its ack"


def _committed_s(kills: list[Kill], acked_s: float) -> float:
    """Return when an ack was committed: one that came while its server was away waited in the proxy until it was back."""
    servers = (kill for kill in kills if kill.what == "server")
    backs_s = [kill.to_s for kill in servers if kill.from_s <= acked_s <= kill.to_s]
    return max([acked_s, *backs_s])


def _cause(kills: list[Kill], before: Ran, after: Ran) -> str | None:
    """Return which kill came between two runs of one message: of its worker, or of what keeps its lease and its ack."""
    between = [k for k in kills if k.from_s <= after.begun_s and k.to_s >= before.begun_s]
    if any(kill.pid == before.pid for kill in between):
        return "its worker was killed before the ack"
    found = sorted({kill.what for kill in between} - {"worker"})
    return f"the {found[0]} was killed before the ack" if found else None
