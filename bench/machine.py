"""The machine that the figures depend on, and the resources that single processes use."""

import os
import platform
import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final


TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a process has used so far, or holds now."""

    cpu_s: float
    rss_bytes: int
    rss_bytes_max: int


def usage(pid: int) -> Usage:
    """Return the usage of the process *pid*, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    sizes = (int(status[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))
    return Usage((int(fields[11]) + int(fields[12])) / TICKS_PER_S, *sizes)


class Disturbance:
    """How busy other processes keep this machine, from now until `percent` is called.

    By then, all processes started in between must have ended, except *lasting* ones.
    """

    def __init__(self, lasting: Callable[[], Iterable[int]]) -> None:
        self._lasting = lasting
        self._before = self._look()

    def percent(self) -> float:
        """Return the percentage of all processors' time that other processes used."""
        other_s, all_s = (
            now - then for now, then in zip(self._look(), self._before, strict=True)
        )
        return max(other_s / max(all_s, 1e-9), 0) * 100

    def _look(self) -> tuple[float, float]:
        """Return the processor seconds since boot that other processes used, and those of all processors."""
        own_s = sum(usage(pid).cpu_s for pid in self._lasting())
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            used = resource.getrusage(who)
            own_s += used.ru_utime + used.ru_stime
        with Path("/proc/stat").open() as file:
            user, nice, system, idle, waiting, *other = map(int, file.readline().split()[1:9])
        busy = user + nice + system + sum(other)
        return busy / TICKS_PER_S - own_s, (busy + idle + waiting) / TICKS_PER_S


def facts() -> str:
    """Describe this machine in one line."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return (
        f"{cores} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, load {load:.1f}"
    )
