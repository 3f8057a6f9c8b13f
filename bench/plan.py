"""The input of a workload: the laboratory, how thorough to be, and where to report progress."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bench.lab import Lab
from bench.report import Target, ratio_at_least
from streamfrom.proxy.embedded.servers import Family


A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run a workload.

    quick: one pair of runs, shorter and with fewer rows; for a first impression, not for a verdict.
    say: prints a line of progress.
    """

    lab: Lab
    quick: bool
    say: Callable[[str], None]

    @property
    def pairs(self) -> int:
        """How many times to run each side."""
        return 1 if self.quick else 3

    def size(self, full: int, quick: int) -> int:
        """Return the number of rows or seconds that fits the plan."""
        return quick if self.quick else full

    def ratio_at_least(self, *, mariadb: float, mysql: float) -> Target:
        """Return the design's goal for a ratio on the server that is measured."""
        return ratio_at_least(mysql if self.lab.server.family is Family.MYSQL else mariadb)

    def interleaved(
        self, ours: Callable[[], A], theirs: Callable[[], B]
    ) -> tuple[list[A], list[B]]:
        """Run both sides in turn, so that disturbances of the machine affect both alike."""
        pairs = []
        for number in range(1, self.pairs + 1):
            self.say(f"  pair {number} of {self.pairs}")
            pairs.append((ours(), theirs()))
        return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
