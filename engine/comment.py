"""The table comment: how a message table is marked, and what its keys mean.

    vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,
    vt_cache_size=10000,vt_poller_interval=30

The grammar is Vitess's (split at ``,``, then at ``=``; a piece without exactly one ``=`` is no
setting; the last of two wins), with three improvements: blanks around keys and values do not
count, a value that cannot be used is an error that names its key, and unknown ``vt_`` keys are
reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import EngineError


MARK = "vitess_message"
SEQUENCE_MARK = "vitess_sequence"
COUNT_MAX = 2**31 - 1
WAIT_MAX_NS = 100 * 365 * 86_400 * 10**9  # 100 years; time_next + this fits a signed BIGINT

_SECONDS = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_COUNT = re.compile(r"[+-]?\d+", re.ASCII)
_ORDERS = {"oldest": False, "newest": True}
_KEYS = frozenset(
    {
        "vt_ack_wait",
        "vt_purge_after",
        "vt_batch_size",
        "vt_cache_size",
        "vt_poller_interval",
        "vt_min_backoff",
        "vt_max_backoff",
        "vt_message_cols",
        "vt_order",
    }
)


class CommentError(EngineError):
    """A comment that marks a message table but cannot be used; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Properties:
    """The settings of one message table.

    ack_wait_ns: the base wait after each send.
    purge_after_ns: acked rows older than this are deleted.
    batch_size: rows a receiver is given at once, at most.
    cache_size: keys held in memory for each shard, at most; also what a poll asks for.
    poller_interval_ns: between polls that nothing else caused, and between purges.
    min_backoff_ns, max_backoff_ns: the bounds of the backoff; a max of 0 is none.
    message_cols: the streamed columns, or None for all that are not hidden.
    newest: the original's order: latest ``time_next`` first, never-sent rows last.
    warnings: sentences for `streamfrom check`.
    """

    ack_wait_ns: int
    purge_after_ns: int
    batch_size: int
    cache_size: int
    poller_interval_ns: int
    min_backoff_ns: int
    max_backoff_ns: int = 0
    message_cols: tuple[str, ...] | None = None
    newest: bool = False
    warnings: tuple[str, ...] = ()


def is_message_table(comment: str) -> bool:
    """Return whether *comment* marks a message table; the sequence mark goes before."""
    return SEQUENCE_MARK not in comment and MARK in comment


def parse_comment(comment: str) -> Properties:
    """Return the settings in *comment*, or raise CommentError with the first fault.

    Faults are looked for in the original's order: the required keys, then the bounds of the
    backoff.
    """
    settings = _settings(comment)
    ack_wait_ns = _duration_ns(settings, "vt_ack_wait")
    purge_after_ns = _duration_ns(settings, "vt_purge_after")
    batch_size = _count(settings, "vt_batch_size")
    cache_size = _count(settings, "vt_cache_size")
    poller_interval_ns = _duration_ns(settings, "vt_poller_interval")
    min_backoff_ns, max_backoff_ns = ack_wait_ns, 0
    if settings.get("vt_min_backoff"):
        min_backoff_ns = _duration_ns(settings, "vt_min_backoff")
    if settings.get("vt_max_backoff"):
        max_backoff_ns = _duration_ns(settings, "vt_max_backoff")
    order = settings.get("vt_order") or "oldest"
    if order not in _ORDERS:
        raise CommentError(f"vt_order must be 'oldest' or 'newest', not '{order}'")
    columns = settings.get("vt_message_cols")
    return Properties(
        ack_wait_ns=ack_wait_ns,
        purge_after_ns=purge_after_ns,
        batch_size=batch_size,
        cache_size=cache_size,
        poller_interval_ns=poller_interval_ns,
        min_backoff_ns=min_backoff_ns,
        max_backoff_ns=max_backoff_ns,
        message_cols=tuple(name.strip() for name in columns.split("|")) if columns else None,
        newest=_ORDERS[order],
        warnings=_warnings(comment, settings),
    )


def _settings(comment: str) -> dict[str, str]:
    pieces = (piece.split("=") for piece in comment.split(","))
    return {piece[0].strip(): piece[1].strip() for piece in pieces if len(piece) == 2}


def _required(settings: dict[str, str], key: str) -> str:
    value = settings.get(key)
    if not value:
        raise CommentError(f"attribute {key} not specified for message table")
    return value


def _duration_ns(settings: dict[str, str], key: str) -> int:
    text = _required(settings, key)
    if _SECONDS.fullmatch(text):
        # Bounded before the product, so that 1e300 is a hundred years and not an overflow.
        duration_ns = round(min(float(text), float(WAIT_MAX_NS // 10**9)) * 1e9)
        if duration_ns > 0:
            return duration_ns
    raise CommentError(f"{key} must be a number of seconds greater than 0, not '{text}'")


def _count(settings: dict[str, str], key: str) -> int:
    text = _required(settings, key)
    if _COUNT.fullmatch(text) and int(text) > 0:
        return min(int(text), COUNT_MAX)
    raise CommentError(f"{key} must be a whole number greater than 0, not '{text}'")


def _warnings(comment: str, settings: dict[str, str]) -> tuple[str, ...]:
    unknown = [
        f"unknown key '{key}' in the comment is ignored"
        for key in settings
        if key.startswith("vt_") and key not in _KEYS
    ]
    names = [piece.split("=")[0].strip() for piece in comment.split(",")]
    unread = [
        f"'{name}' in the comment has no single value and is ignored"
        for name in dict.fromkeys(names)
        if name.startswith("vt_") and not settings.get(name)
    ]
    return tuple(unknown + unread)
