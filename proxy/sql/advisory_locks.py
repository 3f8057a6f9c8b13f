"""Advisory locks of a session (`GET_LOCK()` and similar): all of them are on one server.

A lock belongs to the server of the keyspace or shard in which it was taken, so all sessions of that keyspace
exclude one another. On one server a session keeps its locks after `USE` of another keyspace. Here `GET_LOCK()` of the
same name would wait for the session itself, or give it a second lock. So while a session has locks on one server, these
functions are refused on any other. The server reports whether the session still has its locks, by their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.pooling.connection_handover import take_diagnostics
from streamfrom.proxy.execution.session_state import AskedLocks
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.session.session_calls import lock_calls
from streamfrom.sqlparse_ext.statements import Kind, Statement


if TYPE_CHECKING:
    from streamfrom.proxy.sql.session_context import SessionContext


# Statements of these kinds do not call the functions that they name.
_TELL_OF: Final = frozenset({Kind.DDL, Kind.EXPLAIN, Kind.SHOW, Kind.PREPARE})


async def note_locks(context: SessionContext, statement: Statement) -> None:
    """Note a statement of Uses.ADVISORY_LOCK that is about to run.

    Raises as `SessionTarget.resolve`; Unsupported if the session has, or may have, locks on another server, or if several shards
    would call these functions; BackendLost if the connection with its locks is gone.
    """
    shape, state = statement.shape, context.state
    if shape.kind in _TELL_OF:
        return
    view = context.compiler.target.resolve(statement).view
    if view.is_sharded and shape.tables:
        raise Unsupported(
            "functions of advisory locks together with a table in a sharded keyspace; use one SELECT for each"
        )
    shard = view.runtimes[0]
    asked = state.locks
    if asked is not None and asked.shard is not shard:
        if await _may_have(context, asked):
            raise Unsupported(
                "functions of advisory locks in another keyspace or shard than"
                f" '{asked.shard}', where this session has locks; release them there"
            )
        state.locks = asked = None
    names, has_others, _ = lock_calls(statement)
    if names or has_others:
        if asked is not None:
            names, has_others = names | asked.names, has_others or asked.has_others
        state.locks = AskedLocks(shard, names, has_others)


async def _may_have(context: SessionContext, asked: AskedLocks) -> bool:
    backend = context.executor.branches.held.get(asked.shard)
    if backend is None:
        return False  # no lock was taken
    if asked.has_others:
        return True
    if context.state.answered_at is backend:
        take_diagnostics(backend, context.state)
    held = (b"IS_USED_LOCK(%b) <=> CONNECTION_ID()" % name for name in asked.names)
    (answer,) = await backend.answers([query(b"SELECT " + b" OR ".join(held))])
    return not answer.rows or parse_text_row(answer.rows[0], 1) != [b"0"]
