"""The streams and news of this member that concern shards which other members dispatch.

Each of its receivers has one stream at each member that dispatches shards it covers, over one link per member.
Their rows go into the receiver together with those dispatched here, and the dispatchers share the stream's prefetch
(`engine.fleet.prefetch_shares`). When a dispatcher changes, or a link breaks, the streams begin again at the next dispatcher; in
between the tables' own schedulers count their grace period, with the link's reason.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, assert_never

from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.fleet import peer_link
from streamfrom.engine.fleet.link_elsewhere import (
    EndingStream,
    LinkElsewhere,
    ReceiverElsewhere,
)
from streamfrom.engine.fleet.peer_stream import RowsMissing, StreamElsewhere
from streamfrom.engine.fleet.prefetch_shares import PrefetchShares, ShareChange
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.shell.dispatcher import Dispatcher
from streamfrom.engine.messaging.streams.attached_receiver import UNLIMITED
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.writes.message_effects import ANY_TABLE


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.messaging.shell.dispatcher_here import DispatcherHere
    from streamfrom.engine.messaging.table.message import ClientReceiver, Receiver, RowOfStream
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


# Pauses between two tries to reach a member.
RETRY_FIRST_S: Final = 0.1
RETRY_LAST_S: Final = 1.0
# A reschedule waits no longer than this for a dispatcher that does not answer.
SHOW_LEASES_S: Final = 3.0
# So does an early ack. The link of a dead member breaks before.
ACK_ANSWERED_S: Final = 3.0
# If one dispatcher hangs, a client whose stream has an end waits no longer for it than this.
REST_S: Final = 3.0
# So does a statement that changes tables, for other members; these read them again within `schema_reload` anyway.
DEFINITIONS_READ_S: Final = 1.0
# Commits that may have written to any queue are gathered this long into one report.
GATHERED_S: Final = 0.01
# This process among the dispatchers of a stream; no member has this id.
HERE: Final = ""


class StreamsElsewhere(Dispatcher):
    """The streams of this process, whose dispatchers are this member and others. Belongs to one event loop.

    present: returns the other connected members, even if nothing has reported them yet.
    unserved: is given a shard whose dispatcher does not serve the streams of this member, and the reason, to find its present dispatcher.
    here: the dispatcher of this process.
    """

    here: DispatcherHere

    def __init__(
        self,
        transport: peer_link.PeerTransport | None,
        present: Callable[[], Awaitable[list[Member]]],
        unserved: Callable[[str, ShardName, str], None],
    ) -> None:
        self._transport = transport
        self._present = present
        self._unserved = unserved
        self._dispatchers: dict[tuple[str, ShardName], Member] = {}
        self._served: set[tuple[str, ShardName]] = set()
        # Shards that their supposed dispatchers do not dispatch, until the directory is read again.
        # Streams of other shards must not wait for that: the server of the one may be away.
        self._refused: set[tuple[str, ShardName]] = set()
        # Tables of which news were sent; a dispatcher or link that is gone may have missed some.
        self._known: dict[tuple[str, ShardName], set[str]] = defaultdict(set)
        # Shards on which commits may have written to any queue, until that is reported.
        self._gathered: dict[tuple[str, ShardName], asyncio.TimerHandle] = {}
        self._links: dict[str, LinkElsewhere] = {}
        self._receivers: dict[int, ReceiverElsewhere] = {}
        self._numbers = count(1)
        self._pauses_s: dict[str, float] = {}
        # Members that are not tried before their pause is over.
        self._resting: dict[str, asyncio.TimerHandle] = {}

    # Dispatchers

    def dispatched_by(self, keyspace: str, shard: ShardName, member: Member | None) -> None:
        """Follow the dispatcher of a shard. member: None if it is this process, or not known."""
        key = keyspace, shard
        if self._dispatchers.get(key) == member and key not in self._refused:
            return
        self._refused.discard(key)
        self._served.discard(key)
        if member is None:
            del self._dispatchers[key]
        else:
            self._dispatchers[key] = member
            if link := self._links.get(member.id):
                self._repeat_news(link, key)
            elif self._known[key]:
                self._link(member)
        self._reconcile_all()

    def dispatched_here(self, keyspace: str, shard: ShardName) -> None:
        """Note that this process dispatches a shard from now on."""
        self.dispatched_by(keyspace, shard, None)
        for record in self._receivers.values():
            if record.keyspace == keyspace and (ids := record.held.pop(shard, ())):
                self.here.take_over(record.receiver, {shard: ids})

    def notify(self, members: Iterable[Member], message: peer_link.Dispatching) -> None:
        """Send *message* to those of *members* that can be reached."""
        for link in self._links_to(members):
            link.send(message)

    def _links_to(self, members: Iterable[Member]) -> list[LinkElsewhere]:
        links = [self._link(member) for member in members if member.address]
        return [link for link in links if link is not None]

    async def definitions_changed(self, keyspace: str, names: Collection[str]) -> None:
        """Return once the other members have read the definitions of a keyspace, after DEFINITIONS_READ_S at most.

        So a client may make a queue through one member and use it through another at once.
        """
        links = self._links_to(await self._present())
        changed = partial(
            peer_link.DefinitionsChanged, keyspace=keyspace, tables=tuple(sorted(names))
        )
        await asyncio.gather(*(link.request(changed, DEFINITIONS_READ_S) for link in links))

    async def show_leases(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Have the dispatcher of a shard write leases; wait for it while its link lives, SHOW_LEASES_S at most."""
        if link := self._link_of(keyspace, shard):
            await link.request(
                lambda number: peer_link.ShowLeases(number, keyspace, table, shard, ids),
                SHOW_LEASES_S,
            )

    async def ack_early_elsewhere(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...], acked_ns: int
    ) -> int | None:
        """Have the dispatcher of a shard take an early ack; return how many messages it acknowledges.

        None if it does not take it, cannot be reached, or has not answered when its link breaks or ACK_ANSWERED_S are over.
        """
        link = self._link_of(keyspace, shard)
        if link is None:
            return None
        return await link.request(
            lambda number: peer_link.AckEarly(number, keyspace, table, shard, ids, acked_ns),
            ACK_ANSWERED_S,
        )

    def happened(self, keyspace: str, table: str, event: events.TableEvent) -> None:
        """Report the effect of a commit to the dispatcher of the shard, if it can be reached.

        Commits that may have written to any queue are reported once per GATHERED_S.
        """
        key = keyspace, event.shard
        if table != ANY_TABLE:
            self._report(key, peer_link.News(keyspace, table, (event,)))
        elif key not in self._gathered:
            loop = asyncio.get_running_loop()
            self._gathered[key] = loop.call_later(GATHERED_S, self._report_any, key, event)

    def _report_any(self, key: tuple[str, ShardName], event: events.TableEvent) -> None:
        del self._gathered[key]
        self._report(key, peer_link.News(key[0], ANY_TABLE, (event,)))

    def _report(self, key: tuple[str, ShardName], news: peer_link.News) -> None:
        if link := self._link_of(*key):
            link.send(news)
        self._known[key].add(news.table)

    def _repeat_news(self, link: LinkElsewhere, key: tuple[str, ShardName]) -> None:
        """Have a dispatcher look at rows whose news it may have missed: from before it, or before its link."""
        keyspace, shard = key
        for table in sorted(self._known[key]):
            link.send(peer_link.News(keyspace, table, (events.Changed(shard, None),)))

    # The receivers of this member

    def attach(self, receiver: ClientReceiver, keyspace: str, name: str) -> MessageTable:
        """Have *receiver* served by the dispatchers of all shards that it covers, as `Dispatcher.attach`."""
        record = ReceiverElsewhere(receiver, keyspace)
        record.arrivals.joined(HERE)
        if receiver.rows_max is not None:
            record.ending = EndingStream(
                receiver,
                receiver.rows_max,
                partial(self._first_came, record),
                lambda: all(one.is_finished for one in record.streams.values()),
            )
            record.receiver = record.ending
        table = self.here.attach(
            record.receiver, keyspace, name, hearer=partial(self._reported, record, HERE)
        )
        record.table, own = table.name, receiver.prefetch
        # A table without a limit may get one while the stream is open.
        if receiver.rows_max is None and own != 0:
            prefetch = table.properties.prefetch if own is None else own
            record.shares = PrefetchShares(_divided(prefetch), HERE)
            if not self.here.dispatches_any(keyspace, receiver.shards):
                self._report_shares(record, record.shares.idle(HERE))
        self._receivers[receiver.id] = record
        self._reconcile(record)
        return table

    def reconfigure(self, table: MessageTable) -> None:
        """Divide the table's prefetch for open streams without their own."""
        self.here.reconfigure(table)
        prefetch = _divided(table.properties.prefetch)
        for record in self._receivers.values():
            is_of_it = (record.keyspace, record.table) == (table.keyspace, table.name)
            if is_of_it and record.receiver.prefetch is None and record.shares is not None:
                self._report_shares(record, record.shares.altered(prefetch))

    def ready(self, receiver: Receiver) -> None:
        """Note that a receiver's socket has taken everything."""
        self.here.ready(receiver)
        if record := self._receivers.get(receiver.id):
            for member, stream in record.streams.items():
                if report := stream.taken():
                    self._links[member].send(report)
            if record.ending is not None:
                record.ending.ready()

    def wait_over(self, receiver: Receiver) -> None:
        """Stop a stream with an end waiting for its first message, wherever it is served."""
        record = self._receivers.get(receiver.id)
        ending = None if record is None else record.ending
        has_rows = ending is not None and not ending.is_empty
        self.here.post(events.WaitOver(receiver.id, has_rows_elsewhere=has_rows))
        if record is not None and ending is not None:
            ending.is_waiting = False
            for member, stream in record.streams.items():
                self._links[member].send(events.WaitOver(stream.number))

    def _first_came(self, record: ReceiverElsewhere) -> None:
        self.wait_over(record.receiver)
        if record.ending is not None and record.ending.rows_left:
            loop = asyncio.get_running_loop()
            record.rest = loop.call_later(REST_S, record.ending.give_up)

    def detach(self, receiver: Receiver, unsent: Sequence[RowOfStream] = ()) -> None:
        """End the streams of a receiver; *unsent*, and the rows it refused, go back to their dispatchers."""
        record = self._receivers.get(receiver.id)
        if record is not None and not record.is_over:
            record.is_over = True
            if record.rest is not None:
                record.rest.cancel()
            if record.ending is not None:
                unsent = [*unsent, *record.ending.surplus]
            for member in list(record.streams):
                self._close(record, member, unsent)
        self.here.detach(receiver, unsent)

    def forget(self, receiver: Receiver, *, has_left: bool) -> None:
        """Forget a detached receiver, as `Dispatcher.forget`."""
        self.here.forget(receiver, has_left=has_left)
        record = self._receivers.pop(receiver.id, None)
        if record is not None:
            for link, number in record.closed:
                link.send(peer_link.ForgetStream(number, has_left))

    def stop(self) -> None:
        """Close all links."""
        for timer in (*self._resting.values(), *self._gathered.values()):
            timer.cancel()
        for link in self._links.values():
            if link.link is not None:
                link.link.close()
        self._links.clear()
        self._receivers.clear()
        self._dispatchers.clear()

    # Messages of links

    def _heard(
        self,
        link: LinkElsewhere,
        record: ReceiverElsewhere,
        stream: StreamElsewhere,
        message: peer_link.OfStream,
    ) -> None:
        """Process a dispatcher's message about a stream."""
        match message:
            case peer_link.RowsSent():
                self._rows_came(link, record, stream, message)
            case events.KeepsShare() | events.WantShare() | events.ReportProgress():
                self._reported(record, link.member.id, message)
            case events.Finish():
                stream.is_finished = True
            case peer_link.StreamEnded():
                # Look for the present dispatcher.
                record.held |= message.held
                self._refused.update((record.keyspace, each) for each in message.unserved)
                self._rest(link.member)
                self._close(record, link.member.id, ())
                self._lose(record.keyspace, message.unserved or stream.shards, message.reason)
            case _:
                assert_never(message)
        if record.ending is not None:
            record.ending.check()

    def _rows_came(
        self,
        link: LinkElsewhere,
        record: ReceiverElsewhere,
        stream: StreamElsewhere,
        message: peer_link.RowsSent,
    ) -> None:
        self._pauses_s.pop(link.member.id, None)
        try:
            rows = stream.receive(message)
        except RowsMissing as missing:
            if link.link is not None:
                link.link.close()
            link.lost(str(missing))
            return
        if not stream.is_served:
            stream.is_served = True
            for shard in stream.shards:
                record.held.pop(shard, None)
        for shard in sorted(stream.shards):
            if (record.keyspace, shard) not in self._served:
                self._served.add((record.keyspace, shard))
                self.here.served_elsewhere(record.keyspace, shard)
        if not rows:
            return
        record.arrivals.came(link.member.id, len(rows))
        try:
            can_take_more = record.receiver.deliver(rows)
        except ReceiverGone:
            stream.refused(len(rows))
        else:
            if can_take_more:
                self.ready(record.receiver)

    def _reported(
        self, record: ReceiverElsewhere, dispatcher: str, found: events.StreamReport
    ) -> None:
        """Process a report of a dispatcher, this process or another one, on its part of a stream."""
        match found:
            case events.Deliver():
                record.arrivals.came(dispatcher, len(found.rows))
            case events.KeepsShare():
                if record.shares is not None:
                    self._report_shares(record, record.shares.kept(dispatcher, found.most))
            case events.WantShare():
                if record.shares is not None:
                    self._report_shares(record, record.shares.wanted(dispatcher))
            case events.ReportProgress():
                for other, rows in record.arrivals.progressed(dispatcher, found.row).items():
                    self._report_to(
                        record, other, partial(events.ProgressedElsewhere, rows=rows)
                    )

    def _link_lost(self, link: LinkElsewhere, reason: str) -> None:
        """Restart the streams of a link."""
        if self._links.get(link.member.id) is link:
            del self._links[link.member.id]
        self._rest(link.member)
        lost: dict[str, set[ShardName]] = defaultdict(set)
        for record, stream in link.streams.values():
            record.streams.pop(link.member.id, None)
            self._share_left(record, link.member.id)
            self._left_open(record, stream)
            lost[record.keyspace] |= stream.shards
        records = [record for record, _ in link.streams.values()]
        link.streams.clear()
        for keyspace, shards in lost.items():
            self._lose(keyspace, shards, reason)
        for record in records:
            if record.ending is not None:
                record.ending.check()

    def _lose(self, keyspace: str, shards: Iterable[ShardName], reason: str) -> None:
        for shard in sorted(shards):
            self._served.discard((keyspace, shard))
            self._unserved(keyspace, shard, reason)

    # Bringing streams to where they belong

    def _reconcile_all(self) -> None:
        for record in list(self._receivers.values()):
            if not record.is_over:
                self._reconcile(record)

    def _reconcile(self, record: ReceiverElsewhere) -> None:
        wanted: dict[str, set[ShardName]] = defaultdict(set)
        members: dict[str, Member] = {}
        covered = record.receiver.shards
        for (keyspace, shard), member in self._dispatchers.items():
            if (keyspace, shard) in self._refused:
                continue
            if keyspace == record.keyspace and (covered is None or shard in covered):
                members[member.id] = member
                wanted[member.id].add(shard)
        for name, stream in list(record.streams.items()):
            if wanted.get(name, set()) != stream.shards:
                self._close(record, name, ())
        for name, shards in wanted.items():
            if name not in record.streams and (link := self._link(members[name])):
                self._open(record, link, frozenset(shards))
        if record.ending is not None:
            record.ending.check()

    def _open(
        self, record: ReceiverElsewhere, link: LinkElsewhere, shards: frozenset[ShardName]
    ) -> None:
        stream = StreamElsewhere(next(self._numbers), shards)
        record.streams[link.member.id] = stream
        record.arrivals.joined(link.member.id)
        link.streams[stream.number] = record, stream
        receiver = record.receiver
        # A remote dispatcher's report is newer than the messages sent from here.
        held = {**self.here.held_by(receiver), **record.held}
        link.send(
            peer_link.OpenStream(
                stream.number,
                record.keyspace,
                record.table,
                tuple(sorted(shards)),
                receiver.columns,
                receiver.prefetch,
                receiver.rows_max,
                receiver.connection_id,
                None if receiver.keys is None else tuple(sorted(receiver.keys)),
                {shard: held[shard] for shard in sorted(shards) if shard in held},
                None if record.shares is None else record.shares.joined(link.member.id),
                receiver.window_first,
            )
        )
        if record.ending is not None and not record.ending.is_waiting:
            link.send(events.WaitOver(stream.number))

    def _close(
        self, record: ReceiverElsewhere, member: str, unsent: Sequence[RowOfStream]
    ) -> None:
        """End a stream. The client still gets rows that wait for its socket, except *unsent*."""
        stream = record.streams.pop(member)
        link = self._links[member]
        del link.streams[stream.number]
        link.send(stream.closed(unsent))
        record.closed.append((link, stream.number))
        self._share_left(record, member)
        self._left_open(record, stream)

    def _left_open(self, record: ReceiverElsewhere, stream: StreamElsewhere) -> None:
        """Note that a dispatcher went away before it had given all rows of a stream, or reported that there are none.

        If the stream has an end and no row yet, it waits here for the next dispatcher: an empty answer could be wrong.
        """
        ending = record.ending
        if ending is None or not (ending.is_done_here and ending.is_empty):
            return
        if not (record.is_over or stream.is_finished):
            ending.is_done_here = False
            # Once this process knows that the shard has no dispatcher, or that it dispatches the shard itself.
            asyncio.get_running_loop().call_soon(self._attach_again, record, ending)

    def _attach_again(self, record: ReceiverElsewhere, ending: EndingStream) -> None:
        if record.is_over or ending.is_over:
            return
        try:
            hearer = partial(self._reported, record, HERE)
            self.here.attach(ending, record.keyspace, record.table, hearer=hearer)
        except StreamfromError as error:
            ending.end(error)
        else:
            self.here.wait_over(ending)

    # Its prefetch

    def _share_left(self, record: ReceiverElsewhere, dispatcher: str) -> None:
        record.arrivals.left(dispatcher)
        if record.shares is not None:
            self._report_shares(record, record.shares.left(dispatcher))

    def _report_shares(self, record: ReceiverElsewhere, changes: Iterable[ShareChange]) -> None:
        for dispatcher, share in changes:
            self._report_to(record, dispatcher, partial(events.ShareGiven, share=share))

    def _report_to(
        self,
        record: ReceiverElsewhere,
        dispatcher: str,
        event: Callable[[int], events.PartEvent],
    ) -> None:
        """Report an event to this process or another one for its part of a stream. event: makes it from the stream's number there."""
        if dispatcher == HERE:
            self.here.post(event(record.receiver.id))
        else:
            self._links[dispatcher].send(event(record.streams[dispatcher].number))

    # Links

    def _link_of(self, keyspace: str, shard: ShardName) -> LinkElsewhere | None:
        """Return the link to the member that dispatches a shard; None if no other one does, or as `_link`."""
        member = self._dispatchers.get((keyspace, shard))
        return None if member is None else self._link(member)

    def _link(self, member: Member) -> LinkElsewhere | None:
        """Return the link to a member, a new one if necessary; None while the member rests."""
        link = self._links.get(member.id)
        if link is None and member.id not in self._resting and self._transport is not None:
            link = self._links[member.id] = LinkElsewhere(member, self._heard, self._link_lost)
            link.link = self._transport.connect(member, link)
            for key, dispatcher in self._dispatchers.items():
                if dispatcher.id == member.id:
                    self._repeat_news(link, key)
        return link

    def _rest(self, member: Member) -> None:
        """Try a member again after a pause that doubles until it has served something."""
        if member.id in self._resting:
            return
        pause_s = self._pauses_s.get(member.id, RETRY_FIRST_S)
        self._pauses_s[member.id] = min(2 * pause_s, RETRY_LAST_S)
        loop = asyncio.get_running_loop()
        self._resting[member.id] = loop.call_later(pause_s, self._rested, member.id)

    def _rested(self, member: str) -> None:
        del self._resting[member]
        for key, dispatcher in self._dispatchers.items():
            if dispatcher.id == member and self._known[key]:
                self._link(dispatcher)
        self._reconcile_all()


def _divided(prefetch: int) -> int:
    """Return the number that the dispatchers of a stream divide. For `auto`, each has its own window."""
    return prefetch if prefetch > 0 else UNLIMITED
