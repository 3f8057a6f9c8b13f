"""What the figures depend on: this machine, and what single processes use of it."""

import datetime
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
SYNC_WRITES: Final = 200


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far, or holds now."""

    cpu_s: float
    rss_bytes: int
    rss_bytes_max: int


def usage(pid: int) -> Usage:
    """Return what the process *pid*, all its threads together, has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    sizes = {
        name: int(value.split()[0]) << 10
        for name, _, value in (
            line.partition(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        if name in ("VmRSS", "VmHWM")
    }
    return Usage(
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        rss_bytes=sizes["VmRSS"],
        rss_bytes_max=sizes["VmHWM"],
    )


class Disturbance:
    """How busy others keep this machine, from now until `percent` is asked for.

    By then all processes started in between must have ended, except *lasting* ones.
    """

    def __init__(self, lasting: Callable[[], Iterable[int]]) -> None:
        self._lasting = lasting
        self._busy_s, self._all_s = _machine_s()
        self._own_s = self._own()

    def percent(self) -> float:
        """Return the share of all processors' time that went to other work than ours."""
        own_s = self._own() - self._own_s
        busy_s, all_s = _machine_s()
        other_s = busy_s - self._busy_s - own_s
        return max(other_s / max(all_s - self._all_s, 1e-9), 0) * 100

    def _own(self) -> float:
        mine, children = (
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        return (
            mine.ru_utime
            + mine.ru_stime
            + children.ru_utime
            + children.ru_stime
            + sum(usage(pid).cpu_s for pid in self._lasting())
        )


def facts(folder: Path) -> dict[str, Any]:
    """Return this machine's facts; *folder* is on the disk the servers will use."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_at_start": os.getloadavg()[0],
        "sync_write_ms": round(_sync_write_ms(folder), 3),
    }


def _machine_s() -> tuple[float, float]:
    """Return the busy seconds of all processors since the machine's start, and all seconds."""
    with Path("/proc/stat").open() as file:
        user, nice, system, idle, waiting, *other = map(int, file.readline().split()[1:9])
    busy = user + nice + system + sum(other)
    return busy / TICKS_PER_S, (busy + idle + waiting) / TICKS_PER_S


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _sync_write_ms(folder: Path) -> float:
    """Return the time of a durable 4 KiB write, the least any commit can cost."""
    page = os.urandom(4096)
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
        start = time.perf_counter()
        for _ in range(SYNC_WRITES):
            file.seek(0)
            file.write(page)
            os.fdatasync(file.fileno())
        return (time.perf_counter() - start) * 1000 / SYNC_WRITES
