"""The guide of docs/operations/troubles.md."""

import re

from tests.fixtures.printed_steps import PrintedSteps
from tests.fixtures.running_proxy import HERE


def troubles() -> dict[str, str]:
    """Return what the guide says of each trouble, by its heading."""
    guide = (HERE / "docs/operations/troubles.md").read_text()
    parts = re.split(r"^## (.+)$", guide, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def steps_of(trouble: str) -> PrintedSteps:
    return PrintedSteps(troubles()[trouble])
