"""The events that a table's scheduler handles, and its actions. See `engine.messaging.dispatch.table_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.leases import lease_rows
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.streams.prefetch_window import FIRST
from streamfrom.engine.messaging.table.store_job import AboutShard
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.gates.set_aside import SetAsideRow
    from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey, Refusals
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


@record
class AboutStream:
    """An event of a stream, or an action on one. receiver: its number: here, or on the link between two members."""

    receiver: int


# Events


@record
class Attached(AboutStream):
    """A stream opens, ready for rows.

    shards, columns, prefetch, rows_max, keys, window_first: as in `engine.messaging.table.message.Receiver`.
    share: as in ShareGiven; None for the whole prefetch.
    reports_progress: as in `ReportProgress`, while others dispatch to it as well.
    """

    shards: frozenset[ShardName] | None
    columns: tuple[str, ...]
    prefetch: int | None = None
    rows_max: int | None = None
    keys: frozenset[bytes] | None = None
    share: int | None = None
    window_first: int = FIRST
    reports_progress: bool = False


@record
class ShareGiven(AboutStream):
    """How many of its prefetch a receiver may hold from this process; the answer is KeepsShare."""

    share: int


@record
class ProgressedElsewhere(AboutStream):
    """A receiver has made progress with messages of another process, after the first *rows* from this one."""

    rows: int


@record
class Detached(AboutStream):
    """A stream is over, and still holds the messages it was sent. unsent: the rows that its socket never took."""

    unsent: tuple[ClaimedRow, ...] = ()


@record
class Left(AboutStream):
    """The connection of a stream that is over has ended, or ends in *grace_ns*."""

    grace_ns: int = 0


@record
class TakenOver(AboutStream):
    """A receiver, attached or soon to be, holds messages of a shard that a former dispatcher sent to it."""

    shard: ShardName
    ids: tuple[bytes, ...]


@record
class ReceiverReady(AboutStream):
    """A receiver's socket can take another batch."""


@record
class WaitOver(AboutStream):
    """A stream with an end stops waiting for its first message.

    has_rows_elsewhere: other dispatchers have sent it some.
    """

    has_rows_elsewhere: bool = False


@record
class Due(AboutShard):
    """Committed: new messages."""

    keys: tuple[MessageKey, ...]


@record
class Acked(AboutShard):
    """Committed: messages were acked or deleted."""

    ids: tuple[bytes, ...]


@record
class AckedEarly(AboutShard):
    """Messages in flight were acked, and nothing is written yet. acked_ns: their future ``time_acked``."""

    ids: tuple[bytes, ...]
    acked_ns: int


@record
class Changed(AboutShard):
    """Committed: changes of messages that the statement's text does not show.

    ids: the known messages that may have changed; None for any.
    keeps_leases: it ends no lease: a heartbeat, which extends one, or a change of the priority only.
    """

    ids: tuple[bytes, ...] | None = None
    keeps_leases: bool = False


@record
class Touched(AboutShard):
    """Committed: changes of columns that do not schedule anything; a server may now take rows that it refused."""

    ids: tuple[bytes, ...]


@record
class AckedUnnamed(AboutShard):
    """Committed: messages were acked or deleted, and the text does not show which."""


@record
class LeasesWanted(AboutShard):
    """A client is about to change rows other than by an ack. ids: the rows; None for any."""

    ids: tuple[bytes, ...] | None


@record
class JobDone:
    """A job has ended.

    result: the result of its conversation; None if it failed, or if it is unknown.
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
class PurgeRefused(AboutShard):
    """The purge has left rows that the server does not delete. over: ids of former ones that are now deleted or gone."""

    refused: Refusals
    over: tuple[bytes, ...] = ()


@record
class Reconfigured:
    """The table was altered."""

    table: MessageTable


@record
class TryAgain:
    """A DDL statement was executed, which may have removed the reason why servers refuse rows."""


@record
class ShardChecked(AboutShard):
    """A health check has reached the shard, or failed with *trouble*."""

    trouble: str | None


@record
class Elected(AboutShard):
    """This process dispatches the shard from now on."""


@record
class Deposed(AboutShard):
    """This process does not dispatch the shard, or not any more.

    reason: why no other member serves the streams that cover it; None if one does.
    """

    reason: str | None


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
    | ShardChecked
    | Elected
    | Deposed
    | TableEnded
    | Tick
)


# The effects of a commit on messages.
TableEvent: TypeAlias = Due | Acked | Changed | Touched | AckedUnnamed

# Events that a stream with several dispatchers sends to each of them.
PartEvent: TypeAlias = ShareGiven | ProgressedElsewhere | WaitOver


# Actions


# Actions with statements of their own (`engine.messaging.table.store_job`).
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
class Deliver(AboutStream):
    """Hand rows to a receiver; the answer is ReceiverReady once it can take more, Detached if it is gone."""

    rows: tuple[ClaimedRow, ...]


@record
class End(AboutStream):
    """End a stream; no answer."""

    error: StreamfromError


@record
class Finish(AboutStream):
    """End a stream that was given the rows it asked for, or all that were due; no answer."""


@record
class ReportProgress(AboutStream):
    """Report that a receiver made progress in the delivery that began with *row*, counted from 0."""

    row: int


@record
class ReportDeadMembers(AboutShard):
    """Log that messages wait for members of their groups that are parked; no answer. found: message, member, group."""

    found: tuple[tuple[bytes, bytes, bytes], ...]


@record
class ReportSetAside(AboutShard):
    """Log rows that the server refuses to write, and that are left as they are; no answer. count: how many there are now."""

    found: tuple[tuple[bytes, SetAsideRow], ...]
    count: int


@record
class ReportStanding(AboutStream):
    """Log that a receiver stalls: it acked nothing of a full prefetch while messages are ready; no answer.

    is_collecting: its prefetch is `auto`, and it has never acked anything: it may collect messages before its first ack.
    """

    held: int
    since_ns: int
    is_collecting: bool = False


@record
class KeepsShare(AboutStream):
    """Report how many messages a receiver may hold: its share, or more until enough of them are acked; no answer."""

    most: int


@record
class WantShare(AboutStream):
    """Report that messages are due for a receiver whose share is full; no answer."""


# Reports about the order, the progress and the shares of a stream with several dispatchers.
StreamNews: TypeAlias = KeepsShare | WantShare | ReportProgress
StreamReport: TypeAlias = Deliver | StreamNews

Action: TypeAlias = (
    ShardJob | End | Finish | ReportDeadMembers | ReportSetAside | ReportStanding | StreamReport
)
