"""The elections of all shards, as the running proxy takes part in them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from streamfrom.engine.fleet.directory import Member, Stranger
from streamfrom.engine.fleet.elector import Elector
from streamfrom.proxy.backends.lock_session import LockSession


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamfrom.engine.fleet.directory import MemberDifferences
    from streamfrom.engine.messaging.registry import Registry
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import Config


def member_of_config(config: Config, name: str) -> Member:
    """Return this process as the directories shall know it. *name*: its id, 16 hexadecimal digits."""
    shards = [
        (keyspace.name, shard.name, str(shard.primary))
        for keyspace in config.keyspaces
        for shard in keyspace.shards
    ]
    try:
        product = version("streamfrom")
    except PackageNotFoundError:
        product = "unknown"
    return Member(
        id=name,
        fleet=config.fleet or "",
        address="",
        certificate="",
        id_prefix=0,
        version=product,
        configuration=hashlib.sha256(repr(shards).encode()).hexdigest(),
    )


class ShardElection:
    """One shard's election, and what comes of it for the shard's message tables."""

    def __init__(self, runtime: ShardRuntime, member: Member) -> None:
        self._runtime = runtime
        self._registry: Registry | None = None
        self.elector = Elector(
            f"{runtime.keyspace}/{runtime.name}",
            runtime.database,
            member,
            self,
            self._open,
            time.monotonic_ns,
        )

    def start(self, registry: Registry) -> None:
        """Take part from now on; before it is elected *registry* withholds the shard."""
        self._registry = registry
        self.withhold("its dispatcher is not known yet")
        self.elector.start()

    def dispatch(self, term: int) -> None:
        """Let the registry dispatch the shard."""
        assert self._registry is not None
        self._registry.elected(self._runtime.keyspace, self._runtime.name)

    def withhold(self, reason: str) -> None:
        """Let the registry withhold the shard."""
        assert self._registry is not None
        self._registry.deposed(self._runtime.keyspace, self._runtime.name, reason)

    async def drain(self) -> None:
        """Return when no claim and no release of the shard is under way."""
        assert self._registry is not None
        await self._registry.drain(self._runtime.keyspace, self._runtime.name)

    def changed(self, differences: MemberDifferences) -> None:
        """Say in the errors of streams who dispatches the shard."""
        who = differences.dispatcher
        if self.elector.may_send() or who is None:
            return
        self.withhold(
            str(who) if isinstance(who, Stranger) else f"member {who.id} dispatches it"
        )

    async def _open(self, on_lost: Callable[[], None]) -> LockSession:
        backend = await self._runtime.open_backend(self._runtime.database, 0)
        return LockSession(backend, on_lost)


class Elections:
    """The elections of *shards*; what is not among them is dispatched without one."""

    def __init__(
        self, shards: Mapping[tuple[str, ShardName], ShardRuntime], member: Member
    ) -> None:
        self._elections = {
            key: ShardElection(runtime, member) for key, runtime in shards.items()
        }

    @property
    def electors(self) -> Mapping[tuple[str, ShardName], Elector]:
        """Return each shard's elector."""
        return {key: election.elector for key, election in self._elections.items()}

    def may_send(self, keyspace: str, shard: ShardName) -> bool:
        """Return whether messages of a shard may be sent at this moment."""
        election = self._elections.get((keyspace, shard))
        return election is None or election.elector.may_send()

    def start(self, registry: Registry) -> None:
        """Take part in all of them."""
        for election in self._elections.values():
            election.start(registry)

    async def stop(self) -> None:
        """Leave all of them, once what is under way has ended."""
        await asyncio.gather(*(each.elector.stop() for each in self._elections.values()))
