"""The tests of SQLAlchemy's MySQL dialect, and the suite that it has for every dialect, by PyMySQL."""

import subprocess
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.suite import HOST, Outcome, Outcomes, Run, Suite, SuiteError


VERSION: Final = "2.1.9"
DATABASES: Final = ("satest", "test_schema")
PACKAGES: Final = ("pytest==9.2.0", "PyMySQL[rsa]==1.2.4", "greenlet", "typing-extensions")
RUN_S: Final = 1200.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "sqlalchemy", PACKAGES)
    return sdist(cache, "SQLAlchemy", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "sqlalchemy", PACKAGES)
    report = run.log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    dburi = f"mysql+pymysql://root@{HOST}:{run.port}/{DATABASES[0]}?charset=utf8mb4"
    with run.log.open("wb") as log:
        subprocess.run(
            [
                str(python),
                "-m",
                "pytest",
                "--quiet",
                "--maxfail=10000",
                "--override-ini=junit_family=xunit1",
                f"--junitxml={report}",
                f"--dburi={dburi}",
                "test/dialect/mysql",
                "test/dialect/test_suite.py",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=run.suite_folder,
            timeout=RUN_S,
            check=False,
        )
    if not report.exists():
        raise SuiteError(f"pytest wrote no report; see {run.log}")
    return outcomes_of(report.read_text())


def outcomes_of(report: str) -> Outcomes:
    """Read a JUnit report: a test that also failed while it was taken down has failed."""
    outcomes: dict[str, Outcome] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        marks = {child.tag for child in case}
        if marks & {"failure", "error"}:
            outcomes[name] = Outcome.FAILED
        else:
            skipped = Outcome.SKIPPED if "skipped" in marks else Outcome.PASSED
            outcomes.setdefault(name, skipped)
    return outcomes


SQLALCHEMY: Final = Suite(
    name="sqlalchemy",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=DATABASES,
    fetch=_fetch,
    run=_run,
)
