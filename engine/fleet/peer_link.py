"""How members of a fleet reach each other: what they say, and the ways on which they say it.

The member that has the clients of streams opens them at the dispatcher of their shards, says how many rows
their sockets have taken, and reports what commits did. The dispatcher sends rows, as the bytes that the client gets.
Neither ids nor shards travel with rows: the dispatcher keeps what it needs to give rows back.

A *link* is one ordered way from a member to another. The one that needs the other opens it; what the other
one needs goes by a second link. While a link lives nothing is lost; when it breaks, all its streams are over.
The transport turns messages, which are plain values, into bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from streamfrom.engine.messaging.streams.prefetch_window import FIRST


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.messaging.dispatch.events import TableEvent
    from streamfrom.engine.sharding.keyspace import ShardName


# From the member that has the client


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Send messages of a table to a client.

    stream: its number, drawn by the sender; one of a link has no other's.
    shards: whose messages; at least one.
    columns, prefetch, rows_max, connection_id, keys, window_first: as of `Receiver`.
    held: the ids of messages that former dispatchers sent to it, by shard, as far as is known.
    share: as of GiveShare; None for its whole prefetch.
    """

    stream: int
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


@dataclass(frozen=True, slots=True)
class GiveShare:
    """The stream may hold so many messages of this dispatcher, since others dispatch to it as well; ShareKept answers."""

    stream: int
    share: int


@dataclass(frozen=True, slots=True)
class ProgressElsewhere:
    """The stream has made progress with another dispatcher's rows: the first *rows* of this one were sent before them."""

    stream: int
    rows: int


@dataclass(frozen=True, slots=True)
class RowsTaken:
    """The client's socket has taken so many *rows* since the stream began."""

    stream: int
    rows: int


@dataclass(frozen=True, slots=True)
class CloseStream:
    """The stream is over: rows after the first *taken* are to be given back, the others go on being held."""

    stream: int
    taken: int


@dataclass(frozen=True, slots=True)
class ForgetStream:
    """A closed stream is to be forgotten. has_left: the connection of its client has ended."""

    stream: int
    has_left: bool


@dataclass(frozen=True, slots=True)
class StopWaiting:
    """A stream with an end waits for its first message no longer."""

    stream: int


@dataclass(frozen=True, slots=True)
class News:
    """A commit did this to messages of a table."""

    keyspace: str
    table: str
    events: tuple[TableEvent, ...]


@dataclass(frozen=True, slots=True)
class Dispatching:
    """The sender dispatches a shard from now on, so its directory is to be read."""

    keyspace: str
    shard: ShardName


@dataclass(frozen=True, slots=True)
class DefinitionsChanged:
    """A statement that went through the sender has changed tables of a keyspace; answer RequestDone once they are read.

    number: as of ShowLeases.
    tables: those that it names; none where it defined something else, such as a routine.
    """

    number: int
    keyspace: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShowLeases:
    """Write the leases of messages that are in memory alone; answer RequestDone once the rows show them, unless they are locked.

    number: drawn by the sender; one of a link has no other's.
    ids: of which messages; None for all of the table.
    """

    number: int
    keyspace: str
    table: str
    shard: ShardName
    ids: tuple[bytes, ...] | None


@dataclass(frozen=True, slots=True)
class AckEarly:
    """Take an ack that is written soon, as `vt_ack = early` asks; answer RequestDone at once.

    number: as of ShowLeases.
    ids: the messages, as literals.
    acked_ns: what their ``time_acked`` is to be.
    """

    number: int
    keyspace: str
    table: str
    shard: ShardName
    ids: tuple[bytes, ...]
    acked_ns: int


# From the dispatcher


@dataclass(frozen=True, slots=True)
class RequestDone:
    """What ShowLeases, DefinitionsChanged or AckEarly asked for is done.

    number: that of the request.
    rows: how many messages AckEarly acknowledges; None if it was not taken, and for other requests.
    """

    number: int
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class RowsSent:
    """Rows of a stream; none say that it is served.

    first: the number of the first one, counted from 0.
    types: as `engine.messaging.table.message.ClaimedRow` has them; b"" from a member whose version does not report them.
    """

    stream: int
    first: int
    payloads: tuple[bytes, ...]
    types: bytes = b""


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The sender does not serve the stream any more.

    held: the ids of the messages that it holds, by shard.
    unserved: the shards that the sender does not dispatch, if that is the reason.
    """

    stream: int
    reason: str
    held: Mapping[ShardName, tuple[bytes, ...]] = field(default_factory=dict)
    unserved: tuple[ShardName, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareKept:
    """The stream holds *most* messages of this dispatcher at most: the share that it was given last, or more until enough are acked."""

    stream: int
    most: int


@dataclass(frozen=True, slots=True)
class StreamProgressed:
    """The stream has made progress in the delivery that began with *row*, counted from 0."""

    stream: int
    row: int


@dataclass(frozen=True, slots=True)
class ShareWanted:
    """Messages are due for the stream, and its share is full."""

    stream: int


@dataclass(frozen=True, slots=True)
class StreamFinished:
    """A stream with an end has all that it asked for, or all there is."""

    stream: int


ToDispatcher: TypeAlias = (
    OpenStream
    | GiveShare
    | ProgressElsewhere
    | RowsTaken
    | CloseStream
    | ForgetStream
    | StopWaiting
    | News
    | Dispatching
    | DefinitionsChanged
    | ShowLeases
    | AckEarly
)
Request: TypeAlias = DefinitionsChanged | ShowLeases | AckEarly
OfStream: TypeAlias = (
    RowsSent | ShareKept | ShareWanted | StreamEnded | StreamFinished | StreamProgressed
)
FromDispatcher: TypeAlias = OfStream | RequestDone


# The ways


MessageT = TypeVar("MessageT", contravariant=True)


class PeerLink(Protocol[MessageT]):
    """One end of a link."""

    def send(self, message: MessageT) -> None:
        """Send *message*, or queue it. Never waits, never raises; nothing once the link is over."""

    def close(self) -> None:
        """Close it once all is sent; its hearer hears nothing more. Twice is fine."""


class LinkHearer(Protocol[MessageT]):
    """Who hears what comes by a link, in order, one message at a time, on the loop."""

    def heard(self, message: MessageT) -> None:
        """Take in a message."""

    def lost(self, reason: str) -> None:
        """Note that the link is over, by no doing of this side. Called once; *reason* names the address tried."""


class PeerTransport(Protocol):
    """The ways to other members."""

    def connect(
        self, member: Member, hearer: LinkHearer[FromDispatcher]
    ) -> PeerLink[ToDispatcher]:
        """Return a link at once; it may still fail, which its hearer hears within 2 s."""

    def greet(self, member: Member) -> None:
        """Notify *member* of a member that it may not know yet: it reads its directories soon."""


class PeerService(Protocol):
    """This member towards the others: what they may ask of it, and who they are, as the directories of all shards last said."""

    def accept(
        self, member: Member, link: PeerLink[FromDispatcher]
    ) -> LinkHearer[ToDispatcher]:
        """Serve *member*, whom its certificate has proved to be itself."""

    def members(self) -> Mapping[str, Member]:
        """Return the others by their ids."""

    def trusts(self, certificate: str) -> Member | None:
        """Return the member that a certificate, as PEM, stands for; None for no member."""

    def look(self) -> None:
        """Have the directories read again soon: a member connects that is not known yet."""
