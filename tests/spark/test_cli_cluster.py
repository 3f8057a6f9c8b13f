"""Jobs by spark-submit on a real standalone cluster of two workers, with the package in an archive."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import fresh_database
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema
from tests.fixtures.streams import message_table, run, value


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow, pytest.mark.cluster]

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_cluster.py"
LOW = 1_700_000_000 * 10**9  # 2023-11-14
ROWS = 2000


def test_analytics_and_archive_run_on_two_workers(server_pool, start_proxy, tmp_path):
    servers = [server_pool.server(Family.MARIADB, index) for index in range(2)]
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    for database in fresh_database(*servers):
        proxy = start_proxy(keyspace_toml("commerce", servers, database, vschema))
        connection = proxy.connect(database="commerce", autocommit=True)
        run(connection, message_table(purge_after=10**9))
        values = ", ".join(f"({n}, {LOW + n}, '{{}}')" for n in range(ROWS))
        run(connection, f"INSERT INTO my_message (id, time_acked, message) VALUES {values}")
        run(connection, "INSERT INTO my_message (id) VALUES (-1)")
        url = f"mysql://root@127.0.0.1:{proxy.port}/commerce"
        window = ("--from", "2023-11-14", "--to", "2023-11-16")
        for job, counts in (
            ("analytics", {"acked": ROWS, "waiting": 1}),
            ("archive", {"archived": ROWS, "purged": ROWS}),
        ):
            report = tmp_path / f"{job}.json"
            asked = ("--proxy", url, "--table", "my_message", "--out", str(tmp_path / job))
            ended = subprocess.run(
                [sys.executable, EXAMPLE, "run", job, *asked, *window, "--report", report],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ended.returncode == 0, ended.stderr[-5000:]
            told = json.loads(report.read_text())["counts"]
            assert {name: told[name] for name in counts} == counts
        assert value(connection, "SELECT COUNT(*) FROM my_message") == 1
