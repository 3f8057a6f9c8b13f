"""The programs to copy, started by the very commands that docs/guides prints."""

import os
import re
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import eventually, message_table, run, value
from tests.integration import toolchains
from tests.integration.conftest import Lone


pytestmark = pytest.mark.db

ROOT = Path(__file__).parents[2]
CONSUMERS, PRODUCERS = (
    re.findall(
        rf"^\| .+ \| `(.*examples/{folder}.*?)`",
        (ROOT / "docs/guides" / page).read_text(),
        re.MULTILINE,
    )
    for folder, page in (("consumers", "consume.md"), ("producers", "produce.md"))
)
END_S = 120.0


def each(commands: list[str]) -> list[Any]:
    """Return the commands; those that build a program run by --all alone, as test_consumers.py and test_producers.py build the same."""
    return [
        pytest.param(command, marks=[] if "python" in command else pytest.mark.thorough)
        for command in commands
    ]


def test_the_page_prints_programs_in_four_languages() -> None:
    assert (len(CONSUMERS), len(PRODUCERS)) == (5, 4)


@pytest.fixture
def proxy(lone: Lone) -> RunningProxy:
    run(lone.connect(), message_table())
    return lone.proxy


def environment(proxy: RunningProxy) -> dict[str, str]:
    """Return what the page says to set, and a PATH on which `python` is the test's."""
    scripts = sysconfig.get_path("scripts")
    return toolchains.place(proxy.port) | {"PATH": f"{scripts}:{os.environ['PATH']}"}


def prepared(command: str, folder: Path) -> list[str]:
    """Return *command* for a copy of the examples in *folder*, with what the machine must have for it."""
    for examples in ("consumers", "producers"):
        shutil.copytree(ROOT / "examples" / examples, folder / "examples" / examples)
    place = folder / "examples" / ("consumers" if "consumer" in command else "producers")
    if "npm " in command:
        toolchains.program("node")
        toolchains.build([toolchains.program("npm"), "install"], place)
    elif "go run" in command:
        toolchains.build([toolchains.program("go"), "build", "-o", os.devnull, "."], place)
    elif "java " in command:
        toolchains.program("javac")
        if not toolchains.DEBIAN_JAR.exists():
            pytest.skip("no JDBC driver on this machine: install libmariadb-java")
        (place / "mysql-connector-j.jar").symlink_to(toolchains.DEBIAN_JAR)
    return ["sh", "-ec", command]


@pytest.mark.parametrize("command", each(PRODUCERS))
def test_a_producer_sends_what_is_in_the_file(command, proxy, tmp_path):
    shell = prepared(command, tmp_path)
    for folder in (tmp_path, tmp_path / "examples/producers"):
        (folder / "messages").write_text('{"n": 1}\n{"n": 2}\n')
    done = finished(shell, cwd=tmp_path, env=environment(proxy))
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^sent \d+$", done.stdout, re.MULTILINE)) == 2
    client = proxy.connect(database="commerce", autocommit=True)
    assert value(client, "SELECT COUNT(DISTINCT message) FROM my_message") == 2


@pytest.mark.parametrize("command", each(CONSUMERS))
def test_a_consumer_works_and_acknowledges(command, proxy, tmp_path, start_program):
    client = proxy.connect(database="commerce", autocommit=True)
    run(client, "INSERT INTO my_message (id, message) VALUES (1, '{}'), (2, '{}')")
    shell = prepared(command, tmp_path)
    log = tmp_path / "said"
    start_program(shell, log, cwd=tmp_path, env=environment(proxy))
    left = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL"
    eventually(lambda: value(client, left) == 0, log.read_text(), END_S)
    assert log.read_text().count("working on") == 2
