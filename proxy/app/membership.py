"""This process as a member of its fleet: who it says it is, and the parts by which it takes part."""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.fleet.fleet import ElectedDatabase, Fleet
from streamfrom.proxy.app.member_numbers import MemberNumber, member_of_config
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.backends.session_variables import own_statement
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import NoSuchThread
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.grpc_port import GrpcPort, fleet_port
from streamfrom.proxy.status.fleet_figures import MembersFigures


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
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
    from streamfrom.proxy.fleet.grpc_members import GrpcMembers
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.sessions.process_list import LocalSessions
    from streamfrom.proxy.sessions.services import Asker
    from streamfrom.proxy.status.status_source import StatusSource, Viewer


# What the server shows of the connection for a lock, in performance_schema.session_connect_attrs.
PROGRAM: Final = "streamfrom-election"


class Membership:
    """The parts by which a process is a member of its fleet, from its start to its stop.

    To the rest of the process it is the other members: `PeerTransport`, `OtherMembers` and `OtherFigures`. What they do
    is done by gRPC (`GrpcMembers`) once there are any. Raises ConfigError if nothing can listen where others are to reach it.
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
            try:
                self.port = fleet_port(listen)
            except OSError as error:
                raise ConfigError("fleet.listen", f"cannot listen on {listen}") from error
            address = fleet.advertise or self.port.address
        self.member = member_of_config(config, number, address, self._own.certificate.decode())
        self.fleet = Fleet(self.member, databases_of(shards), self, time.monotonic_ns)
        for key, runtime in shards.items():
            # Of all members the one that dispatches asks whether the primary can be written.
            runtime.is_vouched_for = partial(self.fleet.is_another_dispatching, *key)

    def serve(self, source: StatusSource, sessions: LocalSessions) -> None:
        """Let other members read the figures of *source*, and list and end *sessions*."""
        self._source, self._sessions = source, sessions
        source.others = self

    @cached_property
    def _members(self) -> GrpcMembers:
        # gRPC takes 14 MB and a tenth of a second: a process that is alone in its fleet does without.
        from streamfrom.proxy.fleet.grpc_members import GrpcMembers

        return GrpcMembers(self._own, self.fleet, self._source, self._sessions)

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
        """Hand over, and close all ways to others and from them."""
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
        await self._members.sessions.kill(asker, connection_id, query_only=query_only)

    async def kill_user(self, asker: Asker, name: str, *, query_only: bool) -> int:
        """End connections of a user, as `OtherMembers.kill_user`."""
        if await self._is_alone():
            return 0
        return await self._members.sessions.kill_user(asker, name, query_only=query_only)

    async def processes(self, asker: Asker) -> list[Process]:
        """Return lines, as `OtherMembers.processes`."""
        return [] if await self._is_alone() else await self._members.sessions.processes(asker)

    async def ask(self, tables: Iterable[str], viewer: Viewer | None = None) -> MembersFigures:
        """Return figures, as `OtherFigures.ask`."""
        if not self.fleet.connected():
            return MembersFigures()
        return await self._members.figures.ask(tables, viewer)

    async def _is_alone(self) -> bool:
        """Return whether no directory, read now, has another member; once there was one, its sessions are asked for anyway."""
        return not self._has_met and not await self.fleet.present()


def databases_of(shards: Mapping[tuple[str, ShardName], ShardRuntime]) -> list[ElectedDatabase]:
    """Return the databases of *shards*; those that are one database have one election."""
    same: dict[tuple[str, str], list[tuple[str, ShardName]]] = defaultdict(list)
    for key, runtime in shards.items():
        same[runtime.dsn.server, runtime.database].append(key)
    return [
        ElectedDatabase(
            tuple(keys),
            database,
            partial(_open, shards[keys[0]]),
            partial(_suspect, [shards[key] for key in keys]),
        )
        for (_, database), keys in same.items()
    ]


def _suspect(primaries: Iterable[ShardRuntime]) -> None:
    for primary in primaries:
        primary.suspect()


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
