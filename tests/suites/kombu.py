"""kombu's own integration tests of a transport, on `streamfrom_worker.celery`.

Direct they run on kombu's transport in memory, which has every feature of its virtual transports: a test that passes there passes here.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.sqlalchemy import outcomes_of
from tests.suites.suite import HOST, Outcomes, Run, Suite, SuiteError


VERSION: Final = "5.7.0"
DATABASE: Final = "kombu_test"
PACKAGES: Final = ("pytest==9.2.0", f"kombu=={VERSION}", "asyncmy", "PyMySQL==1.2.4", "pytz")
CLIENTS: Final = Path(__file__).parents[2] / "clients/python"
RUN_S: Final = 600.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "kombu", PACKAGES)
    return sdist(cache, "kombu", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "kombu", PACKAGES)
    report = run.log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    shutil.copy(
        Path(__file__).with_name("kombu_tests.py"),
        run.suite_folder / "t/integration/test_streamfrom.py",
    )
    url = f"streamfrom://root@{HOST}:{run.port}/{DATABASE}"
    environ = {
        "KOMBU_URL": url if has_queues(python, run.port, DATABASE) else "memory://",
        "PYTHONPATH": str(CLIENTS),
    }
    with run.log.open("wb") as log:
        subprocess.run(
            [
                str(python),
                "-m",
                "pytest",
                "--quiet",
                f"--config-file={os.devnull}",
                "--rootdir=.",
                f"--junitxml={report}",
                "t/integration/test_streamfrom.py",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=run.suite_folder,
            env=os.environ | environ,
            timeout=RUN_S,
            check=False,
        )
    if not report.exists():
        raise SuiteError(f"pytest wrote no report; see {run.log}")
    return outcomes_of(report.read_text())


def has_queues(python: Path, port: int, database: str) -> bool:
    """Return whether the proxy answers at *port*, or a server alone."""
    ask = f"import pymysql; pymysql.connect(host='{HOST}', port={port}, user='root').cursor().execute('SHOW QUEUES FROM {database}')"
    return (
        subprocess.run([str(python), "-c", ask], capture_output=True, check=False).returncode
        == 0
    )


KOMBU: Final = Suite(
    name="kombu",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
