"""The options of the source: read once, checked once, frozen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamfrom.spark.endpoint import Endpoint, parse_endpoint, password, shards_of
from streamfrom.spark.errors import RequestError


# Options that Spark adds on its own.
_SPARKS_OWN: Final = frozenset({"path", "checkpointlocation", "queryname"})
_ADDRESS: Final = ("option proxy", "option password_env")


@dataclass(frozen=True, slots=True)
class Options:
    """The options, checked as far as possible without a server."""

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
        """Return the chosen shards, or all, in the keyspace's order.

        Raises:
            RequestError: a chosen shard does not exist.
        """
        known, keyspace = shards_of(self.endpoint), self.endpoint.keyspace
        if wrong := [shard for shard in self.shards if shard not in known]:
            raise RequestError(
                f"{keyspace} has no shard {', '.join(map(repr, wrong))}; it has {', '.join(known)}"
            )
        return tuple(shard for shard in known if shard in (self.shards or known))


def parse_options(given: "Mapping[str, str]") -> Options:
    """Parse the options of `spark.read.format("streamfrom")` and similar calls.

    Raises:
        RequestError: an option is missing, unknown or invalid; the text names it.
    """
    # Spark's own mapping ignores case, but lists its keys in lower case.
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
        field, read, wanted = OPTIONS[name]
        try:
            found[field] = read(text.strip())
        except ValueError:
            raise RequestError(f"option {name} takes {wanted}, not {text!r}") from None
    secret = password(
        _ADDRESS[1],
        found.pop("password_env", ""),
        "is not set where the driver runs: export it before Spark starts",
    )
    return Options(parse_endpoint(found.pop("proxy"), secret, _ADDRESS), **found)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if text and not names:
        raise ValueError(text)
    return names


def _whole(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(text)
    return int(text)


def _at_least(least: float) -> "Callable[[str], float]":
    def read(text: str) -> float:
        if not least <= float(text) < 10**9:
            raise ValueError(text)
        return float(text)

    return read


def _one_of(*words: str) -> "Callable[[str], str]":
    return lambda text: words[words.index(text)]


_WHOLE: Final = "a whole number from 1 on"
OPTIONS: "Final[dict[str, tuple[str, Callable[[str], Any], str]]]" = {
    "proxy": ("proxy", str, ""),
    "table": ("table", str, ""),
    "password_env": ("password_env", str, ""),
    "shards": ("shards", _names, "names of shards"),
    "where": ("where", str, ""),
    "partitionsPerShard": ("partitions_per_shard", _whole, _WHOLE),
    "feed": ("feed", _one_of("queue", "acked"), "queue or acked"),
    "maxRowsPerBatch": ("max_rows_per_batch", _whole, _WHOLE),
    "leaseSeconds": ("lease_s", _at_least(1), "seconds from 1 on"),
    "lagSeconds": ("lag_s", _at_least(0), "seconds from 0 on"),
    "acknowledge": ("acknowledge", _one_of("commit", "never"), "commit or never"),
}
"""Each option by the name that users write: its field, what reads it, and what it takes. Spark takes names in any case."""
