"""What a user may do on the status page: pause and resume a queue, revive its parked messages, end a stream.

A pause is the ALTER TABLE that `ALTER QUEUE … PAUSE` becomes (`queue_definitions`), sent on connections of the user's account, as
the page has no session of its own. It takes hold in all members, and one that half the shards took can be repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.messaging.upkeep.peek import can_peek
from streamfrom.engine.messaging.upkeep.revival import revive
from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.backends.shard_store import by_control
from streamfrom.proxy.errors import BadQueue, NoSuchQueue, NoSuchThread
from streamfrom.proxy.local_statements.queue_definitions import (
    alter_table,
    changed_comment,
    comment_in,
    is_queue,
    show_create_table,
)
from streamfrom.proxy.rights.desk import Question
from streamfrom.proxy.rights.questions import requeue
from streamfrom.proxy.sessions.asker import Asker
from streamfrom.proxy.sessions.local_sessions import LocalSessions, end
from streamfrom.sqlparse_ext.reading.queues import read_queue
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.status.status_source import Viewer


log = structlog.get_logger()


class QueueActions:
    """The actions, each of which is told in the log with who did it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def set_paused(
        self, user: User, keyspace: str, name: str, *, is_paused: bool
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
        definition = alter_table(queue.table, changed_comment(queue, comments[0]))
        try:
            for shard in shards:
                await services.rights.run(account_of(user), shard, definition)
        finally:
            await services.registry.definitions_changed(keyspace, (name,))
        log.info(
            "queue paused" if is_paused else "queue resumed",
            keyspace=keyspace,
            queue=name,
            by=user.name,
        )

    async def revive(self, user: User, keyspace: str, name: str) -> int:
        """Let the parked messages of a queue be due again, on all its shards; return how many these are.

        Raises:
            NoSuchQueue, BadQueue: there is none of this name, or no index finds its parked messages.
            BackendError: the user's account may not do it on a shard; nothing is done.
            StoreError: a shard says no; those before it have done it.
        """
        services = self._services
        shards = [shard for (of, _), shard in services.status.shards.items() if of == keyspace]
        table = services.registry.tables(keyspace).get(name) if shards else None
        if not isinstance(table, MessageTable):
            raise NoSuchQueue(name)
        if not can_peek(table):
            raise BadQueue(f"no index of '{name}' finds parked messages: see streamfrom check")
        right = requeue(table)
        for shard in shards:
            await services.rights.check(Question(account_of(user), None, shard, right))
        count = 0
        try:
            for shard in shards:
                place = None
                while True:
                    now_ns = services.clock.time_ns()
                    found = await by_control(shard, revive(table, place, now_ns))
                    count += found.rows
                    if found.rows:
                        # Whoever dispatches the shard hears of it, and polls.
                        news = Effect(EffectKind.RESCHEDULE, None)
                        services.registry.committed(keyspace, shard.name, name, [news])
                    if (place := found.place) is None:
                        break
        finally:
            log.info(
                "messages revived", keyspace=keyspace, queue=name, count=count, by=user.name
            )
        return count

    async def end_stream(self, viewer: Viewer, connection_id: int) -> None:
        """End the stream of a connection of the fleet, which gets error 1317 and may go on.

        Raises:
            NoSuchThread: no stream has this id, or the member that has it does not say so.
            NotOwner: it is another user's, and *viewer* is no admin.
            MemberUnreachable: the member that has it did not end it.
        """
        services, asker = self._services, Asker(viewer.user.name, viewer.is_admin)
        if connection_id in services.sessions:
            tables = [
                one.table.named
                for one in services.status.streams()
                if one.connection_id == connection_id
            ]
        else:
            others = await services.status.others.ask(["streams"], viewer)
            tables = [
                {"keyspace": one.keyspace, "queue": one.queue}
                for answer in others.answers
                for one in answer.streams
                if one.connection_id == connection_id and one.client is not None
            ]
        if not tables:
            raise NoSuchThread(connection_id)
        local, members = LocalSessions(services.sessions), services.members
        if members is not None and connection_id not in services.sessions:
            await members.kill(asker, connection_id, query_only=True)
        else:
            await end([local.find(asker, connection_id)], query_only=True)
        log.info("stream ended", **tables[0], connection=connection_id, by=asker.user)
