"""Point SELECTs and INSERTs by sysbench: few clients and many, as text and prepared.

The two other ways to the same server are measured in the same run: straight, and through MySQL
Router. sysbench is a client in C, so what it costs itself is the same small part everywhere.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Final

from bench.lab import Endpoint, Keyspace, router_program
from bench.plan import Plan
from bench.processes import HOST, LabError
from bench.report import Figure, Goal, Series, Target


DATABASE = "oltp"
ROWS = 100_000
CLIENTS: Final = (1, 16, 64)
SCRIPTS: Final = {"SELECT": "oltp_point_select", "INSERT": "oltp_insert"}
FORMS: Final = {"text": "disable", "prepared": "auto"}
SECONDS = (5, 2)
TWO_WORKERS_MIN = 1.2
TAKEN: Final = re.compile(r"transactions:\s+(?P<count>\d+)\s+\((?P<rate>[\d.]+) per sec")


def oltp(plan: Plan) -> list[Figure]:
    """Statements a second through the proxy, through MySQL Router, and direct; what each costs."""
    program = shutil.which("sysbench")
    if program is None:
        raise LabError("sysbench is not installed")
    lab = plan.lab
    with ExitStack() as stack:
        stack.enter_context(lab.database(DATABASE))
        keyspace = Keyspace(DATABASE, (lab.server,))
        ways = {"streamfrom": stack.enter_context(lab.proxy(keyspace)), "direct": lab.direct}
        if router_program() is None:
            plan.say("  MySQL Router is not installed: no comparison with it")
        else:
            ways["MySQL Router"] = stack.enter_context(lab.router())
        _sysbench(program, lab.direct, "oltp_point_select", "prepare")
        return [
            figure
            for (verb, script), (form, mode), clients in product(
                SCRIPTS.items(), FORMS.items(), CLIENTS
            )
            for figure in _compared(
                plan, program, ways, f"{verb}, {form}, {clients} clients", script, mode, clients
            )
        ]


def two_workers(plan: Plan) -> list[Figure]:
    """Statements a second of many clients through two worker processes, and through one."""
    program = shutil.which("sysbench")
    if program is None:
        raise LabError("sysbench is not installed")
    lab = plan.lab
    with ExitStack() as stack:
        stack.enter_context(lab.database(DATABASE))
        keyspace = Keyspace(DATABASE, (lab.server,))
        one = stack.enter_context(lab.proxy(keyspace))
        two = stack.enter_context(lab.proxy(keyspace, workers=2))
        _sysbench(program, lab.direct, "oltp_point_select", "prepare")
        rates: dict[tuple[str, Endpoint], list[float]] = {
            (script, proxy): [] for script in SCRIPTS.values() for proxy in (one, two)
        }
        options = ("--db-ps-mode=disable", f"--threads={max(CLIENTS)}")
        for _ in range(plan.pairs):
            for script, proxy in rates:
                seconds = f"--time={plan.size(*SECONDS)}"
                output = _sysbench(program, proxy, script, "run", *options, seconds)
                found = TAKEN.search(output)
                if not found:
                    raise LabError(f"sysbench gave no figure: {output}")
                rates[script, proxy].append(float(found["rate"]))
    return [
        Figure(
            f"{verb}, {max(CLIENTS)} clients, two workers",
            "/s",
            Series.of(rates[script, two]),
            "one worker",
            Series.of(rates[script, one]),
            Target(Goal.AT_LEAST, TWO_WORKERS_MIN) if verb == "SELECT" else None,
        )
        for verb, script in SCRIPTS.items()
    ]


def _compared(
    plan: Plan,
    program: str,
    ways: dict[str, Endpoint],
    name: str,
    script: str,
    mode: str,
    clients: int,
) -> Iterator[Figure]:
    rates: dict[str, list[float]] = {way: [] for way in ways}
    costs_us: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(plan.pairs):
        for way, target in ways.items():
            before_s = target.usage().cpu_s
            output = _sysbench(
                program,
                target,
                script,
                "run",
                f"--db-ps-mode={mode}",
                f"--threads={clients}",
                f"--time={plan.size(*SECONDS)}",
            )
            found = TAKEN.search(output)
            if not found:
                raise LabError(f"sysbench gave no figure: {output}")
            rates[way].append(float(found["rate"]))
            used_us = (target.usage().cpu_s - before_s) * 1e6
            costs_us[way].append(used_us / int(found["count"]))
    ours = Series.of(rates.pop("streamfrom"))
    plan.say(f"  {name}: {ours.median:,.0f}/s, {rates}")
    for way, theirs in rates.items():
        yield Figure(name, "/s", ours, way, Series.of(theirs))
    # Says more than a rate where other work keeps the processors busy.
    router = costs_us.get("MySQL Router")
    yield Figure(
        f"{name}, processor time",
        "µs",
        Series.of(costs_us["streamfrom"]),
        "" if router is None else "MySQL Router",
        None if router is None else Series.of(router),
    )


def _sysbench(program: str, target: Endpoint, script: str, command: str, *options: str) -> str:
    done = subprocess.run(
        [
            program,
            script,
            *("--db-driver=mysql", f"--mysql-host={HOST}", f"--mysql-port={target.port}"),
            *("--mysql-user=root", f"--mysql-db={DATABASE}", "--mysql-ssl=off"),
            *("--tables=1", f"--table-size={ROWS}", "--auto-inc=on"),
            *options,
            command,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise LabError(f"sysbench failed: {done.stdout}{done.stderr}")
    return done.stdout
