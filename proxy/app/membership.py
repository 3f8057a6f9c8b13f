"""This process as a member of its fleet: its number, its identity, and the parts by which it takes part.

The number is the least that no other member has. It is a part of connection ids and of the ids that a proxy gives to messages, so
no two members may have the same one: a unique key of the directory on each primary ensures that. A dispatcher frees the numbers of
members that have gone. If each member of a fleet ends before it could, a start that finds no number waits until it can do so
itself.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import structlog

from streamfrom import __version__
from streamfrom.engine.fleet.directory import FORGET_NS, Member
from streamfrom.engine.fleet.fleet import ElectedShard, Fleet
from streamfrom.engine.fleet.lock_connection import (
    Numbers,
    NumberTaken,
    forget,
    numbers,
    publish,
    settings,
)
from streamfrom.engine.messaging.store.conversation import ServerRefused
from streamfrom.engine.messaging.table.message_ids import MEMBERS_MAX
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.backends.session_variables import own_statement
from streamfrom.proxy.config.keyspaces import ShardConfig, hash_of
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import BackendError, BackendLost, BackendUnavailable, NoSuchThread
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.grpc_port import GrpcPort, fleet_port
from streamfrom.proxy.status.fleet_figures import MembersFigures


if TYPE_CHECKING:
    from streamfrom.engine.fleet.elector import Elector
    from streamfrom.engine.fleet.peer_link import (
        FromDispatcher,
        LinkHearer,
        PeerLink,
        ToDispatcher,
    )
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.config.file import Config
    from streamfrom.proxy.fleet.member_calls import FleetCalls
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.sessions.process_list import LocalSessions
    from streamfrom.proxy.sessions.services import Asker
    from streamfrom.proxy.status.status_source import StatusSource, Viewer


# A start waits no longer for a server that does not answer.
TIMEOUT_S: Final = 2.0
# How often to look for returning members, and how long between two looks.
LOOKS: Final = FORGET_NS // 10**9
LOOK_S: Final = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MemberNumber:
    """The name and number of a process in its fleet. name: 16 hexadecimal digits, drawn for it; number: from 1 to MEMBERS_MAX."""

    name: str
    number: int

    @classmethod
    def drawn(cls, locked: Collection[int] = ()) -> MemberNumber:
        """Return a number for a process that no directory knows, if possible other than those *locked*."""
        return cls(os.urandom(8).hex(), random.SystemRandom().choice(_free((), locked)))


def member_of_config(
    config: Config, number: MemberNumber, address: str = "", certificate: str = ""
) -> Member:
    """Return this process as the directories show it."""
    return Member(
        id=number.name,
        fleet=config.fleet.name,
        address=address,
        certificate=certificate,
        id_prefix=number.number,
        version=__version__,
        configuration=hash_of(config.keyspaces),
    )


async def take_number(config: Config, stop: asyncio.Event) -> MemberNumber:
    """Take the least number that is free on all shards of *config*, by a row in each directory.

    A shard that is away, or has no directory for this account, is skipped. If all are, the number is drawn.
    If no number is free, and some belong to members that are not connected, these have FORGET_NS to come back, or until *stop*.
    Raises ConfigError if every number belongs to a connected member.
    """
    places = {
        (shard.primary.server, shard.primary.database): (keyspace.name, shard)
        for keyspace in config.keyspaces
        for shard in keyspace.shards
    }
    opening = [
        asyncio.ensure_future(_NumberPlace.open(*places[place])) for place in sorted(places)
    ]
    done, late = await asyncio.wait(opening, timeout=TIMEOUT_S)
    for each in late:
        each.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    # In one order for all members: of two processes that want one number, one meets the other at the first directory.
    found = [each.result() for each in opening if each in done]
    directories = [each for each in found if each is not None]
    try:
        while True:
            async with asyncio.timeout(TIMEOUT_S):
                if number := await _take(config, directories):
                    return number
            await _free_those_of_the_gone(directories, stop)
            if stop.is_set():
                return MemberNumber.drawn()
    except TimeoutError:
        return MemberNumber.drawn()
    finally:
        for directory in directories:
            directory.session.close()


async def _free_those_of_the_gone(directories: list[_NumberPlace], stop: asyncio.Event) -> None:
    """Delete the rows of members that no shard sees for FORGET_NS, unless *stop* is set. Raises ConfigError if there are none."""
    gone = _gone(directories)
    if gone:
        log.warning(
            "all numbers of members are taken, waiting for those of members that have gone",
            seconds=LOOKS * LOOK_S,
        )
    for _ in range(LOOKS):
        if not gone or stop.is_set():
            break
        await asyncio.sleep(LOOK_S)
        await _look(directories)
        gone &= _gone(directories)
    if directories and not gone:
        raise ConfigError(
            "",
            f"all {MEMBERS_MAX} numbers of members are taken in the directory, the database streamfrom, of these shards;"
            " stop a member",
        )
    if not stop.is_set():
        for directory in directories:
            await directory.forget(*gone)
        await _look(directories)


async def _look(directories: list[_NumberPlace]) -> None:
    """Read the numbers again, and drop directories that can no longer be read."""
    async with asyncio.timeout(TIMEOUT_S):
        directories[:] = [each for each in directories if await each.look()]


def _gone(directories: list[_NumberPlace]) -> set[str]:
    """Return the ids of members with a number that none of their connections holds."""
    locked = {number for directory in directories for number in directory.numbers.locked}
    return {
        member
        for directory in directories
        for number, member in directory.numbers.taken.items()
        if number not in locked
    }


async def _take(config: Config, directories: list[_NumberPlace]) -> MemberNumber | None:
    """Return the least number that is free, once it is taken, or a drawn one; None if none is free."""
    own = member_of_config(config, MemberNumber.drawn())
    taken = {number for directory in directories for number in directory.numbers.taken}
    locked = {number for directory in directories for number in directory.numbers.locked}
    while directories:
        if not (free := _free(taken, locked)):
            return None
        own = replace(own, id_prefix=free[0])
        with suppress(NumberTaken):
            for directory in list(directories):
                if not await directory.publish(own):
                    directories.remove(directory)
            if directories:
                return MemberNumber(own.id, own.id_prefix)
            break
        taken.add(own.id_prefix)
        for directory in directories:
            await directory.forget(own.id)
    return MemberNumber.drawn(locked)


def _free(taken: Collection[int], locked: Collection[int]) -> list[int]:
    """Return the numbers that no member has, in order. Those *locked* count only where no other is left."""
    free = [number for number in range(1, MEMBERS_MAX + 1) if number not in taken]
    return [number for number in free if number not in locked] or free


@dataclass(eq=False, slots=True)
class _NumberPlace:
    """The directory of one database, while a number is taken. numbers: those of its members."""

    database: str
    session: LockSession
    numbers: Numbers = field(init=False)

    @classmethod
    async def open(cls, keyspace: str, shard: ShardConfig) -> _NumberPlace | None:
        """Return the directory of a shard; None if it is away."""
        database = shard.primary.database
        try:
            backend = await open_backend(
                keyspace,
                shard.name,
                shard.primary,
                database=None,
                program="streamfrom-election",
            )
            session = LockSession(backend, lambda: None)
            await session.converse(settings())
        except (BackendUnavailable, BackendError, BackendLost, ServerRefused):
            return None
        place = cls(database, session)
        return place if await place.look() else None

    async def look(self) -> bool:
        """Read the numbers; False if that is impossible."""
        with suppress(BackendLost, ServerRefused):
            self.numbers, _ = await self.session.converse(numbers(self.database))
            return True
        return False

    async def publish(self, own: Member) -> bool:
        """Write the row of a member; False if that is impossible. Raises NumberTaken."""
        with suppress(BackendLost, ServerRefused):
            denied, _ = await self.session.converse(publish(self.database, own))
            return denied is None
        return False

    async def forget(self, *names: str) -> None:
        """Delete the rows of members."""
        with suppress(BackendLost, ServerRefused):
            await self.session.converse(forget(self.database, names))


# The server shows it for a connection with a lock, in performance_schema.session_connect_attrs.
PROGRAM: Final = "streamfrom-election"


class Membership:
    """The parts by which a process is a member of its fleet, from its start to its stop.

    To the rest of the process it stands for the other members: `PeerTransport`, `OtherMembers` and `OtherFigures`. They use
    gRPC (`FleetCalls`) once there are any. Raises OSError if it cannot listen on the address for other members.
    """

    def __init__(
        self,
        config: Config,
        shards: Mapping[tuple[str, ShardName], ShardRuntime],
        number: MemberNumber,
    ) -> None:
        fleet = config.fleet
        self._own = make_certificate(number.name)
        self.port: GrpcPort | None = None
        address = ""
        listen = fleet.listen
        if listen is None:
            listen = f"{_address_towards(config.keyspaces[0].shards[0].primary)}:0"
        if listen:
            self.port = fleet_port(listen)
            address = fleet.advertise or self.port.address
        self.member = member_of_config(config, number, address, self._own.certificate.decode())
        self.fleet = Fleet(self.member, map(elected, shards.values()), self, time.monotonic_ns)

    def add(self, runtime: ShardRuntime) -> Elector:
        """Serve one more shard, as `Fleet.add`."""
        return self.fleet.add(elected(runtime))

    def reconfigured(self, config: Config) -> None:
        """Make the directories show the parts of *config* that all members share."""
        self.member = replace(self.member, configuration=hash_of(config.keyspaces))
        self.fleet.reconfigured(self.member)

    def serve(self, source: StatusSource, sessions: LocalSessions) -> None:
        """Let other members read the figures of *source*, and list and end *sessions*."""
        self._source, self._sessions = source, sessions
        source.others = self

    @cached_property
    def _members(self) -> FleetCalls:
        # gRPC takes 14 MB and a tenth of a second: a process that is alone in its fleet does without.
        from streamfrom.proxy.fleet.grpc_links import GrpcLinks
        from streamfrom.proxy.fleet.member_calls import FleetCalls

        return FleetCalls(self.fleet, GrpcLinks(self._own), self._source, self._sessions)

    @property
    def _has_met(self) -> bool:
        return "_members" in self.__dict__

    async def start(self, registry: Registry) -> None:
        """Take part from now on."""
        self.fleet.start(registry)
        if self.port is not None:
            self.port.opens = self._open

    async def _open(self) -> None:
        assert self.port is not None
        await self._members.open(self.port)

    async def stop(self) -> None:
        """Hand over, and close all links to others and from them."""
        await self.fleet.stop()
        self.fleet.close()
        await self.fleet.leave()
        if self._has_met:
            await self._members.stop()
        if self.port is not None:
            self.port.close()

    # --- the other members ------------------------------------------------------------------

    def connect(
        self, member: Member, hearer: LinkHearer[FromDispatcher]
    ) -> PeerLink[ToDispatcher]:
        """Return a link, as `PeerTransport.connect`."""
        return self._members.links.connect(member, hearer)

    def greet(self, member: Member) -> None:
        """Notify *member* of this one, as `PeerTransport.greet`."""
        self._members.links.greet(member)

    async def kill(self, asker: Asker, connection_id: int, *, query_only: bool) -> None:
        """End a connection, as `OtherMembers.kill`."""
        if await self._is_alone():
            raise NoSuchThread(connection_id)
        await self._members.kill(asker, connection_id, query_only=query_only)

    async def processes(self, asker: Asker) -> list[Process]:
        """Return lines, as `OtherMembers.processes`."""
        return [] if await self._is_alone() else await self._members.processes(asker)

    async def ask(self, tables: Iterable[str], viewer: Viewer | None = None) -> MembersFigures:
        """Return figures, as `OtherFigures.ask`."""
        if not self.fleet.connected():
            return MembersFigures()
        return await self._members.ask(tables, viewer)

    async def _is_alone(self) -> bool:
        """Return whether no directory, read now, has another member; once there was one, its sessions are requested anyway."""
        return not self._has_met and not await self.fleet.present()


def elected(runtime: ShardRuntime) -> ElectedShard:
    """Return a shard as one whose dispatcher is elected."""
    return ElectedShard(
        runtime.keyspace,
        runtime.name,
        runtime.database,
        partial(_open, runtime),
        runtime.suspect,
    )


async def _open(runtime: ShardRuntime, on_lost: Callable[[], None]) -> LockSession:
    backend = await runtime.open_backend(SHARDS_ACCOUNT, runtime.database, 0, PROGRAM)
    await backend.query(own_statement().encode())
    return LockSession(backend, on_lost)


def _address_towards(dsn: Dsn) -> str:
    """Return the address of this machine from which a shard is reached; 127.0.0.1 if that is not known."""
    if dsn.unix_socket is None:
        try:
            family, kind, _, _, address = socket.getaddrinfo(
                dsn.host, dsn.port, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(family, kind) as asking:
                # A datagram socket connects without sending anything.
                asking.connect(address)
                host = str(asking.getsockname()[0])
        except OSError:
            return "127.0.0.1"
        return f"[{host}]" if ":" in host else host
    return "127.0.0.1"
