"""The paths by which the page reads messages and acts: their parameters, and their refusals.

| path | takes | answers |
|---|---|---|
| `GET /api/messages` | keyspace, queue, state, cursor; column, value, how (`is`, `contains`) to find | rows, looked_at, missing, next |
| `GET /api/message` | keyspace, queue, shard, key | one message whole |
| `POST /api/act` | keyspace, queue, action; messages, or state, column, value, how, limit, cursor | done, looked_at, missing, next |
| `POST /api/requeue` | keyspace, queue, source (`parked`, `dead`), limit | done |
| `POST /api/pause`, `/api/resume` | keyspace, queue | |
| `POST /api/end-stream` | connection_id | |

Each action is a statement that the user could send with a MySQL client, in a session of the user. So the servers' grants decide, the
dispatchers are informed, and the statement's rules apply. An action on all matching messages is done in parts, one per request: finished parts stay done when the browser leaves, and the page can keep to a rate.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import web

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.messaging.upkeep.peek import Match, PeekState, can_peek, in_state
from streamfrom.proxy.admin import queue_messages
from streamfrom.proxy.admin.admin_gate import AdminGate, Visitor, posted
from streamfrom.proxy.admin.history import records
from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.errors import NoSuchThread
from streamfrom.proxy.rights.questions import REFUSALS
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, quoted


if TYPE_CHECKING:
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.status.status_source import Viewer

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
    # Runs a statement in a keyspace or one of its shards, and returns how many rows it changed.
    Run = Callable[[str, bytes], Awaitable[int]]
    # The same as a user whose browser is on a host: `vtgate.inner_client.run_as`.
    RunAs = Callable[[str, str, str, bytes], Awaitable[int]]


log = structlog.get_logger()


class Action(StrEnum):
    """The actions on messages."""

    RETRY = "retry"
    ACK = "ack"
    PARK = "park"
    DELETE = "delete"


_CHANGES: Final = {
    Action.RETRY: b"UPDATE %b SET time_next = 0, epoch = 0 WHERE %b IN (%b) AND time_acked IS NULL",
    Action.ACK: b"UPDATE %b SET time_acked = NOW() WHERE %b IN (%b) AND time_acked IS NULL",
    Action.PARK: b"UPDATE %%b SET time_next = %d WHERE %%b IN (%%b) AND time_acked IS NULL"
    % PARKED_NS,
    Action.DELETE: b"DELETE FROM %b WHERE %b IN (%b)",
}
# No stream takes them, so a message that has left this state since is no longer meant.
_GUARDED: Final = frozenset({PeekState.PARKED, PeekState.BLOCKED})


async def change(
    run: Run,
    table: MessageTable,
    action: Action,
    ids: Mapping[str, Sequence[bytes]],
    state: PeekState | None = None,
    *,
    by: str,
) -> int:
    """Do *action* to messages; return how many it changed. Raises BackendError.

    ids: raw, by shard.
    state: leave alone messages that are no longer in it, if that is possible.
    by: the user, for the log.
    """
    guard = b" AND " + in_state(state, 0) if state in _GUARDED else b""
    name, ident = quoted(table.name), quoted(table.id_column)
    count = 0
    try:
        for shard, some in ids.items():
            if some:
                listed = b", ".join(map(table.id_literal, some))
                statement = _CHANGES[action] % (name, ident, listed) + guard
                count += await run(f"{table.keyspace}:{shard}", statement)
    finally:
        log.info("messages changed", **table.named, action=action.value, count=count, by=by)
    return count


# Of messages that are chosen one by one.
SELECTED_MAX: Final = 200
_NO_QUEUE: Final = "no such queue that you may see and that can be used\n"
# Errors for a missing thread or table.
_NOT_FOUND: Final = frozenset({1094, 1146})
_NOT_OWNER: Final = 1095
_SOURCES: Final = {"parked": "PARKED", "dead": "DEAD"}


class QueueApi:
    """Handlers of HTTP requests.

    viewer: returns a visitor's rights to see.
    run_as: runs the statements of users, each of which is logged with the user's name.
    """

    def __init__(
        self,
        services: Services,
        gate: AdminGate,
        viewer: Callable[[Visitor], Awaitable[Viewer]],
        run_as: RunAs,
    ) -> None:
        self._services = services
        self._gate = gate
        self._viewer = viewer
        self._run_as = run_as
        self._messages = queue_messages.QueueMessages(services)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Return method, path and handler of each."""
        handlers: list[tuple[str, str, Handler]] = [
            ("GET", "/api/messages", self.list),
            ("GET", "/api/message", self.one),
            ("POST", "/api/act", self.act),
            ("POST", "/api/requeue", self.requeue),
            ("POST", "/api/pause", partial(self.set_paused, is_paused=True)),
            ("POST", "/api/resume", partial(self.set_paused, is_paused=False)),
            ("POST", "/api/end-stream", self.end_stream),
        ]
        return [(method, path, partial(_worded, handler)) for method, path, handler in handlers]

    async def list(self, request: web.Request) -> web.Response:
        """Answer with some messages."""
        visitor, asked = self._gate.visitor(request), request.query
        look = _look(asked)
        table = await self._table(visitor, asked)
        page = await self._messages.page(
            account_of(visitor.user), table, _known(table, look), asked.get("cursor", "")
        )
        return web.json_response(page)

    async def one(self, request: web.Request) -> web.Response:
        """Answer with a whole message."""
        visitor, asked = self._gate.visitor(request), request.query
        table = await self._table(visitor, asked)
        found = await self._messages.one(
            account_of(visitor.user), table, asked.get("shard", ""), asked.get("key", "")
        )
        if found is None:
            raise web.HTTPNotFound(text="the message is gone\n")
        return web.json_response(found)

    async def act(self, request: web.Request) -> web.Response:
        """Act on the messages that are named, or on the next ones that match."""
        visitor, body = self._gate.poster(request), await posted(request)
        try:
            action = Action(str(body.get("action")))
        except ValueError:
            raise web.HTTPBadRequest(text=_one_of("action", Action)) from None
        named = body.get("messages")
        look = None if named is not None else _look(body)
        limit = _limit(body)
        table = await self._table(visitor, body)
        ids: dict[str, list[bytes]] = {}
        answer: dict[str, Any] = {"looked_at": 0, "missing": [], "next": None}
        state = None
        if look is None:
            for shard, key in _named(named):
                ids.setdefault(shard, []).append(queue_messages.raw_id(table, key))
        else:
            account, cursor = account_of(visitor.user), body.get("cursor") or ""
            if not isinstance(cursor, str):
                raise queue_messages.BadCursor("cursor: expected a text")
            walk = await self._messages.walk(
                account, table, _known(table, look), cursor, most=limit
            )
            for runtime, row in walk.rows:
                ids.setdefault(runtime.name, []).append(row.id)
            answer["looked_at"], answer["missing"] = walk.looked_at, walk.missing
            answer["next"] = walk.following
            state = None if look.state == queue_messages.IN_FLIGHT else PeekState(look.state)
        known = {one.name for one in self._services.catalog.view(table.keyspace).runtimes}
        if not ids.keys() <= known:
            raise queue_messages.BadCursor("shard: no shard of this queue")
        run, by = self._runner(visitor, request), visitor.user.name
        answer["done"] = await change(run, table, action, ids, state, by=by)
        return web.json_response(answer)

    async def requeue(self, request: web.Request) -> web.Response:
        """Make some parked messages or dead letters ready."""
        visitor, body = self._gate.poster(request), await posted(request)
        source = _SOURCES.get(str(body.get("source")))
        if source is None:
            raise web.HTTPBadRequest(text=_one_of("source", _SOURCES))
        limit = _limit(body)
        table = await self._table(visitor, body, by_state=False)
        text = f"ALTER QUEUE {quote_identifier(table.name)} REQUEUE {source} LIMIT {limit}"
        done = await self._runner(visitor, request)(table.keyspace, text.encode())
        return web.json_response({"done": done})

    async def set_paused(self, request: web.Request, *, is_paused: bool) -> web.Response:
        """Pause or resume a queue."""
        visitor, body = self._gate.poster(request), await posted(request)
        table = await self._table(visitor, body, by_state=False)
        verb = "PAUSE" if is_paused else "RESUME"
        text = f"ALTER QUEUE {quote_identifier(table.name)} {verb}"
        await self._runner(visitor, request)(table.keyspace, text.encode())
        log.info(
            "queue paused" if is_paused else "queue resumed",
            **table.named,
            by=visitor.user.name,
        )
        return web.Response(status=204)

    async def end_stream(self, request: web.Request) -> web.Response:
        """End a stream that the visitor sees."""
        visitor, body = self._gate.poster(request), await posted(request)
        connection_id = body.get("connection_id")
        if type(connection_id) is not int:
            raise web.HTTPBadRequest(text='expected {"connection_id": …}\n')
        rows = await self._services.status.rows(["streams"], await self._viewer(visitor))
        seen = records("streams", rows["streams"])
        stream = next((one for one in seen if one["connection_id"] == connection_id), None)
        if stream is None:
            raise NoSuchThread(connection_id)
        # Its client gets error 1317 and may continue.
        await self._runner(visitor, request)("", b"KILL QUERY %d" % connection_id)
        log.info(
            "stream ended",
            keyspace=stream["keyspace"],
            queue=stream["queue"],
            connection=connection_id,
            by=visitor.user.name,
        )
        return web.Response(status=204)

    def _runner(self, visitor: Visitor, request: web.Request) -> Run:
        return partial(self._run_as, visitor.user.name, request.remote or "localhost")

    async def _table(
        self, visitor: Visitor, asked: Mapping[str, Any], *, by_state: bool = True
    ) -> MessageTable:
        """Return the requested queue. *by_state*: only one whose indexes find its messages."""
        keyspace, name = asked.get("keyspace"), asked.get("queue")
        if not (isinstance(keyspace, str) and isinstance(name, str)):
            raise web.HTTPBadRequest(text="keyspace, queue: expected a text each\n")
        is_known = any(of == keyspace for of, _ in self._services.status.shards)
        is_seen = is_known and (await self._viewer(visitor)).sight.sees(keyspace, name)
        table = self._services.registry.tables(keyspace).get(name) if is_seen else None
        if not isinstance(table, MessageTable):
            raise web.HTTPNotFound(text=_NO_QUEUE)
        if by_state and not can_peek(table):
            raise web.HTTPConflict(
                text="no index finds its messages by state: see streamfrom check\n"
            )
        return table


def _look(asked: Mapping[str, Any]) -> queue_messages.Search:
    """Return the search of a request. Raises HTTPBadRequest."""
    state = asked.get("state")
    if state not in queue_messages.STATES:
        raise web.HTTPBadRequest(text=_one_of("state", queue_messages.STATES))
    column, value, how = asked.get("column"), asked.get("value"), asked.get("how", "is")
    # One without the other is a slip, and would match every message.
    if column is None and value is None and "how" not in asked:
        return queue_messages.Search(str(state))
    if not (isinstance(column, str) and isinstance(value, str) and value):
        raise web.HTTPBadRequest(text="column, value: expected a text each\n")
    if how not in ("is", "contains"):
        raise web.HTTPBadRequest(text=_one_of("how", ("is", "contains")))
    try:
        return queue_messages.Search(
            str(state),
            Match(column, queue_messages.value_of(value), contains=how == "contains"),
        )
    except UnicodeEncodeError:
        raise web.HTTPBadRequest(text="value: expected text\n") from None


def _known(table: MessageTable, look: queue_messages.Search) -> queue_messages.Search:
    """Return *look*, whose column the table has. Raises HTTPBadRequest."""
    if look.match is not None:
        if look.match.column not in table.columns:
            raise web.HTTPBadRequest(text="column: no column of this queue\n")
        if not look.match.fits(table):
            raise web.HTTPBadRequest(
                text=f"value: expected a number, as {look.match.column} is\n"
            )
    return look


def _named(named: object) -> list[tuple[str, str]]:
    """Return shard and key of each message of a selection. Raises HTTPBadRequest."""
    if isinstance(named, list) and len(named) <= SELECTED_MAX:
        found = [
            (one["shard"], one["key"])
            for one in named
            if isinstance(one, dict)
            and isinstance(one.get("shard"), str)
            and isinstance(one.get("key"), str)
        ]
        if len(found) == len(named):
            return found
    raise web.HTTPBadRequest(
        text=f'messages: expected at most {SELECTED_MAX} of {{"shard": "…", "key": "…"}}\n'
    )


def _limit(body: Mapping[str, Any]) -> int:
    limit = body.get("limit", queue_messages.LOOKED_AT_MAX)
    if type(limit) is not int or not 0 < limit <= queue_messages.LOOKED_AT_MAX:
        raise web.HTTPBadRequest(text=f"limit: expected 1 to {queue_messages.LOOKED_AT_MAX}\n")
    return limit


def _one_of(key: str, known: Iterable[str]) -> str:
    return f"{key}: expected one of {', '.join(known)}\n"


async def _worded(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Turn a handler's exceptions into HTTP answers, with the same text as by SQL."""
    try:
        return await handler(request)
    except queue_messages.BadCursor as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from None
    except TimeoutError:
        raise web.HTTPGatewayTimeout(text="the shard does not answer\n") from None
    except StreamfromError as error:
        code, _ = error.wire_code()
        if code in _NOT_FOUND:
            raise web.HTTPNotFound(text=f"{error}\n") from None
        if code in REFUSALS or code == _NOT_OWNER:
            raise web.HTTPForbidden(text=f"{error}\n") from None
        raise web.HTTPConflict(text=f"{error}\n") from None
