"""The transaction that claims messages: it locks rows that are due and free, and moves them into the future.

A message that was never sent is read, not claimed (`take`). Its row does not show that it was sent: the lease is in the
dispatcher's memory (`engine.messaging.leases.unwritten_leases`), and written later. Most messages are acknowledged before their lease is
written, so the ack is their only write. ``epoch`` of the row is 0 until then, and both the completed ack and the
written lease count the delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.leases.lease_rows import look
from streamfrom.engine.messaging.order.group_table import hold, members, not_after
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.store.row_writes import WrittenRows, carefully, commit, write
from streamfrom.engine.messaging.table.backoff import PARKED_NS, is_spent, spread, wait_range
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult, Refused, Tried
from streamfrom.engine.messaging.table.sql_names import (
    lock_unacked,
    quoted,
    read_unacked,
    update,
)
from streamfrom.engine.messaging.upkeep.dead_letter_table import Buried, bury
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation, StoreQuery
    from streamfrom.engine.messaging.table.backoff import WaitRange
    from streamfrom.engine.messaging.table.message import MessageKey
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


# Counted up to here, which an INT holds. A client may have written more; one such row would fail the claims of all.
EPOCH_MAX: Final = 2**31 - 1


@record
class ClaimRequest:
    """Rows of a shard to claim.

    number: the number by which its scheduler knows the claim.
    ids: the ids, as literals, of rows that should be due, in the order in which to send them.
    columns: the columns that the receivers get.
    unwritten: sent messages whose rows may not show it, those of *ids* or more.
    known_keys: the keys of those of *ids* that follow others of their key, so that their rows need not be read for them.
    sent_keys: the keys of those of *unwritten* for which others of their key wait, as far as they are known; None for no key.
    left_out: rows that are set aside, and for which no others of their key wait.
    held_ns: the ends of leases that are longer than their rows show, if messages wait for others of their key.
    draw: returns `engine.messaging.table.backoff.DICE_BITS` random bits, which only the shell has.
    """

    number: int
    shard: ShardName
    ids: tuple[bytes, ...]
    columns: tuple[str, ...]
    unwritten: Mapping[bytes, MessageKey] = field(default_factory=dict)
    known_keys: Mapping[bytes, bytes] = field(default_factory=dict)
    sent_keys: Mapping[bytes, bytes | None] = field(default_factory=dict)
    left_out: frozenset[bytes] = frozenset()
    held_ns: Mapping[bytes, int] = field(default_factory=dict)
    draw: Callable[[], int] = int


class _NotWon:
    """Rows that a claim found and does not win.

    passed_over: when they are due; 0 for those to try again soon.
    refused: those that the server does not write.
    """

    def __init__(self) -> None:
        self.passed_over: dict[bytes, int] = {}
        self.refused: dict[bytes, Refused] = {}

    def add(
        self, refused: Iterable[tuple[bytes, str]], left: Iterable[bytes]
    ) -> frozenset[bytes]:
        """Add rows that are refused, and rows that were not tried individually; return both."""
        found = {ident: Refused(Tried.CLAIM, why) for ident, why in refused}
        again = dict.fromkeys(left, 0)
        self.refused.update(found)
        self.passed_over.update(again)
        return frozenset((*found, *again))


@carefully
def claim(table: MessageTable, request: ClaimRequest, at: At) -> Conversation[ClaimResult]:
    """Win rows: lock those that are still due and free, move them into the future, commit.

    SKIP LOCKED passes over rows that another proxy claims or a consumer acks at this moment, and
    over their neighbours if that ack locks more than its own rows. A plain read distinguishes those
    from rows that are acked or due later.
    """
    not_won, now_ns, is_careful = _NotWon(), at.now_ns, at.is_careful
    if uncounted := [ident for ident in request.ids if ident in request.unwritten]:
        counted = yield from _count_sends(table, sorted(uncounted))
        out = not_won.add(counted.refused, counted.left)
        request = replace(request, ids=tuple(i for i in request.ids if i not in out))
        # Rows written so far must not be committed by the COMMIT behind a statement that is refused.
        is_careful = is_careful or bool(out or counted.done)
    answer = StoreAnswer()
    if request.ids:
        # The index is forced because on a small table 500 ids would make a scan that locks all rows.
        answer = yield lock_unacked(
            table,
            request.ids,
            b"IFNULL(epoch, 0)",
            b"IFNULL(time_next, 0)",
            where=b" AND (time_next IS NULL OR time_next <= %d)" % now_ns,
            columns=request.columns,
        )
    won, spent = _leased(table, request, answer, now_ns)
    # Rows that are missing here were locked by others, acked, deleted or rescheduled.
    here = {*(row.id for row in won), *spent}
    if missing := [ident for ident in request.ids if ident not in here]:
        found = yield from look(table, missing)
        # The database finds an id of another spelling equal: it was won under that one.
        not_won.passed_over.update((i, due_ns) for i, due_ns in found.items() if i not in here)
    waiting = yield from hold(table, [row.id for row in won if row.epoch == 0])
    not_won.passed_over.update(dict.fromkeys(waiting.done, HELD_NS))
    out = not_won.add(waiting.refused, waiting.left).union(waiting.done)
    if out:
        won = [row for row in won if row.id not in out]
    buried, parked, why_parked = yield from _end(table, spent, now_ns, not_won)
    leases = yield from commit(
        won,
        lambda part: _lease(table, part),
        is_careful=is_careful or bool(waiting.done or spent),
    )
    not_won.add(((row.id, why) for row, why in leases.refused), (row.id for row in leases.left))
    return ClaimResult(
        tuple(leases.done),
        not_won.passed_over,
        parked=tuple(parked),
        dead=tuple(buried),
        why_parked=why_parked,
        held=tuple(waiting.done),
        refused=not_won.refused,
    )


def _leased(
    table: MessageTable, request: ClaimRequest, answer: StoreAnswer, now_ns: int
) -> tuple[list[ClaimedRow], list[bytes]]:
    """Return the locked rows as they are to be, and the ids of those that were sent often enough."""
    won: list[ClaimedRow] = []
    spent: list[bytes] = []
    windows: dict[int, WaitRange | None] = {}
    types = answer.types
    for (raw, epoch_text, time_next), payload in answer.rows:
        ident = table.id_literal(raw or b"")
        epoch = int(epoch_text or 0)
        # Rows of one claim share few epochs, so they share a few wait ranges too.
        if epoch not in windows:
            is_over = is_spent(table.properties, epoch)
            windows[epoch] = None if is_over else wait_range(table.properties, epoch)
        window = windows[epoch]
        if window is None:
            spent.append(ident)
            continue
        due_next_ns = now_ns + spread(window, request.draw())
        due_ns = int(time_next or 0)
        won.append(
            ClaimedRow(ident, request.shard, epoch, due_ns, due_next_ns, payload, types=types)
        )
    return won, spent


def _lease(table: MessageTable, won: Sequence[ClaimedRow]) -> bytes:
    changes = b"time_next = CASE %b%b ELSE %d END, epoch = LEAST(IFNULL(epoch, 0), %d) + 1" % (
        quoted(table.id_column),
        b"".join(b" WHEN %b THEN %d" % (row.id, row.due_next_ns) for row in won),
        # For an id whose text does not compare equal to itself, such as a FLOAT.
        max(row.due_next_ns for row in won),
        EPOCH_MAX - 1,
    )
    return update(table, [row.id for row in won], changes)


def _count_sends(table: MessageTable, ids: Sequence[bytes]) -> Conversation[WrittenRows[bytes]]:
    """Count the deliveries of messages whose leases were never written, so that a stream with ``epoch`` reads the right one."""
    answer = yield lock_unacked(table, ids, where=b" AND IFNULL(epoch, 0) = 0")
    found = [table.id_literal(raw or b"") for (raw,), _ in answer.rows]
    return (yield from write(found, lambda part: update(table, part, b"epoch = 1")))


def _end(
    table: MessageTable, spent: Sequence[bytes], now_ns: int, not_won: _NotWon
) -> Conversation[tuple[Sequence[bytes], Sequence[bytes], str | None]]:
    """Move rows that were sent often enough to the dead letters, or park them; return both, and the reason for parking.

    A member of a group is parked: without its row the group would look done.
    """
    buried, why = Buried(()), None
    if not spent:
        return (), (), None
    if table.properties.dead_letter is not None:
        kept = yield from members(table, spent)
        if dead := [ident for ident in spent if ident not in kept]:
            buried = yield from bury(table, dead, now_ns)
            why = buried.why
        if why is None and kept:
            why = "members of groups stay"
    gone = {*buried.moved, *buried.left}
    parked = yield from write(
        [ident for ident in spent if ident not in gone],
        lambda part: update(table, part, b"time_next = %d" % PARKED_NS),
    )
    not_won.add(parked.refused, (*parked.left, *buried.left))
    not_won.passed_over.update(dict.fromkeys(parked.done, PARKED_NS))
    return buried.moved, parked.done, why


def take(
    table: MessageTable, request: ClaimRequest, at: At, ahead: StoreAnswer | None = None
) -> Conversation[ClaimResult]:
    """Read messages that were never sent, and claim the rest, including those that come after a group; commits.

    ahead: the answer to `never_sent` for the request's ids and perhaps more, if it was run before.
    """
    ids = [ident for ident in request.ids if ident not in request.unwritten]
    if not (table.properties.lease_delay_ns and ids):
        return (yield from claim(table, request, at))
    now_ns = at.now_ns
    answer = ahead or (yield never_sent(table, request.columns, ids, now_ns))
    window = wait_range(table.properties, 0)
    asked, shard, draw, types = frozenset(ids), request.shard, request.draw, answer.types
    rows = [
        ClaimedRow(
            ident,
            shard,
            0,
            int(time_next or 0),
            now_ns + spread(window, draw()),
            payload,
            False,  # noqa: FBT003  (a keyword costs each message as much as the rest of its tuple)
            types,
        )
        for (raw, time_next), payload in answer.rows
        # An id that the database finds equal to another spelling is claimed under that one.
        if (ident := table.id_literal(raw or b"")) in asked
    ]
    if len(rows) == len(request.ids):
        return ClaimResult(tuple(rows))
    read = {row.id for row in rows}
    rest = tuple(ident for ident in request.ids if ident not in read)
    claimed = yield from claim(table, replace(request, ids=rest), at)
    return replace(claimed, rows=(*rows, *claimed.rows))


def never_sent(
    table: MessageTable, columns: Iterable[str], ids: Iterable[bytes], now_ns: int
) -> StoreQuery:
    """Return the query for those of *ids* that are due and were never sent, without those that come after a group.

    The read needs no transaction, which would add two statements to the three of a lone message. A read-only
    server finds no row for the read, and refuses the claim.
    """
    where = (
        b" AND (time_next IS NULL OR time_next <= %d) AND IFNULL(epoch, 0) = 0"
        b" AND NOT (@@global.read_only OR @@global.innodb_read_only)%b"
        % (now_ns, not_after(table))
    )
    time = b"IFNULL(time_next, 0)"
    return read_unacked(table, ids, time, where=where, columns=columns, is_apart=True)
