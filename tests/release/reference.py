"""The tables of the reference that the code has: `./dev reference` writes them into their pages, and a test compares.

A table stands between `<!-- reference: NAME -->` and `<!-- end -->`; whatever is between is replaced.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from streamfrom.engine.messaging.order import group_watch
from streamfrom.engine.messaging.table import message_ids
from streamfrom.engine.messaging.upkeep import partitions, revival
from streamfrom.proxy import grpc_port
from streamfrom.proxy.admin import history, queue_api, queue_messages
from streamfrom.proxy.admin.metrics import MetricsPage
from streamfrom.proxy.config import file
from streamfrom.proxy.execution import retry_rules, user_variables
from streamfrom.proxy.sql import prepared_statements, text_statements
from streamfrom.proxy.sql.queues import stream_keys, stream_statements
from streamfrom.proxy.sql.scatter import taken_rows, two_stage
from streamfrom.proxy.status import status_rows
from streamfrom.proxy.status.queue_figures import FIGURES
from streamfrom.proxy.status.status_rows import MemberStatus
from streamfrom.proxy.vtgate import message_service


DOCS: Final = Path(__file__).parents[2] / "docs"
_BLOCK: Final = re.compile(r"(<!-- reference: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_FAMILY: Final = re.compile(r"# HELP (\S+) (.*)")

_LIMITS: Final = (
    ("`STREAM … WHERE key IN (…)`", "values", stream_keys.KEYS_MAX),
    ("`STREAM … WAIT`", "seconds", int(stream_statements.WAIT_MAX_S)),
    ("`INSERT … SELECT` whose rows are read first", "rows", taken_rows.ROWS_MAX),
    ("the same, and `merge_memory`", "bytes", taken_rows.BYTES_MAX),
    ("parts that are answered first, all together", "rows", two_stage.ROWS_MAX),
    ("the same, and `merge_memory`", "bytes", two_stage.BYTES_MAX),
    ("prepared statements of a session, by the protocol", "statements", prepared_statements.STATEMENTS_MAX),
    ("the same, by `PREPARE`", "statements", text_statements.STATEMENTS_MAX),
    ("a user variable that follows its session to another shard", "bytes", user_variables.VALUE_BYTES_MAX),
    ("`max_allowed_packet`", "bytes", file.PACKET_BYTES_MAX),
    ("tries of an ack that deadlocks", "tries", retry_rules.DEADLOCKS_MAX),
    ("members of a fleet, workers included", "processes", message_ids.MEMBERS_MAX),
    ("messages that are known to wait for their group, for each shard", "messages", group_watch.WATCHED_MAX),
    ("partitions of a queue", "partitions", partitions.PARTITIONS_MAX),
    ("messages that `REQUEUE` moves in a transaction", "messages", revival.REVIVED_AT_ONCE),
    ("a text in a status table; the rest is cut", "characters", status_rows.TEXT_MAX),
    ("queues with charts on the status page", "queues", history.QUEUES_MAX),
    ("a value that it shows whole", "bytes", queue_messages.SHOWN_MAX),
    ("messages that it acts on by selection", "messages", queue_api.SELECTED_MAX),
    ("gRPC connections", "connections", grpc_port.CONNECTIONS_MAX),
    ("the same, of one address", "connections", grpc_port.PER_ADDRESS_MAX),
    ("a request by gRPC", "bytes", message_service.REQUEST_BYTES_MAX),
)  # fmt: skip


def limits() -> str:
    """Return the limits that no setting changes."""
    rows = (f"| {what} | {_amount(value, unit)} |\n" for what, unit, value in _LIMITS)
    return "| limit of | at most |\n|---|---|\n" + "".join(rows)


def _amount(value: int, unit: str) -> str:
    if unit == "bytes":
        for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % size == 0:
                return f"{value // size} {name}"
    if unit == "seconds" and value % 86_400 == 0:
        return f"{value // 86_400} days"
    return f"{value:,} {unit}"


def figures() -> str:
    """Return the columns of `streamfrom.queues`, with the metrics that report the same."""
    lines = [
        "| column | meaning | metric |",
        "|---|---|---|",
        "| `keyspace`, `queue` | Which table | |",
    ]
    names: list[str] = []
    for figure in FIGURES:
        names.append(f"`{figure.name}`")
        if figure.help:  # half of two columns is described with the other
            metric = f"`{figure.metric}`" if figure.metric else ""
            lines.append(f"| {', '.join(names)} | {figure.help.rstrip('.')} | {metric} |")
            names.clear()
    lines += [
        "| `error` | Why the table cannot be used; everything else is `NULL` then | |",
        "| `unanswered` | Which members' figures are missing, and why; `NULL` if all have answered | |",
    ]
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """Return the metrics that are not of queues, with what the proxy itself says of them."""
    member = MemberStatus("", "", 0, 0, 0, 0, is_stopping=False, certificate_expires_s=0)
    text = MetricsPage([], member, 0).text().decode()
    of_queues = {f"streamfrom_{figure.metric}" for figure in FIGURES}
    rows = (
        f"| `{name}` | {meaning.rstrip('.')} |\n"
        for name, meaning in _FAMILY.findall(text)
        if name not in of_queues
    )
    return "| metric | meaning |\n|---|---|\n" + "".join(rows)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "figures": figures,
    "limits": limits,
    "metrics": metrics,
}


def made(page: str) -> str:
    """Return the text of a page with the tables of the code in place of those that it has."""
    return _BLOCK.sub(lambda found: found[1] + TABLES[found[2]]() + found[4], page)


def main() -> None:
    """Write the tables into all pages."""
    for path in sorted(DOCS.rglob("*.md")):
        old = path.read_text()
        if (new := made(old)) != old:
            path.write_text(new)


if __name__ == "__main__":
    main()
