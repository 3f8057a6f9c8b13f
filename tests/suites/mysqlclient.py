"""mysqlclient's own tests, of its C module and of the DB-API; it is built against the machine's library."""

import os
import subprocess
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.sqlalchemy import outcomes_of
from tests.suites.suite import HOST, Outcomes, Run, Suite, SuiteError


VERSION: Final = "2.3.1"
DATABASE: Final = "mysqldb_test"
PACKAGES: Final = ("pytest==9.2.0", f"mysqlclient=={VERSION}")
RUN_S: Final = 300.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "mysqlclient", PACKAGES)
    return sdist(cache, "mysqlclient", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "mysqlclient", PACKAGES)
    report = run.log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    options = run.log.with_suffix(".cnf")
    options.write_text(
        f"[MySQLdb-tests]\nhost = {HOST}\nport = {run.port}\nuser = root\n"
        f"database = {DATABASE}\ndefault-character-set = utf8mb4\n"
    )
    with run.log.open("wb") as log:
        subprocess.run(
            # Not the options of the repository around it.
            [
                str(python),
                "-m",
                "pytest",
                "--quiet",
                f"--config-file={os.devnull}",
                "--rootdir=.",
                f"--junitxml={report}",
                ".",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=run.suite_folder / "tests",
            env=os.environ | {"TESTDB": str(options)},
            timeout=RUN_S,
            check=False,
        )
    if not report.exists():
        raise SuiteError(f"pytest wrote no report; see {run.log}")
    return outcomes_of(report.read_text())


MYSQLCLIENT: Final = Suite(
    name="mysqlclient",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
