"""User variables that follow a session to its connections on other servers.

User variables are in the connection that changed them last. A connection of another keyspace or shard is given them before
it runs anything, because a trigger may read a variable that no text names. A variable that cannot be copied exactly is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.pooling.connection_handover import take_diagnostics
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.execution.session_state import SessionState, footprint_of
from streamfrom.proxy.execution.user_variables import (
    NAMES_ON_MARIADB,
    NAMES_ON_MYSQL,
    UserVariables,
    assignment,
    differing,
    question,
    read,
)
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import TrackerKind
from streamfrom.proxy.wire.resultset import Tracker, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Kind, Shape


if TYPE_CHECKING:
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.transaction import Branches
    from streamfrom.proxy.execution.user_variables import VariableValue


# A tracker reports only that something changed; the variable is in the text, or it was no user variable.
_EXPLAINED: Final = frozenset({Kind.SET, Kind.DDL, Kind.LOCK, Kind.XA})


def note_changes(
    state: SessionState,
    shard: ShardRuntime,
    backend: Backend,
    shape: Shape,
    trackers: Sequence[Tracker] = (),
    *,
    has_failed: bool = False,
) -> None:
    """Note a statement that may have set user variables, on a connection that stays.

    has_failed: the statement failed, and a trigger may have set variables before.
    """
    footprint, known = footprint_of(shape), state.variables
    names, has_unnamed = footprint.variables, footprint.runs_unseen
    if any(t.kind == TrackerKind.STATE for t in trackers) and shape.kind not in _EXPLAINED:
        has_unnamed = True
    may_have_set = footprint.assigns or has_unnamed or (has_failed and known is not None)
    if not may_have_set:
        return
    if known is not None:
        names, has_unnamed = names | known.names, has_unnamed or known.has_unnamed
    state.variables = backend.variables = UserVariables(shard, backend, names, has_unnamed)


async def carry_variables(
    state: SessionState, branches: Branches, shard: ShardRuntime, backend: Backend
) -> None:
    """Set the user variables on *backend* to those of the session.

    Raises Unsupported if one cannot be copied exactly, BackendLost if either connection is gone.
    """
    newest = state.variables
    if newest is not None and newest is not backend.variables:
        if not newest.values:
            _leave(state, newest.backend)
            newest.values.update(await _values(newest.backend, await _names(newest)))
        _leave(state, backend)
        wanted = newest.values
        found = await _values(backend, wanted)
        if missing := differing(wanted, found):
            # No other session may have the connection from here on, even if this fails half way.
            branches.keep(shard, backend)
            sets = [query(assignment(name, wanted[name])) for name in missing]
            await backend.answers(sets)
            found.update(await _values(backend, missing))
            if missing := differing(wanted, found):
                raise Unsupported(
                    f"user variable @{missing[0]} in another keyspace or shard: it would not be the"
                    " same there; set it again there"
                )
    backend.variables = newest


def _leave(state: SessionState, backend: Backend) -> None:
    """Take the last statement's diagnostics before another one runs on its connection."""
    if state.answered_at is backend:
        take_diagnostics(backend, state)


async def _names(newest: UserVariables) -> frozenset[str]:
    """Return the names of all variables that the session may have set."""
    reason = "performance_schema is off"
    found: list[str | None] = []
    try:
        found = await _listed(newest)
    except BackendError as error:
        reason = str(error)
    if found:
        told = (name for name in found if name is not None)
        return newest.names | {name.lower() if name.isascii() else name for name in told}
    if not newest.has_unnamed:
        return newest.names
    raise Unsupported(
        "user variables that a stored program may have set, in another keyspace or"
        f" shard: the server does not list them: {reason}; stay in one, or reset the connection"
    )


async def _listed(newest: UserVariables) -> list[str | None]:
    """Return the names that the server lists, or NULL at least. Raises BackendError."""
    backend, shard = newest.backend, newest.shard
    if not shard.is_mariadb:
        # It takes a privilege that the account of the shard's address has, and a user's own one need not have.
        rows = await shard.control.rows(NAMES_ON_MYSQL.format(backend.thread_id))
        return [name for (name,) in rows]
    answer = await backend.query(NAMES_ON_MARIADB)
    names = [parse_text_row(row, 1)[0] for row in answer.rows]
    return [None if n is None else n.decode("utf-8", "surrogateescape") for n in names]


async def _values(backend: Backend, names: Iterable[str]) -> dict[str, VariableValue]:
    ordered = sorted(names)
    answers = await backend.answers([query(question(name)) for name in ordered])
    for answer in answers:
        if answer.error is not None:
            raise Unsupported(
                f"user variables in another keyspace or shard: {answer.error.exception()}"
            )
    return {
        name: read(name, answer.columns, answer.rows)
        for name, answer in zip(ordered, answers, strict=True)
    }
