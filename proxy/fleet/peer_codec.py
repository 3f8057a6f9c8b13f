"""The messages between members (`engine.fleet.peer_link`) as the bytes of ``members.proto``. Pure.

Members of different versions work together: each says which protocol it speaks, is sent nothing that came with a
later one, and skips what it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from google.protobuf.message import DecodeError

from streamfrom.engine.fleet.peer_link import (
    AckEarly,
    CloseStream,
    DefinitionsChanged,
    Dispatching,
    ForgetStream,
    FromDispatcher,
    GiveShare,
    News,
    OpenStream,
    ProgressElsewhere,
    RequestDone,
    RowsSent,
    RowsTaken,
    ShareKept,
    ShareWanted,
    StopWaiting,
    StreamEnded,
    StreamFinished,
    StreamProgressed,
    ToDispatcher,
    WantLeases,
)
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    AckedUnnamed,
    Changed,
    Due,
    Touched,
)
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import FieldCodec, FieldsCodec, OneOfCodec


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.sharding.keyspace import ShardName


WholeT = TypeVar("WholeT", pb.ToDispatcher, pb.FromDispatcher)

PROTOCOL: Final = 4
# Of members whose version had no hello.
FIRST_PROTOCOL: Final = 1
# Since then several messages go as one.
BATCHES_SINCE: Final = 2
# What came later than FIRST_PROTOCOL.
_SINCE: Final[dict[type, int]] = {
    AckEarly: 2,
    DefinitionsChanged: 2,
    WantLeases: 2,
    # One that does not know shares sends a whole prefetch, and never answers.
    GiveShare: 3,
    ShareKept: 3,
    ShareWanted: 3,
    ProgressElsewhere: 4,
    StreamProgressed: 4,
}


class _IdsCodec:
    """A message around ids, as an empty repeated field is an absent one, and None is any."""

    def encode(self, value: tuple[bytes, ...], _now_ns: int) -> pb.Ids:
        return pb.Ids(ids=value)

    def decode(self, found: pb.Ids, _now_ns: int) -> tuple[bytes, ...]:
        return tuple(found.ids)


class _HeldCodec:
    def encode(self, value: tuple[ShardName, tuple[bytes, ...]], _now_ns: int) -> pb.Held:
        return pb.Held(shard=value[0], ids=value[1])

    def decode(self, found: pb.Held, _now_ns: int) -> tuple[ShardName, tuple[bytes, ...]]:
        return found.shard, tuple(found.ids)


_NESTED: Final[dict[str, FieldCodec]] = {
    "Held": _HeldCodec(),
    "Ids": _IdsCodec(),
    "Key": FieldsCodec(MessageKey, pb.Key),
}
# What is of a kind that this version does not know the dispatcher finds by its poll.
_NESTED["TableEvent"] = OneOfCodec(
    pb.TableEvent,
    {
        Acked: "acked",
        AckedUnnamed: "acked_unnamed",
        Changed: "changed",
        Due: "due",
        Touched: "touched",
    },
    _NESTED,
)
TO_DISPATCHER: Final = OneOfCodec(
    pb.ToDispatcher,
    {
        AckEarly: "ack_early",
        CloseStream: "close_stream",
        DefinitionsChanged: "definitions_changed",
        Dispatching: "dispatching",
        ForgetStream: "forget_stream",
        GiveShare: "give_share",
        News: "news",
        OpenStream: "open_stream",
        ProgressElsewhere: "progress_elsewhere",
        RowsTaken: "rows_taken",
        StopWaiting: "stop_waiting",
        WantLeases: "want_leases",
    },
    _NESTED,
)
FROM_DISPATCHER: Final = OneOfCodec(
    pb.FromDispatcher,
    {
        RequestDone: "request_done",
        RowsSent: "rows_sent",
        ShareKept: "share_kept",
        ShareWanted: "share_wanted",
        StreamEnded: "stream_ended",
        StreamFinished: "stream_finished",
        StreamProgressed: "stream_progressed",
    },
    _NESTED,
)


class PeerMessageUnreadable(ValueError):
    """Bytes of another member that are no message: the link is of no use."""


def is_known(message: object, protocol: int) -> bool:
    """Return whether a member that speaks *protocol* knows what *message* is."""
    return _SINCE.get(type(message), FIRST_PROTOCOL) <= protocol


def encode_to_dispatcher(messages: Sequence[ToDispatcher]) -> bytes:
    """Return *messages*, at least one, as bytes; more than one since protocol BATCHES_SINCE."""
    first, *others = map(TO_DISPATCHER.encode, messages)
    first.more.extend(others)
    return first.SerializeToString()


def decode_to_dispatcher(data: bytes) -> list[ToDispatcher | None]:
    """Return the messages in *data*, with None for each that is not known here.

    Raises:
        PeerMessageUnreadable: there is none.
    """
    whole = _parsed(pb.ToDispatcher(), data)
    return [TO_DISPATCHER.decode(each) for each in (whole, *whole.more)]


def encode_from_dispatcher(messages: Sequence[FromDispatcher]) -> bytes:
    """Return *messages* as bytes, as `encode_to_dispatcher`."""
    first, *others = map(FROM_DISPATCHER.encode, messages)
    first.more.extend(others)
    return first.SerializeToString()


def decode_from_dispatcher(data: bytes) -> list[FromDispatcher | None]:
    """Return the messages in *data*, as `decode_to_dispatcher`."""
    whole = _parsed(pb.FromDispatcher(), data)
    return [FROM_DISPATCHER.decode(each) for each in (whole, *whole.more)]


def _parsed(whole: WholeT, data: bytes) -> WholeT:
    try:
        whole.ParseFromString(data)
    except DecodeError as error:
        raise PeerMessageUnreadable from error
    return whole
