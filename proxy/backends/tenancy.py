"""Whose a connection is, and how it becomes somebody else's.

A client's session has a connection for as long as nobody else needs it. Before another one gets
it, `take_leave` tells the old one what it leaves there, and `adopt` makes it the new one's:
variables, database, and a reset where the new one could notice the last one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from proxy.backends.remains import Left
from proxy.backends.settings import Settings
from proxy.errors import BackendError
from proxy.wire.commands import init_db, query, reset_connection
from proxy.wire.resultset import parse_text_row


if TYPE_CHECKING:
    from proxy.backends.backend import Backend, Tenant


# From left to right: what the last two say is the value before and the one from now on.
_WHAT_IS_LEFT: Final = query(
    b"SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID(), LAST_INSERT_ID(0)"
)


def fits(backend: Backend, owner: Tenant, settings: Settings, database: str | None) -> bool:
    """True when `adopt` would have nothing to do."""
    return (
        backend.settings is settings
        and backend.database == database
        and (backend.owner is owner or not (backend.has_residue or backend.has_insert_id))
    )


async def adopt(
    backend: Backend, owner: Tenant, settings: Settings, database: str | None
) -> None:
    """Make this the connection of *owner*: reset, variables, database as needed.

    Raises:
        BackendError: the server refuses, for example because the database is gone; the
            connection is closed then.
        BackendLost: it went away.
    """
    foreign = backend.owner is not owner
    if foreign:
        await take_leave(backend, backend.owner)
    if fits(backend, owner, settings, database):
        backend.owner = owner
        return
    packets = []
    if (foreign and backend.has_residue) or not settings.fits(backend.settings):
        # A reset forgets the tracking too, and takes the server's default character set
        # rather than the one of the login, so everything is said again.
        packets += [reset_connection(), query(backend.tracking)]
        backend.settings = Settings()
        backend.statements.clear()
        backend.found_rows = None
        backend.has_residue = backend.has_insert_id = False
    change = settings.statement_from(backend.settings)
    if change is not None:
        packets.append(query(change))
    if database != backend.database and database is not None:
        packets.append(init_db(database.encode()))
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


async def take_leave(backend: Backend, owner: Tenant | None) -> None:
    """Tell *owner* what it left here, before others come; take LAST_INSERT_ID() away.

    One round trip, and mostly one statement: with more clients than connections every
    INSERT into a table with AUTO_INCREMENT pays for it. Raises as `run`.
    """
    left = Left(asyncio.get_running_loop().create_future())
    asks = owner is not None and owner.leaves(backend, left)
    shows_warnings = asks and backend.has_warnings
    counts = asks and (backend.found_rows is None or backend.row_count is None)
    packets = []
    # In this order: on both servers SHOW WARNINGS leaves FOUND_ROWS() as it is.
    if shows_warnings:
        packets.append(query(b"SHOW WARNINGS"))
    if counts or backend.has_insert_id or (backend.has_residue and owner is not None):
        packets.append(_WHAT_IS_LEFT)
    if backend.found_rows is not None:
        left.found_rows = backend.found_rows
    if backend.row_count is not None:
        left.row_count = backend.row_count
    try:
        answers = await backend.pipeline(packets) if packets else []
        if shows_warnings:
            left.columns, left.rows = answers[0].columns, answers[0].rows
        if len(answers) > shows_warnings:
            values = parse_text_row(answers[-1].rows[0])
            found, counted, insert_id, _ = (int(value or 0) for value in values)
            if backend.found_rows is None:
                left.found_rows = found
            if backend.row_count is None:
                left.row_count = counted
            if owner is not None:
                owner.evicted(backend, insert_id)
            backend.has_insert_id = False
            # What that SELECT itself has found.
            backend.found_rows = 1
    finally:
        left.known.set_result(None)
