"""The messages between members (`engine.fleet.peer_link`) as the bytes of ``members.proto``. Pure.

A class there and a message here that have the same name and fields are one (`fields_codec`).

Each member says which protocol it speaks (`PROTOCOL`, one more with each message that comes after release 0.1), so that a later
version can keep from it what it does not know; what comes nevertheless is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args

from google.protobuf.message import DecodeError

from streamfrom.engine.fleet.peer_link import FromDispatcher, ToDispatcher
from streamfrom.engine.messaging.dispatch.events import TableEvent
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import FieldCodec, FieldsCodec, OneOfCodec


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import ShardName


PROTOCOL: Final = 1
PeerMessage = TypeVar("PeerMessage")


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
_NESTED["TableEvent"] = OneOfCodec(pb.TableEvent, get_args(TableEvent), _NESTED)


class PeerMessageUnreadable(ValueError):
    """Bytes of another member that are no message: the link is of no use."""


class LinkCodec(Generic[PeerMessage]):
    """What goes one way on a link.

    whole: the message that is one of *classes*, with what follows it.
    """

    def __init__(self, whole: Any, classes: Iterable[type[PeerMessage]]) -> None:
        self._whole = whole
        self._codec: OneOfCodec[Any] = OneOfCodec(whole, classes, _NESTED)

    def encode(self, messages: Sequence[PeerMessage]) -> bytes:
        """Return *messages*, at least one, as bytes."""
        first, *others = map(self._codec.encode, messages)
        first.more.extend(others)
        data: bytes = first.SerializeToString()
        return data

    def decode(self, data: bytes) -> list[PeerMessage | None]:
        """Return the messages in *data*, with None for each that is not known here. Raises PeerMessageUnreadable if there is none."""
        try:
            whole = self._whole.FromString(data)
        except DecodeError as error:
            raise PeerMessageUnreadable from error
        return [self._codec.decode(each) for each in (whole, *whole.more)]


TO_DISPATCHER: Final[LinkCodec[ToDispatcher]] = LinkCodec(
    pb.ToDispatcher, get_args(ToDispatcher)
)
FROM_DISPATCHER: Final[LinkCodec[FromDispatcher]] = LinkCodec(
    pb.FromDispatcher, get_args(FromDispatcher)
)
