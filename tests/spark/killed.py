"""Runs a job in a process of its own that SIGKILL ends at a given point, and at no other.

A point is the name of a step, which dies as it begins; `STEP.rows`, which dies at its first rows that
are not its last; a file pattern, which dies once the file is there; or a SELECT at the target, which dies
once it is not 0.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.spark.endpoint import ask
from streamfrom.spark.jobs.job import load_job
from streamfrom.spark.jobs.progress import Progress
from tests.spark.early_worker import make_program


# A JVM of a minute's life spends two thirds of its processor time on compiling what it runs once or twice.
JVM_OF_TESTS = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The steps of a job are tried on MariaDB; that MySQL's locks and dates do the same is asked for with the kills.
on_both = pytest.mark.parametrize("job_family", list(Family), indirect=True)
_FAMILIES = [Family.MARIADB, pytest.param(Family.MYSQL, marks=pytest.mark.kills)]
on_mysql_with_kills = pytest.mark.parametrize("job_family", _FAMILIES, indirect=True)
# The same for a test of `servers`, where Spark alone takes seconds and what servers do apart is tried elsewhere.
servers_on_mysql_with_kills = pytest.mark.parametrize("family", _FAMILIES, indirect=True)
HERE = Path(__file__).parents[2]


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM_OF_TESTS,
}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Acting(Progress):
    """Does *act* as a step begins, or at its first rows that are not its last."""

    def __init__(self, point, act):
        super().__init__()
        self.point, self.act = point, act

    def enter(self, step):
        super().enter(step)
        if step == self.point:
            self.act()

    def rows(self, done, total):
        if f"{self._step}.rows" == self.point and done < total:
            self.act()


def die_with(fact):
    pause = threading.Event()
    while not fact():
        pause.wait(0.01)
    die()


def fact_of(point, config):
    if point.startswith("/"):
        return lambda: any(Path("/").glob(point.lstrip("/")))
    if point.startswith("SELECT"):
        connection = config.target.connect()
        return lambda: int(ask(connection, point)[0][0])
    return None


def run_killed(job, config, point, folder):
    """Run *job* with *config* in a process of its own and return when it was killed at *point*."""
    asked = folder / "killed.pickle"
    asked.write_bytes(pickle.dumps((job, config, str(point))))
    command = [sys.executable, "-m", "tests.spark.killed", str(asked)]
    environ = os.environ | {"PYSPARK_PYTHON": str(make_program(folder))}
    ended = subprocess.run(
        command, cwd=HERE, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]


def main():
    from streamfrom.spark.session import start_session

    job, config, point = pickle.loads(Path(sys.argv[1]).read_bytes())
    if fact := fact_of(point, config):
        threading.Thread(target=die_with, args=(fact,), daemon=True).start()
    spark = start_session("killed", "local[2]", SETTINGS)
    load_job(job).run(spark, config, Acting(point, die))


if __name__ == "__main__":
    main()
