"""Dramatiq's own tests of actors, results, workers and brokers, on `streamfrom_worker.dramatiq`.

Direct they run on Dramatiq's broker for Redis: a test that passes there passes here.
"""

import os
import shutil
from pathlib import Path
from typing import Final

from bench.brokers import redis
from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.kombu import CLIENTS
from tests.suites.python_tests import broker_url, run_pytest
from tests.suites.suite import Outcomes, Run, Suite


VERSION: Final = "2.2.1"
DATABASE: Final = "dramatiq_test"
PACKAGES: Final = (
    "pytest==9.2.0",
    "pytest-timeout==2.4.0",
    f"dramatiq[redis]=={VERSION}",
    "asyncmy",
    "PyMySQL==1.2.4",
)
# The others are of RabbitMQ's connection, or need no broker.
NAMES: Final = (
    "actors",
    "callbacks",
    "composition",
    "generic_actors",
    "redis",
    "results",
    "worker",
)
TEST_S: Final = 60
RUN_S: Final = 1200.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "dramatiq", PACKAGES)
    return sdist(cache, "dramatiq", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "dramatiq", PACKAGES)
    tests = run.suite_folder / "tests"
    shutil.copy(Path(__file__).with_name("dramatiq_conftest.py"), tests / "conftest.py")
    (tests / "__init__.py").touch()
    with redis() as memory:
        return run_pytest(
            run,
            python,
            f"--config-file={os.devnull}",
            "--rootdir=.",
            f"--timeout={TEST_S}",
            *(f"tests/test_{name}.py" for name in NAMES),
            environ={
                "BROKER_URL": broker_url(run, python, DATABASE) or memory,
                "PYTHONPATH": str(CLIENTS),
            },
            limit_s=RUN_S,
        )


DRAMATIQ: Final = Suite(
    name="dramatiq",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
