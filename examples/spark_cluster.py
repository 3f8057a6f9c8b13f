"""A Spark cluster of two workers on this machine, from the pip package alone, and a job on it.

    python examples/spark_cluster.py pack streamfrom-spark.zip
    python examples/spark_cluster.py run archive --proxy mysql://root@127.0.0.1:15306/commerce \
        --table my_message --out /tmp/archive --from 2026-11-21 --to 2026-11-21T04:39

`pack` makes the file for `spark-submit --py-files`: the package is pure Python. `run` packs, starts a master
and two workers, submits the job as anybody would to a cluster that is there, and stops them. What the package
needs (pyarrow, numpy, PyMySQL, xxhash) must be in the Python of the workers; where it is not, venv-pack makes
an archive of a whole environment: docs/spark.md.
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
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path


HERE = Path(__file__).resolve().parents[1]
HOST = "127.0.0.1"
WORKERS = 2
START_S = 120


def pack(target: Path) -> Path:
    """Write the package `spark` into a zip file and return its path."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted((HERE / "spark").rglob("*.py")):
            file.write(path, path.relative_to(HERE))
    return target


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
        "PYSPARK_PYTHON": sys.executable,
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
    """Return when so many workers have told that the master knows them."""
    deadline = time.monotonic() + START_S
    while (
        log.read_text(errors="replace").count("Successfully registered with master") < workers
    ):
        if time.monotonic() > deadline:
            sys.exit(f"the cluster does not start; it said:\n{log.read_text(errors='replace')}")
        time.sleep(0.2)


def submit(master: str, package: Path, job: Sequence[str]) -> int:
    """Run `spark-submit` with the packed package, and return its exit code."""
    return subprocess.run(
        [
            spark_home() / "bin" / "spark-submit",
            *("--master", master, "--py-files", package),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"),
            HERE / "spark" / "cli.py",
            *job,
        ],
        env=environment(),
        check=False,
    ).returncode


def main(arguments: Sequence[str]) -> int:
    match list(arguments):
        case ["pack", target]:
            print(pack(Path(target)))
            return 0
        case ["run", *job] if job:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                with cluster(folder) as master:
                    return submit(master, pack(folder / "streamfrom-spark.zip"), job)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    # So that a plain kill, too, stops master and workers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
