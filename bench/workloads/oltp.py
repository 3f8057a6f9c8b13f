"""Point SELECTs and INSERTs by sysbench: few clients and many, as text and prepared.

The same run measures two other ways to the same server: direct, and through MySQL
Router. sysbench is a client in C, so its own cost is the same small part everywhere.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import product
from typing import Final, NamedTuple

from bench.fleet import LabError
from bench.lab import Endpoint, Keyspace, router_program
from bench.plan import Plan
from bench.processes import HOST, output
from bench.report import Figure, Target, figure, ratio_at_least


DATABASE = "oltp"
ROWS = 100_000
SCRIPTS: Final = {"SELECT": "oltp_point_select", "INSERT": "oltp_insert"}
MODES: Final = {"text": "disable", "prepared": "auto"}
CLIENTS: Final = (1, 16, 64)
SECONDS = (5, 2)
TAKEN: Final = re.compile(r"transactions:\s+(?P<count>\d+)\s+\((?P<rate>[\d.]+) per sec")
ROUTER: Final = "MySQL Router"


class Load(NamedTuple):
    """The load that sysbench generates."""

    verb: str
    form: str
    clients: int


# Goals compared with MySQL Router.
GOALS: Final[Mapping[Load, Target]] = {
    Load("SELECT", "text", 16): ratio_at_least(1.2),
    Load("SELECT", "text", 1): ratio_at_least(0.9),
    Load("INSERT", "text", 1): ratio_at_least(0.9),
    Load("INSERT", "text", 64): ratio_at_least(1),
}


def oltp(plan: Plan) -> list[Figure]:
    """Measure statements per second through the proxy, through MySQL Router, and direct, and the cost of each."""
    lab = plan.lab
    with ExitStack() as stack:
        proxy = stack.enter_context(lab.keyspace(DATABASE))
        ways = {"streamfrom": proxy, "direct": lab.direct}
        if router_program() is None:
            plan.say("  MySQL Router is not installed: no comparison with it")
        else:
            ways[ROUTER] = stack.enter_context(lab.router())
        _sysbench(lab.direct, "oltp_point_select", "prepare")
        loads = map(Load._make, product(SCRIPTS, MODES, CLIENTS))
        return [found for load in loads for found in _compared(plan, ways, load)]


def two_workers(plan: Plan) -> list[Figure]:
    """Measure statements per second of many clients through two worker processes and through one."""
    lab = plan.lab
    keyspace = Keyspace(DATABASE, (lab.server,))
    with (
        lab.database(DATABASE),
        lab.proxy(keyspace) as one,
        lab.proxy(keyspace, workers=2) as two,
    ):
        _sysbench(lab.direct, "oltp_point_select", "prepare")
        figures = []
        for verb, target in (("SELECT", ratio_at_least(1.2)), ("INSERT", None)):
            load = Load(verb, "text", max(CLIENTS))
            rates, _ = _measured(plan, {"one worker": one, "two workers": two}, load)
            theirs, ours = rates.items()
            name = f"{verb}, {load.clients} clients, {ours[0]}"
            figures.append(figure(name, "/s", ours[1], *theirs, target))
    return figures


def _compared(plan: Plan, ways: Mapping[str, Endpoint], load: Load) -> Iterator[Figure]:
    rates, costs_us = _measured(plan, ways, load)
    name = f"{load.verb}, {load.form}, {load.clients} clients"
    ours = rates.pop("streamfrom")
    for way, theirs in rates.items():
        yield figure(name, "/s", ours, way, theirs, GOALS.get(load) if way == ROUTER else None)
    # More meaningful than a rate when other work keeps the processors busy.
    cost_us = costs_us["streamfrom"]
    against = (ROUTER, costs_us[ROUTER]) if ROUTER in ways else ()
    yield figure(f"{name}, processor time", "µs", cost_us, *against)


def _measured(
    plan: Plan, ways: Mapping[str, Endpoint], load: Load
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return, for each way and run, the statements per second and the processor time per statement in µs."""
    rates: dict[str, list[float]] = {way: [] for way in ways}
    costs_us: dict[str, list[float]] = {way: [] for way in ways}
    options = (
        f"--db-ps-mode={MODES[load.form]}",
        f"--threads={load.clients}",
        f"--time={plan.size(*SECONDS)}",
    )
    for _ in range(plan.pairs):
        for way, target in ways.items():
            before_s = target.usage().cpu_s
            printed = _sysbench(target, SCRIPTS[load.verb], "run", *options)
            found = TAKEN.search(printed)
            if not found:
                raise LabError(f"sysbench gave no figure: {printed}")
            rates[way].append(float(found["rate"]))
            used_us = (target.usage().cpu_s - before_s) * 1e6
            costs_us[way].append(used_us / int(found["count"]))
    plan.say(f"  {load.verb}, {load.form}, {load.clients} clients: {rates}")
    return rates, costs_us


def _sysbench(target: Endpoint, script: str, command: str, *options: str) -> str:
    program = shutil.which("sysbench")
    if program is None:
        raise LabError("sysbench is not installed")
    return output(
        [
            *(program, script),
            *("--db-driver=mysql", f"--mysql-host={HOST}", f"--mysql-port={target.port}"),
            *("--mysql-user=root", f"--mysql-db={DATABASE}", "--mysql-ssl=off"),
            *("--tables=1", f"--table-size={ROWS}", "--auto-inc=on"),
            *options,
            command,
        ]
    )
