"""Suites that Python runs: a driver's, SQLAlchemy's and Django's, and those of task queues on the worker library.

Direct, kombu's tests run on its transport in memory, Celery's and Dramatiq's on their own for Redis: a test that passes there passes here.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from bench.brokers import redis
from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.python_tests import broker_url, run_pytest
from tests.suites.suite import HOST, Outcome, Outcomes, Run, Suite, SuiteError, run_into


HERE: Final = Path(__file__).parent
CLIENTS: Final = HERE.parents[1] / "clients/python"
# Not the options of the repository around it.
ALONE: Final = (f"--config-file={os.devnull}", "--rootdir=.")
PYTEST: Final = "pytest==9.2.0"
PYMYSQL: Final = "PyMySQL==1.2.4"
WITH_RSA: Final = "PyMySQL[rsa]==1.2.4"


def _mysqlclient(run: Run, python: Path) -> Outcomes:
    options = run.log.with_suffix(".cnf")
    options.write_text(
        f"[MySQLdb-tests]\nhost = {HOST}\nport = {run.port}\nuser = root\n"
        "database = mysqldb_test\ndefault-character-set = utf8mb4\n"
    )
    inside = replace(run, suite_folder=run.suite_folder / "tests")
    environ = {"TESTDB": str(options)}
    return run_pytest(inside, python, *ALONE, ".", environ=environ, limit_s=300)


def _sqlalchemy(run: Run, python: Path) -> Outcomes:
    """Run the tests of its MySQL dialect, and those that it has for every dialect."""
    dburi = f"mysql+pymysql://root@{HOST}:{run.port}/satest?charset=utf8mb4"
    words = ("--maxfail=10000", "--override-ini=junit_family=xunit1", f"--dburi={dburi}")
    files = ("test/dialect/mysql", "test/dialect/test_suite.py")
    return run_pytest(run, python, *words, *files, limit_s=1200)


def _django(run: Run, python: Path) -> Outcomes:
    """Run the tests of its database backend and of what stands on it."""
    report = run.log.with_suffix(".json")
    report.unlink(missing_ok=True)
    settings = run.log.parent / "streamfrom_settings.py"
    shutil.copy(HERE / "django_settings.py", settings)
    environ = {
        "PYTHONPATH": f"{run.suite_folder}:{settings.parent}",
        "SUITE_PORT": str(run.port),
        "SUITE_REPORT": str(report),
    }
    words = (f"--settings={settings.stem}", "--parallel=1", "--noinput", "--keepdb")
    labels = "basic backends transactions queries aggregation expressions lookup bulk_create"
    labels += " select_for_update introspection"
    run.log.write_bytes(b"")
    command = [str(python), "tests/runtests.py", *words, *labels.split()]
    run_into(run.log, command, 1200, run.suite_folder, **environ)
    if not report.exists():
        raise SuiteError(f"Django ran no test; see {run.log}")
    return {name: Outcome(end) for name, end in json.loads(report.read_text()).items()}


def _kombu(run: Run, python: Path) -> Outcomes:
    """Run its integration tests of a transport."""
    tests = "t/integration/test_streamfrom.py"
    shutil.copy(HERE / "kombu_tests.py", run.suite_folder / tests)
    url = broker_url(run, python, "kombu_test") or "memory://"
    environ = {"KOMBU_URL": url, "PYTHONPATH": str(CLIENTS)}
    return run_pytest(run, python, *ALONE, tests, environ=environ, limit_s=600)


def _celery(run: Run, python: Path) -> Outcomes:
    """Run its integration tests of tasks, their state and control; the others need no broker, or stop one in a container."""
    # Read by every process of the tests: registers the transport.
    (run.suite_folder / "sitecustomize.py").write_text("import streamfrom_worker.celery\n")
    names = ("test_tasks", "test_canvas", "test_inspect", "test_group_chains")
    files = [f"t/integration/{name}.py" for name in names]
    with redis() as results:
        environ = {
            "TEST_BROKER": broker_url(run, python, "celery_test") or results,
            "TEST_BACKEND": results,
            "REDIS_HOST": HOST,
            "REDIS_PORT": results.rpartition(":")[2].partition("/")[0],
            "PYTHONPATH": f"{run.suite_folder}{os.pathsep}{CLIENTS}",
        }
        return run_pytest(run, python, *files, environ=environ, limit_s=3000)


def _dramatiq(run: Run, python: Path) -> Outcomes:
    """Run its tests of actors, results, workers and brokers; the others are of RabbitMQ's connection, or need no broker."""
    tests = run.suite_folder / "tests"
    shutil.copy(HERE / "dramatiq_conftest.py", tests / "conftest.py")
    (tests / "__init__.py").touch()
    names = "actors callbacks composition generic_actors redis results worker"
    files = [f"tests/test_{name}.py" for name in names.split()]
    with redis() as memory:
        url = broker_url(run, python, "dramatiq_test") or memory
        environ = {"BROKER_URL": url, "PYTHONPATH": str(CLIENTS)}
        words = (*ALONE, "--timeout=60", *files)
        return run_pytest(run, python, *words, environ=environ, limit_s=1200)


def _suite(
    package: str,
    version: str,
    databases: str,
    run: Callable[[Run, Path], Outcomes],
    *packages: str,
    families: tuple[Family, ...] = (Family.MARIADB, Family.MYSQL),
) -> Suite:
    """Return the suite of a *package*, whose tests run where *packages* are installed."""
    name = package.lower()
    python = partial(python_with, name=name, packages=packages)

    def fetch(cache: Path) -> Path:
        python(cache)
        return sdist(cache, package, version)

    def run_it(asked: Run) -> Outcomes:
        return run(asked, python(asked.suite_folder.parent))

    return Suite(name, version, families, tuple(databases.split()), fetch, run_it)


SUITES: Final = (
    # It is built against the machine's library.
    _suite("mysqlclient", "2.3.1", "mysqldb_test", _mysqlclient, PYTEST, "mysqlclient==2.3.1"),
    _suite("SQLAlchemy", "2.1.9", "satest test_schema", _sqlalchemy, PYTEST, WITH_RSA, "greenlet", "typing-extensions"),
    _suite("Django", "5.2.19", "django django_other test_django test_django_other", _django,
           WITH_RSA, "asgiref>=3.8.1", "sqlparse>=0.3.1", "tzdata", "tblib"),
    _suite("kombu", "5.7.0", "kombu_test", _kombu, PYTEST, "kombu==5.7.0", "asyncmy", PYMYSQL, "pytz"),
    _suite("celery", "5.7.0", "celery_test", _celery, PYTEST, "pytest-celery", "pytest-rerunfailures", "pytest-subtests",
           "pytest-timeout", "celery[redis,pytest]==5.7.0", "pydantic", "asyncmy", PYMYSQL, families=(Family.MARIADB,)),
    _suite("dramatiq", "2.2.1", "dramatiq_test", _dramatiq, PYTEST, "pytest-timeout==2.4.0",
           "dramatiq[redis]==2.2.1", "asyncmy", PYMYSQL),
)  # fmt: skip
