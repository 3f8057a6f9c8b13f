"""docs/tutorial.md: each of its commands, as it is printed, from the install to a page that shows a queue."""

import os
import re
import shlex
import shutil
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.fixtures.database_servers import execute, free_port, root
from tests.fixtures.page_visitor import PageVisitor
from tests.fixtures.printed_steps import END_S, PrintedSteps
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import HERE
from tests.fixtures.streams import eventually, rows
from tests.fixtures.terminal import Terminal


pytestmark = [pytest.mark.one_server, pytest.mark.slow]

PAGE = HERE / "docs/tutorial.md"
# What the install needs, and nothing that is large.
NOT_COPIED = shutil.ignore_patterns(".*", "__py*", "node_modules", "tests", "docs", "bench")


def environment(**more: str) -> dict[str, str]:
    """Return that of a terminal in which the programs of this test's Python come first."""
    scripts = sysconfig.get_path("scripts")
    return {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", **more}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a terminal after the first step, the folder of which is its PWD."""
    folder = tmp_path_factory.mktemp("tutorial") / "streamfrom"
    shutil.copytree(HERE, folder, ignore=NOT_COPIED, symlinks=True)
    # What pip would bring from its index is here already.
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    shared = environment(PYTHONPATH=sysconfig.get_path("purelib"), **offline)
    script = PrintedSteps(PAGE.read_text()).take("sh") + "\nenv -0 >&3"
    read, write = os.pipe()
    done = finished(
        ["bash", "-ec", script.replace("&3", f"&{write}")],
        cwd=folder,
        env=shared,
        pass_fds=[write],
    )
    os.close(write)
    with os.fdopen(read) as told:
        variables = dict(line.split("=", 1) for line in told.read().split("\0") if line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^streamfrom \d+\.\d+\.\d+$", done.stdout, re.MULTILINE)
    return variables


@pytest.fixture
def own_servers(servers):
    yield servers
    for server in servers:
        execute(server, "DROP DATABASE IF EXISTS commerce")
        execute(server, "DROP USER IF EXISTS streamfrom@'%', app@'%'")


class Terminals:
    """Programs that run until they are told to end, each on a terminal of its own."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._opened: list[Terminal] = []

    def start(self, script: str, **more: str) -> Terminal:
        """Run *script* in bash, in the folder of the first step, on a new terminal; *more*: variables."""
        environ = {**self._environ, **more}
        words = ["env", *(f"{name}={value}" for name, value in environ.items())]
        place = f"cd {shlex.quote(self._environ['PWD'])}\n"
        self._opened.append(Terminal([*words, "bash", "-c", place + script]))
        return self._opened[-1]

    def close(self) -> None:
        for opened in self._opened:
            opened.close()


@pytest.fixture
def terminals(installed: dict[str, str]) -> Iterator[Terminals]:
    opened = Terminals(installed)
    yield opened
    opened.close()


def options_of(command: str) -> dict[str, Any]:
    """Return what PyMySQL takes for the options of the command line *command*."""
    program, host, port, user, password, database = command.split()
    assert program == "mariadb"
    found = {"host": host, "port": port, "user": user, "password": password}
    named = {name: word[2:] for name, word in found.items()}
    return named | {"port": int(named["port"]), "database": database, "autocommit": True}


def shown(text: str) -> list[list[str]]:
    return [re.split(r" {2,}", line) for line in text.splitlines()]


def test_the_tutorial_from_nothing_to_a_queue(own_servers, installed, terminals):
    if shutil.which("mariadb") is None:
        pytest.skip("no mariadb client on this machine")
    folder = Path(installed["PWD"])
    port, admin_port = free_port(), free_port()
    here = {"15306": port, "15380": admin_port}
    text = PAGE.read_text()
    for example, number in here.items():
        text = text.replace(example, str(number))
    with PrintedSteps(text) as steps:
        steps.take("sh")  # `installed` has run it
        prepare = steps.take("sql")
        for server in own_servers:
            with root(server) as there:
                for statement in prepare.rstrip(";").split(";\n"):
                    rows(there, statement)
        db1, db2 = (f"127.0.0.1:{server.port}" for server in own_servers)
        config = steps.take("toml", {"db1:3306": db1, "db2:3306": db2})
        (folder / "streamfrom.toml").write_text(config)
        (folder / "commerce.vschema.json").write_text(steps.take("json"))
        checked = terminals.start(steps.take("sh"))
        checked.expect(r"^summary .*no problems found$")
        proxy = terminals.start(steps.take("sh"))
        proxy.expect("listening")

        client = pymysql.connect(**options_of(steps.take("sh")), ssl_disabled=True)
        steps.sql(client)
        stream = terminals.start(steps.take("sh"))
        status = "SELECT streams FROM streamfrom.queues"
        eventually(lambda: rows(client, status) == ((1,),), "somebody streams")
        steps.sql(client)
        stream.expect("welcome")
        # A person takes a second or more, and the lease is written then.
        sent = "SELECT COUNT(*) FROM my_message WHERE epoch = 1 AND time_acked IS NULL"
        eventually(lambda: rows(client, sent) == ((1,),))
        steps.sql(client)
        steps.sql(client)

        steps.sql(client)
        stream.expect("your order is on its way")
        eventually(lambda: rows(client, sent) == ((1,),))
        stream.interrupt()
        consumer = terminals.start(steps.take("sh"), PORT=str(port))
        consumer.expect(re.escape(steps.take("text")))
        all_acked = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL"
        eventually(lambda: rows(client, all_acked) == ((0,),))
        found = [list(map(str, row)) for row in steps.sql(client)]
        assert found == shown(steps.take("text"))
        assert "are you still there?" not in stream.output + consumer.output

        (page,) = re.findall(r"<(http://\S+/)>", text)
        visitor = PageVisitor(page.rstrip("/"), "app", "app-password")
        ((_, name, depth, *_),) = steps.sql(client)
        assert (name, depth) == ("my_message", 1)
        assert [each["depth"] for each in visitor.get("/api/queues")[1]] == [1]
        steps.sql(client)
        consumer.expect("working on while it is paused")
        eventually(lambda: visitor.get("/api/queues")[1][0]["depth"] == 0)
        client.close()
    consumer.interrupt()
    assert consumer.process.wait(END_S) == 0
    proxy.interrupt()
    assert proxy.process.wait(END_S) == 0
