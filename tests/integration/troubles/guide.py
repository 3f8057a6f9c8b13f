"""The guide of docs/operations.md, "Ten troubles"."""

import re

from tests.fixtures.printed_steps import PrintedSteps
from tests.fixtures.running_proxy import HERE


def troubles() -> dict[str, str]:
    """Return what the guide says of each trouble, by its heading."""
    _, _, rest = (HERE / "docs/operations.md").read_text().partition("\n### Ten troubles\n")
    guide, _, _ = rest.partition("\n### ")
    parts = re.split(r"^#### (.+)$", guide, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def steps_of(trouble: str) -> PrintedSteps:
    """Return the steps that end a trouble, which is named by its heading."""
    return PrintedSteps(troubles()[trouble])
