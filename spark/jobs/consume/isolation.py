"""Which rows of a batch a function fails on, found by halving: pure."""

from collections.abc import Callable
from typing import Final


PROBES_MAX: Final = 200
"""How often a batch is tried in parts: enough for about ten bad rows among ten thousand."""


def isolated(
    count: int, failure_of: "Callable[[range], str | None]", probes: int = PROBES_MAX
) -> dict[int, str | None]:
    """Return the places of those of *count* rows that must stay out of the batch; all others have passed in some group.

    Each has the reason why it fails by itself, or None if it failed together with others when no try was left.

    failure_of: tries the rows of a range and returns why they fail, or None.
    """
    failing: dict[int, str | None] = {}

    def look(group: range, *, fails: bool) -> bool:
        """Find those of *group* that fail, and say whether any does; fails: it is known already."""
        nonlocal probes
        if not group:
            return False
        if probes == 0:
            failing.update(dict.fromkeys(group))
            return True
        # No message is blamed without having failed alone: what is known of a group may have passed by.
        reason = None
        if len(group) == 1 or not fails:
            probes -= 1
            reason = failure_of(group)
            if reason is None:
                return False
        if len(group) == 1:
            failing[group[0]] = reason
            return True
        middle = len(group) // 2
        first_fails = look(group[:middle], fails=False)
        look(group[middle:], fails=not first_fails)
        return True

    look(range(count), fails=False)
    return failing
