"""Celery's own integration tests, with `streamfrom_worker.celery` as the broker and Redis for the results.

Direct they run on kombu's transport for Redis, which is a virtual transport, too: a test that passes there passes here.
"""

import os
from pathlib import Path
from typing import Final

from bench.brokers import redis
from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.kombu import CLIENTS
from tests.suites.python_tests import broker_url, run_pytest
from tests.suites.suite import HOST, Outcomes, Run, Suite


VERSION: Final = "5.7.0"
DATABASE: Final = "celery_test"
PACKAGES: Final = (
    "pytest==9.2.0",
    "pytest-celery",
    "pytest-rerunfailures",
    "pytest-subtests",
    "pytest-timeout",
    f"celery[redis,pytest]=={VERSION}",
    "pydantic",
    "asyncmy",
    "PyMySQL==1.2.4",
)
# Of tasks, their state and control. The others need no broker, or stop and start one in a container.
FILES: Final = ("test_tasks.py", "test_canvas.py", "test_inspect.py", "test_group_chains.py")
RUN_S: Final = 3000.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "celery", PACKAGES)
    return sdist(cache, "celery", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "celery", PACKAGES)
    # Read by every process of the tests: registers the transport.
    (run.suite_folder / "sitecustomize.py").write_text("import streamfrom_worker.celery\n")
    with redis() as results:
        return run_pytest(
            run,
            python,
            *(f"t/integration/{name}" for name in FILES),
            environ={
                "TEST_BROKER": broker_url(run, python, DATABASE) or results,
                "TEST_BACKEND": results,
                "REDIS_HOST": HOST,
                "REDIS_PORT": results.rpartition(":")[2].partition("/")[0],
                "PYTHONPATH": f"{run.suite_folder}{os.pathsep}{CLIENTS}",
            },
            limit_s=RUN_S,
        )


CELERY: Final = Suite(
    name="celery",
    version=VERSION,
    families=(Family.MARIADB,),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
