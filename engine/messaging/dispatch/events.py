"""The events that a table's scheduler handles, and its actions. See `engine.messaging.dispatch.table_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.leases import lease_rows
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.streams.prefetch_window import FIRST
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.gates.set_aside import SetAsideRow
    from streamfrom.engine.messaging.table.message import (
        ClaimedRow,
        MessageKey,
        Refusals,
    )
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


# Events


@record
class Attached:
    """A stream opens, ready for rows.

    shards, columns, prefetch, rows_max, keys, window_first: as of `engine.messaging.table.message.Receiver`.
    share: as of ShareGiven; None for the whole prefetch.
    reports_progress: as of `ReportProgress`, while others dispatch to it as well.
    """

    receiver: int
    shards: frozenset[ShardName] | None
    columns: tuple[str, ...]
    prefetch: int | None = None
    rows_max: int | None = None
    keys: frozenset[bytes] | None = None
    share: int | None = None
    window_first: int = FIRST
    reports_progress: bool = False


@record
class ShareGiven:
    """A receiver may hold so many of its prefetch that this process sent; KeepsShare answers."""

    receiver: int
    share: int


@record
class ProgressedElsewhere:
    """A receiver has made progress with what another process sent, after the first *rows* that this one sent to it."""

    receiver: int
    rows: int


@record
class Detached:
    """A stream is over, and holds what it was sent. unsent: the rows that its socket never took."""

    receiver: int
    unsent: tuple[ClaimedRow, ...] = ()


@record
class Left:
    """The connection of a stream that is over has ended, or will have in *grace_ns*."""

    receiver: int
    grace_ns: int = 0


@record
class TakenOver:
    """A receiver, attached or about to be, holds messages of a shard that a former dispatcher sent to it."""

    receiver: int
    shard: ShardName
    ids: tuple[bytes, ...]


@record
class ReceiverReady:
    """A receiver's socket can take another batch."""

    receiver: int


@record
class WaitOver:
    """A stream with an end waits for its first message no longer.

    has_rows_elsewhere: other dispatchers have sent it some.
    """

    receiver: int
    has_rows_elsewhere: bool = False


@record
class Due:
    """Committed: messages that are new."""

    shard: ShardName
    keys: tuple[MessageKey, ...]


@record
class Acked:
    """Committed: messages that were acked or deleted."""

    shard: ShardName
    ids: tuple[bytes, ...]


@record
class AckedEarly:
    """Messages in flight were acked, and nothing is written yet. acked_ns: what their ``time_acked`` is to be."""

    shard: ShardName
    ids: tuple[bytes, ...]
    acked_ns: int


@record
class Changed:
    """Committed: changes of messages that the statement's text does not show.

    ids: the messages known before that may have changed; None for any.
    keeps_leases: no lease ends by it: a heartbeat, which makes one longer, or a change of the priority alone.
    """

    shard: ShardName
    ids: tuple[bytes, ...] | None = None
    keeps_leases: bool = False


@record
class Touched:
    """Committed: changes of columns by which nothing is scheduled; a server may take rows now that it refused."""

    shard: ShardName
    ids: tuple[bytes, ...]


@record
class AckedUnnamed:
    """Committed: messages that were acked or deleted, and the text does not show which."""

    shard: ShardName


@record
class LeasesWanted:
    """A client is about to change rows otherwise than by an ack. ids: which; None for any."""

    shard: ShardName
    ids: tuple[bytes, ...] | None


@record
class JobDone:
    """A job has ended.

    result: what its conversation returned; None if it failed, or if that is not known.
    failure: why it failed.
    """

    job: ShardJob
    result: Any = None
    failure: str | None = None

    @property
    def shard(self) -> ShardName:
        """Return the job's shard."""
        return self.job.shard


@record
class PurgeRefused:
    """The purge has left rows, which the server does not delete. over: the ids of such as are deleted after all, or gone."""

    shard: ShardName
    refused: Refusals
    over: tuple[bytes, ...] = ()


@record
class Reconfigured:
    """The table was altered."""

    table: MessageTable


@record
class TryAgain:
    """A DDL statement was executed, perhaps one that drops what made servers refuse rows."""


@record
class ShardDown:
    """The shard cannot be reached, as a health check found."""

    shard: ShardName
    reason: str


@record
class ShardUp:
    """The shard can be reached again."""

    shard: ShardName


@record
class Elected:
    """This process dispatches the shard from now on."""

    shard: ShardName


@record
class Deposed:
    """This process does not dispatch the shard, or not any more. reason: why no other member serves its streams."""

    shard: ShardName
    reason: str


@record
class ServedElsewhere:
    """The shard's dispatcher, another process, serves the streams that cover it."""

    shard: ShardName


@record
class TableEnded:
    """The table is gone, or the proxy shuts down: every stream ends with *error*."""

    error: StreamfromError


@record
class Tick:
    """Time has passed."""


Event: TypeAlias = (
    Attached
    | Detached
    | Left
    | TakenOver
    | ReceiverReady
    | WaitOver
    | ShareGiven
    | ProgressedElsewhere
    | Due
    | Acked
    | AckedEarly
    | Changed
    | Touched
    | AckedUnnamed
    | LeasesWanted
    | JobDone
    | PurgeRefused
    | Reconfigured
    | TryAgain
    | ShardDown
    | ShardUp
    | Elected
    | Deposed
    | ServedElsewhere
    | TableEnded
    | Tick
)


# What a commit does to messages.
TableEvent: TypeAlias = Due | Acked | Changed | Touched | AckedUnnamed


# Actions


# What carries its own statements (`engine.messaging.table.store_job`).
ShardJob: TypeAlias = (
    Claim
    | Poll
    | lease_rows.Release
    | lease_rows.Look
    | lease_rows.FindLeases
    | lease_rows.Shorten
    | lease_rows.WriteLeases
    | WriteAcks
    | Fire
)


@record
class Deliver:
    """Hand rows to a receiver; answer ReceiverReady once it can take more, Detached if it is gone."""

    receiver: int
    rows: tuple[ClaimedRow, ...]


@record
class End:
    """End a stream; no answer."""

    receiver: int
    error: StreamfromError


@record
class Finish:
    """End a stream that was given what it asked for, or all that was due; no answer."""

    receiver: int


@record
class ReportProgress:
    """Report that a receiver made progress in the delivery that began with *row*, counted from 0."""

    receiver: int
    row: int


@record
class ReportDeadMembers:
    """Log that messages wait for members of their groups that are parked; no answer. found: message, member, group."""

    shard: ShardName
    found: tuple[tuple[bytes, bytes, bytes], ...]


@record
class ReportSetAside:
    """Log rows that the server does not write, and that are left as they are; no answer. count: how many are by now."""

    shard: ShardName
    found: tuple[tuple[bytes, SetAsideRow], ...]
    count: int


@record
class ReportStanding:
    """Log that a receiver stalls: it acked nothing of a full prefetch while messages are ready; no answer.

    is_collecting: its prefetch is `auto`, and it has acked nothing at all: it may collect messages before its first ack.
    """

    receiver: int
    held: int
    since_ns: int
    is_collecting: bool = False


@record
class KeepsShare:
    """Report how many messages a receiver holds at most: its share, or more until enough of them are acked; no answer."""

    receiver: int
    most: int


@record
class WantShare:
    """Report that messages are due for a receiver whose share is full; no answer."""

    receiver: int


# What concerns the order, the progress and the shares of a stream to which several processes dispatch.
StreamReport: TypeAlias = Deliver | KeepsShare | WantShare | ReportProgress

Action: TypeAlias = (
    ShardJob | End | Finish | ReportDeadMembers | ReportSetAside | ReportStanding | StreamReport
)
