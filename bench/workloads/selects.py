"""What the proxy costs a SELECT of a whole table."""

import subprocess
import time

from bench import messages
from bench.client_programs import address, client, output
from bench.lab import Endpoint
from bench.plan import Plan
from bench.report import Figure, figure, ratio_at_least


DATABASE = "selects"
TABLE = "plain"
ROWS = (1_000_000, 200_000)


def full_select(plan: Plan) -> list[Figure]:
    """SELECT a whole table with the command-line client, rows of about 100 bytes to /dev/null."""
    lab = plan.lab
    rows = plan.size(*ROWS)
    with lab.keyspace(DATABASE) as proxy:
        create = f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, c CHAR(90)) CHARSET latin1"
        lab.execute(create, DATABASE)
        values = "n, RPAD(n, 90, 'x')"
        messages.fill(lab.server, lab, DATABASE, TABLE, "id, c", values, rows)

        def rate(name: str, target: Endpoint) -> float:
            before_s = target.usage().cpu_s
            value = rows / _select_all(target)
            used_s = target.usage().cpu_s - before_s
            plan.say(f"  {name}: {value:,.0f} rows/s, its processor time {used_s:.2f} s")
            return value

        rate("warm-up", lab.direct)
        ours, theirs = plan.interleaved(
            lambda: rate("streamfrom", proxy), lambda: rate("direct", lab.direct)
        )
    name = f"SELECT * of {rows:,} rows"
    return [figure(name, "rows/s", ours, "direct", theirs, ratio_at_least(0.9))]


def _select_all(target: Endpoint) -> float:
    program = client("mariadb", "mysql")
    query = ["--quick", f"--execute=SELECT * FROM {TABLE}", DATABASE]
    start = time.perf_counter()
    output([*program, *address(program, target), *query], stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
