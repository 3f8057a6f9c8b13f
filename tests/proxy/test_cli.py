import ast
import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from itertools import chain
from unittest.mock import Mock, call

import pytest

from streamfrom.proxy import cli
from streamfrom.proxy.cli import EXIT_FAULT, EXIT_USAGE, main
from streamfrom.proxy.workers.worker_seat import WorkerSeat
from tests.cases import cases
from tests.fixtures.programs import END_S


CONFIG = """
[server]
listen = "127.0.0.1:0"
[keyspaces.shop]
[[keyspaces.shop.shards]]
name = "-"
primary = "mysql://root:hunter2@127.0.0.1:{port}/shop"
"""


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch):
    """Leave the logging of the test run alone; keep what `main` asked for."""
    asked = []
    monkeypatch.setattr(
        "streamfrom.proxy.log.configure", lambda **options: asked.append(options)
    )
    return asked


@pytest.fixture
def config(tmp_path):
    """A configuration whose server does not listen."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        path = tmp_path / "proxy.toml"
        path.write_text(CONFIG.format(port=free.getsockname()[1]))
        yield str(path)


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """Returns all that a service manager was told, in turn."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))

        def heard():
            news = []
            with suppress(BlockingIOError):
                while True:
                    news.append(listening.recv(4096).decode().partition("\n")[0])
            return news

        yield heard


@pytest.mark.parametrize(
    "line",
    [
        *("", "serve", "check", "sing", "demo --shards many", "serve --config"),
        # An option before the command must be one of the command.
        *("--data check demo", "--data demo", "--json serve --config CONFIG"),
        *("--shards 2 check --config CONFIG", "--config CONFIG sing"),
        "serve check --config CONFIG",
    ],
)
def test_a_wrong_command_line_is_explained(config, line, capsys):
    with pytest.raises(SystemExit) as ended:
        main([word.replace("CONFIG", config) for word in line.split()])
    assert ended.value.code == EXIT_USAGE
    assert "usage: streamfrom" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "check"])
def test_every_fault_of_a_configuration_is_told_with_the_file_and_the_key(
    command, tmp_path, capsys
):
    path = tmp_path / "proxy.toml"
    path.write_text(
        '[server]\nlisten = 5\nshutdown_grace = "x"\n[keyspaces.shop]\nshards = 1\n'
        'primary = "mysql://root:hunter2@x"'
    )
    words = [command, *["--json"] * (command == "check"), "--config", str(path)]
    assert main(words) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert err.startswith(f"streamfrom: {path}: server.listen")
    assert "hunter2" not in err
    keys = ["server.listen", "server.shutdown_grace", "keyspaces.shop.shards"]
    assert [line.split(": ")[2] for line in err.splitlines()][:3] == keys
    if command == "check":
        document = json.loads(out)
        assert document["summary"]["error"] == len(err.splitlines())
        assert document["findings"][1]["place"] == "server.shutdown_grace"


def test_variables_of_the_environment_reach_the_configuration_and_a_finding_the_exit_code(
    config, monkeypatch, capsys, unconfigured
):
    with open(config, "a") as file:
        file.write('[[users]]\nname = "app"\npassword_env = "APP_PASSWORD"\n')
    assert main(["check", "--config", config]) == EXIT_USAGE
    assert "APP_PASSWORD" in capsys.readouterr().err
    monkeypatch.setenv("APP_PASSWORD", "sesame")
    assert main(["check", "--config", config]) == EXIT_FAULT
    out = capsys.readouterr().out
    assert "1 user\n" in out
    assert "error    shop/-: mysql://root@127.0.0.1" in out
    assert "hunter2" not in out
    assert unconfigured[-1] == {"verbose": False, "quiet": True}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_runs_until_it_is_told_to_stop_and_a_second_signal_has_it_hurry(
    config, monkeypatch, unconfigured, manager, number
):
    told = []

    async def run(configuration, stop, hangup, hurry, read_again, seat, to_manager):
        told.append([keyspace.name for keyspace in configuration.keyspaces])
        assert "NOTIFY_SOCKET" not in os.environ
        to_manager.ready()
        for sent, event, later in (
            (signal.SIGHUP, hangup, stop),
            (number, stop, hurry),
            (signal.SIGINT, hurry, None),
        ):
            os.kill(os.getpid(), sent)
            await event.wait()
            assert later is None or not later.is_set()

    monkeypatch.setattr("streamfrom.proxy.app.application.run", run)
    assert main(["serve", "--config", config]) == 0
    assert told == [["shop"]]
    assert manager() == ["READY=1", *["STOPPING=1"] * 2]
    assert unconfigured == [
        {"verbose": False, "quiet": False},
        {"level": logging.INFO, "worker": None, "as_json": None},
    ]


@pytest.mark.parametrize(
    ("argv", "settings", "told"),
    [
        ([], "", (logging.INFO, None)),
        ([], "level = 'warning'\nformat = 'json'", (logging.WARNING, True)),
        ([], "level = 'debug'\nformat = 'text'", (logging.DEBUG, False)),
        (["-v"], "level = 'error'", (logging.DEBUG, None)),
    ],
)
def test_the_log_is_as_configured(argv, settings, told, config, monkeypatch, unconfigured):
    async def run(*_):
        pass

    with open(config, "a") as file:
        file.write(f"[log]\n{settings}\n")
    monkeypatch.setattr("streamfrom.proxy.app.application.run", run)
    assert main(["serve", *argv, "--config", config]) == 0
    assert (unconfigured[-1]["level"], unconfigured[-1]["as_json"]) == told


@cases(command=str, options=ast.literal_eval)
def test_every_option_may_stand_before_the_command_and_after_it(
    config, monkeypatch, unconfigured, command, options
):
    """The command stands at each place where no option waits for its value."""
    calls = []

    async def work(configuration, *_, **options):
        calls.append((configuration.keyspaces[0].name, options))
        return 0

    def run_demo(*arguments):
        calls.append(arguments)
        return 0

    monkeypatch.setattr("streamfrom.proxy.app.application.run", work)
    monkeypatch.setattr("streamfrom.proxy.commands.check.check", work)
    monkeypatch.setattr("streamfrom.proxy.commands.demo.run_demo", run_demo)
    words = [
        [option] if value is None else [option, value.replace("CONFIG", config)]
        for option, value in options.items()
    ]
    for place in range(len(words) + 1):
        argv = list(chain(*words[:place], [command], *words[place:]))
        assert main(argv) == 0, argv
    assert len(calls) == len(words) + 1
    assert all(call == calls[0] for call in calls)
    verbose = bool({"-v", "--verbose"} & set(options))
    first = {"verbose": verbose, "quiet": command == "check"}
    assert [one for one in unconfigured if "quiet" in one] == [first] * len(calls)


@cases(argv=str.split, address=str, every_s=float)
def test_figures_are_shown_of_the_proxy_that_is_named(
    argv, address, every_s, monkeypatch, unconfigured
):
    asked = []

    async def shown(named, every_s, out=None):
        asked.append((f"{named.user}@{named.server}", every_s))

    monkeypatch.setattr("streamfrom.proxy.commands.top.watch", shown)
    monkeypatch.setattr("streamfrom.proxy.commands.top.top", shown)
    assert main(argv) == 0
    assert asked == [(address, every_s)]
    assert unconfigured == [{"verbose": False, "quiet": True}]


@cases(words=str, expected=str, values=ast.literal_eval)
def test_a_number_that_cannot_be_is_explained(words, expected, values, config, capsys):
    for value in values:
        with pytest.raises(SystemExit) as ended:
            main(f"{words.replace('CONFIG', config)}{value}".split())
        assert ended.value.code == EXIT_USAGE
        assert f"expected {expected}" in capsys.readouterr().err


def test_queues_of_nobody_are_a_failure_and_of_no_address_a_wrong_command_line(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert main(["queues", f"mysql://root:hunter2@127.0.0.1:{port}"]) == EXIT_FAULT
    assert capsys.readouterr().err.startswith(f"streamfrom: mysql://root@127.0.0.1:{port}/: ")
    assert main(["queues", "hunter2@proxy"]) == EXIT_USAGE
    err = capsys.readouterr().err
    assert err.startswith("streamfrom: the proxy's address: expected mysql://")
    assert "hunter2" not in err


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-"])
def test_a_command_works_without_standard_streams(closed, config):
    command = [sys.executable, "-m", "streamfrom.proxy", "check", "--config", config]
    ended = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=END_S,
    )
    assert (ended.returncode, ended.stderr) == (EXIT_FAULT, "")
    assert ("summary" in ended.stdout) == (">&-" not in closed.split())


def test_what_a_terminal_of_another_character_set_cannot_show_is_escaped(config):
    with open(config, "r+") as file:
        text = file.read().replace("keyspaces.shop", 'keyspaces."日本"')
        file.seek(0)
        file.write(text)
    shown = []
    for options in ([], ["--json"]):
        ended = subprocess.run(
            [sys.executable, "-m", "streamfrom.proxy", "check", *options, "--config", config],
            check=False,
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
            timeout=END_S,
        )
        assert (ended.returncode, ended.stderr) == (EXIT_FAULT, b"")
        shown.append(ended.stdout.decode("latin-1"))
    assert r"\u65e5\u672c" in shown[0]
    assert "日本" in str(json.loads(shown[1]))


@pytest.mark.parametrize("line", ["check --config CONFIG", "--print-completion bash"])
def test_a_command_ends_quietly_when_nobody_reads_on(line, config):
    read, write = os.pipe()
    os.close(read)
    words = [word.replace("CONFIG", config) for word in line.split()]
    with open(write, "w") as unread:
        ended = subprocess.run(
            [sys.executable, "-m", "streamfrom.proxy", *words],
            check=False,
            stdout=unread,
            stderr=subprocess.PIPE,
            text=True,
            timeout=END_S,
        )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete_commands_and_options(shell, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", shell])
    assert not ended.value.code
    script = capsys.readouterr().out
    assert all(word in script for word in ("serve", "queues", "top", "config", "workers"))
    assert "worker-seat" not in script, "what is not for people"


def test_the_demo_gets_what_the_command_line_says_and_its_interruption_is_an_exit_code(
    monkeypatch, tmp_path
):
    run_demo = Mock(side_effect=[0, 0, KeyboardInterrupt])
    monkeypatch.setattr("streamfrom.proxy.commands.demo.run_demo", run_demo)
    assert main(["demo"]) == 0
    assert main(["demo", "--shards", "4", "--port", "5", "--data", str(tmp_path)]) == 0
    assert run_demo.call_args_list == [
        call(2, 15306, None),
        call(4, 5, tmp_path),
    ]
    assert main(["demo"]) == 128 + signal.SIGINT


def test_workers_are_started_as_many_as_told_and_their_parent_tells_the_service_manager(
    config, monkeypatch, manager
):
    told = []

    class Workers:
        def __init__(self, configuration, command, count, environ):
            assert environ is os.environ
            assert "NOTIFY_SOCKET" not in environ
            told.append((configuration.keyspaces[0].name, command[-2], count))
            self._hangup = asyncio.Event()

        async def run(self, stop, ready):
            ready()
            os.kill(os.getpid(), signal.SIGHUP)
            await self._hangup.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait()
            return 0

        def hangup(self):
            self._hangup.set()

    monkeypatch.setattr(cli, "Workers", Workers)
    monkeypatch.setattr(cli, "_cores", lambda: 5)
    assert main(["serve", "--config", config, "--workers", "2"]) == 0
    assert manager() == ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"]
    assert main(["serve", "--config", config, "--workers", "auto"]) == 0
    assert told == [("shop", config, 2), ("shop", config, 5)]


def test_a_worker_has_its_seat_and_waits_for_nobody_only_when_its_parent_says_so(
    config, monkeypatch, unconfigured
):
    seat = WorkerSeat(2, 3, 4711, None, 30)
    told = []

    async def run(configuration, stop, hangup, hurry, read_again, got, manager):
        told.append((configuration.server.port, read_again().server.port, got))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait()
        assert not hurry.is_set()

    monkeypatch.setattr("streamfrom.proxy.app.application.run", run)
    assert main(["serve", "--config", config, "--worker-seat", str(seat)]) == 0
    assert told == [(4711, 4711, seat)]
    assert unconfigured[-1] == {"level": 30, "worker": 2, "as_json": None}
