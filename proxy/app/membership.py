"""This process as a member of its fleet: who it says it is, and the parts by which it takes part."""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom import __version__
from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.fleet import ElectedDatabase, Fleet
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.backends.session_variables import own_statement
from streamfrom.proxy.config.keyspaces import hash_of
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.fleet.fleet_sessions import FleetSessions, SessionsForMembers
from streamfrom.proxy.fleet.fleet_status import FleetStatus, StatusForMembers
from streamfrom.proxy.fleet.grpc_links import GrpcDoor, GrpcLinks
from streamfrom.proxy.fleet.member_certificate import make_certificate


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.app.member_numbers import MemberNumber
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.config.file import Config
    from streamfrom.proxy.sessions.local_sessions import LocalSessions
    from streamfrom.proxy.status.status_source import StatusSource


# What the server shows of the connection for a lock, in performance_schema.session_connect_attrs.
PROGRAM: Final = "streamfrom-election"


class Membership:
    """The parts by which a process is a member of its fleet, from its start to its stop.

    Raises:
        ConfigError: nothing can listen where others are to reach this process.
    """

    def __init__(
        self,
        config: Config,
        shards: Mapping[tuple[str, ShardName], ShardRuntime],
        number: MemberNumber,
    ) -> None:
        fleet = config.fleet
        own = make_certificate(number.name)
        self.links = GrpcLinks(own)
        self.door: GrpcDoor | None = None
        address = ""
        listen = fleet.listen
        if listen is None:
            listen = f"{_address_towards(config.keyspaces[0].shards[0].primary)}:0"
        if listen:
            try:
                self.door = GrpcDoor(own, listen)
            except OSError as error:
                raise ConfigError("fleet.listen", f"cannot listen on {listen}") from error
            address = fleet.advertise or self.door.address
        self.member = member_of_config(
            config, number, fleet.name, address, own.certificate.decode()
        )
        self.fleet = Fleet(self.member, databases_of(shards), self.links, time.monotonic_ns)
        for key, runtime in shards.items():
            # Of all members the one that dispatches asks whether the primary can be written.
            runtime.is_vouched_for = partial(self.fleet.is_another_dispatching, *key)

    def serve_sessions(self, sessions: LocalSessions) -> FleetSessions:
        """Let other members list and end *sessions*; return theirs."""
        if self.door is not None:
            self.door.add(SessionsForMembers(sessions, self.fleet).methods)
        return FleetSessions(self.fleet, self.links.channel)

    def serve_status(self, source: StatusSource, sessions: LocalSessions) -> None:
        """Let other members read the figures of *source*, and let it read theirs."""
        if self.door is not None:
            self.door.add(StatusForMembers(source, sessions, self.fleet).methods)
        source.others = FleetStatus(self.fleet, self.links, source.clock)

    async def start(self, registry: Registry) -> None:
        """Take part from now on."""
        self.fleet.start(registry)
        if self.door is not None:
            await self.door.start(self.fleet)

    async def stop(self) -> None:
        """Hand over, and close all ways to others and from them."""
        await self.fleet.stop()
        self.fleet.close()
        await self.fleet.leave()
        await self.links.stop()
        if self.door is not None:
            await self.door.stop()


def member_of_config(
    config: Config, number: MemberNumber, fleet: str, address: str, certificate: str
) -> Member:
    """Return what the directories have of this process."""
    return Member(
        id=number.name,
        fleet=fleet,
        address=address,
        certificate=certificate,
        id_prefix=number.number,
        version=__version__,
        configuration=hash_of(config.keyspaces),
    )


def databases_of(
    shards: Mapping[tuple[str, ShardName], ShardRuntime],
) -> list[ElectedDatabase]:
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
