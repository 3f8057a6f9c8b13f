"""A Spark cluster of two workers on this machine, from the pip package alone, and a job on it.

    python examples/spark_cluster.py run archive --proxy mysql://root@127.0.0.1:15306/commerce \
        --table my_message --out /tmp/archive --from 2026-11-21 --to 2026-11-21T04:39

It packs the package as `streamfrom-spark package` does, starts a master and two workers, submits the job as anybody would to a
cluster that is there, and stops them. WORKER_PYTHON=/path/of/python lets the workers run in another Python, which needs nothing of its
own: what the package imports is sent along.
"""

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamfrom.spark import package


HOST = "127.0.0.1"
WORKERS = 2
START_S = 120


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


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Run a master and its workers for as long as the block lasts, and give the master's address."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    master = f"spark://{HOST}:{port}"
    deploy = "org.apache.spark.deploy"
    commands = [[f"{deploy}.master.Master", "--port", str(port)]] + [
        [
            f"{deploy}.worker.Worker",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(folder),
            master,
        ]
    ] * WORKERS
    daemons: list[subprocess.Popen[bytes]] = []
    with (folder / "cluster.log").open("wb") as log:
        try:
            for name, *options in commands:
                start = [spark_home() / "bin" / "spark-class", name, "--host", HOST]
                daemons.append(
                    subprocess.Popen(
                        [*start, "--webui-port", "0", *options],
                        env=environment(),
                        stdout=log,
                        stderr=log,
                    )
                )
            wait_for(folder / "cluster.log", WORKERS)
            yield master
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                daemon.wait()


def wait_for(log: Path, workers: int) -> None:
    """Return when so many workers have logged that the master knows them."""
    deadline = time.monotonic() + START_S
    while (
        log.read_text(errors="replace").count("Successfully registered with master") < workers
    ):
        if time.monotonic() > deadline:
            sys.exit(f"the cluster does not start; it said:\n{log.read_text(errors='replace')}")
        time.sleep(0.2)


def submit(master: str, folder: Path, job: Sequence[str]) -> int:
    """Run `spark-submit` with the package of *folder*, and return its exit code."""
    sent = ["--py-files", folder / package.PACKAGE]
    if (folder / package.ENVIRONMENT).exists():
        sent += ["--archives", f"{folder / package.ENVIRONMENT}#environment"]
        sent += ["--conf", "spark.executorEnv.PYTHONPATH=./environment"]
    return subprocess.run(
        [
            spark_home() / "bin" / "spark-submit",
            *("--master", master),
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
                with cluster(folder) as master:
                    return submit(master, folder, job)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    # So that a plain kill, too, stops master and workers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
