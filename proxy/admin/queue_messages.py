"""Messages of a queue, as the page shows and finds them.

The shards are read one after the other, until a page is full. A shard that does not answer is left out, and the page reports it.
Reading takes no message from a consumer: the process that dispatches the shard knows which messages streams hold.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.upkeep import peek
from streamfrom.proxy.backends.shard_store import by_control
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.rights.desk import Question
from streamfrom.proxy.rights.questions import REFUSALS, browse
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.messaging.leases.leases import Lease, Leases
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.upkeep.peek import PeekRow, Ways
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sessions.services import Services

PAGE_ROWS: Final = 20
# Keys in one request for a find, or for an action on all matching messages.
LOOKED_AT_MAX: Final = 500
# A shard that does not answer within that time is left out.
PATIENCE_S: Final = 2.0
WAYS_KEPT_S: Final = 60.0
# How many characters of a value are listed, and shown of a message.
LISTED_MAX: Final = 200
SHOWN_MAX: Final = 4 << 20
IN_FLIGHT: Final = "in_flight"
STATES: Final = (*peek.PeekState, IN_FLIGHT)
_CURSOR_MAX: Final = 4096
_INTEGER_MAX: Final = 2**64
_NUMBER: Final = re.compile(rb"-?[0-9]{1,65}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_HEX: Final = re.compile(r"0x([0-9a-fA-F]{2})+")


class BadCursor(ValueError):
    """A cursor or key that no page of this queue has."""


class Search(NamedTuple):
    """Which messages: those in a state, of `STATES`, and that match, if there is a match."""

    state: str
    match: peek.Match | None = None


@dataclass(slots=True)
class Walk:
    """The result of a walk over the shards."""

    rows: list[tuple[ShardRuntime, PeekRow]] = field(default_factory=list)
    looked_at: int = 0  # how many keys it read
    following: str | None = None  # where the next walk begins; None at the end
    # The shards that were left out, and why.
    missing: list[dict[str, str]] = field(default_factory=list)


class QueueMessages:
    """Reads messages as an account may."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # When they were read: MySQL's dictionary takes longer to read than the rows.
        self._ways: dict[tuple[str, ...], tuple[float, Ways]] = {}

    async def page(
        self, account: Account, table: MessageTable, look: Search, cursor: str
    ) -> dict[str, Any]:
        """Return some messages, and the cursor of the next page; "" is the first page's.

        Raises BadCursor for another queue's cursor, BackendError if the account may not read the table.
        """
        columns = peek.shown_columns(table)
        walk = await self.walk(account, table, look, cursor, columns)
        return {
            "columns": columns,
            "rows": [
                self._status(table, shard, row)
                | {"values": [_shown(value, LISTED_MAX) for value in row.values]}
                for shard, row in walk.rows
            ],
            "looked_at": walk.looked_at,
            "missing": walk.missing,
            "next": walk.following,
        }

    async def one(
        self, account: Account, table: MessageTable, shard: str, key: str
    ) -> dict[str, Any] | None:
        """Return a whole message, with values cut at SHOWN_MAX; None if it is gone.

        Raises BadCursor if there is no such shard or id, StreamfromError if the shard does not respond, or refuses.
        """
        runtime = next((one for one in self._runtimes(table) if one.name == shard), None)
        if runtime is None:
            raise BadCursor("shard: no shard of this queue")
        columns = peek.shown_columns(table)
        await self._services.rights.check(Question(account, None, runtime, browse(table)))
        async with asyncio.timeout(PATIENCE_S):
            rows = await by_control(
                runtime,
                peek.rows_of(
                    table, [table.id_literal(raw_id(table, key))], columns, SHOWN_MAX + 1
                ),
            )
        for row in rows:
            values = [
                {"name": name, "value": _shown(value, SHOWN_MAX)}
                for name, value in zip(columns, row.values, strict=True)
            ]
            return self._status(table, runtime, row) | {"values": values}
        return None

    async def walk(
        self,
        account: Account,
        table: MessageTable,
        look: Search,
        cursor: str,
        columns: Sequence[str] = (),
        most: int = LOOKED_AT_MAX,
    ) -> Walk:
        """Return the next messages from *cursor* on: a page to be listed, or those of *most* keys. Raises as `page`."""
        walk = Walk()
        is_page = bool(columns) and look.match is None
        room = PAGE_ROWS if is_page else most
        runtimes = self._runtimes(table)
        start, place = _read(cursor, [one.name for one in runtimes], table)
        for runtime in runtimes[start:]:
            if walk.following is not None or walk.looked_at >= room:
                walk.following = walk.following or _cursor(runtime.name, None)
                break
            if runtime.trouble is not None:
                walk.missing.append({"shard": runtime.name, "reason": runtime.trouble})
                place = None
                continue
            with self._left_out(runtime, walk):
                async with asyncio.timeout(PATIENCE_S):
                    question = Question(account, None, runtime, browse(table))
                    await self._services.rights.check(question)
                    way = await self._ways_of(runtime, table, look.match)
                    # Without columns rows are as long as their ids, unless the match needs the rest.
                    limit = room - walk.looked_at
                    if columns or look.match is not None:
                        limit = way.rows_at_once(limit)
                    keys, rows = await self._of_shard(
                        runtime, table, look, way, place, limit, columns
                    )
                walk.rows += [(runtime, row) for row in rows]
                walk.looked_at += len(keys.ids)
                if keys.place is not None:
                    walk.following = _cursor(runtime.name, keys.place)
            place = None
        return walk

    async def _of_shard(
        self,
        runtime: ShardRuntime,
        table: MessageTable,
        look: Search,
        way: Ways,
        place: peek.PeekPlace | None,
        limit: int,
        columns: Sequence[str],
    ) -> tuple[peek.PeekKeys, Sequence[PeekRow]]:
        now_ns, match = self._services.clock.time_ns(), look.match
        where = b"TRUE" if match is None else match.condition(table)
        leases, _ = self._held(table, runtime)
        if look.state == IN_FLIGHT:
            if leases is None:
                raise StreamfromError(
                    "another member dispatches it, and shows what is in flight"
                )
            keys = _in_flight(leases, place, limit)
        else:
            state = peek.PeekState(look.state)
            if match is not None and way.by_index is not None:
                where = match.condition(table)
                conversation = peek.peek_by_id(table, where, way.by_index, place, limit)
                where += b" AND " + peek.in_state(state, now_ns)
            elif state is peek.PeekState.ACKED and (match is not None or not columns):
                # The list has only the latest. A find or an action means all.
                conversation = peek.peek(table, peek.PeekState.ALL, place, now_ns, limit)
                where += b" AND " + peek.in_state(state, now_ns)
            else:
                conversation = peek.peek(table, state, place, now_ns, limit)
            keys = await by_control(runtime, conversation)
        wanted = keys.ids
        if leases is not None and look.state in {
            peek.PeekState.READY,
            peek.PeekState.SCHEDULED,
        }:
            wanted = tuple(ident for ident in wanted if leases.get(ident) is None)
        found = peek.rows_of(table, wanted, columns, LISTED_MAX + 1, where)
        return keys, await by_control(runtime, found)

    async def _ways_of(
        self, runtime: ShardRuntime, table: MessageTable, match: peek.Match | None
    ) -> Ways:
        now_s = asyncio.get_running_loop().time()
        kept = {
            key: found for key, found in self._ways.items() if now_s - found[0] < WAYS_KEPT_S
        }
        column = "" if match is None or match.contains else match.column
        key = (table.keyspace, runtime.name, table.name, column)
        if key not in kept:
            kept[key] = now_s, await by_control(runtime, peek.ways(table, match))
        self._ways = kept
        return kept[key][1]

    def _runtimes(self, table: MessageTable) -> list[ShardRuntime]:
        return list(self._services.catalog.view(table.keyspace).runtimes)

    @contextmanager
    def _left_out(self, runtime: ShardRuntime, walk: Walk) -> Iterator[None]:
        """Make a failure of the block affect only its shard; missing privileges are raised."""
        try:
            yield
        except TimeoutError:
            reason = f"no answer within {PATIENCE_S:g} s"
            walk.missing.append({"shard": runtime.name, "reason": reason})
        except StreamfromError as error:
            if isinstance(error, BackendError) and error.code in REFUSALS:
                raise
            walk.missing.append({"shard": runtime.name, "reason": str(error)})

    def _held(
        self, table: MessageTable, runtime: ShardRuntime
    ) -> tuple[Leases | None, Mapping[int, int]]:
        found = self._services.registry.here.leases_of(table.keyspace, runtime.name, table.name)
        return found or (None, {})

    def _status(
        self, table: MessageTable, runtime: ShardRuntime, row: PeekRow
    ) -> dict[str, Any]:
        leases, connections = self._held(table, runtime)
        lease = None if leases is None else leases.get(table.id_literal(row.id))
        now_ns = self._services.clock.time_ns()
        return {
            "shard": runtime.name,
            "key": row.id.hex(),
            "id": _shown(row.id, LISTED_MAX),
            "state": _state(row, lease, now_ns, is_known=leases is not None),
            "attempts": None if row.epoch is None else int(row.epoch),
            "priority": None if row.priority is None else int(row.priority),
            # In text: a double of JavaScript has not enough digits.
            "time_next": _shown(row.time_next, LISTED_MAX),
            "time_acked": _shown(row.time_acked, LISTED_MAX),
            "held_by": lease and connections.get(lease.receiver),
            "held_until": lease and str(lease.until_ns),
        }


def raw_id(table: MessageTable, key: str) -> bytes:
    """Return the id that a page gave as *key*. Raises BadCursor."""
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        raise BadCursor("key: expected one that a page has") from None
    # A number goes into the statement as it is.
    if not raw or (table.has_number_ids and not _NUMBER.fullmatch(raw)):
        raise BadCursor("key: expected one that a page has")
    return raw


def value_of(text: str) -> bytes:
    """Return the bytes of a value as a page shows it: text, or hexadecimal digits after 0x."""
    return bytes.fromhex(text[2:]) if _HEX.fullmatch(text) else text.encode()


def _state(row: PeekRow, lease: Lease | None, now_ns: int, *, is_known: bool) -> str:
    """Return the first state that fits; "unknown" is in flight or scheduled, which another process knows."""
    time_next_ns = int(row.time_next or 0)
    if row.time_acked is not None:
        return peek.PeekState.ACKED
    if time_next_ns >= PARKED_NS:
        return peek.PeekState.PARKED
    if lease is not None:
        return IN_FLIGHT
    if time_next_ns >= HELD_NS:
        return peek.PeekState.BLOCKED
    if time_next_ns <= now_ns:
        return peek.PeekState.READY
    return peek.PeekState.SCHEDULED if is_known or not int(row.epoch or 0) else "unknown"


def _in_flight(leases: Leases, place: peek.PeekPlace | None, limit: int) -> peek.PeekKeys:
    """Return the messages that streams hold, in the order of their ids, so that an action on some moves no other to another page."""
    after = (place and place.ident) or b""
    ids = tuple(nsmallest(limit, (lease.id for lease in leases if lease.id > after)))
    more = peek.PeekPlace(None, is_begun=True, ident=ids[-1]) if len(ids) == limit else None
    return peek.PeekKeys(ids, more)


def _shown(value: bytes | None, most: int) -> str | None:
    """Return a value as text, or in hexadecimal if it is no text; a cut value ends with an ellipsis."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or _CONTROL.search(text):
        whole = value[:most].hex()
        return f"0x{whole}{'…' if len(value) > most else ''}"
    return f"{text[:most]}…" if len(text) > most else text


def _cursor(shard: str, place: peek.PeekPlace | None) -> str:
    parts: list[object] = [shard]
    if place is not None:
        ident = None if place.ident is None else place.ident.hex()
        parts += [place.priority, int(place.is_begun), place.time_ns, ident]
    return ",".join("" if part is None else str(part) for part in parts)


def _read(
    cursor: str, shards: list[str], table: MessageTable
) -> tuple[int, peek.PeekPlace | None]:
    """Return the index of the shard, and the place there. Raises BadCursor."""
    if not cursor:
        return 0, None
    try:
        if len(cursor) > _CURSOR_MAX:
            raise BadCursor
        shard, *rest = cursor.split(",")
        index = shards.index(shard)
        if not rest:
            return index, None
        *numbers, ident = rest
        priority, is_begun, time_ns = (int(number) if number else None for number in numbers)
        if max(abs(priority or 0), abs(time_ns or 0)) > _INTEGER_MAX:
            raise BadCursor
        raw = raw_id(table, ident) if ident else None
    except ValueError:
        raise BadCursor("cursor: expected what the page before gave") from None
    return index, peek.PeekPlace(priority, bool(is_begun), time_ns, raw)
