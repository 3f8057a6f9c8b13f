"""What may be tried again: decided by the statement and the server's own refusal. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from streamfrom.proxy.wire.resultset import Err
    from streamfrom.sqlparse_ext.statements import Shape


# The server is alive and did nothing, because it is read-only or on its way down.
_REFUSED_UNDONE: Final = frozenset({1053, 1836, 3032})
_OPTION_PREVENTS: Final = 1290


def was_refused_undone(error: Err | None) -> bool:
    """True when the server did nothing because it is read-only or shutting down."""
    if error is None:
        return False
    if error.code == _OPTION_PREVENTS:
        # 1290 names the option: --read-only, --super-read-only, but also --secure-file-priv.
        return b"read-only" in error.message or b"read_only" in error.message
    return error.code in _REFUSED_UNDONE


def is_repeatable(shape: Shape) -> bool:
    """True for statements that change nothing, not even by a function we know of."""
    return shape.kind in {Kind.SELECT, Kind.SHOW, Kind.EXPLAIN} and not shape.uses & (
        Uses.UNPARSED
        | Uses.USER_VARIABLE
        | Uses.ADVISORY_LOCK
        | Uses.SETS_LAST_INSERT_ID
        | Uses.LOCKING_READ
        | Uses.INTO
    )
