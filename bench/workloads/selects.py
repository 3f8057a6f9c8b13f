"""SELECTs of whole tables by the command-line client: the proxy's cost, and a merge of two shards in bounded memory."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from bench import messages
from bench.fleet import LabError
from bench.lab import MYSQL9, Endpoint, sharded
from bench.messages import AuditError
from bench.plan import Plan
from bench.processes import HOST, output
from bench.report import Figure, figure, ratio_at_least, value_at_most


DATABASE: Final = "selects"
TABLE: Final = "plain"
ROWS: Final = (1_000_000, 200_000)
MERGED_ROWS: Final = (10_000_000, 500_000)
MEGABYTES_MAX: Final = 200


def full_select(plan: Plan) -> list[Figure]:
    """SELECT a whole table, rows of about 100 bytes to /dev/null."""
    lab = plan.lab
    rows = plan.size(*ROWS)
    with lab.keyspace(DATABASE) as proxy:
        create = f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, c CHAR(90)) CHARSET latin1"
        lab.execute(create, DATABASE)
        messages.fill(lab, DATABASE, TABLE, "id, c", "n, RPAD(n, 90, 'x')", rows)

        def rate(name: str, target: Endpoint) -> float:
            before_s, start = target.usage().cpu_s, time.perf_counter()
            output(_program(target, f"SELECT * FROM {TABLE}"), stdout=subprocess.DEVNULL)
            value = rows / (time.perf_counter() - start)
            used_s = target.usage().cpu_s - before_s
            plan.say(f"  {name}: {value:,.0f} rows/s, its processor time {used_s:.2f} s")
            return value

        rate("warm-up", lab.direct)
        ours, theirs = plan.interleaved(
            lambda: rate("streamfrom", proxy), lambda: rate("direct", lab.direct)
        )
    name = f"SELECT * of {rows:,} rows"
    return [figure(name, "rows/s", ours, "direct", theirs, ratio_at_least(0.9))]


def big_merge(plan: Plan) -> list[Figure]:
    """SELECT ten million rows of two shards with ORDER BY: check that every row is in order, and measure the proxy's memory."""
    lab = plan.lab
    rows = plan.size(*MERGED_ROWS)
    with lab.keyspace(DATABASE, shards=2, vschema=sharded(TABLE)) as proxy:
        for number in range(2):
            server = lab.server_number(number)
            columns = "(id BIGINT PRIMARY KEY, a INT, s VARCHAR(20))"
            lab.execute(f"CREATE TABLE {TABLE} {columns}", DATABASE, server)
            # Alternate rows, the most work for a merge. A merge does not look up the vindex.
            values = f"2 * n - {1 - number}, n % 1000, CONCAT('row ', n)"
            messages.fill(lab, DATABASE, TABLE, "id, a, s", values, rows // 2, server)
        before, start = proxy.usage(), time.perf_counter()
        _read_in_order(proxy, rows)
        seconds, after = time.perf_counter() - start, proxy.usage()
    plan.say(f"  {seconds:.0f} s, {before.rss_bytes / 1e6:.0f} MB before")
    name, most = f"ORDER BY over two shards, {rows:,} rows", value_at_most(MEGABYTES_MAX)
    return [figure(f"{name}, proxy memory", "MB", [after.rss_bytes_max / 1e6], target=most)]


def _read_in_order(proxy: Endpoint, rows: int) -> None:
    """Read all rows. Raises AuditError if one is missing, duplicated or out of order."""
    program = _program(proxy, f"SELECT id, a, s FROM {TABLE} ORDER BY id")
    with subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        found = 0
        for found, line in enumerate(reader.stdout, 1):
            if int(line.partition(b"\t")[0]) != found:
                raise AuditError(f"rows out of order behind id {found - 1}")
    if reader.returncode:
        raise LabError(f"{program[0]} failed")
    if found != rows:
        raise AuditError(f"{found:,} of {rows:,} rows came")


def _program(target: Endpoint, query: str) -> list[str]:
    """Return the command line with which the installed client of MariaDB or MySQL runs *query*, without TLS.

    Raises:
        LabError: neither is installed.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(MYSQL9 / "bin")])
    for name, plain in (("mariadb", "--skip-ssl"), ("mysql", "--ssl-mode=DISABLED")):
        if program := shutil.which(name, path=path):
            inside = Path(program).is_relative_to(MYSQL9)  # its wrapper already passes it
            defaults = () if inside else ("--no-defaults",)
            place = (f"--host={HOST}", f"--port={target.port}", "--user=root", "--protocol=tcp")
            options = ("--quick", "--batch", "--skip-column-names", f"--execute={query}")
            return [program, *defaults, *place, plain, *options, DATABASE]
    raise LabError("neither mariadb nor mysql is installed")
