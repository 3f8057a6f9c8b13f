"""`streamfrom grants`: the GRANT statements that an account needs for its job, at each shard."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from streamfrom.engine.clock import SystemClock
from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable, load
from streamfrom.engine.messaging.table.table_settings import is_message_table
from streamfrom.proxy.accounts.job_grants import Grantee, Purpose, grants, operator_grants
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.config.file import Config, KeyspaceConfig, TransactionMode
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.printable import printable
from streamfrom.proxy.twophase.decisions import DECIDES, TABLE
from streamfrom.sqlparse_ext.errors import StreamfromError


_UNUSABLE: Final = "-- not usable: "
_TWO_PHASES: Final = "-- only for transactions over several shards; with this right an account can decide those of other users:"


class GrantsRefused(StreamfromError):
    """The statements cannot be printed; the message has the reason."""


class Wanted(NamedTuple):
    """The requested grants."""

    purpose: Purpose
    name: str
    # A keyspace and a queue of it; None for every queue of every keyspace.
    queue: tuple[str, str] | None


def wanted(config: Config, job: str, name: str, queue: str | None) -> Wanted:
    """Return the grants that the command line requests. Raises GrantsRefused."""
    if not name:
        raise GrantsRefused("expected the name of an account, got an empty one")
    _check_name("account", name)
    if queue is None:
        return Wanted(Purpose(job), name, None)
    _check_name("queue", queue)
    # A keyspace's name may have a dot in it.
    places = [
        (keyspace.name, queue.removeprefix(f"{keyspace.name}."))
        for keyspace in config.keyspaces
        if queue.startswith(f"{keyspace.name}.") and len(queue) > len(keyspace.name) + 1
    ]
    if not places:
        known = ", ".join(keyspace.name for keyspace in config.keyspaces)
        raise GrantsRefused(f"expected keyspace.queue of a keyspace of {known}, got {queue}")
    return Wanted(Purpose(job), name, max(places))


async def print_grants(config: Config, asked: Wanted) -> int:
    """Print the statements, each shard's after a comment that names it, and return the exit code.

    Nothing is printed unless every shard answers. The exit code is 1 if a message table cannot be used, which a comment reports. Raises
    GrantsRefused if a shard does not answer, the queue does not exist, or a name has a control character.
    """
    lines: list[str] = []
    is_twopc = config.server.transaction_mode is TransactionMode.TWOPC
    for keyspace in config.keyspaces:
        if asked.queue is None or asked.queue[0] == keyspace.name:
            for shard in keyspace.shards:
                runtime = ShardRuntime(keyspace.name, shard, pool_timeout_s=10)
                try:
                    lines += await _of_shard(keyspace, runtime, asked, is_twopc=is_twopc)
                except (StoreError, BackendError, BackendUnavailable) as error:
                    raise GrantsRefused(f"{runtime}: {error}") from error
                finally:
                    await runtime.stop()
    for line in lines:
        sys.stdout.write(f"{line}\n")
    return 1 if any(line.startswith(_UNUSABLE) for line in lines) else 0


async def _of_shard(
    keyspace: KeyspaceConfig, runtime: ShardRuntime, asked: Wanted, *, is_twopc: bool
) -> list[str]:
    # A user who logs in through the proxy comes from the same host as the shard's own account.
    ((who,),) = await runtime.control.rows("SELECT CURRENT_USER()")
    grantee = Grantee(asked.name, str(who).rpartition("@")[2])
    await runtime.probe()
    store = ShardStore({(keyspace.name, runtime.name): runtime}, SystemClock())
    names = None if asked.queue is None else (asked.queue[1],)
    found = await store.ask(keyspace.name, runtime.name, partial(discover, names=names))
    where = printable(f"-- {runtime} at {runtime.dsn.server}, for an account that exists:")
    password = f"CREATE USER {grantee} IDENTIFIED BY '<password>'"
    lines = [f"{where} {password}", *_statements(keyspace, runtime, found, grantee, asked)]
    # A reader can use a READ ONLY transaction, which needs no decision.
    if is_twopc and asked.purpose is not Purpose.READER:
        lines += [_TWO_PHASES, f"GRANT {DECIDES} ON {TABLE} TO {grantee};"]
    return lines


def _statements(
    keyspace: KeyspaceConfig,
    runtime: ShardRuntime,
    found: Sequence[RawTable],
    grantee: Grantee,
    asked: Wanted,
) -> Iterator[str]:
    tables = [raw for raw in found if raw.is_hidden or is_message_table(raw.comment)]
    if asked.queue is not None:
        tables = [raw for raw in tables if raw.name == asked.queue[1]]
        if not tables and asked.purpose is Purpose.OPERATOR:
            yield from operator_grants(asked.queue[1], None, runtime.database, grantee)
        elif not tables:
            raise GrantsRefused(f"{runtime} has no queue {asked.queue[1]}")
    for raw in sorted(tables, key=lambda each: each.name):
        _check_name("queue", raw.name)
        if raw.is_hidden:
            raise GrantsRefused(f"{runtime}.{raw.name}: a lock hides its definition; try again")
        table = load(keyspace.name, raw, len(keyspace.shards))
        if not isinstance(table, MessageTable):
            yield f"{_UNUSABLE}{printable(str(table))}"
            continue
        for column in raw.columns:
            _check_name("column", column.name)
        yield from grants(asked.purpose, table, raw.columns, runtime.database, grantee)


def _check_name(what: str, name: str) -> None:
    """Raise GrantsRefused for a name with a character that a terminal acts on, or that is not text."""
    if printable(name) != name:
        raise GrantsRefused(f"expected no control character in the {what} '{printable(name)}'")
