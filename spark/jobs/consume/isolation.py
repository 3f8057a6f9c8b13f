"""Find the rows of a batch on which a function fails, by halving: pure."""

from collections.abc import Callable
from typing import Final


PROBES_MAX: Final = 200
"""How many parts of a batch to try: enough for about ten bad rows among ten thousand."""


def isolated(
    count: int, failure_of: "Callable[[range], str | None]", probes: int = PROBES_MAX
) -> dict[int, str | None]:
    """Return the places of the rows, among *count*, to keep out of the batch; all others have passed in some group.

    Each comes with the reason for which it fails alone, or None if it failed together with others when no probes were left.

    failure_of: tries the rows of a range and returns why they fail, or None.
    """
    failing: dict[int, str | None] = {}

    def look(group: range, *, fails: bool) -> bool:
        """Find the failing rows of *group*; return whether there are any. fails: the group is known to fail."""
        nonlocal probes
        if not group:
            return False
        if probes == 0:
            failing.update(dict.fromkeys(group))
            return True
        # Blame no message that has not failed alone: the failure of its group may have been temporary.
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
