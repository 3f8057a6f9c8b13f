"""The data of a message in transit: its key, a claimed row, and the receiver that gets the row.

A message is known by its **key**: the id as the text of an SQL literal (``b"42"``,
``b"'a'"``), its priority and the moment it is due. Bodies appear only in `ClaimedRow`, as the
raw bytes the database sent, and leave at once through `Receiver.deliver`.

All times are nanoseconds since the Unix epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


FOREVER_NS: Final = 2**63  # after every moment
# The value of `vt_prefetch` and of the hint: others are numbers of messages, 0 for no limit.
AUTO: Final = -1
# The numbers of receivers: positive for a client of this process, negative for another member's.
receiver_numbers: Final = count(1)


# Both are tuples because ten thousands of them are made: a frozen dataclass costs three
# times as much to create.
class MessageKey(NamedTuple):
    """The entry of a message in a queue. A ``time_next`` of NULL is 0, which is always due.

    key: the value of `vt_key`, if the message was read by it (`engine.messaging.queue.shard_queue`); b"" if it is not known.
    """

    id: bytes
    priority: int
    time_next_ns: int
    key: bytes = b""


class ClaimedRow(NamedTuple):
    """A row this proxy has claimed, as it goes to a receiver.

    epoch: the value from before the claim.
    time_next_ns: the value from before the claim.
    due_next_ns: when the lease ends, as the claim wrote it.
    payload: the text-protocol row of the receiver's columns, without a packet header.
    is_written: False for a first delivery, whose lease exists only in memory.
    types: the server's description of the payload's columns (`engine.messaging.store.conversation.StoreAnswer`).
    """

    id: bytes
    shard: ShardName
    epoch: int
    time_next_ns: int
    due_next_ns: int
    payload: bytes
    is_written: bool = True
    types: bytes = b""


class Tried(StrEnum):
    """The kind of write to a row."""

    CLAIM = "claim"
    LEASE = "lease"
    ACK = "ack"
    RETURN = "return"
    FIRE = "fire"
    PURGE = "purge"


class Refused(NamedTuple):
    """Why a server does not write a row: the kind of write, and the server's error."""

    tried: Tried
    error: str


Refusals: TypeAlias = "Mapping[bytes, Refused]"  # by id
_NONE_REFUSED: Final[Refusals] = MappingProxyType({})


class KeyFound(NamedTuple):
    """The state of the messages of one key in their rows (`engine.messaging.order.key_order`).

    started: those that were sent and are neither acked nor parked, in any order.
    heads: the first ones that were never sent and are due, in the order of the queue.
    """

    started: tuple[MessageKey, ...]
    heads: tuple[MessageKey, ...]


@record
class ClaimResult:
    """The result of a claim.

    rows: the rows it won, in any order.
    passed_over: when the other rows are due, by id, if they exist and are unacked. A row that is due
        already is locked by another transaction.
    parked: the ids of rows that were sent often enough, and are parked now; passed_over has them too.
    dead: the ids of rows that were sent often enough, and are dead letters now.
    why_parked: why rows are parked that should have become dead letters.
    held: the ids of rows that wait for members of a group; passed_over has them too.
    asked_keys: the keys of the unacked ones among the requested messages, if messages wait for others of their key; None for
        those that wait for no other.
    found: the state of these keys in the rows, before the claim.
    chosen: the messages of these keys that it was to win, by id.
    refused: the rows that the server does not write.
    """

    rows: tuple[ClaimedRow, ...]
    passed_over: Mapping[bytes, int] = field(default_factory=dict)
    parked: tuple[bytes, ...] = ()
    dead: tuple[bytes, ...] = ()
    why_parked: str | None = None
    held: tuple[bytes, ...] = ()
    asked_keys: Mapping[bytes, bytes | None] = field(default_factory=dict)
    found: Mapping[bytes, KeyFound] = field(default_factory=dict)
    chosen: Mapping[bytes, MessageKey] = field(default_factory=dict)
    refused: Refusals = field(default_factory=dict)


class LeaseWrite(NamedTuple):
    """A lease that its row does not show: the end that it should show.

    shown_ns: the ends that the row may show now; it is left alone if it shows another one.
    is_first: the message was never sent before, so the row may also be untouched, and the delivery must be counted.
    """

    id: bytes
    until_ns: int
    shown_ns: tuple[int, ...] = ()
    is_first: bool = True


class LateWrites(NamedTuple):
    """The result of writing leases or early acks: the ids of locked rows, of the refused ones, and of those rescheduled meanwhile."""

    locked: tuple[bytes, ...] = ()
    refused: Refusals = _NONE_REFUSED
    rescheduled: tuple[bytes, ...] = ()


class Shortenings(NamedTuple):
    """The result of shortening leases: the rows that are due sooner now, and the refused ones."""

    ids: tuple[bytes, ...] = ()
    refused: Refusals = _NONE_REFUSED


class Purged(NamedTuple):
    """The result of one batch of the purge: how many rows were old enough, how many of them are deleted, and the refused ones."""

    found: int = 0
    deleted: int = 0
    refused: Refusals = _NONE_REFUSED


class PeerRow(NamedTuple):
    """A row that another process of the fleet has claimed: the client's payload, and the stream by which it came."""

    payload: bytes
    stream: int
    types: bytes = b""


# A row for a receiver, whichever process has claimed it.
RowOfStream: TypeAlias = ClaimedRow | PeerRow


class Receiver(Protocol):
    """One open STREAM, as the engine sees it.

    id: a number that is unique in the process.
    shards: the shards that the stream covers; None for all.
    keys: the keys, as literals, whose messages the stream is given; None for all.
    columns: the result of ``MessageTable.project``.
    prefetch: the limit of this stream; 0 for no limit, AUTO for a window, None for that of the table.
    window_first: the first size of its window (`engine.messaging.streams.prefetch_window`).
    connection_id: the client's connection id.

    All of these stay constant while the receiver is attached.
    """

    id: int
    shards: frozenset[ShardName] | None
    keys: frozenset[bytes] | None
    columns: tuple[str, ...]
    prefetch: int | None
    window_first: int
    connection_id: int

    @property
    def rows_max(self) -> int | None:
        """Return how many rows it is given before it ends; None for a stream without end."""

    def deliver(self, rows: Sequence[ClaimedRow]) -> bool:
        """Write *rows* now. Return True if the socket took them and can take another batch.

        After False nothing more is sent until ``Dispatcher.ready``. May raise ReceiverGone
        when nothing was written. Never waits.
        """

    def end(self, error: StreamfromError) -> None:
        """Finish the stream with *error*. Called at most once, and not after detach."""

    def finish(self) -> None:
        """Finish a stream that has its rows. Called at most once, and not after detach."""


class ClientReceiver(Receiver, Protocol):
    """A receiver of a client of this process, for which other processes may have claimed rows as well."""

    def deliver(self, rows: Sequence[RowOfStream]) -> bool:
        """Write *rows*, as `Receiver.deliver`. Those of other processes come whether it is ready or not."""
