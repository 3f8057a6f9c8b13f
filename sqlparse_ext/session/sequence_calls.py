"""Whether a statement asks a sequence of MariaDB for a value, which writes the sequence.

See https://mariadb.com/kb/en/sequence-functions/.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final


_FUNCTIONS: Final = frozenset({"NEXTVAL", "SETVAL", "LASTVAL"})


def asks_sequence(keys: Sequence[str]) -> bool:
    """Return whether a statement whose tokens have these *keys* does. LASTVAL, too, which only reads."""
    return any(
        (key in _FUNCTIONS and after == "(") or (key, after) == ("VALUE", "FOR")
        for key, after in pairwise(keys)
    )
