"""The patterns of LIKE: in a SHOW, and in the databases that GRANT names."""

from __future__ import annotations

import re

from streamfrom.sqlparse_ext.statements import Slot, Statement


def like(statement: Statement) -> re.Pattern[str]:
    """Return what the one literal of a LIKE matches."""
    return like_pattern(pattern_text(statement))


def like_pattern(text: str) -> re.Pattern[str]:
    """Return what *text* matches as LIKE reads it: % any characters, _ one, \\ takes that from the next."""
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    regex = {"%": ".*", "_": "."}
    return re.compile("".join(regex.get(p, re.escape(p[-1:])) for p in parts), re.DOTALL)


def pattern_text(statement: Statement) -> str:
    """Return that literal's own text, which servers repeat in the name of the column."""
    return (statement.text(Slot(0)) if statement.literals else "") or ""
