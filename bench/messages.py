"""The message table of all workloads, what is written to it, and what is checked in it.

The opponents' table is the same one without the comment, so the proxy leaves it alone, and with
the index in the order that is best for them.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from bench.audit import Audit, audit
from bench.lab import Endpoint, Lab
from streamfrom.proxy.embedded.servers import EmbeddedServer, Family


BODY: Final = '{{"number": {}, "kind": "benchmark", "text": "{}"}}'
TEXT_BYTES: Final = 50  # which makes a body of about 100 bytes
LOAD_ROWS: Final = 1000
# Rows a statement makes at most: half a million keep a transaction's undo log moderate.
FILL_ROWS: Final = 500_000
NS_PER_S: Final = 1_000_000_000
# Of the tenants of message `n`, one has half of all messages; the others take turns.
TENANTS: Final = 1000
ONE_HAS_HALF: Final = f"IF(n % 2, 0, 1 + n DIV 2 % {TENANTS - 1})"


def create_table(
    name: str,
    *,
    comment: bool,
    batch_size: int = 100,
    cache_size: int = 10_000,
    settings: str = "",
) -> str:
    """Return CREATE TABLE; with the *comment* it is a message table, else the opponents'.

    Nothing is sent twice within a run (vt_ack_wait) unless it really was lost, and nothing is
    purged before it was audited.
    """
    text = (
        f"vitess_message,vt_ack_wait=120,vt_purge_after=86400,vt_batch_size={batch_size},"
        f"vt_cache_size={cache_size},vt_poller_interval=30{settings}"
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
    lab: Lab,
    target: Endpoint,
    database: str,
    *,
    batch_size: int = 100,
    settings: str = "",
) -> Iterator[str]:
    """Make an empty table, and drop it in the end; the proxy's is a message table.

    target: where CREATE TABLE goes: through the proxy, which so knows its table at once, or
        straight to the server.
    settings: further keys of its comment, each with a comma before it.
    """
    name = lab.fresh_name()
    comment = target != lab.direct
    text = create_table(name, comment=comment, batch_size=batch_size, settings=settings)
    target.execute(text, database)
    yield name
    target.execute(f"DROP TABLE {name}", database)


def body(number: int, text_bytes: int = TEXT_BYTES) -> str:
    """Return one message's JSON."""
    return BODY.format(number, "x" * text_bytes)


def insert(table: str, ids: Sequence[int], text_bytes: int = TEXT_BYTES) -> str:
    """Return the INSERT of messages that are due at once."""
    rows = ",".join(f"({id_},'{body(id_, text_bytes)}')" for id_ in ids)
    return f"INSERT INTO {table} (id, message) VALUES {rows}"


def insert_timed(table: str, ids: Sequence[int], due_ns: Sequence[int]) -> str:
    """Return the INSERT of messages that are due at the given moments."""
    rows = ",".join(
        f"({id_},{due},'{body(id_)}')" for id_, due in zip(ids, due_ns, strict=True)
    )
    return f"INSERT INTO {table} (id, time_next, message) VALUES {rows}"


def ack(table: str, ids: Sequence[int], now_ns: int) -> str:
    """Return the acknowledgement, which is the same for both sides."""
    return (
        f"UPDATE {table} SET time_acked = {now_ns}, time_next = NULL"
        f" WHERE id IN ({','.join(map(str, ids))}) AND time_acked IS NULL"
    )


def load(lab: Lab, database: str, table: str, count: int) -> None:
    """Write *count* due messages, ids from 1, straight on the server."""
    for first in range(1, count + 1, LOAD_ROWS):
        ids = range(first, min(first + LOAD_ROWS, count + 1))
        lab.execute(insert(table, ids), database)
    # Or an optimizer that remembers an empty table scans it all for a hundred ids.
    lab.execute(f"ANALYZE TABLE {table}", database)


def fill(
    server: EmbeddedServer,
    lab: Lab,
    database: str,
    table: str,
    columns: str,
    values: str,
    count: int,
) -> None:
    """Write *count* rows made on the server itself.

    values: SQL expressions in which `n` counts from 1.
    """
    for first in range(1, count + 1, FILL_ROWS):
        last = min(first + FILL_ROWS - 1, count)
        if server.family is Family.MARIADB:
            source = f"(SELECT seq AS n FROM seq_{first}_to_{last}) AS s"
            lab.execute(
                f"INSERT INTO {table} ({columns}) SELECT {values} FROM {source}",
                database,
                server,
            )
        else:
            lab.execute(f"SET cte_max_recursion_depth = {FILL_ROWS + 1}", database, server)
            lab.execute(
                f"INSERT INTO {table} ({columns}) WITH RECURSIVE s (n) AS (SELECT {first}"
                f" UNION ALL SELECT n + 1 FROM s WHERE n < {last}) SELECT {values} FROM s",
                database,
                server,
            )
    lab.execute(f"ANALYZE TABLE {table}", database, server)


def tenant_queue(
    lab: Lab, proxy: Endpoint, database: str, settings: str, tenant: str, count: int
) -> str:
    """Make a queue with *count* due messages of 100 bytes, ids from 1; return its name.

    settings: those of its `WITH`; the column for a key is `tenant`.
    tenant: whose message `n` is, an SQL expression.
    """
    name = lab.fresh_name()
    proxy.execute(
        f"CREATE QUEUE {name} (id BIGINT NOT NULL, tenant INT, message VARCHAR(200)) WITH ({settings})",
        database,
    )
    columns, values = "id, tenant, message", f"n, {tenant}, REPEAT('x', 100)"
    fill(lab.server, lab, database, name, columns, values, count)
    return name


def audited(
    lab: Lab, database: str, table: str, sent: Sequence[int], received: Sequence[int]
) -> Audit:
    """Audit a run whose messages have ids above 0; raise AuditError if it fails.

    Parked messages, which no run is to deliver, have ids below 0.
    """
    rows = lab.execute(
        f"SELECT id FROM {table} WHERE time_acked IS NOT NULL AND id > 0", database
    )
    outcome = audit(sent, received, (int(row[0]) for row in rows))
    outcome.check()
    return outcome
