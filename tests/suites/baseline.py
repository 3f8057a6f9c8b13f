"""What a suite does direct, and how a run through the proxy compares with it.

The rule: what passes direct passes through. A test that does not is a *difference*; the base line
lists those that are known under the sentence that says why. One that it does not list fails the run.
"""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from tests.suites.suite import Outcome, Outcomes


FOLDER: Final = Path(__file__).with_name("baseline")
UNEXPLAINED: Final = "not explained yet"
# Of a test's name, whose parameters may hold dots.
CLASS: Final = re.compile(r"(?:[^\[\s]*\.)?")
_json = functools.partial(json.dumps, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Baseline:
    """One suite on one kind of server.

    suite, server: the versions that were measured.
    tests: how many ran direct.
    not_passed: of these, those that did not pass.
    differences: cause → the tests that pass direct and not through.
    """

    suite: str
    server: str = ""
    tests: int = 0
    not_passed: frozenset[str] = frozenset()
    differences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a base line that `store` wrote."""
        data = json.loads(path.read_text())
        classes = data.pop("not_passed")
        not_passed = frozenset(name + end for name, ends in classes.items() for end in ends)
        differences = {cause: tuple(names) for cause, names in data.pop("differences").items()}
        return cls(**data, not_passed=not_passed, differences=differences)

    def store(self, path: Path) -> None:
        """Write it, a class or a cause a line and in an order that makes changes readable."""
        classes: dict[str, list[str]] = {}
        for name in sorted(self.not_passed):
            end = CLASS.match(name).end()  # type: ignore[union-attr]
            classes.setdefault(name[:end], []).append(name[end:])
        causes = {cause: sorted(names) for cause, names in self.differences.items()}
        head = {"suite": self.suite, "server": self.server, "tests": self.tests}
        parts = [f" {_json(key)}: {_json(value)}" for key, value in head.items()]
        for key, lists in (("not_passed", classes), ("differences", causes)):
            lines = ",".join(f"\n  {_json(one)}: {_json(all_)}" for one, all_ in lists.items())
            parts.append(f' "{key}": {{{lines}}}')
        path.write_text("{\n" + ",\n".join(parts) + "\n}\n")

    def explained(self, different: set[str]) -> dict[str, tuple[str, ...]]:
        """Return *different* by cause, as far as this base line knows them, and the others."""
        causes = {
            cause: tuple(name for name in names if name in different)
            for cause, names in self.differences.items()
            if cause != UNEXPLAINED
        }
        known = {name for names in causes.values() for name in names}
        causes[UNEXPLAINED] = tuple(different - known)
        return {cause: names for cause, names in causes.items() if names}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run through the proxy beside the base line.

    new: pass direct and not through, and the base line does not say why.
    known: those of which it does, by cause.
    mended: listed as differences, and they pass.
    missing: how many tests fewer than direct ran.
    """

    new: tuple[str, ...]
    known: Mapping[str, tuple[str, ...]]
    mended: tuple[str, ...]
    missing: int

    @property
    def holds(self) -> bool:
        """Whether everything that passes direct passes through or is explained."""
        return not self.new and self.missing <= 0


def compare(baseline: Baseline, through: Outcomes) -> Comparison:
    """Compare how each test ended *through* the proxy with the base line."""
    different = {
        name
        for name, end in through.items()
        if end is not Outcome.PASSED
        and name not in baseline.not_passed
        # Go: the parts of a test that fails direct are not all begun there.
        and name.partition("/")[0] not in baseline.not_passed
    }
    known = baseline.explained(different)
    new = known.pop(UNEXPLAINED, ())
    listed = {name for names in baseline.differences.values() for name in names}
    return Comparison(
        new=tuple(sorted(new)),
        known=known,
        mended=tuple(sorted(name for name in listed if through.get(name) is Outcome.PASSED)),
        missing=baseline.tests - len(through),
    )


def measured(suite: str, server: str, direct: Outcomes) -> Baseline:
    """Return the base line of a run *direct*, without differences."""
    not_passed = {name for name, end in direct.items() if end is not Outcome.PASSED}
    return Baseline(suite, server, len(direct), frozenset(not_passed))
