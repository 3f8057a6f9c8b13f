"""What the figures depend on: this machine, and what single processes use of it."""

import datetime
import os
import platform
import tempfile
import time
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
