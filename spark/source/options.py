"""What a user gives the source: read once, checked once, frozen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamfrom.spark.endpoint import Endpoint, chosen_shards, parse_endpoint, password
from streamfrom.spark.errors import RequestError


# What Spark adds by itself.
_SPARKS_OWN: Final = frozenset({"path", "checkpointlocation", "queryname"})
_ADDRESS: Final = ("option proxy", "option password_env")


@dataclass(frozen=True, slots=True)
class Options:
    """The options, checked as far as that goes without asking a server."""

    endpoint: Endpoint
    table: str
    shards: tuple[str, ...] = ()
    where: str = ""
    partitions_per_shard: int = 1
    max_rows_per_batch: int = 10_000
    lease_s: float = 60.0
    feed: str = "queue"
    lag_s: float = 60.0
    acknowledge: str = "commit"

    def chosen_shards(self) -> tuple[str, ...]:
        """Return the shards to read, in the keyspace's order: those chosen, or all.

        Raises:
            RequestError: one that was chosen does not exist.
        """
        return chosen_shards(self.endpoint, self.shards or None)


def parse_options(given: "Mapping[str, str]") -> Options:
    """Read the options of `spark.read.format("streamfrom")` and similar calls.

    Raises:
        RequestError: one is missing, unknown or not what it should be; the text names it.
    """
    # Spark's own mapping knows any case, but lists its keys in lower case.
    known = {name.lower(): name for name in OPTIONS}
    unknown = sorted(key for key in given if key.lower() not in known.keys() | _SPARKS_OWN)
    if unknown:
        raise RequestError(f"unknown option {unknown[0]!r}; there are {', '.join(OPTIONS)}")
    told = {known[key.lower()]: text for key, text in given.items() if key.lower() in known}
    for name in ("proxy", "table"):
        if not told.get(name):
            raise RequestError(f"option {name} is missing: .option({name!r}, …)")
    found = {}
    for name, text in told.items():
        field, read = OPTIONS[name]
        found[field] = read(name, text)
    secret = password(
        _ADDRESS[1],
        found.pop("password_env", ""),
        "is not set where the driver runs: export it before Spark starts",
    )
    return Options(parse_endpoint(found.pop("proxy"), secret, _ADDRESS), **found)


def _text(_: str, text: str) -> str:
    return text.strip()


def _names(name: str, text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if text and not names:
        raise RequestError(f"option {name} takes names of shards, not {text!r}")
    return names


def _one_of(*words: str) -> "Callable[[str, str], str]":
    def read(name: str, text: str) -> str:
        if text not in words:
            raise RequestError(f"option {name} takes {' or '.join(words)}, not {text!r}")
        return text

    return read


def _whole(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise RequestError(f"option {name} takes a whole number from 1 on, not {text!r}")
    return int(text)


def _seconds(at_least_s: float) -> "Callable[[str, str], float]":
    def read(name: str, text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = float("nan")
        if not at_least_s <= seconds < 10**9:
            raise RequestError(
                f"option {name} takes seconds from {at_least_s:g} on, not {text!r}"
            )
        return seconds

    return read


OPTIONS: "Final[dict[str, tuple[str, Callable[[str, str], Any]]]]" = {
    "proxy": ("proxy", _text),
    "table": ("table", _text),
    "password_env": ("password_env", _text),
    "shards": ("shards", _names),
    "where": ("where", _text),
    "partitionsPerShard": ("partitions_per_shard", _whole),
    "feed": ("feed", _one_of("queue", "acked")),
    "maxRowsPerBatch": ("max_rows_per_batch", _whole),
    "leaseSeconds": ("lease_s", _seconds(1)),
    "lagSeconds": ("lag_s", _seconds(0)),
    "acknowledge": ("acknowledge", _one_of("commit", "never")),
}
"""Each option by the name that users write, with its field and what reads it. Spark takes names in any case."""
