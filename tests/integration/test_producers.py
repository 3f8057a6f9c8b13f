"""The producers of examples/producers, which people copy: each message is sent once, whatever happens to the connection.

Each one runs as it is printed. The driver and the proxy decide what a producer meets, so one family will do.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.relay import Relay
from tests.fixtures.streams import eventually, message_table, rows, run
from tests.integration import toolchains


pytestmark = pytest.mark.db

PRODUCERS = Path(__file__).parents[2] / "examples" / "producers"
END_S = 120.0


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
