"""The accounts that the compose file makes when a shard's data is made."""

import os

from tests.fixtures.database_servers import DatabaseServer, execute, root
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import HERE
from tests.fixtures.streams import refused, run


# What the image of MariaDB has its scripts call, with SQL on standard output.
ENTRYPOINT = r"""
docker_process_sql() { cat; }
docker_sql_escape_string_literal() { printf %s "$1" | sed "s/\\\\/&&/g; s/'/''/g"; }
. examples/accounts.sh
"""


def test_the_script_of_the_compose_file_makes_the_accounts(mariadb: DatabaseServer) -> None:
    passwords = {f"{name}_PASSWORD": f"it's\\{name}" for name in ("APP", "OPS", "REPORTS")}
    found = finished(
        ["bash", "-c", ENTRYPOINT],
        cwd=HERE,
        env={**passwords, "PATH": os.environ["PATH"]},
        check=True,
    )
    execute(mariadb, "CREATE USER streamfrom@'%' IDENTIFIED BY 'x'")
    execute(mariadb, "CREATE DATABASE commerce")
    try:
        for line in found.stdout.strip().splitlines():
            if not line.startswith("--"):
                execute(mariadb, line.rstrip(";"))
        execute(mariadb, "CREATE TABLE t (id INT)", database="commerce")
        reports = root(mariadb, user="reports", password="it's\\REPORTS", database="commerce")
        run(reports, "SELECT * FROM t")
        assert refused(reports, "DELETE FROM t")[0] == 1142
        reports.close()
        app = root(mariadb, user="app", password="it's\\APP", database="commerce")
        run(app, "DELETE FROM t")
        assert refused(app, "SELECT * FROM mysql.user")[0] == 1142
        app.close()
    finally:
        execute(mariadb, "DROP DATABASE commerce")
        for name in ("streamfrom", "app", "ops", "reports"):
            execute(mariadb, f"DROP USER IF EXISTS {name}@'%'")
