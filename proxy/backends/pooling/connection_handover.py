"""The handover of a connection from one session to another.

A session keeps a connection until another session needs it. Before the handover `take_diagnostics`
gives the old owner the diagnostics that it leaves there. `hand_over` then sets the new owner's
variables and database, and resets the connection if the new owner could notice the old one.
`hand_over_now` does the same on the hot path, where nothing may wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.answer_readers import AnswerCollector
from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.wire.commands import RESET_CONNECTION, init_db, query
from streamfrom.proxy.wire.resultset import parse_text_row


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner
    from streamfrom.proxy.backends.session_variables import Settings


SHOW_WARNINGS: Final = query(b"SHOW WARNINGS")
# Read from left to right: LAST_INSERT_ID() is the value before, LAST_INSERT_ID(0) sets it to 0.
_COUNTS: Final = query(
    b"SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID() + LAST_INSERT_ID(0) LIMIT 1"
)
# An INSERT leaves only this to ask, since its answer has the counts. One column takes half of the packets of three.
_INSERT_ID: Final = query(b"SELECT LAST_INSERT_ID() + LAST_INSERT_ID(0) LIMIT 1")


def fits(
    backend: Backend, owner: ConnectionOwner, settings: Settings, database: str | None
) -> bool:
    """True when `hand_over` would have nothing to do."""
    return (
        backend.settings is settings
        and backend.database == database
        and (backend.owner is owner or not (backend.has_residue or backend.has_insert_id))
    )


def hand_over_now(
    backend: Backend, owner: ConnectionOwner, settings: Settings, database: str | None
) -> bool:
    """Do as `hand_over` if no wait is needed, and return True; otherwise do nothing and return False.

    The query for the old owner's diagnostics leaves in one write with the next statement, so a
    handover costs no round trip if clients outnumber connections.
    """
    if backend.settings is not settings or backend.database != database:
        return False
    if backend.owner is not owner:
        if backend.has_residue or backend.leaving is not None or not backend.may_serve(owner):
            return False
        take_diagnostics(backend, backend.owner)
        backend.owner = owner
    return True


async def hand_over(
    backend: Backend, owner: ConnectionOwner, settings: Settings, database: str | None
) -> None:
    """Make this the connection of *owner*: reset, variables, database as needed.

    Raises BackendError, and closes the connection, if the server refuses, for example because the database is gone; BackendLost if it went away.
    """
    foreign = backend.owner is not owner
    if foreign:
        await take_diagnostics(backend, backend.owner).known()
        backend.check_open()
    if fits(backend, owner, settings, database):
        backend.owner = owner
        return
    packets = []
    resets = (foreign and backend.has_residue) or not settings.fits(backend.settings)
    if resets:
        # A reset also ends the tracking, and sets the server's default character set instead of
        # the login's, so tracking and every variable are set again.
        packets += [RESET_CONNECTION, query(backend.tracking)]
        backend.was_reset()
    change = settings.statement_from(backend.settings)
    if change is not None:
        packets.append(query(change))
    # A reset also replaces the collation of the database, in whose characters LOAD DATA reads
    # files, by the server's, until the database is named again.
    if database is not None and (resets or database != backend.database):
        packets.append(init_db(settings.encoded(database)))
    backend.owner = owner
    try:
        if packets:
            await backend.pipeline(packets)
    except BackendError:
        backend.close()
        raise
    backend.settings = settings
    if database is not None:
        backend.database = database


def take_diagnostics(backend: Backend, owner: ConnectionOwner | None) -> LastDiagnostics:
    """Return the diagnostics that *owner* leaves on *backend*; set LAST_INSERT_ID() there to 0.

    It is `known` once the server has answered. Usually the server needs no query, or one
    statement: with more clients than connections, every INSERT into a table with AUTO_INCREMENT
    pays for it. The connection is closed if the server refuses, because the next session would otherwise
    see the insert id of this one.
    """
    diagnostics, found = LastDiagnostics(), backend.found_rows
    asks = owner is not None and owner.keeps_diagnostics(backend, diagnostics)
    if found is not None:
        diagnostics.found_rows = found if isinstance(found, int) else found.found_rows
    if backend.row_count is not None:
        diagnostics.row_count = backend.row_count
    warns = asks and backend.has_warnings
    counts = asks and (found is None or backend.row_count is None)
    counts = counts or (backend.has_residue and owner is not None)
    # In this order: on both servers SHOW WARNINGS leaves FOUND_ROWS() as it is.
    questions = [SHOW_WARNINGS] if warns else []
    if counts or backend.has_insert_id:
        questions.append(_COUNTS if counts else _INSERT_ID)
    if questions:
        diagnostics.asked = asyncio.get_running_loop().create_future()
        backend.leaving = diagnostics
        _ask(questions, backend, owner, diagnostics, diagnostics.asked)
    return diagnostics


def _ask(
    questions: Sequence[bytes],
    backend: Backend,
    owner: ConnectionOwner | None,
    diagnostics: LastDiagnostics,
    asked: asyncio.Future[None],
) -> None:
    """Send *questions*; *asked* is done once the server has answered the last one."""
    unanswered = deque(questions)

    def lost(_: object) -> None:
        backend.abort()
        end()

    def end() -> None:
        backend.leaving = None
        if not asked.done():
            asked.set_result(None)

    def heard(answer: BufferedAnswer) -> None:
        if answer.error is not None:
            lost(answer)
            return
        if unanswered.popleft() is SHOW_WARNINGS:
            diagnostics.columns, diagnostics.rows = answer.columns, answer.rows
        else:
            values = parse_text_row(answer.rows[0])
            *counts, insert_id = (int(value or 0) for value in values)
            if counts and backend.found_rows is None:
                diagnostics.found_rows = counts[0]
            if counts and backend.row_count is None:
                diagnostics.row_count = counts[1]
            if owner is not None:
                owner.handed_over(backend, insert_id)
            backend.has_insert_id = False
            # The SELECT of this question has found one row itself.
            backend.found_rows = 1
        if not unanswered:
            end()

    for question in questions:
        backend.send(question, AnswerCollector(heard, lost), ahead=True)
