"""Runs a Python module under a sampling profiler, and says where its processor time went.

    python -m bench.profile OUTPUT module arguments …        run and sample

A timer of processor time interrupts the process 500 times a second and the handler notes the
stack. Unlike a tracing profiler that adds nothing to each call, so the many small calls of a
proxy keep their true share. Waiting is not sampled.
"""

import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final


INTERVAL_S: Final = 0.002
LINES: Final = 25
ROOT: Final = Path(__file__).parents[1]


class Sampler:
    """Counts, by function, the samples in it (own) and in it or what it called (total)."""

    def __init__(self) -> None:
        self.samples = 0
        self.own: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()

    def start(self) -> None:
        """Begin to sample this process's main thread."""
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
                    "samples": self.samples,
                    "own": self.own,
                    "total": self.total,
                    "lines": self.lines,
                }
            )
        )

    def _sample(self, _signal: int, frame: FrameType | None) -> None:
        if frame is None:
            return
        self.samples += 1
        self.own[_name(frame)] += 1
        self.lines[f"{_file(frame)}:{frame.f_lineno}"] += 1
        seen = set()
        caller: FrameType | None = frame
        while caller is not None:
            seen.add(_name(caller))
            caller = caller.f_back
        self.total.update(seen)


def show(path: Path) -> str:
    """Return a saved profile as text: the functions and the lines that cost most."""
    counts = json.loads(path.read_text())
    samples = counts["samples"] or 1
    parts = [f"{samples * INTERVAL_S:.1f} s of processor time in {path.stem}"]
    for title, key in (
        ("in the function itself", "own"),
        ("with all it calls", "total"),
        ("in the line", "lines"),
    ):
        parts.append(f"\n  share  {title}")
        parts += [
            f"  {count * 100 / samples:5.1f}  {name}"
            for name, count in Counter(counts[key]).most_common(LINES)
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
