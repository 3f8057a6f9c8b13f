"""What an administrator may do on the status page: pause and resume a queue, end a stream.

A pause is the ALTER TABLE that `ALTER QUEUE … PAUSE` becomes (`queue_definitions`), sent over the shards' control connections, as
the page has no session of its own. It takes hold in all members, and one that half the shards took can be repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from streamfrom.proxy.errors import BadQueue, NoSuchQueue, NoSuchThread
from streamfrom.proxy.local_statements.queue_definitions import (
    alter_table,
    changed_comment,
    comment_in,
    is_queue,
    show_create_table,
)
from streamfrom.proxy.sessions.local_sessions import LocalSessions, end
from streamfrom.sqlparse_ext.reading.queues import read_queue
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.sessions.asker import Asker
    from streamfrom.proxy.sessions.services import Services


log = structlog.get_logger()


class QueueActions:
    """The actions, each of which is told in the log with who did it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def set_paused(
        self, asker: Asker, keyspace: str, name: str, *, is_paused: bool
    ) -> None:
        """Pause or resume a queue on all its shards.

        Raises:
            NoSuchQueue, BadQueue: there is none of this name, or its comment cannot be changed.
            BackendError, BackendUnavailable: a shard says no; those before it have done it.
        """
        services = self._services
        shards = [shard for (of, _), shard in services.status.shards.items() if of == keyspace]
        if not shards or name not in services.registry.tables(keyspace):
            raise NoSuchQueue(name)
        verb = "PAUSE" if is_paused else "RESUME"
        text = f"ALTER QUEUE {quote_identifier(name)} {verb}"
        queue = read_queue(services.cache.get(text.encode()))
        # All are asked before one is changed, so that a shard that is down stops it here.
        comments = []
        for shard in shards:
            ((_, definition, *_),) = await shard.control.rows(
                show_create_table(queue.table).decode()
            )
            if not is_queue(definition):
                raise BadQueue(f"table '{name}' of shard {shard.name} is no queue")
            comments.append(comment_in(definition))
        definition = alter_table(queue, changed_comment(queue, comments[0])).decode()
        try:
            for shard in shards:
                await shard.control.execute(definition)
        finally:
            await services.registry.definitions_changed(keyspace)
        log.info(
            "queue paused" if is_paused else "queue resumed",
            keyspace=keyspace,
            queue=name,
            by=asker.user,
        )

    async def end_stream(self, asker: Asker, connection_id: int) -> None:
        """End the stream of a connection, which gets error 1317 and may go on.

        Raises:
            NoSuchThread: no stream of this process has this id.
            NotOwner: it is another user's, and *asker* is no admin.
        """
        streams = self._services.status.streams()
        found = [one for one in streams if one.connection_id == connection_id]
        if not found:
            raise NoSuchThread(connection_id)
        peer = LocalSessions(self._services.sessions).find(asker, connection_id)
        await end([peer], query_only=True)
        table = found[0].table
        log.info("stream ended", **table.named, connection=connection_id, by=asker.user)
