"""The brokers that task frameworks are compared on: RabbitMQ and Redis from Debian, unpacked into `.state`, never installed."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.processes import HOST, ROOT, serving
from tests.fixtures.database_servers import free_port
from tests.suites.fetching import debian_tree


STATE: Final = ROOT / ".state/suites"
ERL: Final = """#!/bin/sh
export ROOTDIR={erlang} BINDIR={bin} EMU=beam PROGNAME=erl
exec {bin}/erlexec "$@"
"""


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="streamfrom-broker-", ignore_cleanup_errors=True)


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """Run Redis, which keeps everything in memory; yield its URL."""
    tree, port = debian_tree(STATE, "redis-server", needs_root=False), free_port()
    environ = {"LD_LIBRARY_PATH": str(tree / "usr/lib/x86_64-linux-gnu")}
    with _folder() as name:
        folder = Path(name)
        options = ["--bind", HOST, "--port", str(port), "--save", "", "--dir", str(folder)]
        program = [str(tree / "usr/bin/redis-server"), *options]
        with serving(program, folder / "redis.log", port, environ):
            yield f"redis://{HOST}:{port}/0"


@contextlib.contextmanager
def rabbitmq() -> Iterator[str]:
    """Run RabbitMQ; yield its URL."""
    tree = debian_tree(STATE, "rabbitmq-server", needs_root=False)
    erlang = tree / "usr/lib/erlang"
    (bin_,) = erlang.glob("erts-*/bin")
    (sbin,) = tree.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin")
    port, dist, epmd = free_port(), free_port(), free_port()
    with _folder() as name:
        folder = Path(name)
        erl = folder / "erl"
        erl.write_text(ERL.format(erlang=erlang, bin=bin_))
        erl.chmod(0o755)
        (folder / "plugins").write_text("[].")
        environ = {
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": HOST,
            # Its script then becomes the node instead of starting it, so the node ends with us.
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
            serving(names, folder / "epmd.log", epmd, environ),
            serving([str(sbin / "rabbitmq-server")], folder / "rabbitmq.log", port, environ),
        ):
            yield f"amqp://guest:guest@{HOST}:{port}//"
