"""The Spark session of the benchmark: two threads, the memory that Spark has by default, and nothing left of it in the end."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.processes import LabError
from streamfrom.spark.errors import JobError
from streamfrom.spark.jdbc import driver_settings
from streamfrom.spark.jobs.job import broken_off
from streamfrom.spark.session import start_session
from streamfrom.spark.source import register


SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}
LOOK_S: Final = 0.1
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def session() -> Iterator[Any]:
    """Run Spark for as long as the block lasts; its failures are the laboratory's.

    Raises:
        LabError: Java or the JDBC driver is missing, or a job failed.
    """
    try:
        spark = start_session("streamfrom bench", "local[2]", {**driver_settings(), **SETTINGS})
        try:
            register(spark)
            with broken_off():
                yield spark
        finally:
            _end(spark)
    except JobError as error:
        raise LabError(str(error)) from error


def _end(spark: Any) -> None:
    """Stop Spark and its JVM too, which would otherwise be counted as other people's work."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    # It ends when nobody is at the other end of this pipe.
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


def drain(frame: Any) -> float:
    """Let Spark compute all rows and columns of *frame* and throw them away; return the seconds that it takes."""
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


@dataclass(slots=True)
class Peak:
    """The most that processes held at one moment, in bytes: the JVM, and Python workers below it."""

    jvm: int = 0
    workers: int = 0
    together: int = 0

    def note(self, jvm: int, workers: int) -> None:
        """Take what is held now into account."""
        self.jvm = max(self.jvm, jvm)
        self.workers = max(self.workers, workers)
        self.together = max(self.together, jvm + workers)


@dataclass(slots=True)
class Watch:
    """Looks ten times a second at what the session's processes hold, as a context."""

    spark: Any
    peak: Peak = field(default_factory=Peak)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Peak:
        pid = int(self.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
        self._thread = threading.Thread(target=self._look, args=(pid,), daemon=True)
        self._thread.start()
        return self.peak

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        assert self._thread is not None
        self._thread.join()

    def _look(self, pid: int) -> None:
        while not self._ended.wait(LOOK_S):
            processes = _processes()
            below = descendants(pid, [(one, parent) for one, (parent, _) in processes.items()])
            held = {one: processes[one][1] for one in below}
            jvm = processes.get(pid, (0, 0))[1]
            self.peak.note(jvm, sum(held.values()))


def _processes() -> dict[int, tuple[int, int]]:
    """Return parent and resident bytes of each process; one that ends meanwhile is left out."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            pages = int((folder / "statm").read_text().split()[1])
            found[int(folder.name)] = (int(fields[1]), pages * PAGE_BYTES)
    return found


def descendants(pid: int, processes: Sequence[tuple[int, int]]) -> set[int]:
    """Return those of *processes*, each with its parent, that *pid* started, directly or not."""
    found: set[int] = set()
    new = {pid}
    while new:
        new = {one for one, parent in processes if parent in new} - found - {pid}
        found |= new
    return found
