"""Parents of small processes that do as workers do; those of real ones are in tests/integration/faults."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
import structlog

from streamfrom.proxy.workers import supervisor
from streamfrom.proxy.workers.supervisor import (
    DELAY_FIRST_S,
    DELAY_LONGEST_S,
    SETTLED_S,
    WorkerFailed,
    Workers,
    restart_delay_s,
)
from tests.proxy.fake_answers import until
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


# Writes what happens to it into the folder that is its first argument.
WORKER = """
import json, os, signal, socket, sys
folder, seat = sys.argv[1], json.loads(sys.argv[2])
name = os.path.join(folder, str(seat["number"]))
def note(text):
    with open(name, "a") as file:
        file.write(text + "\\n")
def on_signal(number, frame):
    note(signal.Signals(number).name)
    if number == signal.SIGTERM and not os.path.exists(os.path.join(folder, "stay")):
        sys.exit(0)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, on_signal)
parent = socket.socket(fileno=seat["parent_fd"])
if os.path.exists(os.path.join(folder, "fail")):
    sys.exit(7)
note(f"pid {os.getpid()} port {seat['port']} unix {seat['unix_fd'] is not None}")
parent.send(b"+")
while said := parent.recv(1):
    note(f"told {said.decode()}")
    if said == b"!":
        sys.exit(0)
"""


class Rig:
    def __init__(self, folder: Path, count=2, **server):
        self.folder = folder
        config = config_of(FakeServer())
        config = replace(config, server=replace(config.server, **server))
        self.workers = Workers(
            config, [sys.executable, "-c", WORKER, str(folder)], count, os.environ
        )

    def notes(self, number):
        path = self.folder / str(number)
        return path.read_text().splitlines() if path.exists() else []

    def pid(self, number):
        return int(
            [line for line in self.notes(number) if line.startswith("pid")][-1].split()[1]
        )


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_is_entered_when_all_serve_and_left_when_all_have_ended(tmp_path):
    path = tmp_path / "s"
    rig = Rig(tmp_path, 3, unix_socket=str(path), unix_socket_mode=0o600)
    async with rig.workers as workers:
        assert path.stat().st_mode & 0o777 == 0o600
        assert all(f"port {workers.port} unix True" in rig.notes(n)[0] for n in (1, 2, 3))
        found = {rig.pid(number) for number in (1, 2, 3)}
        assert len(found) == 3
        workers.hangup()
        await until(lambda: all("SIGHUP" in rig.notes(n) for n in (1, 2, 3)))
    assert all(rig.notes(n)[-1] == "SIGTERM" for n in (1, 2, 3))
    assert not any(map(is_running, found))
    assert not path.exists()


async def test_one_that_fails_before_it_serves_ends_the_start_with_its_code(tmp_path):
    (tmp_path / "fail").touch()
    with pytest.raises(WorkerFailed) as failed:
        async with Rig(tmp_path).workers:
            raise AssertionError("it must not be entered")
    assert failed.value.code == 7


async def test_one_that_cannot_be_started_again_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "DELAY_FIRST_S", 0.01)
    rig = Rig(tmp_path, 1)
    with structlog.testing.capture_logs() as logs:
        async with rig.workers:
            first = rig.pid(1)
            (tmp_path / "fail").touch()
            os.kill(first, signal.SIGKILL)
            died = lambda: [line for line in logs if line["event"] == "a worker died"]  # noqa: E731
            await until(lambda: len(died()) >= 2)
            (tmp_path / "fail").unlink()
            await until(lambda: rig.pid(1) != first)
    assert [line["reason"] for line in died()][:2] == ["signal 9", "exit code 7"]
    delays = [line["again_in_s"] for line in died()]
    assert delays[1] == 2 * delays[0]


async def test_a_stop_hurries_when_it_is_told_so(tmp_path):
    (tmp_path / "stay").touch()
    rig = Rig(tmp_path)
    async with rig.workers as workers:
        stopping = asyncio.ensure_future(workers.stop())
        await until(lambda: all("SIGTERM" in rig.notes(n) for n in (1, 2)))
        assert not stopping.done()
        workers.hurry()
        await stopping
    assert all(rig.notes(n)[-1] == "told !" for n in (1, 2))


async def test_a_run_ends_when_it_is_stopped_also_while_it_starts(tmp_path):
    stop = asyncio.Event()
    rig = Rig(tmp_path)
    ready: list[bool] = []
    running = asyncio.ensure_future(rig.workers.run(stop, lambda: ready.append(True)))
    await until(lambda: ready)
    stop.set()
    assert await running == 0
    assert rig.notes(1)[-1] == rig.notes(2)[-1] == "SIGTERM"
    assert await Rig(tmp_path / "late").workers.run(stop, lambda: ready.append(True)) == 0
    assert ready == [True]


def test_who_dies_again_and_again_waits_longer_up_to_a_limit_unless_it_has_run_long():
    lives = [1.0] * 12
    delays = list(accumulate(lives, restart_delay_s, initial=0.0))[1:]
    assert delays[:4] == [
        DELAY_FIRST_S,
        2 * DELAY_FIRST_S,
        4 * DELAY_FIRST_S,
        8 * DELAY_FIRST_S,
    ]
    assert delays[-1] == DELAY_LONGEST_S
    assert delays == sorted(delays)
    assert restart_delay_s(DELAY_LONGEST_S, SETTLED_S) == DELAY_FIRST_S
