"""Quote identifiers in SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return *name*, which may be `keyspace.queue`, in backticks.

    Raises:
        ValueError: a part of it is empty.
    """
    parts = name.split(".", 1)
    if not all(parts):
        raise ValueError(f"not the name of a queue: {name!r}")
    return ".".join(quoted_column(part) for part in parts)


def quoted_column(name: str) -> str:
    """Return the column *name* in backticks."""
    return f"`{name.replace('`', '``')}`"
