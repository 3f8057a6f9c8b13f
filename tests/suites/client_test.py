"""mariadb-client-test: the C API of MariaDB, some 300 tests, each in a process of its own.

The program stops at its first failure and leaves its tables behind, so it is started once for
each test, in a database made anew. Debian's package has it; its version is that of the server
beside it.
"""

import subprocess
from pathlib import Path
from typing import Final

import pymysql

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import call, debian_program
from tests.suites.suite import HOST, Outcome, Outcomes, Run, Suite, run_into


PROGRAM: Final = "mariadb-client-test"
DATABASE: Final = "client_test_db"
TEST_S: Final = 60.0


def _fetch(cache: Path) -> Path:
    return debian_program(cache, "mariadb-test", PROGRAM)


def _run(run: Run) -> Outcomes:
    command = [str(run.suite_folder), "--no-defaults", f"--host={HOST}", f"--port={run.port}"]
    command += ["--user=root", "--silent"]
    outcomes = {}
    with run.log.open("w") as log:
        for name in names(call([str(run.suite_folder), "--no-defaults", "--show-tests"])):
            log.write(f"--- {name}\n")
            log.flush()
            _make_anew(run.port)
            outcomes[name] = _one([*command, name], run)
            log.seek(0, 2)
    return outcomes


def names(shown: str) -> list[str]:
    """Return the names in what `--show-tests` prints: one a line, after a title."""
    return [line.strip() for line in shown.splitlines() if line.strip() and " " not in line]


def _make_anew(port: int) -> None:
    with (
        pymysql.connect(host=HOST, port=port, user="root") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")


def _one(command: list[str], run: Run) -> Outcome:
    try:
        code = run_into(run.log, command, TEST_S, run.log.parent)
    except subprocess.TimeoutExpired:
        return Outcome.FAILED
    return Outcome.PASSED if code == 0 else Outcome.FAILED


MARIADB_CLIENT_TEST: Final = Suite(
    name="mariadb-client-test",
    version="of Debian's mariadb-test",
    families=(Family.MARIADB,),
    databases=("test", DATABASE),
    fetch=_fetch,
    run=_run,
)
