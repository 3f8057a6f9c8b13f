"""The messages between members (`engine.fleet.peer_link`) as the bytes of ``members.proto``. Pure.

Members of different versions work together: each says which protocol it speaks, is sent nothing that came with a
later one, and skips what it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, assert_never

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
    RequestDone,
    RowsSent,
    RowsTaken,
    ShareKept,
    ShareWanted,
    StopWaiting,
    StreamEnded,
    StreamFinished,
    ToDispatcher,
    WantLeases,
)
from streamfrom.engine.messaging.events import (
    Acked,
    AckedUnnamed,
    Changed,
    Due,
    TableEvent,
    Touched,
)
from streamfrom.engine.messaging.message import MessageKey
from streamfrom.proxy.fleet import members_pb2 as pb


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamfrom.engine.sharding.keyspace import ShardName


WholeT = TypeVar("WholeT", pb.ToDispatcher, pb.FromDispatcher)

PROTOCOL: Final = 3
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
}


class PeerMessageUnreadable(ValueError):
    """Bytes of another member that are no message: the link is of no use."""


def is_known(message: object, protocol: int) -> bool:
    """Return whether a member that speaks *protocol* knows what *message* is."""
    return _SINCE.get(type(message), FIRST_PROTOCOL) <= protocol


def encode_to_dispatcher(messages: Sequence[ToDispatcher]) -> bytes:
    """Return *messages*, at least one, as bytes; more than one since protocol BATCHES_SINCE."""
    first, *others = map(_to_dispatcher_pb, messages)
    first.more.extend(others)
    return first.SerializeToString()


def decode_to_dispatcher(data: bytes) -> list[ToDispatcher | None]:
    """Return the messages in *data*, with None for each that is not known here.

    Raises:
        PeerMessageUnreadable: there is none.
    """
    whole = _parsed(pb.ToDispatcher(), data)
    return [_to_dispatcher_of_pb(whole), *map(_to_dispatcher_of_pb, whole.more)]


def encode_from_dispatcher(messages: Sequence[FromDispatcher]) -> bytes:
    """Return *messages* as bytes, as `encode_to_dispatcher`."""
    first, *others = map(_from_dispatcher_pb, messages)
    first.more.extend(others)
    return first.SerializeToString()


def decode_from_dispatcher(data: bytes) -> list[FromDispatcher | None]:
    """Return the messages in *data*, as `decode_to_dispatcher`."""
    whole = _parsed(pb.FromDispatcher(), data)
    return [_from_dispatcher_of_pb(whole), *map(_from_dispatcher_of_pb, whole.more)]


def _to_dispatcher_pb(message: ToDispatcher) -> pb.ToDispatcher:
    match message:
        case OpenStream():
            return pb.ToDispatcher(
                open_stream=pb.OpenStream(
                    stream=message.stream,
                    keyspace=message.keyspace,
                    table=message.table,
                    shards=message.shards,
                    columns=message.columns,
                    prefetch=message.prefetch,
                    rows_max=message.rows_max,
                    connection_id=message.connection_id,
                    # No stream asks for no key at all, so none stands for all.
                    keys=message.keys or (),
                    held=_held_to_pb(message.held),
                    share=message.share,
                )
            )
        case GiveShare():
            share = pb.GiveShare(stream=message.stream, share=message.share)
            return pb.ToDispatcher(give_share=share)
        case RowsTaken():
            taken = pb.RowsTaken(stream=message.stream, rows=message.rows)
            return pb.ToDispatcher(rows_taken=taken)
        case CloseStream():
            close = pb.CloseStream(stream=message.stream, taken=message.taken)
            return pb.ToDispatcher(close_stream=close)
        case ForgetStream():
            forget = pb.ForgetStream(stream=message.stream, has_left=message.has_left)
            return pb.ToDispatcher(forget_stream=forget)
        case StopWaiting():
            stop = pb.StopWaiting(stream=message.stream)
            return pb.ToDispatcher(stop_waiting=stop)
        case News():
            news = pb.News(
                keyspace=message.keyspace,
                table=message.table,
                events=map(_event_to_pb, message.events),
            )
            return pb.ToDispatcher(news=news)
        case Dispatching():
            shard = pb.Dispatching(keyspace=message.keyspace, shard=message.shard)
            return pb.ToDispatcher(dispatching=shard)
        case DefinitionsChanged():
            changed = pb.DefinitionsChanged(
                keyspace=message.keyspace, number=message.number, tables=message.tables
            )
            return pb.ToDispatcher(definitions_changed=changed)
        case WantLeases():
            want = pb.WantLeases(
                number=message.number,
                keyspace=message.keyspace,
                table=message.table,
                shard=message.shard,
                # A message around them, as an empty repeated field is an absent one, and None is all.
                ids=None if message.ids is None else pb.Ids(ids=message.ids),
            )
            return pb.ToDispatcher(want_leases=want)
        case AckEarly():
            ack = pb.AckEarly(
                number=message.number,
                keyspace=message.keyspace,
                table=message.table,
                shard=message.shard,
                ids=message.ids,
                acked_ns=message.acked_ns,
            )
            return pb.ToDispatcher(ack_early=ack)
        case _:
            assert_never(message)


def _to_dispatcher_of_pb(whole: pb.ToDispatcher) -> ToDispatcher | None:
    match whole.WhichOneof("message"):
        case "open_stream":
            found = whole.open_stream
            return OpenStream(
                found.stream,
                found.keyspace,
                found.table,
                tuple(found.shards),
                tuple(found.columns),
                found.prefetch if found.HasField("prefetch") else None,
                found.rows_max if found.HasField("rows_max") else None,
                found.connection_id,
                tuple(found.keys) or None,
                _held_of_pb(found.held),
                found.share if found.HasField("share") else None,
            )
        case "give_share":
            return GiveShare(whole.give_share.stream, whole.give_share.share)
        case "rows_taken":
            return RowsTaken(whole.rows_taken.stream, whole.rows_taken.rows)
        case "close_stream":
            return CloseStream(whole.close_stream.stream, whole.close_stream.taken)
        case "forget_stream":
            return ForgetStream(whole.forget_stream.stream, whole.forget_stream.has_left)
        case "stop_waiting":
            return StopWaiting(whole.stop_waiting.stream)
        case "news":
            news = whole.news
            events = map(_event_of_pb, news.events)
            # What is of a kind that is not known the dispatcher finds by its poll.
            known = tuple(event for event in events if event is not None)
            return News(news.keyspace, news.table, known)
        case "dispatching":
            return Dispatching(whole.dispatching.keyspace, whole.dispatching.shard)
        case "definitions_changed":
            changed = whole.definitions_changed
            return DefinitionsChanged(changed.number, changed.keyspace, tuple(changed.tables))
        case "want_leases":
            want = whole.want_leases
            ids = tuple(want.ids.ids) if want.HasField("ids") else None
            return WantLeases(want.number, want.keyspace, want.table, want.shard, ids)
        case "ack_early":
            ack = whole.ack_early
            return AckEarly(
                ack.number, ack.keyspace, ack.table, ack.shard, tuple(ack.ids), ack.acked_ns
            )
        case _:
            return None


def _from_dispatcher_pb(message: FromDispatcher) -> pb.FromDispatcher:
    match message:
        case RowsSent():
            rows = pb.RowsSent(
                stream=message.stream, first=message.first, payloads=message.payloads
            )
            return pb.FromDispatcher(rows_sent=rows)
        case StreamEnded():
            ended = pb.StreamEnded(
                stream=message.stream, reason=message.reason, held=_held_to_pb(message.held)
            )
            return pb.FromDispatcher(stream_ended=ended)
        case StreamFinished():
            finished = pb.StreamFinished(stream=message.stream)
            return pb.FromDispatcher(stream_finished=finished)
        case ShareKept():
            return pb.FromDispatcher(
                share_kept=pb.ShareKept(stream=message.stream, most=message.most)
            )
        case ShareWanted():
            return pb.FromDispatcher(share_wanted=pb.ShareWanted(stream=message.stream))
        case RequestDone():
            done = pb.RequestDone(number=message.number, rows=message.rows)
            return pb.FromDispatcher(request_done=done)
        case _:
            assert_never(message)


def _from_dispatcher_of_pb(whole: pb.FromDispatcher) -> FromDispatcher | None:
    match whole.WhichOneof("message"):
        case "rows_sent":
            rows = whole.rows_sent
            return RowsSent(rows.stream, rows.first, tuple(rows.payloads))
        case "stream_ended":
            ended = whole.stream_ended
            return StreamEnded(ended.stream, ended.reason, _held_of_pb(ended.held))
        case "stream_finished":
            return StreamFinished(whole.stream_finished.stream)
        case "share_kept":
            return ShareKept(whole.share_kept.stream, whole.share_kept.most)
        case "share_wanted":
            return ShareWanted(whole.share_wanted.stream)
        case "request_done":
            done = whole.request_done
            return RequestDone(done.number, done.rows if done.HasField("rows") else None)
        case _:
            return None


def _parsed(whole: WholeT, data: bytes) -> WholeT:
    try:
        whole.ParseFromString(data)
    except DecodeError as error:
        raise PeerMessageUnreadable from error
    return whole


def _held_to_pb(held: Mapping[ShardName, tuple[bytes, ...]]) -> list[pb.Held]:
    return [pb.Held(shard=shard, ids=ids) for shard, ids in held.items()]


def _held_of_pb(held: Iterable[pb.Held]) -> dict[ShardName, tuple[bytes, ...]]:
    return {each.shard: tuple(each.ids) for each in held}


def _event_to_pb(event: TableEvent) -> pb.TableEvent:
    match event:
        case Due():
            keys = [
                pb.Key(id=key.id, priority=key.priority, time_next_ns=key.time_next_ns)
                for key in event.keys
            ]
            return pb.TableEvent(shard=event.shard, due=pb.Keys(keys=keys))
        case Acked():
            return pb.TableEvent(shard=event.shard, acked=pb.Ids(ids=event.ids))
        case Changed():
            ids = None if event.ids is None else pb.Ids(ids=event.ids)
            changed = pb.Changed(ids=ids, by_heartbeat=event.by_heartbeat)
            return pb.TableEvent(shard=event.shard, changed=changed)
        case Touched():
            return pb.TableEvent(shard=event.shard, touched=pb.Ids(ids=event.ids))
        case AckedUnnamed():
            return pb.TableEvent(shard=event.shard, acked_unnamed=pb.Unnamed())
        case _:
            assert_never(event)


def _event_of_pb(event: pb.TableEvent) -> TableEvent | None:
    match event.WhichOneof("kind"):
        case "due":
            keys = (
                MessageKey(key.id, key.priority, key.time_next_ns) for key in event.due.keys
            )
            return Due(event.shard, tuple(keys))
        case "acked":
            return Acked(event.shard, tuple(event.acked.ids))
        case "changed":
            changed = event.changed
            ids = tuple(changed.ids.ids) if changed.HasField("ids") else None
            return Changed(event.shard, ids, changed.by_heartbeat)
        case "touched":
            return Touched(event.shard, tuple(event.touched.ids))
        case "acked_unnamed":
            return AckedUnnamed(event.shard)
        case _:
            return None
