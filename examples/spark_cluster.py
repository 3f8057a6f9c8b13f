"""A Spark cluster of two workers on this machine, from the pip package alone, and a job on it.

    python examples/spark_cluster.py run archive --proxy mysql://root@127.0.0.1:15306/commerce \
        --table my_message --out /tmp/archive --from 2026-11-21 --to 2026-11-21T04:39

The job is submitted as to a real cluster: Spark's `local-cluster` starts a master and two workers, each a process, and stops them.
The workers get the package in an archive. With WORKER_PYTHON=/path/of/python they run in another Python, which needs no packages:
everything that is installed here except Spark is in the archive, too.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import streamfrom
from streamfrom.spark import cli


HOST = "127.0.0.1"
MASTER = "local-cluster[2,1,1024]"  # workers, cores and MB of each
PACKAGE = Path(str(streamfrom.__file__)).parent


def spark_home() -> Path:
    """Return where pip has put Spark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        sys.exit("there is no pyspark: pip install 'streamfrom[spark]'")
    return Path(found.origin).parent


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": os.environ.get("WORKER_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(PACKAGE.parent),
    }


def pack(archive: Path) -> None:
    """Write the package, and for another Python all installed packages, as a folder for the workers."""
    with tarfile.open(archive, "w:gz", compresslevel=1, dereference=True) as file:
        file.add(PACKAGE, PACKAGE.name)
        if "WORKER_PYTHON" in os.environ:
            for path in Path(sysconfig.get_path("purelib")).iterdir():
                if path.name not in {"pyspark", PACKAGE.name}:
                    file.add(path, path.name)


def submit(archive: Path, job: Sequence[str]) -> int:
    """Run `spark-submit` with the *archive*, and return its exit code."""
    return subprocess.run(
        [
            spark_home() / "bin" / "spark-submit",
            *("--master", MASTER),
            *("--archives", f"{archive}#environment"),
            *("--conf", "spark.executorEnv.PYTHONPATH=./environment"),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.log.level=WARN"),
            str(cli.__file__),
            *job,
        ],
        env=environment(),
        check=False,
    ).returncode


def main(arguments: Sequence[str]) -> int:
    match list(arguments):
        case ["run", *job] if job:
            with tempfile.TemporaryDirectory() as name:
                archive = Path(name) / "environment.tar.gz"
                pack(archive)
                return submit(archive, job)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    # So that a plain kill stops the job and its cluster, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
