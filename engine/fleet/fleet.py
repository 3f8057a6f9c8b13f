"""This process as a member of its fleet: the shards it dispatches, and its links to the dispatchers of the others.

One election for each shard. Results of elections go to the registry (`elected`, `deposed`, `served_elsewhere`), to the streams of this member at others
(`streams_elsewhere`), and to the streams of others at this one (`Visit`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import StoreError, TableNotFound
from streamfrom.engine.fleet import peer_link
from streamfrom.engine.fleet.directory import Member, MemberDifferences
from streamfrom.engine.fleet.elector import ElectionSession, Elector
from streamfrom.engine.fleet.peer_stream import RemoteReceiver, RowsMissing
from streamfrom.engine.fleet.streams_elsewhere import StreamsElsewhere
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.sharding.keyspace import ShardName


# Between two readings of a directory besides the election's own.
LOOK_PAUSE_S: Final = 0.2
# How long to wait for a directory that is needed now.
LOOK_TIMEOUT_S: Final = 1.0
# Before the first answer of an election: a proxy that starts must not send messages that another one sends.
_NOT_KNOWN: Final = "its dispatcher is not known yet"


@dataclass(frozen=True, slots=True)
class ElectedShard:
    """A shard whose dispatcher is elected.

    database: its name on the server.
    open_session, on_doubt: as in `Elector`.
    """

    keyspace: str
    name: ShardName
    database: str
    open_session: Callable[[Callable[[], None]], Awaitable[ElectionSession]]
    on_doubt: Callable[[], None]


class ShardElection:
    """The part of this member in one election, and its effects: `elector.Tables`."""

    def __init__(self, fleet: Fleet, shard: ElectedShard, now_ns: Callable[[], int]) -> None:
        self._fleet = fleet
        self.shard: Final = shard.keyspace, shard.name
        self.elector = Elector(
            f"{shard.keyspace}/{shard.name}",
            shard.database,
            fleet.own,
            self,
            shard.open_session,
            now_ns,
            shard.on_doubt,
        )
        self._is_unannounced = False
        self._look: asyncio.TimerHandle | None = None
        self._looked_s = -LOOK_PAUSE_S

    def dispatch(self, term: int) -> None:
        """Dispatch here, and announce it to all connected members."""
        self._fleet.elsewhere.dispatched_here(*self.shard)
        self._fleet.here.elected(*self.shard)
        # Sent once the directory has been read, which follows now: before that this member may not know whom to inform.
        self._is_unannounced = True

    def withhold(self, reason: str) -> None:
        """Make the registry withhold the shard."""
        self._fleet.here.deposed(*self.shard, reason)

    def not_elected(self, reason: str) -> None:
        """Pass the reason on to streams that end because no member serves them."""
        self._fleet.here.not_elected(*self.shard, reason)

    async def drain(self) -> None:
        """Return when nothing is being written to the shard any more."""
        await self._fleet.here.drain(*self.shard)

    def changed(self, differences: MemberDifferences) -> None:
        """Follow the dispatcher."""
        fleet, who = self._fleet, differences.dispatcher
        fleet.greet(differences.joined)
        if self.elector.may_send():
            self._announce()
            return
        if who is None:
            return
        if not isinstance(who, Member):
            self.withhold(str(who))
        elif who.id != fleet.own.id:
            reason = f"member {who.id} dispatches it, at {who.address or 'no address'}"
            if differences.has_moved:
                self.withhold(reason)
            fleet.withdraw(*self.shard, reason)
            fleet.elsewhere.dispatched_by(*self.shard, who if who.address else None)

    def _announce(self) -> None:
        if self._is_unannounced:
            self._is_unannounced = False
            members = self._fleet.members().values()
            self._fleet.elsewhere.notify(members, peer_link.Dispatching(*self.shard))

    def look(self) -> None:
        """Read the directory soon, once for all callers meanwhile."""
        if self._look is None:
            loop = asyncio.get_running_loop()
            moment_s = max(loop.time(), self._looked_s + LOOK_PAUSE_S)
            self._look = loop.call_at(moment_s, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        self._looked_s = asyncio.get_running_loop().time()
        self.elector.look()

    async def stop(self) -> None:
        """Leave the election: hand over."""
        await self.elector.stop()
        self._fleet.withdraw(*self.shard, f"member {self._fleet.own.id} stops")

    def close(self) -> None:
        """Stop reading the directory."""
        if self._look is not None:
            self._look.cancel()


class Visit:
    """The streams and news that one link of another member has brought, because this member dispatches shards. `LinkHearer`."""

    def __init__(
        self,
        fleet: Fleet,
        registry: Registry,
        link: peer_link.PeerLink[peer_link.FromDispatcher],
    ) -> None:
        self._fleet = fleet
        self._link = link
        self._registry = registry
        self._here = registry.here
        self._open: dict[int, RemoteReceiver] = {}
        self._closed: dict[int, RemoteReceiver] = {}
        # Tables of which it sent news; news that it could no longer send is unknown.
        self._notified: dict[tuple[str, str, ShardName], None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, message: peer_link.ToDispatcher) -> None:
        """Process a message of the member."""
        match message:
            case peer_link.OpenStream():
                self._open_stream(message)
            case events.ShareGiven() | events.ProgressedElsewhere() | events.WaitOver():
                if receiver := self._open.get(message.receiver):
                    self._here.post(replace(message, receiver=receiver.id))
            case peer_link.RowsTaken():
                self._taken(message)
            case peer_link.CloseStream():
                self._close_stream(message)
            case peer_link.ForgetStream():
                if receiver := self._closed.pop(message.receiver, None):
                    self._here.forget(receiver, has_left=message.has_left)
            case peer_link.News():
                for event in message.events:
                    self._notified[message.keyspace, message.table, event.shard] = None
                    self._here.happened(message.keyspace, message.table, event)
            case peer_link.Dispatching():
                self._fleet.look_at(message.keyspace, message.shard)
            case peer_link.DefinitionsChanged():
                self._do(
                    message.number, self._registry.reload(message.keyspace, message.tables)
                )
            case peer_link.ShowLeases():
                leases = self._here.show_leases(
                    message.keyspace, message.shard, message.table, message.ids
                )
                self._do(message.number, leases)
            case peer_link.AckEarly():
                rows = self._here.ack_early(
                    message.keyspace,
                    message.shard,
                    message.table,
                    message.ids,
                    message.acked_ns,
                )
                self._link.send(peer_link.RequestDone(message.number, rows))

    def lost(self, reason: str) -> None:
        """Treat the member's clients as gone: their messages are due again soon, as if they had left.

        A poll looks for commits that it carried out and did not report before it died.
        """
        self._fleet.gone(self)
        for keyspace, table, shard in self._notified:
            self._here.happened(keyspace, table, events.Changed(shard, None))
        for receiver in self._open.values():
            self._here.detach(receiver)
        for receiver in (*self._open.values(), *self._closed.values()):
            self._here.forget(receiver, has_left=True)
        self._open.clear()
        self._closed.clear()

    def withdraw(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """End the streams that cover a shard."""
        for receiver in list(self._open.values()):
            if receiver.opened.keyspace == keyspace and shard in receiver.opened.shards:
                receiver.end(StoreError(reason))

    def close(self) -> None:
        """End the link, which the member sees as lost."""
        self._link.close()

    def _open_stream(self, message: peer_link.OpenStream) -> None:
        if refusal := self._refusal(message):
            self._link.send(refusal)
            return
        receiver = RemoteReceiver(message, self._link.send, self._here.held_by)
        self._open[message.receiver] = receiver
        try:
            at = message.keyspace, message.table
            self._here.attach(receiver, *at, message.held, message.share, receiver.report)
        except StreamfromError as error:
            self._link.send(peer_link.StreamEnded(message.receiver, str(error), message.held))

    def _refusal(self, message: peer_link.OpenStream) -> peer_link.StreamEnded | None:
        """Return why a stream cannot be served, None if it can."""
        keyspace, fleet = message.keyspace, self._fleet
        if away := [shard for shard in message.shards if not fleet.may_send(keyspace, shard)]:
            names = ", ".join(f"{keyspace}/{shard}" for shard in away)
            reason = f"member {fleet.own.id} does not dispatch {names}"
            return peer_link.StreamEnded(message.receiver, reason, unserved=tuple(away))
        table = self._registry.table(keyspace, message.table)
        if not isinstance(table, MessageTable):
            # The other member knows the table, so this one may not have read it yet.
            self._registry.reload_soon()
            reason = str(table or TableNotFound(keyspace, message.table))
            return peer_link.StreamEnded(message.receiver, reason)
        unknown = [column for column in message.columns if column not in table.columns]
        if unknown:
            self._registry.reload_soon()
            return peer_link.StreamEnded(
                message.receiver, f"table {table.name} has no column {unknown[0]}"
            )
        return None

    def _do(self, number: int, work: Coroutine[object, object, None]) -> None:
        """Carry out a request, and report when it is done."""

        async def do() -> None:
            await work
            self._link.send(peer_link.RequestDone(number))

        task = asyncio.get_running_loop().create_task(do())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _taken(self, message: peer_link.RowsTaken) -> None:
        if receiver := self._open.get(message.receiver):
            try:
                if receiver.away.reported(message.rows):
                    self._here.ready(receiver)
            except RowsMissing as missing:
                self._end(str(missing))

    def _close_stream(self, message: peer_link.CloseStream) -> None:
        receiver = self._open.pop(message.receiver, None)
        if receiver is None:
            return
        # Kept until ForgetStream: the member may still ack rows, or give them back.
        self._closed[message.receiver] = receiver
        try:
            unsent = receiver.away.unsent(message.taken)
        except RowsMissing as missing:
            self._here.detach(receiver)
            self._end(str(missing))
        else:
            self._here.detach(receiver, unsent)

    def _end(self, reason: str) -> None:
        self._link.close()
        self.lost(reason)


class Fleet:
    """The fleet's parts in this process. Belongs to one event loop.

    transport: the links to other members; None if there are none.
    """

    def __init__(
        self,
        own: Member,
        shards: Iterable[ElectedShard],
        transport: peer_link.PeerTransport | None,
        now_ns: Callable[[], int],
    ) -> None:
        self.own = own
        self._now_ns = now_ns
        self._elections: dict[tuple[str, ShardName], ShardElection] = {}
        for shard in shards:
            self._add(shard)
        self.elsewhere = StreamsElsewhere(transport, self.present, self.unserved)
        self._transport = transport
        self._visits: dict[Visit, None] = {}  # of others, in the order in which they came
        self._greeted = {own.id}
        self._following: asyncio.Task[None] | None = None

    def start(self, registry: Registry) -> None:
        """Take part from now on; before it is elected *registry* withholds the shards."""
        self.here = self.elsewhere.here = registry.here
        self._registry = registry
        registry.streams = self.elsewhere
        for election in self._elections.values():
            election.withhold(_NOT_KNOWN)
            election.elector.start()

    def _add(self, shard: ElectedShard) -> ShardElection:
        election = ShardElection(self, shard, self._now_ns)
        self._elections[election.shard] = election
        return election

    def add(self, shard: ElectedShard) -> Elector:
        """Withhold one more shard, whose keyspace the registry has by now, and return its elector, which the caller starts."""
        election = self._add(shard)
        election.withhold(_NOT_KNOWN)
        return election.elector

    async def remove(self, shards: Iterable[tuple[str, ShardName]]) -> None:
        """Leave the elections of *shards*: hand over, and say goodbye in their directories."""
        gone = [self._elections[shard] for shard in shards]
        await asyncio.gather(*(election.stop() for election in gone))
        for election in gone:
            election.close()
        await asyncio.gather(*(election.elector.leave() for election in gone))
        for election in gone:
            del self._elections[election.shard]
            self.elsewhere.dispatched_by(*election.shard, None)

    async def stop(self) -> None:
        """Hand over everything that is dispatched here, once running work has ended. Twice is fine."""
        await asyncio.gather(*(election.stop() for election in self._elections.values()))
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        """Keep finding out which members dispatch: clients that are still here commit, and the dispatchers must be informed."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_PAUSE_S)

    async def leave(self) -> None:
        """Say goodbye, after `close`."""
        await asyncio.gather(
            *(election.elector.leave() for election in self._elections.values())
        )

    def close(self) -> None:
        """Close the links to other members, and theirs to this one."""
        if self._following is not None:
            self._following.cancel()
        for election in self._elections.values():
            election.close()
        self.elsewhere.stop()
        for visit in self._visits:
            visit.close()

    def elector(self, keyspace: str, shard: ShardName) -> Elector | None:
        """Return the elector of a shard; None if this member does not serve the shard."""
        election = self._elections.get((keyspace, shard))
        return None if election is None else election.elector

    def greet(self, joined: Iterable[Member]) -> None:
        """Announce this member to members that were not seen before."""
        for member in joined:
            if (
                member.address
                and self._transport is not None
                and member.id not in self._greeted
            ):
                self._greeted.add(member.id)
                self._transport.greet(member)

    def reconfigured(self, own: Member) -> None:
        """Become *own*, in every directory."""
        self.own = own
        for election in self._elections.values():
            election.elector.reconfigured(own)
            election.look()

    # For the registry and streams

    def may_send(self, keyspace: str, shard: ShardName) -> bool:
        """Return whether messages of a shard may be sent from here at this moment."""
        election = self._elections.get((keyspace, shard))
        return election is not None and election.elector.may_send()

    def unserved(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """Note that no dispatcher serves the streams of a shard, and look for one."""
        if not self.may_send(keyspace, shard):
            self.here.deposed(keyspace, shard, reason)
            self.look_at(keyspace, shard)

    def look_at(self, keyspace: str, shard: ShardName) -> None:
        """Read the directory of a shard soon."""
        if election := self._elections.get((keyspace, shard)):
            election.look()

    # For the transport

    def accept(
        self, _member: Member, link: peer_link.PeerLink[peer_link.FromDispatcher]
    ) -> peer_link.LinkHearer[peer_link.ToDispatcher]:
        """Serve another member, whose certificate has proved its identity."""
        visit = Visit(self, self._registry, link)
        self._visits[visit] = None
        return visit

    def withdraw(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """End the streams of other members that cover a shard: another member dispatches it."""
        for visit in self._visits:
            visit.withdraw(keyspace, shard, reason)

    def gone(self, visit: Visit) -> None:
        """Note that a link of another member is over."""
        self._visits.pop(visit, None)

    def members(self) -> Mapping[str, Member]:
        """Return the other members that some directory knows, by their ids."""
        return {
            name: member
            for election in self._elections.values()
            for name, member in election.elector.directory.members.items()
            if name != self.own.id
        }

    async def present(self) -> list[Member]:
        """Return the other members that are connected according to some directory, read now.

        If a directory cannot be read within LOOK_TIMEOUT_S, its last answer counts.
        """
        looks = [election.elector.look() for election in self._elections.values()]
        await asyncio.wait(looks, timeout=LOOK_TIMEOUT_S)
        return self.connected()

    def connected(self) -> list[Member]:
        """Return the other members that were connected when some directory was last read."""
        found = {
            member.id: member
            for election in self._elections.values()
            for member in election.elector.directory.present()
        }
        return list(found.values())

    def trusts(self, certificate: str) -> Member | None:
        """Return the member that a certificate identifies; None for no member."""
        found = (
            each.elector.directory.trusts(certificate) for each in self._elections.values()
        )
        return next((member for member in found if member is not None), None)

    def look(self) -> None:
        """Read all directories soon."""
        for election in self._elections.values():
            election.look()
