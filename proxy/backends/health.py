"""Whether a server can run a shard's statements: a primary must be writable, a replica not too far behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias


if TYPE_CHECKING:
    from streamfrom.proxy.backends.control_connection import Control


# What keeps a primary from being one.
READ_ONLY: Final = "the server is read-only"
_PRIMARY: Final = "SELECT @@global.read_only OR @@global.innodb_read_only, VERSION()"
# The names of the column on MySQL and on MariaDB.
_LAG_COLUMNS: Final = ("Seconds_Behind_Source", "Seconds_Behind_Master")


class Health(NamedTuple):
    """What a server reports of itself; *trouble* is None when it may be used."""

    version: str
    trouble: str | None


Probe: TypeAlias = "Callable[[Control], Awaitable[Health]]"


async def primary_health(control: Control) -> Health:
    """Ask whether a primary can be written. Raises BackendUnavailable and BackendError."""
    ((read_only, version),) = await control.rows(_PRIMARY)
    return Health(str(version), READ_ONLY if read_only else None)


class ReplicaHealth:
    """Asks a replica how far it is behind; more than *lag_max_s* seconds are too many."""

    def __init__(self, lag_max_s: float) -> None:
        self.lag_max_s = lag_max_s

    async def __call__(self, control: Control) -> Health:
        """Ask. Raises BackendUnavailable and BackendError."""
        ((version,),) = await control.rows("SELECT VERSION()")
        channels = await control.records("SHOW REPLICA STATUS")
        return Health(str(version), lag_trouble(channels, self.lag_max_s))


def lag_trouble(channels: Sequence[dict[str, Any]], lag_max_s: float) -> str | None:
    """Return what keeps a replica from being read, by the rows of SHOW REPLICA STATUS."""
    if not channels:
        return "the server is no replica"
    for channel in channels:
        lag_s = next((channel[name] for name in _LAG_COLUMNS if name in channel), None)
        # Seconds_Behind_Source is NULL while a thread of the replication stands still.
        if lag_s is None:
            why = channel.get("Last_SQL_Error") or channel.get("Last_IO_Error") or ""
            return f"replication is not running{': ' if why else ''}{why}"
        if int(lag_s) > lag_max_s:
            return f"{int(lag_s)} s behind, more than replica_max_lag"
    return None
