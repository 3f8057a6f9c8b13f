"""Runs a Python module under a sampling profiler, and says where its processor time went.

    python -m bench.profile OUTPUT module arguments …        run and sample

A timer of processor time interrupts the process 500 times a second, and the handler books the
time used since the last interrupt to the stack it finds. Unlike a tracing profiler that adds
nothing to each call, so the many small calls of a proxy keep their true share; and a long call
into C, during which no handler can run, is booked whole to its caller. Neither waiting nor
importing modules is counted.
"""

import json
import runpy
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final


INTERVAL_S: Final = 0.002
LINES: Final = 25
ROOT: Final = Path(__file__).parents[1]


class Sampler:
    """Nanoseconds by function: in it (own), in it or what it called (total), and by line."""

    def __init__(self) -> None:
        self._last_ns = 0
        self.all_ns = 0
        self.own: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()

    def start(self) -> None:
        """Begin to sample this process's main thread."""
        self._last_ns = time.process_time_ns()
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """End it."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def save(self, path: Path) -> None:
        """Write the counts, so that another process can show them."""
        path.write_text(
            json.dumps(
                {
                    "all_ns": self.all_ns,
                    "own": self.own,
                    "total": self.total,
                    "lines": self.lines,
                }
            )
        )

    def _sample(self, _signal: int, frame: FrameType | None) -> None:
        now_ns = time.process_time_ns()
        used_ns, self._last_ns = now_ns - self._last_ns, now_ns
        stack: list[FrameType] = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        if not stack or any("importlib" in one.f_code.co_filename for one in stack):
            return
        self.all_ns += used_ns
        self.own[_name(stack[0])] += used_ns
        self.lines[f"{_file(stack[0])}:{stack[0].f_lineno}"] += used_ns
        for name in {_name(one) for one in stack}:
            self.total[name] += used_ns


def show(path: Path) -> str:
    """Return a saved profile as text: the functions and the lines that cost most."""
    counts = json.loads(path.read_text())
    all_ns = counts["all_ns"] or 1
    parts = [f"{all_ns / 1e9:.1f} s of processor time in {path.stem}"]
    for title, key in (
        ("in the function itself", "own"),
        ("with all it calls", "total"),
        ("in the line", "lines"),
    ):
        parts.append(f"\n  share  {title}")
        parts += [
            f"  {used_ns * 100 / all_ns:5.1f}  {name}"
            for name, used_ns in Counter(counts[key]).most_common(LINES)
        ]
    return "\n".join(parts)


def main() -> None:
    """Run what the command line names."""
    output, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    sampler = Sampler()
    sampler.start()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sampler.stop()
        sampler.save(output)


def _file(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return "/".join(path.parts[-2:])


def _name(frame: FrameType) -> str:
    return f"{_file(frame)} {frame.f_code.co_qualname}"


if __name__ == "__main__":
    main()
