"""Which rows of a batch a function fails on, found by halving: pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final


PROBES_MAX: Final = 200
"""How often a batch is tried in parts: enough for about ten bad rows among ten thousand."""


@dataclass(slots=True)
class IsolatedFailures:
    """The rows of a batch that fail, by their places.

    alone: the rows that fail by themselves, each with its reason.
    unsure: the rows that failed together with others, when no try was left.
    """

    alone: dict[int, str] = field(default_factory=dict)
    unsure: dict[int, str] = field(default_factory=dict)

    @property
    def all(self) -> dict[int, str]:
        """All rows that must stay out of the batch, each with its reason."""
        return self.alone | self.unsure


def isolated(
    count: int, failure_of: "Callable[[range], str | None]", probes: int = PROBES_MAX
) -> IsolatedFailures:
    """Say which of *count* rows fail; all others have passed in some group.

    failure_of: tries the rows of a range and returns why they fail, or None.
    """
    verdict = IsolatedFailures()

    def look(group: range, *, fails: bool) -> bool:
        """Find those of *group* that fail, and say whether any does; fails: it is known already."""
        nonlocal probes
        if not group:
            return False
        if probes == 0:
            verdict.unsure.update(dict.fromkeys(group, "failed together with others"))
            return True
        # No message is blamed without having failed alone: what is known of a group may have passed by.
        reason = None
        if len(group) == 1 or not fails:
            probes -= 1
            reason = failure_of(group)
            if reason is None:
                return False
        if len(group) == 1:
            verdict.alone[group[0]] = str(reason)
            return True
        middle = len(group) // 2
        first_fails = look(group[:middle], fails=False)
        look(group[middle:], fails=not first_fails)
        return True

    look(range(count), fails=False)
    return verdict
