"""What `streamfrom check` found: one line each as it is found, or one JSON document at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from streamfrom.proxy.printable import printable


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    INFO = "info"  # it is as intended, and worth knowing
    WARNING = "warning"  # it works, and could be better
    ERROR = "error"  # it does not work


class Finding(NamedTuple):
    """One thing that was found."""

    level: Level
    place: str  # what it is about: a key of the configuration, a keyspace, a shard or a table
    text: str
    # The statement to run or the thing to do, None where there is no one such.
    fix: str | None = None

    @property
    def line(self) -> str:
        """The finding as a line of the report, whatever names and servers' words are in it."""
        fix = f"; {self.fix}" if self.fix else ""
        return printable(f"{self.level:<7}  {self.place}: {self.text}{fix}")


_NOUNS: Final = {Level.WARNING: "warning", Level.ERROR: "error"}


class CheckReport:
    """All findings, in the order in which they were found.

    write: is given each line, without its end, as soon as there is one; None for a report that
        is to be printed by `json` alone.
    """

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self.findings: list[Finding] = []
        self._write = write

    def ok(self, place: str, text: str) -> None:
        """Add what is as it should be."""
        self.add(Finding(Level.OK, place, text))

    def warning(self, place: str, text: str, fix: str | None = None) -> None:
        """Add what would be better otherwise."""
        self.add(Finding(Level.WARNING, place, text, fix))

    def error(self, place: str, text: str, fix: str | None = None) -> None:
        """Add what will not work."""
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
        """Whether anything will not work."""
        return self.count(Level.ERROR) > 0

    def end(self) -> None:
        """Write the summary."""
        if self._write is not None:
            self._write(self.summary)

    @property
    def summary(self) -> str:
        """The last line: how many there are of each level."""
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
