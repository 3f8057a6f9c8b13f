"""The message table of all workloads: create it, fill it, and audit it.

The opponents use the same table without the comment, so that the proxy leaves it alone, and with
the order of the index that suits them best.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bench.fleet import LabError
from bench.lab import Endpoint, Lab
from streamfrom.proxy.embedded.servers import EmbeddedServer, Family


BODY: Final = '{{"number": {}, "kind": "benchmark", "text": "{}"}}'
TEXT_BYTES: Final = 50  # makes a body of about 100 bytes
# The maximum number of rows per statement: half a million keep a transaction's undo log moderate.
FILL_ROWS: Final = 500_000
NS_PER_S: Final = 1_000_000_000
# The tenants of message `n`: one has half of all messages; the others take turns.
TENANTS: Final = 1000
ONE_HAS_HALF: Final = f"IF(n % 2, 0, 1 + n DIV 2 % {TENANTS - 1})"


class AuditError(LabError):
    """A run lost or invented a message, so its figures are worthless."""


def audit(sent: Iterable[int], received: Iterable[int], acked: Iterable[int]) -> int:
    """Compare the ids *sent* with those *received* (in any order, possibly twice) and *acked*.

    Returns: the number of redeliveries, which at-least-once allows.

    Raises:
        AuditError: a message was lost, not acknowledged, or never sent.
    """
    sent_set, acked_set, deliveries = set(sent), set(acked), list(received)
    received_set = set(deliveries)
    faults = [
        f"{len(ids)} {name} ({', '.join(map(str, sorted(ids)[:5]))}, …)"
        for name, ids in (
            ("lost", sent_set - received_set),
            ("not acknowledged", sent_set - acked_set),
            ("never sent", (received_set | acked_set) - sent_set),
        )
        if ids
    ]
    if faults:
        raise AuditError(f"of {len(sent_set)} messages: {'; '.join(faults)}")
    return len(deliveries) - len(received_set)


def create_table(name: str, *, comment: bool, settings: str = "") -> str:
    """Return CREATE TABLE; with the *comment* it is a message table, else the opponents'.

    vt_ack_wait is so long that only a lost message is redelivered within a run, and nothing is
    purged before the audit.
    """
    text = (
        f"vitess_message,vt_ack_wait=120,vt_purge_after=86400,vt_batch_size=100,"
        f"vt_cache_size=10000,vt_poller_interval=30{settings}"
    )
    order = "DESC" if comment else "ASC"
    return (
        f"CREATE TABLE {name} (id BIGINT NOT NULL, priority TINYINT NOT NULL DEFAULT 50,"
        " epoch BIGINT NOT NULL DEFAULT 0, time_next BIGINT DEFAULT 0,"
        " time_acked BIGINT DEFAULT NULL, message JSON, PRIMARY KEY (id),"
        f" INDEX poller_idx (time_acked, priority, time_next {order}))"
        + (f" COMMENT '{text}'" if comment else "")
    )


@contextlib.contextmanager
def fresh_table(
    lab: Lab, target: Endpoint, database: str, *, settings: str = ""
) -> Iterator[str]:
    """Create an empty table, and drop it afterwards; through the proxy it is a message table.

    target: where to send CREATE TABLE: to the proxy, which then knows its table at once, or
        directly to the server.
    settings: more keys for its comment, each preceded by a comma.
    """
    name = lab.fresh_name()
    comment = target != lab.direct
    text = create_table(name, comment=comment, settings=settings)
    target.execute(text, database)
    yield name
    target.execute(f"DROP TABLE {name}", database)


@contextlib.contextmanager
def backlog(
    lab: Lab, target: Endpoint, database: str, count: int, *, settings: str = ""
) -> Iterator[str]:
    """Create a table like `fresh_table` with *count* due messages, ids from 1, written directly on the server."""
    with fresh_table(lab, target, database, settings=settings) as table:
        fill(lab, database, table, "id, message", f"n, REPLACE('{body('#')}', '#', n)", count)
        yield table


def body(number: object) -> str:
    """Return the JSON of one message."""
    return BODY.format(number, "x" * TEXT_BYTES)


def insert(table: str, ids: Sequence[int], due_ns: Sequence[int] = ()) -> str:
    """Return the INSERT of messages that are due at once, or at *due_ns*."""
    if due_ns:
        rows = (f"({id_},'{body(id_)}',{due})" for id_, due in zip(ids, due_ns, strict=True))
    else:
        rows = (f"({id_},'{body(id_)}')" for id_ in ids)
    timed = ", time_next" if due_ns else ""
    return f"INSERT INTO {table} (id, message{timed}) VALUES {','.join(rows)}"


def ack(table: str, ids: Sequence[int], now_ns: int) -> str:
    """Return the acknowledgement, the same for both sides."""
    return (
        f"UPDATE {table} SET time_acked = {now_ns}, time_next = NULL"
        f" WHERE id IN ({','.join(map(str, ids))}) AND time_acked IS NULL"
    )


def fill(
    lab: Lab,
    database: str,
    table: str,
    columns: str,
    values: str,
    count: int,
    server: EmbeddedServer | None = None,
) -> None:
    """Insert *count* rows that the server generates, on the first one by default.

    values: SQL expressions in which `n` counts from 1.
    """
    for first in range(1, count + 1, FILL_ROWS):
        last = min(first + FILL_ROWS - 1, count)
        if lab.server.family is Family.MARIADB:
            select = f"SELECT {values} FROM (SELECT seq AS n FROM seq_{first}_to_{last}) AS s"
        else:
            lab.execute(f"SET cte_max_recursion_depth = {FILL_ROWS + 1}", database, server)
            select = (
                f"WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s"
                f" WHERE n < {last}) SELECT {values} FROM s"
            )
        lab.execute(f"INSERT INTO {table} ({columns}) {select}", database, server)
    # Otherwise an optimizer that remembers an empty table scans all of it for a hundred ids.
    lab.execute(f"ANALYZE TABLE {table}", database, server)


@contextlib.contextmanager
def tenant_queue(
    lab: Lab, proxy: Endpoint, database: str, settings: str, tenant: str, count: int
) -> Iterator[str]:
    """Create a queue with *count* due messages of 100 bytes, ids from 1, and drop it afterwards.

    settings: the settings of its `WITH`; a key column is `tenant`, 2 for later messages.
    tenant: the tenant of message `n`, as an SQL expression.
    """
    name = lab.fresh_name()
    proxy.execute(
        f"CREATE QUEUE {name} (id BIGINT NOT NULL, tenant INT DEFAULT 2, message VARCHAR(200))"
        f" WITH ({settings}ack_wait = 600, batch_size = 100)",
        database,
    )
    columns, values = "id, tenant, message", f"n, {tenant}, REPEAT('x', 100)"
    fill(lab, database, name, columns, values, count)
    yield name
    proxy.execute(f"DROP QUEUE {name}", database)


def audited(
    lab: Lab,
    database: str,
    table: str,
    sent: Sequence[int],
    received: Sequence[int],
    above: int = 0,
) -> int:
    """Audit the messages of a run whose ids are above *above*; see `audit`.

    Parked messages, which no run delivers, have ids below 0.
    """
    acked = f"SELECT id FROM {table} WHERE time_acked IS NOT NULL AND id > {above}"
    acked_ids = (int(row[0]) for row in lab.execute(acked, database))
    return audit(sent, (id_ for id_ in received if id_ > above), acked_ids)
