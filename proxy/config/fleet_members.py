"""The table `[fleet]`: how this process and others that serve the same shards find each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamfrom.engine.messaging.table.message_ids import MEMBERS_MAX
from streamfrom.proxy.config.toml_values import REQUIRED, ConfigError, TomlTable, joined, shown


NAME_MAX: Final = 64  # of its column in streamfrom.members
PORT_MAX: Final = 65535
AUTO: Final = 0
# More could not all be members of one fleet.
WORKERS_MAX: Final = MEMBERS_MAX


@dataclass(frozen=True, slots=True)
class FleetConfig:
    """How this process takes part in its fleet."""

    name: str = ""  # proxies of one name work together
    # The listener for other members, a host and a port; None for a free port on the address from which this member reaches its
    # shards, "" for none.
    listen: str | None = None
    # The host:port under which others reach it; None for the listener's own.
    advertise: str | None = None
    workers: int = 1  # how many processes serve the clients' port; AUTO for one for each core


def fleet_from(table: TomlTable) -> FleetConfig:
    """Return the fleet's configuration in *table*. Raises ConfigError."""
    name = table.string("name", "", expected="the fleet's name")
    if len(name) > NAME_MAX:
        problem = f"expected at most {NAME_MAX} characters, got {len(name)}"
        name = table.refused("name", problem, "")
    listen = _address(table, "listen", 'an address such as "10.0.0.5:0", or ""')
    advertise = _address(table, "advertise", 'an address such as "proxy1.example.com:7000"')
    if advertise == "" or (advertise is not None and advertise.endswith(":0")):
        advertise = table.refused(
            "advertise", "expected the port that leads to this process", None
        )
    workers = _workers(table)
    table.close()
    fleet = FleetConfig(name, listen, advertise, workers)
    worker_count(fleet, None, cores=1)
    return fleet


def worker_count(fleet: FleetConfig, asked: int | None, cores: int) -> int:
    """Return how many workers to start: the number from the command line, or the configured one.

    cores: how many workers AUTO is, at most WORKERS_MAX. Raises ConfigError for so many that they could not all reach each other.
    """
    count = fleet.workers if asked is None else asked
    if count == AUTO:
        count = min(cores, WORKERS_MAX)
    faults = []
    if count > 1 and fleet.listen is not None and not fleet.listen.endswith(":0"):
        problem = f'expected port 0, or no such key, with {count} workers; got "{fleet.listen}"'
        faults.append(ConfigError("fleet.listen", problem))
    if count > 1 and fleet.advertise is not None:
        problem = f"expected no such key with {count} workers: each has a port of its own"
        faults.append(ConfigError("fleet.advertise", problem))
    if faults:
        raise joined(faults)
    return count


def _workers(table: TomlTable) -> int:
    expected = f'1 to {WORKERS_MAX}, or "auto"'
    value = table.raw("workers", 1, expected)
    if value == "auto":
        return AUTO
    if type(value) is not int or not 1 <= value <= WORKERS_MAX:
        return int(table.refused("workers", f"expected {expected}, got {shown(value)}", 1))
    return value


def _address(table: TomlTable, key: str, expected: str) -> str | None:
    if key not in table:
        return None
    text = table.attempt(lambda: table.string(key, REQUIRED, expected=expected))
    if text and read_address(text) is None:
        table.note(table.fault(key, f'expected {expected}, got "{text}"'))
        return None
    return text


def read_address(text: str) -> tuple[str, int] | None:
    """Return the host and the port of *text*, None if it is no address. An IPv6 host is in brackets."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        return None
    return host, int(port)
