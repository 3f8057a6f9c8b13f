"""Whose a connection is, and how it becomes somebody else's.

A client's session has a connection for as long as nobody else needs it. Before another one gets
it, `take_diagnostics` tells the old one what it leaves there, and `hand_over` makes it the new one's:
variables, database, and a reset where the new one could notice the last one. `hand_over_now` is that
for the hot path, where nothing is waited for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.answer_readers import AnswerCallback
from streamfrom.proxy.backends.diagnostics_area import CarriedFoundRows, LastDiagnostics
from streamfrom.proxy.backends.settings import Settings
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.wire.commands import init_db, query, reset_connection
from streamfrom.proxy.wire.resultset import parse_text_row


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner


SHOW_WARNINGS: Final = query(b"SHOW WARNINGS")
# From left to right: what the last two say is the value before and the one from now on.
_WHAT_IS_LEFT: Final = query(
    b"SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID(), LAST_INSERT_ID(0)"
)


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
    """Do what `hand_over` does where nothing must be waited for; False, and nothing, elsewhere.

    What the last owner leaves is asked for just before the statement that will come, so where
    clients outnumber connections a change of hands is no round trip of its own.
    """
    if backend.settings is not settings or backend.database != database:
        return False
    if backend.owner is not owner:
        if backend.has_residue or backend.leaving is not None:
            return False
        take_diagnostics(backend, backend.owner)
        backend.owner = owner
    return True


async def hand_over(
    backend: Backend, owner: ConnectionOwner, settings: Settings, database: str | None
) -> None:
    """Make this the connection of *owner*: reset, variables, database as needed.

    Raises:
        BackendError: the server refuses, for example because the database is gone; the
            connection is closed then.
        BackendLost: it went away.
    """
    foreign = backend.owner is not owner
    if foreign:
        await asyncio.wait([take_diagnostics(backend, backend.owner).known])
        backend.check_open()
    if fits(backend, owner, settings, database):
        backend.owner = owner
        return
    packets = []
    resets = (foreign and backend.has_residue) or not settings.fits(backend.settings)
    if resets:
        # A reset forgets the tracking too, and takes the server's default character set
        # rather than the one of the login, so everything is said again.
        packets += [reset_connection(), query(backend.tracking)]
        backend.settings = Settings()
        backend.variables = None
        backend.statements.clear()
        backend.found_rows = None
        backend.has_residue = backend.has_insert_id = False
    change = settings.statement_from(backend.settings)
    if change is not None:
        packets.append(query(change))
    # A reset also takes the server's collation for that of the database, in whose characters
    # LOAD DATA reads files, until the database is named again.
    if database is not None and (resets or database != backend.database):
        packets.append(init_db(settings.encoded(database)))
    # It is the new owner's already: the packets carry no query attributes of the old one's.
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
    """Tell *owner* what it leaves here before others come; take LAST_INSERT_ID() away.

    Returns what it is told, which is `known` once the server has said its part. Mostly that is
    nothing, or one statement: with more clients than connections every INSERT into a table with
    AUTO_INCREMENT pays for it. A server that refuses loses the connection: what another
    session left would stay on it.
    """
    left = LastDiagnostics(asyncio.get_running_loop().create_future())
    asks = owner is not None and owner.keeps_diagnostics(backend, left)
    if isinstance(backend.found_rows, CarriedFoundRows):
        left.found_rows = backend.found_rows.told or 0
    elif backend.found_rows is not None:
        left.found_rows = backend.found_rows
    if backend.row_count is not None:
        left.row_count = backend.row_count
    farewell = _LeavingQuery(backend, owner, left)
    # In this order: on both servers SHOW WARNINGS leaves FOUND_ROWS() as it is.
    if asks and backend.has_warnings:
        farewell.ask_warnings()
    counts = asks and (backend.found_rows is None or backend.row_count is None)
    if counts or backend.has_insert_id or (backend.has_residue and owner is not None):
        farewell.ask_counts()
    if backend.leaving is None:
        left.known.set_result(None)
    return left


class _LeavingQuery:
    """What a server is asked when its connection changes hands, and what becomes of the answers."""

    def __init__(
        self, backend: Backend, owner: ConnectionOwner | None, left: LastDiagnostics
    ) -> None:
        self._backend = backend
        self._owner = owner
        self._left = left
        self._unanswered = 0

    def ask_warnings(self) -> None:
        self._ask(SHOW_WARNINGS, self._warned)

    def ask_counts(self) -> None:
        self._ask(_WHAT_IS_LEFT, self._counted)

    def _ask(self, question: bytes, heard: Callable[[BufferedAnswer], None]) -> None:
        self._unanswered += 1
        self._backend.leaving = self._left
        self._backend.send_ahead(question, AnswerCallback(heard, self._missed))

    def _warned(self, answer: BufferedAnswer) -> None:
        self._left.columns, self._left.rows = answer.columns, answer.rows
        self._answered()

    def _counted(self, answer: BufferedAnswer) -> None:
        backend, left = self._backend, self._left
        values = parse_text_row(answer.rows[0])
        found, counted, insert_id, _ = (int(value or 0) for value in values)
        if backend.found_rows is None:
            left.found_rows = found
        if backend.row_count is None:
            left.row_count = counted
        if self._owner is not None:
            self._owner.handed_over(backend, insert_id)
        backend.has_insert_id = False
        # What that SELECT itself has found.
        backend.found_rows = 1
        self._answered()

    def _answered(self) -> None:
        self._unanswered -= 1
        if not self._unanswered:
            self._end()

    def _missed(self) -> None:
        self._backend.abort()
        self._end()

    def _end(self) -> None:
        self._backend.leaving = None
        if not self._left.known.done():
            self._left.known.set_result(None)
