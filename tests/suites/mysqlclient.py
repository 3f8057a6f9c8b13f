"""mysqlclient's own tests, of its C module and of the DB-API; it is built against the machine's library."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.python_tests import run_pytest
from tests.suites.suite import HOST, Outcomes, Run, Suite


VERSION: Final = "2.3.1"
DATABASE: Final = "mysqldb_test"
PACKAGES: Final = ("pytest==9.2.0", f"mysqlclient=={VERSION}")
RUN_S: Final = 300.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "mysqlclient", PACKAGES)
    return sdist(cache, "mysqlclient", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "mysqlclient", PACKAGES)
    options = run.log.with_suffix(".cnf")
    options.write_text(
        f"[MySQLdb-tests]\nhost = {HOST}\nport = {run.port}\nuser = root\n"
        f"database = {DATABASE}\ndefault-character-set = utf8mb4\n"
    )
    return run_pytest(
        replace(run, suite_folder=run.suite_folder / "tests"),
        python,
        # Not the options of the repository around it.
        f"--config-file={os.devnull}",
        "--rootdir=.",
        ".",
        environ={"TESTDB": str(options)},
        limit_s=RUN_S,
    )


MYSQLCLIENT: Final = Suite(
    name="mysqlclient",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
