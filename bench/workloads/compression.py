"""What compression between client and proxy costs: a whole table, and point SELECTs."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench import messages
from bench.audit import AuditError
from bench.client_programs import address, client_of_mysql, output
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.processes import LabError
from bench.report import Figure, Series
from bench.workloads.selects import SECONDS_TAKEN


DATABASE = "compressed"
TABLE = "plain"
CLIENTS = 16
FULL_ROWS = (500_000, 100_000)
POINT_QUERIES = (40_000, 10_000)
POINT_TEXTS = 1_000
CHUNK_BYTES = 1 << 20
NONE: Final = "uncompressed"
ALGORITHMS: Final = ("zlib", "zstd")


def compression(plan: Plan) -> list[Figure]:
    """zlib and zstd against no compression, through the proxy: rates, and processor time.

    Raises:
        LabError: MySQL's clients are not installed.
    """
    lab = plan.lab
    rows = plan.size(*FULL_ROWS)
    with lab.database(DATABASE), lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy:
        create = f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, c CHAR(90)) CHARSET latin1"
        lab.execute(create, DATABASE)
        messages.fill(lab.server, lab, DATABASE, TABLE, "id, c", "n, RPAD(n, 90, MD5(n))", rows)
        queries = lab.folder / "compression.sql"
        queries.write_text(
            "\n".join(f"SELECT c FROM {TABLE} WHERE id = {n};" for n in range(1, POINT_TEXTS))
        )
        return [
            figure
            for algorithm in ALGORITHMS
            for figure in (
                *_whole_table(plan, proxy, algorithm, rows),
                *_points(plan, proxy, algorithm, queries),
            )
        ]


def _whole_table(plan: Plan, proxy: Endpoint, algorithm: str, rows: int) -> Sequence[Figure]:
    def run(with_algorithm: str) -> tuple[float, float]:
        before_s = proxy.usage().cpu_s
        elapsed_s = _read(proxy, with_algorithm, rows)
        cost_us = (proxy.usage().cpu_s - before_s) * 1e6 / rows
        plan.say(
            f"  {with_algorithm}: {rows / elapsed_s:,.0f} rows/s, {cost_us:.2f} µs for one"
        )
        return rows / elapsed_s, cost_us

    return _figures(plan, f"SELECT * of {rows:,} rows, {algorithm}", "rows/s", algorithm, run)


def _points(plan: Plan, proxy: Endpoint, algorithm: str, queries: Path) -> Sequence[Figure]:
    count = plan.size(*POINT_QUERIES)

    def run(with_algorithm: str) -> tuple[float, float]:
        asked, before_s = plan.lab.status("Questions"), proxy.usage().cpu_s
        rate = _slap(proxy, with_algorithm, queries, count)
        cost_us = (proxy.usage().cpu_s - before_s) * 1e6 / count
        if plan.lab.status("Questions") - asked < count:
            raise AuditError(f"the server was asked less than the {count:,} SELECTs")
        plan.say(f"  {with_algorithm}: {rate:,.0f}/s, {cost_us:.1f} µs for one")
        return rate, cost_us

    return _figures(plan, f"point SELECT, {CLIENTS} clients, {algorithm}", "/s", algorithm, run)


def _figures(
    plan: Plan, name: str, unit: str, algorithm: str, run: Callable[[str], tuple[float, float]]
) -> Sequence[Figure]:
    ours, theirs = plan.interleaved(lambda: run(algorithm), lambda: run(NONE))
    return (
        Figure(
            name,
            unit,
            Series.of(rate for rate, _ in ours),
            NONE,
            Series.of(rate for rate, _ in theirs),
        ),
        Figure(
            f"{name}, processor time of the proxy for one",
            "µs",
            Series.of(cost_us for _, cost_us in ours),
            NONE,
            Series.of(cost_us for _, cost_us in theirs),
        ),
    )


def _read(target: Endpoint, algorithm: str, rows: int) -> float:
    """Return the seconds that the whole table takes. Raises AuditError unless all of it comes."""
    program = client_of_mysql("mysql")
    start = time.perf_counter()
    with subprocess.Popen(
        [
            *(*program, *_address(program, target, algorithm)),
            *("--quick", "--batch", "--skip-column-names"),
            *(f"--execute=SELECT * FROM {TABLE}", DATABASE),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as reader:
        assert reader.stdout is not None
        found = 0
        while chunk := reader.stdout.read(CHUNK_BYTES):
            found += chunk.count(b"\n")
    if reader.returncode:
        raise LabError(f"{program[0]} failed")
    if found != rows:
        raise AuditError(f"{found:,} of {rows:,} rows came")
    return time.perf_counter() - start


def _slap(target: Endpoint, algorithm: str, queries: Path, count: int) -> float:
    program = client_of_mysql("mysqlslap")
    printed = output(
        [
            *(*program, *_address(program, target, algorithm)),
            *(f"--create-schema={DATABASE}", "--no-drop"),
            *(f"--query={queries}", "--delimiter=;"),
            *(f"--concurrency={CLIENTS}", f"--number-of-queries={count}"),
        ]
    )
    found = SECONDS_TAKEN.search(printed)
    if not found:
        raise LabError(f"{program[0]} gave no figure: {printed}")
    return count / float(found[1])


def _address(program: list[str], target: Endpoint, algorithm: str) -> list[str]:
    return [*address(program, target), f"--compression-algorithms={algorithm}"]
