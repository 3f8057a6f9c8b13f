"""The pattern of a SHOW … LIKE."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.statements import Slot


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Statement


def like(statement: Statement) -> re.Pattern[str]:
    """Return what the one literal of a LIKE matches: % and _, and \\ before a plain one."""
    parts = re.findall(r"\\.|.", pattern_text(statement), re.DOTALL)
    regex = {"%": ".*", "_": "."}
    return re.compile("".join(regex.get(p, re.escape(p[-1:])) for p in parts), re.DOTALL)


def pattern_text(statement: Statement) -> str:
    """Return that literal's own text, which servers repeat in the name of the column."""
    return (statement.text(Slot(0)) if statement.literals else "") or ""
