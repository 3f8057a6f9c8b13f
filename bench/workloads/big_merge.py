"""A scattered SELECT with ORDER BY of ten million rows: every row in order, in bounded memory."""

import subprocess
import time

from bench import messages
from bench.audit import AuditError
from bench.client_programs import address, client
from bench.lab import Endpoint
from bench.plan import Plan
from bench.processes import LabError
from bench.report import Figure, figure, value_at_most


DATABASE = "big_merge"
TABLE = "big"
ROWS = (10_000_000, 500_000)
CHUNK_BYTES = 1 << 20
MEGABYTES_MAX = 200
SELECT = f"SELECT id, a, s FROM {TABLE} ORDER BY id"
VSCHEMA = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {TABLE: {"column_vindexes": [{"column": "id", "name": "hash"}]}},
}


def big_merge(plan: Plan) -> list[Figure]:
    """Rows a second through the proxy, against both servers one after the other; its memory."""
    lab = plan.lab
    both = (lab.server_number(0), lab.server_number(1))
    rows = plan.size(*ROWS)
    with lab.keyspace(DATABASE, shards=2, vschema=VSCHEMA) as proxy:
        for number, server in enumerate(both):
            lab.execute(
                f"CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY, a INT, s VARCHAR(20))",
                DATABASE,
                server,
            )
            # In turns, the most work for a merge. It does not ask the vindex where a row is.
            values = f"2 * n - {1 - number}, n % 1000, CONCAT('row ', n)"
            messages.fill(server, lab, DATABASE, TABLE, "id, a, s", values, rows // 2)
        before = proxy.usage()
        ours_s = _read([proxy], 1, rows)
        after = proxy.usage()
        pids = lab.server_pids()
        direct = [Endpoint(server.port, pid) for server, pid in zip(both, pids, strict=True)]
        theirs_s = _read(direct, 2, rows)
    cost_us = (after.cpu_s - before.cpu_s) * 1e6 / rows
    used_mb = after.rss_bytes_max / 1e6
    plan.say(
        f"  {ours_s:.0f} s, {theirs_s:.0f} s direct, {before.rss_bytes / 1e6:.0f} MB before"
    )
    name = f"ORDER BY over two shards, {rows:,} rows"
    return [
        figure(
            name,
            "rows/s",
            [rows / ours_s],
            "direct, one shard after the other",
            [rows / theirs_s],
        ),
        figure(f"{name}, processor time of the proxy for one", "µs", [cost_us]),
        figure(
            f"{name}, proxy memory",
            "MB",
            [used_mb],
            target=value_at_most(MEGABYTES_MAX),
            before_mb=before.rss_bytes / 1e6,
        ),
    ]


def _read(targets: list[Endpoint], step: int, rows: int) -> float:
    """Read all rows of *targets* one after the other and return the seconds that takes.

    step: from one id to the next.

    Raises:
        AuditError: a row is missing, comes twice, or at the wrong place.
    """
    start = time.perf_counter()
    found = 0
    for number, target in enumerate(targets, start=1):
        program = client("mariadb", "mysql")
        with subprocess.Popen(
            [
                *(*program, *address(program, target)),
                *("--quick", "--batch", "--skip-column-names"),
                *(f"--execute={SELECT}", DATABASE),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        ) as reader:
            assert reader.stdout is not None
            expected, rest = number, b""
            while chunk := reader.stdout.read(CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                ids = [int(line.partition(b"\t")[0]) for line in lines]
                following = expected + step * len(ids)
                if ids != list(range(expected, following, step)):
                    raise AuditError(f"rows out of order behind id {expected - step}")
                expected = following
                found += len(ids)
        if reader.returncode:
            raise LabError(f"{program[0]} failed")
    if found != rows:
        raise AuditError(f"{found:,} of {rows:,} rows came")
    return time.perf_counter() - start
