"""The consumers and producers of examples, which people copy: nothing is lost, repeated or left behind, whatever happens.

Each one runs as it is printed, but for a consumer's work, which waits for a file so that a test decides when it ends, and
for its seconds, which are fewer. The driver and the proxy decide what one meets, so one family will do.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.programs import StartProgram
from tests.fixtures.relay import Relay
from tests.fixtures.streams import eventually, message_table, rows, run, value
from tests.integration import toolchains


ROOT = Path(__file__).parents[2]
CONSUMERS = ROOT / "examples" / "consumers"
END_S = 120.0
SECOND = 10**9
# The work as printed, and one that says which message begins, waits for the file that the message names and fails if
# another one is there. Each says a line in one write, since its threads would mix them.
WORKS = {
    "consumer_asyncio.py": (
        'print("working on", message)',
        """import pathlib
    path = pathlib.Path(message)
    print("begins", path.name, flush=True)
    while not path.exists():
        await asyncio.sleep(0.02)
    if path.with_suffix(".fails").exists():
        raise ValueError(path.name)""",
    ),
    "consumer_threads.py": (
        'print("working on", message)',
        """import pathlib
    path = pathlib.Path(message)
    print(f"begins {path.name}\\n", end="", flush=True)
    while not path.exists():
        time.sleep(0.02)
    if path.with_suffix(".fails").exists():
        raise ValueError(path.name)""",
    ),
    "consumer.js": (
        'console.log("working on", message);',
        """const fs = require("node:fs");
  console.log("begins", message.split("/").pop());
  while (!fs.existsSync(message)) await sleep(20);
  if (fs.existsSync(message + ".fails")) throw new Error(message);""",
    ),
    "consumer.go": (
        'fmt.Println("working on", message)',
        """fmt.Println("begins", message[len(message)-2:])
	for {
		if _, err := os.Stat(message); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := os.Stat(message + ".fails"); err == nil {
		return errors.New(message)
	}""",
    ),
    "Consumer.java": (
        'System.out.println("working on " + message);',
        """java.nio.file.Path path = java.nio.file.Path.of(message);
    System.out.println("begins " + path.getFileName());
    while (!java.nio.file.Files.exists(path)) {
      Thread.sleep(20);
    }
    if (java.nio.file.Files.exists(java.nio.file.Path.of(path + ".fails"))) {
      throw new IllegalStateException(path.toString());
    }""",
    ),
}

# A heartbeat every second, and a connection that is given up after seven seconds of silence: the wait for a message is five.
SHORTER = dict.fromkeys(
    WORKS, (("HEARTBEAT_S = 10", "HEARTBEAT_S = 1"), ("SILENCE_S = 30", "SILENCE_S = 7"))
)
SHORTER["consumer.go"] = (
    ("= 10 * time.Second", "= 1 * time.Second"), ("= 30 * time.Second", "= 7 * time.Second"),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["consume", "produce"])
def test_the_guide_prints_how_each_program_is_started(kind: str) -> None:
    guide = (ROOT / f"docs/guides/{kind}.md").read_text()
    commands = re.findall(rf"^\| .+ \| `(.*examples/{kind}rs.*?)(?: < messages)?`", guide, re.M)
    folder = ROOT / "examples" / f"{kind}rs"
    programs = [
        path for path in folder.iterdir() if path.suffix in {".py", ".js", ".go", ".java"}
    ]
    assert len(commands) == len(programs)
    assert {re.split("[ /]", line)[-1] for line in commands} == {path.name for path in programs}


def command_of(name: str, folder: Path) -> list[str]:
    """Return the command of a consumer, built in *folder*."""
    source = folder / "source"
    shutil.copytree(CONSUMERS, source)
    text = (source / name).read_text()
    for old, new in (WORKS[name], *SHORTER[name]):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (source / name).write_text(text)
    return toolchains.example(folder, source, name)


class Running:
    """A consumer's process and what it has said."""

    def __init__(self, start: StartProgram, command: list[str], port: int, log: Path) -> None:
        self.log = log
        self.process = start(command, log, env=toolchains.place(port))

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wait_for(self, *lines: str) -> None:
        eventually(lambda: set(lines) <= set(self.said()), f"{lines} in {self.said()}", END_S)


class Work:
    """Messages whose work waits until the test lets it end."""

    def __init__(self, connection: Any, folder: Path) -> None:
        self.connection = connection
        self.folder = folder

    def send(self, *idents: int) -> None:
        sent = ", ".join(f"({ident}, '{self.folder / f'm{ident}'}')" for ident in idents)
        run(self.connection, f"INSERT INTO my_message (id, message) VALUES {sent}")

    def let_end(self, *idents: int) -> None:
        for ident in idents:
            (self.folder / f"m{ident}").touch()

    def lease_of(self, ident: int) -> int:
        return int(value(self.connection, f"SELECT time_next FROM my_message WHERE id={ident}"))

    def acked(self) -> set[int]:
        sql = "SELECT id FROM my_message WHERE time_acked IS NOT NULL"
        return {int(ident) for (ident,) in rows(self.connection, sql)}


@pytest.mark.parametrize("name", WORKS)
def test_a_consumer_does_everything_right(name, lone, start_program, tmp_path):
    command = command_of(name, tmp_path)
    work = Work(lone.connect(), tmp_path)
    run(work.connection, message_table(columns="message TEXT"))
    consumer = Running(start_program, command, lone.port, tmp_path / "said")

    # Heartbeats, which add two or three seconds, hold long work.
    work.send(1, 2)
    consumer.wait_for("begins m1", "begins m2")
    lease = eventually(lambda: (end := work.lease_of(1)) > time.time_ns() and end)
    eventually(lambda: work.lease_of(1) - lease >= 2 * SECOND, "heartbeats", END_S)

    # Failed work is not acknowledged, so it comes again.
    (tmp_path / "m2.fails").touch()
    work.let_end(2)
    eventually(lambda: any("failed" in line for line in consumer.said()), str(consumer.said()))
    assert not work.acked()
    (tmp_path / "m2.fails").unlink()
    run(work.connection, "UPDATE my_message SET time_next = 0 WHERE id = 2")
    eventually(lambda: work.acked() == {2}, str(consumer.said()), END_S)
    assert consumer.said().count("begins m1") == 1

    # What ends while the proxy says nothing, or is away, is acknowledged when it is back, and workers go on.
    os.kill(lone.proxy.pid, signal.SIGSTOP)
    work.let_end(1)
    eventually(lambda: any("again in" in line for line in consumer.said()), "", END_S)
    lone.proxy.kill()
    lone.start()
    work = Work(lone.connect(), tmp_path)
    eventually(lambda: work.acked() == {1, 2}, str(consumer.said()), END_S)
    work.send(3, 4, 5, 6)
    consumer.wait_for("begins m3", "begins m4", "begins m5", "begins m6")

    # After a signal what is in work ends and is acknowledged.
    consumer.process.send_signal(signal.SIGTERM)
    work.let_end(3, 4, 5, 6)
    assert consumer.process.wait(END_S) == 0, consumer.said()
    assert work.acked() == {1, 2, 3, 4, 5, 6}
    assert "Traceback" not in consumer.log.read_text()

    # What no second try heals ends it with its error.
    run(work.connection, "DROP TABLE my_message")
    lost = Running(start_program, command, lone.port, tmp_path / "lost")
    assert lost.process.wait(END_S) > 0
    assert "my_message" in lost.log.read_text()


PRODUCERS = ROOT / "examples" / "producers"


@pytest.mark.parametrize(
    "name", ["producer_pymysql.py", "producer.js", "producer.go", "Producer.java"]
)
def test_a_producer_sends_each_message_once_whatever_breaks(name, lone, tmp_path):
    source = shutil.copytree(PRODUCERS, tmp_path / "source")
    command = toolchains.example(tmp_path, source, name)
    run(lone.connect(), message_table())
    way = Relay(lone.port)
    said, errors = tmp_path / "said", tmp_path / "errors"
    with said.open("wb") as out, errors.open("wb") as told:
        producer = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=told,
            env=toolchains.place(way.port),
        )
    assert producer.stdin is not None

    def send(text: str) -> None:
        assert producer.stdin is not None
        producer.stdin.write(f'{{"number": "{text}"}}\n'.encode())
        producer.stdin.flush()

    def wait_for(count: int) -> None:
        def is_there() -> bool:
            return len(said.read_text().splitlines()) == count

        eventually(is_there, errors.read_text(), END_S)

    try:
        send("first")
        wait_for(1)

        # An INSERT that took effect, and whose answer is lost, is sent again and counts once.
        way.arm(b"second", after=True)
        send("second")
        way.wait()
        way.release()
        wait_for(2)
        assert "again in" in errors.read_text()

        # What is sent while the proxy is away is sent when it is back.
        lone.proxy.kill()
        tried = errors.read_text().count("again in")
        send("third")
        eventually(lambda: errors.read_text().count("again in") > tried, "a try", END_S)
        lone.start()
        wait_for(3)

        # What no second try mends ends it with its error.
        producer.stdin.write(b"no JSON\n")
        producer.stdin.flush()
        assert producer.wait(END_S) > 0
    finally:
        producer.kill()
        producer.wait()
        producer.stdin.close()
        way.close()
    found = rows(lone.connect(), "SELECT id, message FROM my_message")
    assert sorted(text for _, text in found) == [
        f'{{"number": "{text}"}}' for text in ("first", "second", "third")
    ]
    assert {f"sent {ident}" for ident, _ in found} == set(said.read_text().splitlines())
