"""The effects of an answer on its session, and on its connection.

A server reports changes by status flags and session trackers; the statement's text covers the changes that they do not show.
The state of a connection after the answer decides which session may have it next, and whether it is reset first
(`proxy.backends.pooling.pool`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.backend import Backend, LastDiagnostics
from streamfrom.proxy.backends.pooling.connection_handover import take_diagnostics
from streamfrom.proxy.execution.diagnostics_queries import ASKS_BACK
from streamfrom.proxy.execution.session_state import footprint_of, leaves_residue, must_stay
from streamfrom.proxy.execution.transaction import ROLLS_BACK, Branches, Keep
from streamfrom.proxy.execution.user_variable_sync import note_changes
from streamfrom.proxy.wire.constants import Status
from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.writes.hidden_writes import runs_unseen


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.wire.resultset import Ok, Tracker


_IN_TRANS: Final = int(Status.IN_TRANS)
_READS_ONLY: Final = int(Status.IN_TRANS_READONLY)
_ENDS: Final = frozenset({Kind.COMMIT, Kind.ROLLBACK, Kind.BEGIN})
_CURSOR_EXISTS: Final = int(Status.CURSOR_EXISTS)
_NONE_MATCHED: Final = b"Rows matched: 0 "
_MATCHED: Final = re.compile(rb"Rows matched: (\d+)")


def apply_ok(
    state: SessionState,
    branches: Branches,
    shard: ShardRuntime,
    backend: Backend,
    shape: Shape,
    ok: Ok,
    trackers: Sequence[Tracker],
) -> None:
    """Apply a successful answer to the session; its connection stays with the session or goes to the pool."""
    footprint = footprint_of(shape)
    if not footprint.keeps_found_rows:
        backend.found_rows = None
    elif shape.kind is Kind.UPDATE and not shard.is_mariadb:
        # MySQL counts the rows that an UPDATE finds, and MariaDB does not.
        matched = _MATCHED.match(ok.info)
        backend.found_rows = None if matched is None else int(matched[1])
    elif state.answered_at is not backend:
        _carry_found_rows(state, backend)
    state.answered_by(backend)
    backend.row_count = ok.affected_rows if footprint.counts_rows else None
    backend.has_warnings = ok.warnings > 0
    was_in_transaction = backend.in_transaction
    backend.in_transaction = bool(ok.status & _IN_TRANS)
    if footprint.passing:
        # MariaDB reports their values for the one statement, and undoes them after its answer.
        trackers = [tracker for tracker in trackers if tracker.name not in footprint.passing]
    if trackers:
        backend.note(trackers)
        state.note(trackers)
    if ok.last_insert_id or footprint.sets_insert_id:
        note_insert_id(state, backend, ok.last_insert_id)
    backend.has_residue = backend.has_residue or leaves_residue(shape, ok)
    backend.is_spent = backend.is_spent or footprint.outlives_reset
    backend.may_have_role = backend.may_have_role or footprint.may_begin
    if backend.in_transaction:
        branches.held[shard] = backend
        is_xa, reads_only = shape.kind is Kind.XA, bool(ok.status & _READS_ONLY)
        branches.entered(is_xa=is_xa, reads_only=reads_only)
    if must_stay(shape, trackers):
        branches.keep(shard, backend)
    elif ok.status & _CURSOR_EXISTS:
        branches.keep(shard, backend, Keep.CURSORS)
    elif backend.in_transaction:
        pass  # it is held already
    elif shape.verb == "SAVEPOINT" and not state.settings.autocommit:
        branches.saved(shard, backend)
    elif not branches.is_sticky(shard):
        branches.held.pop(shard, None)
        shard.pool.release(backend)
    if (trackers or footprint.assigns or footprint.runs_unseen) and branches.is_sticky(shard):
        note_changes(state, shard, backend, shape, trackers)
    has_hidden = (
        footprint.may_hide
        and branches.effects.hidden(shard).by(shape)
        and _has_found_rows(shape, ok)
    )
    if has_hidden:
        branches.effects.wrote_unseen(shard)
    if was_in_transaction:
        if backend.in_transaction:
            branches.went_on(shape)
        else:
            # The flag in the OK has gone, whatever ended it: COMMIT, an implicit commit of DDL, or
            # a procedure.
            branches.branch_ended(shard, shape)
    elif (
        branches.has_savepoints
        and not backend.in_transaction
        and (
            state.settings.autocommit
            or shape.kind in _ENDS
            or shape.uses & Uses.IMPLICIT_COMMIT
        )
    ):
        branches.savepoints_ended()
    if has_hidden:
        branches.committed_by_itself()


def _has_found_rows(shape: Shape, ok: Ok) -> bool:
    """Return whether a statement, of which the server counted the rows, found one that triggers and cascades may have seen."""
    if shape.kind is Kind.DELETE:
        return ok.affected_rows > 0 or bool(shape.uses & Uses.RETURNING)
    return shape.kind is not Kind.UPDATE or not ok.info.startswith(_NONE_MATCHED)


def _carry_found_rows(state: SessionState, backend: Backend) -> None:
    """Keep FOUND_ROWS() for a session that has moved to *backend*."""
    source = state.answered_at
    if source is not None:
        found = source.found_rows
        if found is not None:
            backend.found_rows = LastDiagnostics(found) if isinstance(found, int) else found
            return
        # Only its server knows it, and will return it.
        take_diagnostics(source, state)
    backend.found_rows = state.diagnostics or LastDiagnostics()


def apply_error(
    state: SessionState,
    branches: Branches,
    shard: ShardRuntime,
    backend: Backend,
    shape: Shape,
    code: int,
) -> None:
    """Apply an error that the server answered, as `apply_ok` does for success."""
    backend.may_have_role = backend.may_have_role or footprint_of(shape).may_begin
    if footprint_of(shape).outlives_reset:
        backend.is_spent = True
        branches.keep(shard, backend)
    if footprint_of(shape).assigns or branches.is_sticky(shard):
        # A variable that it set before it failed stays set.
        branches.keep(shard, backend)
        note_changes(state, shard, backend, shape, has_failed=True)
    backend.has_residue = True
    state.answered_by(backend)
    backend.found_rows = None
    backend.row_count = -1
    backend.has_warnings = True
    if backend.in_transaction or runs_unseen(shape):
        # Work that it committed before it failed, or that was committed as it began, stays.
        branches.failed(shard, shape)
    if code in ROLLS_BACK:
        branches.undone(shard, backend)
    elif not state.settings.autocommit and shape.kind is not Kind.SAVEPOINT:
        # An error packet does not report the transaction. Without autocommit a statement that
        # failed may still have opened one.
        backend.in_transaction = True
        branches.held[shard] = backend
        branches.entered()
    elif footprint_of(shape).may_begin:
        # Nor one that it began before it failed. The next answer will show it.
        backend.in_transaction = True
        branches.held[shard] = backend
    if shard not in branches.held:
        shard.pool.release(backend)


def apply_prepare(state: SessionState, backend: Backend) -> None:
    """Apply a COM_STMT_PREPARE that left an error or warnings on its connection."""
    if state.answered_at is not backend:
        _carry_found_rows(state, backend)
    state.answered_by(backend)
    backend.row_count = None
    backend.has_residue = backend.has_warnings = True


def note_insert_id(state: SessionState, backend: Backend, told: int) -> None:
    """Note a statement that may have made an insert id on *backend*.

    All connections of a session with a LAST_INSERT_ID() other than 0 have the same one. So 0 on this connection means that
    the earlier value still counts: an INSERT whose rows name their ids makes none, which the OK does not show.

    told: the insert id in the answer's OK; 0 for none.
    """
    _forget_copies(state, backend)
    source = state.insert_id_at
    if source is not backend:
        if source is None or source.is_closed:
            state.id_before = state.last_insert_id
        else:
            # It is fetched in the background; only a statement that needs it waits for it.
            state.id_before_at = source
            _take_insert_id(state, source)
        state.insert_id_at = backend
    # The remaining value if the connection breaks before it is read.
    state.last_insert_id = told or state.last_insert_id
    backend.has_insert_id = True


async def note_insert_ids(
    state: SessionState, told: Sequence[tuple[Backend, int]], shape: Shape
) -> None:
    """Note a write of several shards; *told* has each connection with its insert id, and the first id is the statement's."""
    is_untold = footprint_of(shape).sets_insert_id
    made = [(backend, insert_id) for backend, insert_id in told if insert_id or is_untold]
    # A part that made an id has no copy any more.
    state.insert_id_copies.difference_update(backend for backend, _ in made)
    for backend, insert_id in reversed(made):
        note_insert_id(state, backend, insert_id)
        before = state.id_before_at
        if is_untold and before is not None and before.leaving is not None:
            # Each may be the one before the next, and it knows whether there is any.
            await before.leaving.known()


def generated(state: SessionState, insert_id: int) -> None:
    """Note an INSERT whose first id, *insert_id*, is from a sequence."""
    _forget_copies(state)
    source = state.insert_id_at
    state.insert_id_at = state.id_before_at = None
    state.last_insert_id = insert_id
    if source is not None and not source.is_closed:
        _take_insert_id(state, source)


def _forget_copies(state: SessionState, *kept: Backend) -> None:
    """Set LAST_INSERT_ID() to 0 on all connections that have a copy of it, except *kept*."""
    for copy in state.insert_id_copies - {*kept, state.insert_id_at}:
        if not copy.is_closed:
            _take_insert_id(state, copy)
    state.insert_id_copies.clear()


def _take_insert_id(state: SessionState, source: Backend) -> None:
    if source.leaving is None:
        take_diagnostics(source, state)


async def bring_insert_id(state: SessionState, backend: Backend, shape: Shape) -> None:
    """Set LAST_INSERT_ID() on *backend* to that of the session's last INSERT. Raises BackendError or BackendLost.

    shape: the statement that reads it, perhaps with the diagnostics of the previous statement.
    """
    source = state.insert_id_at
    if source is not None and source is not backend and not source.is_closed:
        # Or its next user does at this moment; it comes to the state.
        _take_insert_id(state, source)
    for asked in (source, state.id_before_at):
        if asked is not None and asked.leaving is not None:
            await asked.leaving.known()
    if state.insert_id_at is backend and not state.id_before:
        return
    if state.answered_at is backend and shape.uses & ASKS_BACK:
        # After the SET the server would return those of the SET.
        await take_diagnostics(backend, state).known()
    value = b"%d" % state.last_insert_id
    if state.insert_id_at is backend:
        # MySQL takes integers only, and a choice with a signed one is none.
        value = (
            b"CAST(IF(LAST_INSERT_ID(), LAST_INSERT_ID(), %d) AS UNSIGNED)" % state.id_before
        )
    # The session has changed connections since its INSERT, so without this SET the server would return 0.
    await backend.query(b"SET last_insert_id = " + value)
    state.insert_id_at, state.id_before_at = backend, None
    state.id_before = 0
    backend.has_insert_id = True


async def spread_insert_id(
    state: SessionState, backends: Sequence[Backend], shape: Shape
) -> None:
    """Set LAST_INSERT_ID() on each of *backends*, which run one statement, if that reads it. Raises as `bring_insert_id`.

    That has brought it to each of them in turn, so only the last one has it.
    """
    if not footprint_of(shape).needs_insert_id:
        return
    for backend in backends:
        if backend is not state.insert_id_at:
            await backend.query(b"SET last_insert_id = %d" % state.last_insert_id)
            state.insert_id_copies.add(backend)
            backend.has_insert_id = True
