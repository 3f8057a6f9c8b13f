"""How members of a fleet communicate: their messages, and the links that carry them.

The member with the clients of streams opens these streams at the dispatcher of their shards, reports how many rows
their sockets have taken, and reports the effects of commits. The dispatcher sends rows, as the bytes that the client gets.
Neither ids nor shards travel with rows: the dispatcher keeps everything it needs to give rows back.

A *link* is one ordered channel from a member to another. The member that needs the other opens it; the other
direction uses a second link. While a link lives nothing is lost; when it breaks, all its streams are over.
The transport turns messages, which are plain values, into bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.streams.prefetch_window import FIRST
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.sharding.keyspace import ShardName


# From the member that has the client


@record
class OpenStream(events.AboutStream):
    """Send messages of a table to a client.

    receiver: its number, drawn by the sender; unique on a link.
    shards: the shards of the messages; at least one.
    columns, prefetch, rows_max, connection_id, keys, window_first: as in `Receiver`.
    held: the ids of messages that former dispatchers sent to it, by shard, as far as is known.
    share: as in `events.ShareGiven`; None for its whole prefetch.
    """

    keyspace: str
    table: str
    shards: tuple[ShardName, ...]
    columns: tuple[str, ...]
    prefetch: int | None
    rows_max: int | None
    connection_id: int
    keys: tuple[bytes, ...] | None = None
    held: Mapping[ShardName, tuple[bytes, ...]] = field(default_factory=dict)
    share: int | None = None
    window_first: int = FIRST


@record
class RowsTaken(events.AboutStream):
    """How many *rows* the client's socket has taken since the stream began."""

    rows: int


@record
class CloseStream(events.AboutStream):
    """The stream is over: rows after the first *taken* are to be given back, the others stay held."""

    taken: int


@record
class ForgetStream(events.AboutStream):
    """A closed stream is to be forgotten. has_left: the connection of its client has ended."""

    has_left: bool


@record
class News:
    """The effect of a commit on messages of a table."""

    keyspace: str
    table: str
    events: tuple[events.TableEvent, ...]


@record
class Dispatching:
    """The sender dispatches a shard from now on, so its directory must be read."""

    keyspace: str
    shard: ShardName


@record
class DefinitionsChanged:
    """A statement through the sender has changed tables of a keyspace; the answer is RequestDone once they are read.

    number: as in ShowLeases.
    tables: those that it names; none if it defined something else, such as a routine.
    """

    number: int
    keyspace: str
    tables: tuple[str, ...] = ()


@record
class ShowLeases:
    """Write leases that exist only in memory; the answer is RequestDone once the rows show them, unless they are locked.

    number: drawn by the sender; unique on a link.
    ids: the messages; None for all of the table.
    """

    number: int
    keyspace: str
    table: str
    shard: ShardName
    ids: tuple[bytes, ...] | None


@record
class AckEarly:
    """Take an ack that is written soon, as with `vt_ack = early`; RequestDone answers at once.

    number: as in ShowLeases.
    ids: the messages, as literals.
    acked_ns: their future ``time_acked``.
    """

    number: int
    keyspace: str
    table: str
    shard: ShardName
    ids: tuple[bytes, ...]
    acked_ns: int


# From the dispatcher


@record
class RequestDone:
    """A request by ShowLeases, DefinitionsChanged or AckEarly is done.

    number: that of the request.
    rows: how many messages AckEarly acknowledges; None if it was not taken, and for other requests.
    """

    number: int
    rows: int | None = None


@record
class RowsSent(events.AboutStream):
    """Rows of a stream; an empty one confirms that the stream is served.

    first: the number of the first one, counted from 0.
    types: as in `engine.messaging.table.message.ClaimedRow`; b"" from a member whose version does not report them.
    """

    first: int
    payloads: tuple[bytes, ...]
    types: bytes = b""


@record
class StreamEnded(events.AboutStream):
    """The sender no longer serves the stream.

    held: the ids of the messages that it holds, by shard.
    unserved: the shards that the sender does not dispatch, if that is the reason.
    """

    reason: str
    held: Mapping[ShardName, tuple[bytes, ...]] = field(default_factory=dict)
    unserved: tuple[ShardName, ...] = ()


ToDispatcher: TypeAlias = (
    OpenStream
    | events.PartEvent
    | RowsTaken
    | CloseStream
    | ForgetStream
    | News
    | Dispatching
    | DefinitionsChanged
    | ShowLeases
    | AckEarly
)
Request: TypeAlias = DefinitionsChanged | ShowLeases | AckEarly
OfStream: TypeAlias = RowsSent | StreamEnded | events.Finish | events.StreamNews
FromDispatcher: TypeAlias = OfStream | RequestDone


# Links


MessageT = TypeVar("MessageT", contravariant=True)


class PeerLink(Protocol[MessageT]):
    """One end of a link."""

    def send(self, message: MessageT) -> None:
        """Send *message*, or queue it. Never waits, never raises; does nothing once the link is over."""

    def close(self) -> None:
        """Close it once everything is sent; its hearer gets nothing more. Twice is fine."""


class LinkHearer(Protocol[MessageT]):
    """The receiver of a link's messages, in order, one at a time, on the loop."""

    def heard(self, message: MessageT) -> None:
        """Process a message."""

    def lost(self, reason: str) -> None:
        """Note that the link is over, not closed by this side. Called once; *reason* names the address tried."""


class PeerTransport(Protocol):
    """The links to other members."""

    def connect(
        self, member: Member, hearer: LinkHearer[FromDispatcher]
    ) -> PeerLink[ToDispatcher]:
        """Return a link at once; it may still fail, which its hearer learns within 2 s."""

    def greet(self, member: Member) -> None:
        """Notify *member* of a member that it may not know yet: it reads its directories soon."""
