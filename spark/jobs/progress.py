"""Report the progress of a job, next to Spark's own bar of stages on a terminal."""

import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final


_END: Final = "\n"
_LINE_AGAIN: Final = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a job: counts by name that add up, and the duration of its steps in seconds.

    wrote: the files or folders that the job created and that its options do not name.
    """

    job: str
    table: str
    counts: dict[str, int]
    steps_s: dict[str, float]
    wrote: tuple[str, ...] = ()

    def json(self) -> str:
        """Return the report as one JSON object."""
        return json.dumps(asdict(self), indent=2) + "\n"


class Progress:
    """Writes progress to standard error, to keep it separate from the job's output.

    On a terminal, a line with a count is overwritten by the next one.
    """

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._counts = False  # the cursor is at the end of a line with a count
        self._began_s = self._started_s = time.monotonic()
        self._step = ""
        self._said_s = 0.0
        self.steps_s: dict[str, float] = {}

    def enter(self, step: str) -> None:
        """End the current step and begin *step*. A step that begins again adds to its time and is not announced."""
        self._count_time()
        self._step, self._started_s = step, time.monotonic()
        if step not in self.steps_s:
            self._say(f"{step} …")

    def leave(self) -> None:
        """End the last step, whether it is complete or broke off."""
        self._count_time()
        if self._counts:
            self._counts = False
            sys.stderr.write(_END)

    def _count_time(self) -> None:
        if self._step:
            took_s = time.monotonic() - self._started_s
            self.steps_s[self._step] = round(self.steps_s.get(self._step, 0.0) + took_s, 3)
        self._step = ""

    def rows(self, done: int, total: int) -> None:
        """Record that *done* rows of *total* have passed through the step; shown once a second and at its end."""
        if not self._is_time() and done < total:
            return
        rate = done / max(time.monotonic() - self._started_s, 1e-3)
        left_s = (total - done) / rate if rate else 0.0
        self._say(
            f"{self._step}: {done:,} of {total:,} rows, {rate:,.0f}/s, {left_s:.0f} s left",
            counts=True,
        )

    def passed(self, rows: int, notes: dict[str, int]) -> None:
        """Record that *rows* have passed through an endless job; shown once a second, with *notes*."""
        if not self._is_time():
            return
        rate = rows / max(time.monotonic() - self._began_s, 1e-3)
        more = "".join(f", {count:,} {name}" for name, count in notes.items())
        self._say(f"{rows:,} rows, {rate:,.0f}/s{more}", counts=True)

    def _is_time(self) -> bool:
        now_s = time.monotonic()
        is_time = now_s - self._said_s >= 1
        if is_time:
            self._said_s = now_s
        return is_time

    def _say(self, line: str, *, counts: bool = False) -> None:
        stays = not (counts and self._terminal)
        before = _LINE_AGAIN if self._terminal else ""
        if self._counts and stays:
            before = _END
        sys.stderr.write(before + line + (_END if stays else ""))
        sys.stderr.flush()
        self._counts = not stays
