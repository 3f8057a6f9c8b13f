"""The process as a whole, before it serves and when it ends: open files, garbage collection, its service manager."""

from __future__ import annotations

import gc
import resource
import socket
import sys
import time
from typing import TYPE_CHECKING, Final

import structlog


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import Config


log = structlog.get_logger()

# Listeners, logs, control connections and Python's own open files.
_FILES_RESERVED = 256

# A statement makes some hundred short-lived objects and hardly a cycle among them. With
# CPython's default of 700 the collector would run every few statements and, once there are
# 10,000 sessions, walk all of them: pauses of 10 ms and more in the 99th percentile.
_COLLECT_AFTER_OBJECTS = 50_000

# A thread that reads a large text releases the interpreter only this long after the loop's thread requested
# it, and a point SELECT requests it at each of its six system calls. With CPython's default of 5 ms a round
# trip during an IN list of 16 MB took 27 ms in the 99th percentile and 60 ms at most; with this value 2 ms.
_SWITCH_S = 0.0005


def prepare(config: Config) -> None:
    """Raise the limit on open files as far as allowed, and keep collector and threads from delaying the loop."""
    raise_file_limit(config)
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 20, 50)


def leave() -> None:
    """Let the interpreter exit without a last garbage collection.

    After a hundred thousand statements of different shapes the collection took seconds on a busy machine,
    longer than a service manager waits before it kills the process.
    """
    gc.freeze()


def raise_file_limit(config: Config) -> None:
    """Raise the limit on open files to what *config* needs, as far as the system allows."""
    backends = sum(
        shard.pool_size * (1 + len(shard.replicas))
        for k in config.keyspaces
        for shard in k.shards
    )
    wanted = config.server.max_connections + backends + _FILES_RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < wanted:
        log.warning(
            "fewer open files than max_connections needs; raise the limit (ulimit -n)",
            limit=limit,
            wanted=wanted,
        )


class ServiceManager:
    """The service manager that started this process and waits for its notifications: systemd with `Type=notify`.

    address: the socket that it listens on, as in NOTIFY_SOCKET: a path, or a name after an "@". With ""
        there is no service manager, and nothing is sent.
    """

    def __init__(self, address: str) -> None:
        # A Unix socket has no other kind of address, and sd_notify accepts no other.
        self._address = address if address.startswith(("/", "@")) else ""

    def ready(self) -> None:
        """Report that clients are served, or that the files were read again."""
        self._tell("READY=1")

    def reloading(self) -> None:
        """Report that the files are being read again, until `ready` is called."""
        # With this time systemd distinguishes this reload from one that ended before its request.
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the process is ending."""
        self._tell("STOPPING=1")

    def _tell(self, news: str) -> None:
        if not self._address:
            return
        # An abstract name begins with a null byte.
        address = (
            self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address
        )
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
                # Do not block the loop: a manager that does not read misses the notification.
                sending.settimeout(0)
                sending.sendto(news.encode(), address)
        except OSError as error:
            log.warning("the service manager cannot be notified", news=news, reason=str(error))


NOBODY: Final = ServiceManager("")
