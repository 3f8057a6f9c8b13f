"""The tests of SQLAlchemy's MySQL dialect, and the suite that it has for every dialect, by PyMySQL."""

from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.python_tests import run_pytest
from tests.suites.suite import HOST, Outcomes, Run, Suite


VERSION: Final = "2.1.9"
DATABASES: Final = ("satest", "test_schema")
PACKAGES: Final = ("pytest==9.2.0", "PyMySQL[rsa]==1.2.4", "greenlet", "typing-extensions")
RUN_S: Final = 1200.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "sqlalchemy", PACKAGES)
    return sdist(cache, "SQLAlchemy", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "sqlalchemy", PACKAGES)
    dburi = f"mysql+pymysql://root@{HOST}:{run.port}/{DATABASES[0]}?charset=utf8mb4"
    return run_pytest(
        run,
        python,
        "--maxfail=10000",
        "--override-ini=junit_family=xunit1",
        f"--dburi={dburi}",
        "test/dialect/mysql",
        "test/dialect/test_suite.py",
        limit_s=RUN_S,
    )


SQLALCHEMY: Final = Suite(
    name="sqlalchemy",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=DATABASES,
    fetch=_fetch,
    run=_run,
)
