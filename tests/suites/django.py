"""Django's tests of its database backend and of what stands on it, by PyMySQL."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.suite import Outcome, Outcomes, Run, Suite, SuiteError


VERSION: Final = "5.2.19"
PACKAGES: Final = (
    "PyMySQL[rsa]==1.2.4",
    "asgiref>=3.8.1",
    "sqlparse>=0.3.1",
    "tzdata",
    "tblib",
)
SETTINGS: Final = Path(__file__).with_name("django_settings.py")
RUN_S: Final = 1200.0
LABELS: Final = (
    "basic",
    "backends",
    "transactions",
    "queries",
    "aggregation",
    "expressions",
    "lookup",
    "bulk_create",
    "select_for_update",
    "introspection",
)


def _fetch(cache: Path) -> Path:
    python_with(cache, "django", PACKAGES)
    return sdist(cache, "Django", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "django", PACKAGES)
    report = run.log.with_suffix(".json")
    report.unlink(missing_ok=True)
    settings = run.log.parent / "streamfrom_settings.py"
    shutil.copy(SETTINGS, settings)
    environ = {
        "PYTHONPATH": f"{run.suite_folder}:{settings.parent}",
        "SUITE_PORT": str(run.port),
        "SUITE_REPORT": str(report),
    }
    with run.log.open("wb") as log:
        subprocess.run(
            [
                str(python),
                "tests/runtests.py",
                f"--settings={settings.stem}",
                "--parallel=1",
                "--noinput",
                "--keepdb",
                *LABELS,
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
        raise SuiteError(f"Django ran no test; see {run.log}")
    return {name: Outcome(end) for name, end in json.loads(report.read_text()).items()}


DJANGO: Final = Suite(
    name="django",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=("django", "django_other", "test_django", "test_django_other"),
    fetch=_fetch,
    run=_run,
)
