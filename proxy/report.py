"""The findings of `streamfrom check`: one line each as they are found, or one JSON document at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from streamfrom.proxy.printable import printable


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    INFO = "info"  # works as intended, and is worth knowing
    WARNING = "warning"  # works, and could be better
    ERROR = "error"  # does not work


class Finding(NamedTuple):
    """One finding of `check`."""

    level: Level
    place: str  # its subject: a key of the configuration, a keyspace, a shard or a table
    text: str
    # The statement to run or the step to take; None if there is no single one.
    fix: str | None = None

    @property
    def line(self) -> str:
        """The finding as a line of the report, safe to print whatever names and servers' messages it contains."""
        fix = f"; {self.fix}" if self.fix else ""
        return printable(f"{self.level:<7}  {self.place}: {self.text}{fix}")


_NOUNS: Final = {Level.WARNING: "warning", Level.ERROR: "error"}


class CheckReport:
    """All findings, in the order in which they were found.

    write: called with each line, without its end, as soon as there is one; None for a report that
        is printed only by `json`.
    """

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self.findings: list[Finding] = []
        self._write = write

    def ok(self, place: str, text: str) -> None:
        """Add a finding of something that is as it should be."""
        self.add(Finding(Level.OK, place, text))

    def warning(self, place: str, text: str, fix: str | None = None) -> None:
        """Add a finding of something that could be better."""
        self.add(Finding(Level.WARNING, place, text, fix))

    def error(self, place: str, text: str, fix: str | None = None) -> None:
        """Add a finding of something that will not work."""
        self.add(Finding(Level.ERROR, place, text, fix))

    def add(self, finding: Finding) -> None:
        """Add a finding, and write its line."""
        self.findings.append(finding)
        if self._write is not None:
            self._write(finding.line)

    def count(self, level: Level) -> int:
        """Return how many findings there are of *level*."""
        return sum(finding.level is level for finding in self.findings)

    @property
    def has_errors(self) -> bool:
        """Whether there is any error."""
        return self.count(Level.ERROR) > 0

    def end(self) -> None:
        """Write the summary."""
        if self._write is not None:
            self._write(self.summary)

    @property
    def summary(self) -> str:
        """The last line: the number of findings of each level."""
        told = [
            f"{number} {noun}" + ("s" if number != 1 else "")
            for level, noun in _NOUNS.items()
            if (number := self.count(level))
        ]
        return f"summary  {self.count(Level.OK)} ok, {', '.join(told) or 'no problems found'}"

    def json(self) -> str:
        """Return the report as one document: `findings`, and `summary` with a count for each level."""
        return json.dumps(
            {
                "findings": [finding._asdict() for finding in self.findings],
                "summary": {str(level): self.count(level) for level in Level},
            },
            indent=2,
        )
