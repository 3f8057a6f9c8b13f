"""Some messages of a queue, as the page shows them.

The shards are read one after the other, until a page is full. One that does not answer is left out, and the page says so.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final

from streamfrom.engine.messaging.table.message_table import IdKind
from streamfrom.engine.messaging.upkeep.peek import VALUE_MAX, PeekPlace, PeekState, peek
from streamfrom.proxy.backends.shard_store import by_control
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.rights.desk import Question
from streamfrom.proxy.rights.questions import REFUSALS, browse
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.sessions.services import Services


PAGE_ROWS: Final = 20
# A shard that does not answer in that time is left out.
PATIENCE_S: Final = 2.0
_CURSOR_MAX: Final = 4096
_INTEGER_MAX: Final = 2**64
_NUMBER: Final = re.compile(rb"-?[0-9]{1,65}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?")


class BadCursor(ValueError):
    """A cursor that no page of this queue has told."""


class QueueMessages:
    """Reads pages of messages."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def page(
        self, account: Account, table: MessageTable, state: PeekState, cursor: str
    ) -> dict[str, Any]:
        """Return the messages of a page, as *account* may read them, and the cursor of the next one.

        cursor: "" for the first page.

        Raises:
            BadCursor: it is not one of this queue's.
            BackendError: the account may not read the table.
        """
        services = self._services
        view = services.catalog.view(table.keyspace)
        runtimes = list(view.runtimes)
        names = [runtime.name for runtime in runtimes]
        right = browse(table)
        start, place = _read(cursor, names, table)
        columns: tuple[str, ...] = ()
        rows: list[dict[str, Any]] = []
        missing: list[dict[str, Any]] = []
        following: str | None = None
        for runtime in runtimes[start:]:
            if following is not None or len(rows) == PAGE_ROWS:
                following = following or _cursor(runtime.name, None)
                break
            try:
                if runtime.trouble is not None:
                    missing.append({"shard": runtime.name, "reason": runtime.trouble})
                    continue
                async with asyncio.timeout(PATIENCE_S):
                    await services.rights.check(Question(account, None, runtime, right))
                    found = await by_control(
                        runtime,
                        peek(
                            table, state, place, services.clock.time_ns(), PAGE_ROWS - len(rows)
                        ),
                    )
            except TimeoutError:
                reason = f"no answer within {PATIENCE_S:g} s"
                missing.append({"shard": runtime.name, "reason": reason})
            except StreamfromError as error:
                if isinstance(error, BackendError) and error.code in REFUSALS:
                    raise
                missing.append({"shard": runtime.name, "reason": str(error)})
            else:
                columns = found.columns
                rows += [
                    {"shard": runtime.name, "values": [_shown(value) for value in row]}
                    for row in found.rows
                ]
                if found.place is not None:
                    following = _cursor(runtime.name, found.place)
            finally:
                place = None
        return {"columns": columns, "rows": rows, "missing": missing, "next": following}


def _shown(value: bytes | None) -> str | None:
    """Return a value as text, what is no text in hexadecimal; what was cut ends with an ellipsis."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or any(sign < " " and sign not in "\t\r\n" for sign in text):
        whole = value[:VALUE_MAX].hex()
        return f"0x{whole}{'…' if len(value) > VALUE_MAX else ''}"
    return f"{text[:VALUE_MAX]}…" if len(text) > VALUE_MAX else text


def _cursor(shard: str, place: PeekPlace | None) -> str:
    told: list[Any] = [shard]
    if place is not None:
        ident = None if place.ident is None else place.ident.hex()
        told += [place.priority, place.is_begun, place.time_ns, ident]
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode()


def _read(cursor: str, shards: list[str], table: MessageTable) -> tuple[int, PeekPlace | None]:
    """Return the index of the shard, and the place there. Raises BadCursor."""
    if not cursor:
        return 0, None
    try:
        if len(cursor) > _CURSOR_MAX:
            raise BadCursor
        shard, *rest = json.loads(base64.b64decode(cursor.encode(), b"-_", validate=True))
        index = shards.index(shard)
        if not rest:
            return index, None
        priority, is_begun, time_ns, ident = rest
        for number in (priority, time_ns):
            if number is not None and (type(number) is not int or abs(number) > _INTEGER_MAX):
                raise BadCursor
        raw = None if ident is None else bytes.fromhex(ident)
        is_number = table.id_kind is IdKind.NUMBER
        # A number goes into the statement as it is.
        if type(is_begun) is not bool or (raw and is_number and not _NUMBER.fullmatch(raw)):
            raise BadCursor
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise BadCursor("cursor: expected what the page before has told") from None
    return index, PeekPlace(priority, is_begun, time_ns, raw)
