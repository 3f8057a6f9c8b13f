"""`streamfrom demo`: it runs as printed, stops cleanly, and says what to do when it cannot run."""

import asyncio
import itertools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pymysql
import pytest

from streamfrom.proxy.commands import demo
from streamfrom.proxy.commands.demo import DemoError, run_demo, shard_names
from streamfrom.proxy.config.file import load
from streamfrom.proxy.embedded.servers import find_server
from tests.fixtures.database_servers import free_port
from tests.fixtures.programs import StartProgram


HERE = Path(__file__).parents[2]
READY_S = 120.0


class RunningDemo:
    """The demo as a user starts it, its output gathered in a file."""

    def __init__(self, folder: Path, start_program: StartProgram, options: Any) -> None:
        self.output_path = folder / "output.txt"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.process = start_program(
            [sys.executable, "-m", "streamfrom.proxy", "demo", *options],
            self.output_path,
            cwd=HERE,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )

    def output(self) -> str:
        return self.output_path.read_text()

    def wait_for(self, text: str) -> str:
        deadline = time.monotonic() + READY_S
        while text not in self.output():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.02)
        return self.output()

    def children(self) -> list[str]:
        return subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(READY_S)


@pytest.fixture
def start(tmp_path, start_program):
    if find_server() is None:
        pytest.skip("no server on this machine")
    numbers = itertools.count()
    return lambda *options: RunningDemo(
        tmp_path / f"demo-{next(numbers)}", start_program, options
    )


def connect(port, user="root", password=""):
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user=user,
        password=password,
        database="commerce",
        autocommit=True,
    )


def run(cursor, sql):
    count = cursor.execute(sql)
    return cursor.fetchall() or count


@pytest.mark.db
def test_what_it_prints_works_as_printed(start):
    port = free_port()
    running = start("--port", str(port))
    text = running.wait_for("Ctrl-C stops everything")
    assert f"--quick -h127.0.0.1 -P{port} -uroot commerce" in text
    (page,) = re.findall(r"http://127\.0\.0\.1:\d+/(?= )", text)
    with urllib.request.urlopen(f"{page}readyz", timeout=60) as ready:
        assert ready.status == 200
    inserts = re.findall(r"INSERT INTO .*(?=;)", text)
    (ack,) = re.findall(r"UPDATE .*(?=;)", text)
    select, use, of_one_shard = re.findall(r"(?:SELECT|USE) .*(?=;)", text)
    assert len(inserts) == 2
    stream = pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database="commerce",
        program_name="mariadb",  # the client that the demo prints: a person watches
        cursorclass=pymysql.cursors.SSCursor,
        read_timeout=120,
    )
    rows = stream.cursor()
    rows.execute("STREAM * FROM my_message")
    with connect(port) as connection, connection.cursor() as cursor:
        before = time.time()
        for insert in inserts:
            run(cursor, insert)
        first = [json.loads(row[-1]) for row in (rows.fetchone(), rows.fetchone())]
        assert sorted(first, key=str) == [{"hello": "shards"}, {"hello": "world"}]
        assert json.loads(rows.fetchone()[-1]) == {"at": "its time"}
        assert time.time() - before > 3.5
        assert run(cursor, ack) == 3
        # Whoever pastes it again gets more messages, and no error.
        for insert in inserts:
            run(cursor, insert)
        assert run(cursor, ack) == 3
        acked = run(cursor, select)
        assert len({row[0] for row in acked}) == 6
        assert all(row[2] is not None for row in acked)
        run(cursor, use)
        assert set(run(cursor, of_one_shard) or ()) <= {row[:1] for row in acked}
    assert running.stop() == 0
    with pytest.raises(pymysql.MySQLError, match="1053"):
        rows.fetchall()  # what was pasted last may have come before
    stream.close()
    assert running.output().rstrip().endswith("stopped")
    assert not list(running.temporary.glob("streamfrom-demo-*"))
    assert not running.children()


@pytest.mark.db
def test_data_is_kept_nobody_gets_at_the_shards_and_a_reader_cannot_write(start, tmp_path):
    port, data = free_port(), tmp_path / "data"
    options = ("--port", str(port), "--shards", "1", "--data", str(data))
    # A second start has other passwords for the same data.
    for count in (0, 1):
        running = start(*options)
        running.wait_for("Ctrl-C stops everything")
        config = load(data / "streamfrom.toml", {})
        assert stat.S_IMODE((data / "streamfrom.toml").stat().st_mode) == 0o600
        assert not (data / "init.sql").exists()
        (shard,) = config.keyspaces[0].shards
        for user in ("root", "", shard.primary.user, "reader"):
            for place in places(shard.primary.port, data / "shard-0"):
                with pytest.raises(pymysql.MySQLError, match=r"1045|1698"):
                    pymysql.connect(user=user, **place)
        with connect(port) as connection, connection.cursor() as cursor:
            assert len(run(cursor, "SELECT id FROM my_message") or []) == count
            run(cursor, "CREATE TABLE IF NOT EXISTS account (id BIGINT PRIMARY KEY)")
            run(cursor, f"INSERT INTO account VALUES ({count})")  # one server has no vschema
            run(cursor, f"INSERT INTO my_message (id, message) VALUES ({count}, '{{}}')")
        with connect(port, "reader", "reader") as connection, connection.cursor() as cursor:
            assert len(run(cursor, "SELECT id FROM my_message")) == count + 1
            with pytest.raises(pymysql.MySQLError, match="1142"):
                run(cursor, "DELETE FROM my_message")
        past = {"user": "reader", "password": "reader", "database": "commerce"}
        with (
            pymysql.connect(host="127.0.0.1", port=shard.primary.port, **past) as connection,
            connection.cursor() as cursor,
            pytest.raises(pymysql.MySQLError, match="1142"),
        ):
            run(cursor, "DELETE FROM my_message")
        assert shard.primary.password.reveal() not in running.output()
        assert running.stop(signal.SIGTERM) == 0


def places(port, folder):
    """Return the ways to a shard; a socket too far down in the file system is elsewhere."""
    path = folder / "mysqld.sock"
    by_socket = [{"unix_socket": str(path)}] if path.exists() else []
    return [{"host": "127.0.0.1", "port": port}, *by_socket]


@pytest.mark.db
def test_a_signal_while_it_starts_leaves_nothing_behind(start):
    running = start("--port", str(free_port()))
    running.wait_for("starting 2 x ")
    assert running.stop() == 0
    assert not list(running.temporary.glob("streamfrom-demo-*"))


def test_a_signal_ends_it_though_its_reader_has_left(monkeypatch):
    """As Ctrl-C in `streamfrom demo | tee log`, where it ends tee first."""

    async def runs() -> None:
        demo.cancel_on_signal([], None)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(asyncio.Event().wait(), READY_S)

    monkeypatch.setattr(sys, "stdout", Mock(write=Mock(side_effect=BrokenPipeError)))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(runs())


def test_key_ranges_are_equal_and_meet_however_many_they_are():
    assert shard_names(3) == ["-5555", "5555-aaaa", "aaaa-"]
    assert shard_names(4) == ["-40", "40-80", "80-c0", "c0-"]
    for count in range(1, 65):
        names = [name.split("-") for name in shard_names(count)]
        assert names[0][0] == names[-1][1] == ""
        assert all(low[1] == high[0] != "" for low, high in itertools.pairwise(names))


def test_a_folder_of_other_shards_and_a_taken_port_are_refused(tmp_path, capsys):
    for name in ("shard-0", "shard-1", "shard-2"):
        (tmp_path / name).mkdir()
    assert run_demo(2, free_port(), tmp_path) == 1
    assert "holds 3 shards: say --shards 3, or another folder" in capsys.readouterr().err
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run_demo(2, port, None) == 1
    assert f"port {port} is taken; choose another with --port" in capsys.readouterr().err


def test_the_default_port_gives_way_to_the_next_free_one_if_there_is_one(monkeypatch, capsys):
    monkeypatch.setattr(demo, "_is_free", lambda port: port >= demo.PORT_DEFAULT + 2)
    assert demo.free_port(demo.PORT_DEFAULT) == demo.PORT_DEFAULT + 2
    assert "port 15306 is taken, using 15308" in capsys.readouterr().out
    monkeypatch.setattr(demo, "_is_free", lambda port: False)
    with pytest.raises(DemoError, match="choose another with --port"):
        demo.free_port(demo.PORT_DEFAULT)
