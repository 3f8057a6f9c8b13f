"""What the proxy costs plain SQL: point SELECTs beside MySQL Router, and a whole table."""

import random
import re
import subprocess
import time
from pathlib import Path

from bench import messages
from bench.client_programs import address, client, output
from bench.lab import Endpoint, Keyspace, router_program
from bench.plan import Plan
from bench.processes import LabError
from bench.report import Figure, Goal, Series, Target


DATABASE = "selects"
TABLE = "plain"
CLIENTS = 16
POINT_ROWS = 100_000
POINT_TEXTS = 2_000  # of which each client runs all, again and again
POINT_QUERIES = (60_000, 30_000)
FULL_ROWS = (1_000_000, 200_000)
SEED = 20_260_801
SECONDS_TAKEN = re.compile(r"Average number of seconds to run all queries: ([\d.]+) seconds")


def point_select(plan: Plan) -> list[Figure]:
    """SELECT by primary key from 16 clients in C: the proxy, MySQL Router, and direct."""
    lab = plan.lab
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
    ):
        make_table(plan, POINT_ROWS)
        queries = point_queries(lab.folder / "point_select.sql")

        def rate(name: str, target: Endpoint) -> float:
            before_s = target.usage().cpu_s
            value = slap(plan, target, queries)
            used_s = target.usage().cpu_s - before_s
            plan.say(f"  {name}: {value:,.0f}/s, its processor time {used_s:.2f} s")
            return value

        def direct() -> float:
            return rate("direct", lab.direct)

        ours, straight = plan.interleaved(lambda: rate("streamfrom", proxy), direct)
        figures = [
            Figure(
                "point SELECT, 16 clients",
                "/s",
                Series.of(ours),
                "direct",
                Series.of(straight),
            )
        ]
        if router_program() is None:
            plan.say("  MySQL Router is not installed: no comparison with it")
            return figures
        with lab.router() as router:
            ours, theirs = plan.interleaved(
                lambda: rate("streamfrom", proxy), lambda: rate("MySQL Router", router)
            )
    figures.append(
        Figure(
            "point SELECT, 16 clients",
            "/s",
            Series.of(ours),
            "MySQL Router",
            Series.of(theirs),
            Target(Goal.AT_LEAST, 1.2),
        )
    )
    return figures


def full_select(plan: Plan) -> list[Figure]:
    """SELECT a whole table with the command-line client, rows to /dev/null."""
    lab = plan.lab
    rows = plan.size(*FULL_ROWS)
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
    ):
        make_table(plan, rows)

        def rate(name: str, target: Endpoint) -> float:
            before_s = target.usage().cpu_s
            value = rows / _select_all(plan, target)
            used_s = target.usage().cpu_s - before_s
            plan.say(f"  {name}: {value:,.0f} rows/s, its processor time {used_s:.2f} s")
            return value

        rate("warm-up", lab.direct)
        ours, theirs = plan.interleaved(
            lambda: rate("streamfrom", proxy), lambda: rate("direct", lab.direct)
        )
    return [
        Figure(
            f"SELECT * of {rows:,} rows",
            "rows/s",
            Series.of(ours),
            "direct",
            Series.of(theirs),
            Target(Goal.AT_LEAST, 0.9),
        )
    ]


def make_table(plan: Plan, rows: int) -> None:
    """Make the table: rows of about 100 bytes."""
    plan.lab.execute(f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, c CHAR(90))", DATABASE)
    plan.lab.execute(f"ALTER TABLE {TABLE} CONVERT TO CHARACTER SET latin1", DATABASE)
    messages.fill(
        plan.lab.server, plan.lab, DATABASE, TABLE, "id, c", "n, RPAD(n, 90, 'x')", rows
    )


def point_queries(path: Path) -> Path:
    dice = random.Random(SEED)
    lines = [
        f"SELECT c FROM {TABLE} WHERE id = {dice.randint(1, POINT_ROWS)};"
        for _ in range(POINT_TEXTS)
    ]
    path.write_text("\n".join(lines))
    return path


def slap(plan: Plan, target: Endpoint, queries: Path) -> float:
    """Return the queries a second of 16 clients, all their connecting included."""
    program = client("mariadb-slap", "mysqlslap")
    count = plan.size(*POINT_QUERIES)
    printed = output(
        [
            *program,
            *address(program, target),
            f"--create-schema={DATABASE}",
            "--no-drop",
            f"--query={queries}",
            "--delimiter=;",
            f"--concurrency={CLIENTS}",
            f"--number-of-queries={count}",
        ]
    )
    found = SECONDS_TAKEN.search(printed)
    if not found:
        raise LabError(f"{program[0]} gave no figure: {printed}")
    return count / float(found[1])


def _select_all(plan: Plan, target: Endpoint) -> float:
    program = client("mariadb", "mysql")
    start = time.perf_counter()
    output(
        [
            *program,
            *address(program, target),
            "--quick",
            f"--execute=SELECT * FROM {TABLE}",
            DATABASE,
        ],
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start
