"""`streamfrom demo`: its own shards, the proxy in front of them, and statements to try.

It starts embedded servers, one per shard, writes the configuration and the vschema an operator
would write, creates the message table of the Vitess documentation, runs the proxy and prints a
session to paste. Ctrl-C ends everything cleanly, a second one at once. Without `--data` everything
lives in a temporary folder that is removed at the end.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final

import uvloop

from streamfrom.proxy import process
from streamfrom.proxy.app.application import Application
from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.config.file import Config, load
from streamfrom.proxy.embedded.servers import EmbeddedServer, EmbeddedServerError


PORT_DEFAULT: Final = 15306
ADMIN_PORTS_BEHIND: Final = 74  # 15380 by default
PORTS_TRIED: Final = 20
PORT_HIGH: Final = 65_000
PASSWORD_BYTES: Final = 18
KEYSPACE: Final = "commerce"

VSCHEMA: Final = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {"my_message": {"column_vindexes": [{"column": "id", "name": "hash"}]}},
}

ACCOUNT: Final = "streamfrom"
READER: Final = "reader"
# SQL that a shard runs before it accepts clients (--init-file), one statement a line. Its root may do anything
# and has no password, and any user of this machine can reach the port.
INIT: Final = f"""\
ALTER USER root@localhost IDENTIFIED BY '{{root}}';
DROP USER IF EXISTS root@'127.0.0.1', root@'::1', root@'{{hostname}}';
CREATE DATABASE IF NOT EXISTS {KEYSPACE} CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS {ACCOUNT}@'127.0.0.1';
ALTER USER {ACCOUNT}@'127.0.0.1' IDENTIFIED BY '{{password}}';
GRANT ALL PRIVILEGES ON {KEYSPACE}.* TO {ACCOUNT}@'127.0.0.1';
CREATE USER IF NOT EXISTS {READER}@'127.0.0.1';
ALTER USER {READER}@'127.0.0.1' IDENTIFIED BY '{READER}';
GRANT SELECT, SHOW VIEW ON {KEYSPACE}.* TO {READER}@'127.0.0.1';
"""

CONFIG: Final = f"""\
[server]
listen = "127.0.0.1:{{port}}"

[admin]
listen = "127.0.0.1:{{admin_port}}"

[[users]]
name = "root"
password = ""
account = "shared"

[[users]]
name = "{READER}"
password = "{READER}"

[keyspaces.{KEYSPACE}]
{{vschema}}"""
SHARD: Final = f"""
[[keyspaces.{KEYSPACE}.shards]]
name = "{{name}}"
primary = "mysql://{ACCOUNT}:{{password}}@127.0.0.1:{{port}}/{KEYSPACE}"
"""
# The table of https://vitess.io/docs/reference/features/messaging, except that a message not
# acknowledged comes back after 10 s, while the reader is still looking, and that ids are generated.
CREATE_TABLE: Final = f"""
create table if not exists {KEYSPACE}.my_message(
  # required columns
  id bigint NOT NULL COMMENT 'often an event id, can also be auto-increment or a sequence',
  priority tinyint NOT NULL DEFAULT '50' COMMENT 'lower number priorities process first',
  epoch bigint NOT NULL DEFAULT '0' COMMENT 'incremented each time the message is sent, and used for incremental backoff doubling',
  time_next bigint DEFAULT 0 COMMENT 'the earliest time the message will be sent in epoch nanoseconds. Must be null if time_acked is set',
  time_acked bigint DEFAULT NULL COMMENT 'the time the message was acked in epoch nanoseconds. Must be null if time_next is set',

  # as many more as the application likes
  tenant_id bigint COMMENT 'offers a nice way to segment your messages',
  message json,

  # required indexes
  primary key(id),
  index poller_idx(time_acked, priority, time_next)
) comment 'vitess_message,vt_min_backoff=10,vt_max_backoff=3600,vt_ack_wait=10,vt_purge_after=86400,vt_batch_size=10,vt_cache_size=10000,vt_poller_interval=30,vt_auto_id=on'
"""

SESSION: Final = """
  {bold}streamfrom is ready{plain}: {shards} on {server}, port {port}

  {dim}# A second terminal receives. It stays open: each row arrives once it is due.{plain}
  {bold}{client} --vertical --quick -h127.0.0.1 -P{port} -uroot {keyspace} -e 'STREAM * FROM my_message'{plain}

  {dim}# A third one sends. Two rows appear in the stream at once, one in 5 seconds.{plain}
  {bold}{client} -h127.0.0.1 -P{port} -uroot {keyspace}
  INSERT INTO my_message (message) VALUES ('{{"hello": "world"}}'), ('{{"hello": "shards"}}');
  INSERT INTO my_message (message, time_next) VALUES ('{{"at": "its time"}}', NOW() + INTERVAL 5 SECOND);{plain}

  {dim}# They are not acknowledged, so they come again: after 10 seconds, then 20, 40, ... This ends it:{plain}
  {bold}UPDATE my_message SET time_acked = NOW() WHERE time_acked IS NULL;{plain}

  {dim}# Acknowledged rows stay for a day. After USE with a shard you see the rows of that one.{plain}
  {bold}SELECT id, epoch, time_acked, message FROM my_message;
  USE `{keyspace}:{shard}`;
  SELECT id FROM my_message;{plain}

  {dim}# User reader may only read: its account on the shards has no other right.{plain}
  {bold}{client} -h127.0.0.1 -P{port} -ureader -preader {keyspace} -e 'DELETE FROM my_message'{plain}

  {dim}# How it fares: by SQL, as a page for the browser (user root, no password), and for Prometheus:{plain}
  {bold}SHOW QUEUE STATUS;{plain}   http://127.0.0.1:{admin_port}/   http://127.0.0.1:{admin_port}/metrics

  streamfrom.toml, the shards' data and their logs: {folder}
  Ctrl-C stops everything.
"""


class DemoError(Exception):
    """The demo cannot run as requested; the message has the fix."""


def run_demo(shards: int, port: int, folder: Path | None) -> int:
    """Run until Ctrl-C and return the exit code.

    port: the proxy's; if it is taken, the default one gives way to the next free one.
    folder: keeps the data; None is a temporary folder.
    """
    try:
        uvloop.run(_run(shards, port, folder))
    except (DemoError, EmbeddedServerError) as error:
        sys.stderr.write(f"streamfrom demo: {error}\n")
        return 1
    return 0


async def _run(shards: int, port: int, folder: Path | None) -> None:
    _check_shards(shards, folder)
    _quieten()
    port = free_port(port)
    # Next to the clients' port, so that demos on different ports do not collide there.
    first = port + (ADMIN_PORTS_BEHIND if port < PORT_HIGH else -ADMIN_PORTS_BEHIND)
    admin_port = next(filter(_is_free, range(first, first + PORTS_TRIED)), 0)
    with _data_folder(folder) as place:
        # Passwords of the accounts that may write: made for this run, and stored only in its folder.
        root, password = (secrets.token_urlsafe(PASSWORD_BYTES) for _ in range(2))
        init = place / "init.sql"
        # MariaDB also makes a root of this host, if it can resolve its name.
        hostname = socket.gethostname().replace("\\", "\\\\").replace("'", "''")
        _write_private(init, INIT.format(root=root, password=password, hostname=hostname))
        servers = [
            EmbeddedServer(place / f"shard-{index}", options=[f"--init-file={init}"])
            for index in range(shards)
        ]
        cancel_on_signal(servers, place if folder is None else None)
        with contextlib.suppress(asyncio.CancelledError):
            async with _running(servers, keep=folder is not None):
                init.unlink()
                config = _write_config(place, servers, password, port, admin_port)
                await _create_table(config)
                async with Application(config) as app:
                    process.prepare(
                        config
                    )  # or the collector holds the loop up, for 60 ms each time
                    _say(_session(servers, app.port, admin_port, place))
                    await asyncio.Event().wait()  # until a signal cancels it
    _say("stopped")


def _check_shards(shards: int, folder: Path | None) -> None:
    kept = len(list(folder.glob("shard-*"))) if folder is not None else 0
    if kept not in (0, shards):
        raise DemoError(f"{folder} holds {kept} shards: say --shards {kept}, or another folder")


def _quieten() -> None:
    """Leave the terminal to the session's statements: connections are logged only with --verbose."""
    root = logging.getLogger()
    if root.level > logging.DEBUG:
        root.setLevel(logging.WARNING)


def free_port(wanted: int) -> int:
    """Return *wanted*, or the next free port after the default. Raises DemoError."""
    if _is_free(wanted):
        return wanted
    if wanted == PORT_DEFAULT:
        for port in range(PORT_DEFAULT + 1, PORT_DEFAULT + PORTS_TRIED):
            if _is_free(port):
                _say(f"port {PORT_DEFAULT} is taken, using {port}")
                return port
    raise DemoError(f"port {wanted} is taken; choose another with --port")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@contextlib.contextmanager
def _data_folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="streamfrom-demo-") as name:
        yield Path(name)


def cancel_on_signal(servers: Sequence[EmbeddedServer], temporary: Path | None) -> None:
    """Let the first SIGINT or SIGTERM cancel this task, and the second end the process."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if not task.cancelling():
            task.cancel()
            with contextlib.suppress(BrokenPipeError):  # Ctrl-C ends `| tee` first
                _say("\nstopping; Ctrl-C again to force")
            return
        for server in servers:
            server.kill()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        os._exit(130)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)


@contextlib.asynccontextmanager
async def _running(servers: Sequence[EmbeddedServer], *, keep: bool) -> AsyncIterator[None]:
    """Start all *servers* together and end them together; gently if their data is to *keep*."""
    began = time.monotonic()
    _say(f"starting {len(servers)} x {servers[0].program} ...")
    try:
        try:
            async with asyncio.TaskGroup() as group:
                for server in servers:
                    group.create_task(server.start_in_thread())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        _say(f"  {servers[0].version} answers after {time.monotonic() - began:.1f} s")
        yield
    finally:
        end = EmbeddedServer.stop if keep else EmbeddedServer.kill
        await asyncio.gather(*(asyncio.to_thread(end, server) for server in servers))


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def _write_config(
    folder: Path,
    servers: Sequence[EmbeddedServer],
    password: str,
    port: int,
    admin_port: int,
) -> Config:
    """Write the files that an operator would write, and load them as the proxy does."""
    vschema = ""
    if len(servers) > 1:  # one server accepts tables that the vschema does not name
        (folder / f"{KEYSPACE}.vschema.json").write_text(json.dumps(VSCHEMA, indent=2) + "\n")
        vschema = f'vschema = "{KEYSPACE}.vschema.json"\n'
    text = CONFIG.format(port=port, admin_port=admin_port, vschema=vschema)
    for name, server in zip(shard_names(len(servers)), servers, strict=True):
        text += SHARD.format(name=name, password=password, port=server.port)
    path = folder / "streamfrom.toml"
    _write_private(path, text)
    return load(path, {})


def shard_names(count: int) -> list[str]:
    """Return *count* key ranges of equal size: 2 are -80 and 80-."""
    cuts = [f"{(index << 16) // count:04x}".removesuffix("00") for index in range(1, count)]
    return [f"{low}-{high}" for low, high in zip(["", *cuts], [*cuts, ""], strict=True)]


async def _create_table(config: Config) -> None:
    for shard in config.keyspaces[0].shards:
        control = Control(KEYSPACE, shard.name, shard.primary)
        try:
            await control.execute(CREATE_TABLE)
        finally:
            await control.close()


def _session(
    servers: Sequence[EmbeddedServer], port: int, admin_port: int, folder: Path
) -> str:
    is_terminal = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    bold, dim, plain = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if is_terminal else ("", "", "")
    return SESSION.format(
        bold=bold,
        dim=dim,
        plain=plain,
        shards="1 shard" if len(servers) == 1 else f"{len(servers)} shards",
        server=servers[0].version,
        port=port,
        admin_port=admin_port,
        client="mariadb" if shutil.which("mariadb") else "mysql",
        keyspace=KEYSPACE,
        shard=shard_names(len(servers))[0],
        folder=folder,
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
