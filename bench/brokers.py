"""The brokers that task frameworks are compared on: RabbitMQ and Redis of Debian, unpacked into `.state`, never installed."""

import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.processes import HOST, ROOT, START_S, LabError, free_port, process, tail
from tests.suites.fetching import debian_tree


if TYPE_CHECKING:
    import subprocess

STATE: Final = ROOT / ".state/suites"
ERL: Final = """#!/bin/sh
export ROOTDIR={erlang} BINDIR={bin} EMU=beam PROGNAME=erl
exec {bin}/erlexec "$@"
"""


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """Run Redis, which keeps everything in memory; return its URL."""
    tree, port = debian_tree(STATE, "redis-server", needs_root=False), free_port()
    environ = {"LD_LIBRARY_PATH": str(tree / "usr/lib/x86_64-linux-gnu")}
    with _folder() as folder:
        options = ["--bind", HOST, "--port", str(port), "--save", "", "--dir", str(folder)]
        with _broker(
            [str(tree / "usr/bin/redis-server"), *options], environ, folder / "redis.log", port
        ):
            yield f"redis://{HOST}:{port}/0"


@contextlib.contextmanager
def rabbitmq() -> Iterator[str]:
    """Run RabbitMQ; return its URL."""
    tree = debian_tree(STATE, "rabbitmq-server", needs_root=False)
    erlang = tree / "usr/lib/erlang"
    (bin_,) = erlang.glob("erts-*/bin")
    (sbin,) = tree.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin")
    port, dist, epmd = free_port(), free_port(), free_port()
    with _folder() as folder:
        erl = folder / "erl"
        erl.write_text(ERL.format(erlang=erlang, bin=bin_))
        erl.chmod(0o755)
        (folder / "plugins").write_text("[].")
        environ = {
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": HOST,
            # Its script becomes the node, which then ends with us, instead of starting it.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(dist),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        }
        names = [str(bin_ / "epmd"), "-port", str(epmd), "-address", HOST]
        with (
            _broker(names, environ, folder / "epmd.log", epmd),
            _broker([str(sbin / "rabbitmq-server")], environ, folder / "rabbitmq.log", port),
        ):
            yield f"amqp://guest:guest@{HOST}:{port}//"


@contextlib.contextmanager
def _broker(
    program: list[str], environ: Mapping[str, str], log: Path, port: int
) -> Iterator[None]:
    with process(program, log, environ=environ) as running:
        _await(port, running, log)
        yield


def _await(port: int, running: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 2 * START_S
    while True:
        try:
            socket.create_connection((HOST, port), 1).close()
        except OSError as error:
            if running.poll() is not None or time.monotonic() > deadline:
                raise LabError(f"{log.stem} does not listen: {error}{tail(log)}") from error
            time.sleep(0.1)
        else:
            return


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="streamfrom-broker-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
