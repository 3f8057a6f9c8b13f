"""A Spark cluster of two workers on this machine, from the pip package alone, and a job on it.

    python examples/spark_cluster.py run archive --proxy mysql://root@127.0.0.1:15306/commerce \
        --table my_message --out /tmp/archive --from 2026-11-21 --to 2026-11-21T04:39

It packs the package as `streamfrom-spark package` does, and submits the job as anybody would to a cluster that is there: Spark's
`local-cluster` starts a master and two workers of a process each for it, and stops them. WORKER_PYTHON=/path/of/python lets the workers run in another Python, which needs nothing of its
own: what the package imports is sent along.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from streamfrom.spark import package


HOST = "127.0.0.1"
MASTER = "local-cluster[2,1,1024]"  # workers, cores and MB of each


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
        # As on other machines: nothing of this folder, the package comes by --py-files.
        "PYTHONPATH": "",
    }


def submit(folder: Path, job: Sequence[str]) -> int:
    """Run `spark-submit` with the package of *folder*, and return its exit code."""
    sent = ["--py-files", folder / package.PACKAGE]
    if (folder / package.ENVIRONMENT).exists():
        sent += ["--archives", f"{folder / package.ENVIRONMENT}#environment"]
        sent += ["--conf", "spark.executorEnv.PYTHONPATH=./environment"]
    return subprocess.run(
        [
            spark_home() / "bin" / "spark-submit",
            *("--master", MASTER),
            *sent,
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.log.level=WARN"),
            folder / package.MAIN,
            *job,
        ],
        env=environment(),
        check=False,
    ).returncode


def main(arguments: Sequence[str]) -> int:
    match list(arguments):
        case ["run", *job] if job:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                package.write(folder, with_environment="WORKER_PYTHON" in os.environ)
                return submit(folder, job)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    # So that a plain kill, too, stops the job and its cluster.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
