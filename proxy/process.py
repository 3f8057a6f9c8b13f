"""What the process as a whole needs before it serves and when it ends: file descriptors, a calm garbage collector."""

from __future__ import annotations

import gc
import resource
import sys
from typing import TYPE_CHECKING

import structlog


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import Config


log = structlog.get_logger()

# Listeners, logs, control connections and what Python itself has open.
_FILES_RESERVED = 256

# A statement makes some hundred short-lived objects and hardly a cycle among them. With
# CPython's default of 700 the collector would run every few statements and, once there are
# 10,000 sessions, walk all of them: pauses of 10 ms and more in the 99th percentile.
_COLLECT_AFTER_OBJECTS = 50_000

# A thread that reads a large text gives the interpreter up when the loop's thread has asked for so
# long, and a point SELECT asks at each of its six system calls. With CPython's default of 5 ms a round
# trip during an IN list of 16 MB took 27 ms in the 99th percentile and 60 ms at most; with this one 2 ms.
_SWITCH_S = 0.0005


def prepare(config: Config) -> None:
    """Raise the limit on open files as far as allowed, and keep collector and threads off the loop."""
    raise_file_limit(config)
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 20, 50)


def leave() -> None:
    """Have the interpreter end without a last garbage collection.

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
