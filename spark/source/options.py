"""What a user gives the source: read once, checked once, frozen."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streamfrom.spark.endpoint import Endpoint, chosen_shards, parse_endpoint
from streamfrom.spark.errors import RequestError


FEEDS: Final = ("queue", "acked")
ACKNOWLEDGING: Final = ("commit", "never")
# Each option with its default; None where there is none. Spark takes names in any case.
_DEFAULTS: Final = {
    "proxy": None,
    "table": None,
    "password_env": "",
    "shards": "",
    "where": "",
    "partitionsPerShard": "1",
    "maxRowsPerBatch": "10000",
    "leaseSeconds": "60",
    "feed": "queue",
    "lagSeconds": "60",
    "acknowledge": "commit",
}
# What Spark adds by itself.
_SPARKS_OWN: Final = frozenset({"path", "checkpointlocation", "queryname"})


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
    known = {name.lower(): name for name in _DEFAULTS}
    unknown = sorted(key for key in given if key.lower() not in known.keys() | _SPARKS_OWN)
    if unknown:
        raise RequestError(f"unknown option {unknown[0]!r}; there are {', '.join(_DEFAULTS)}")
    told = {known[key.lower()]: text for key, text in given.items() if key.lower() in known}
    for name, default in _DEFAULTS.items():
        if default is None and not told.get(name):
            raise RequestError(f"option {name} is missing: .option({name!r}, …)")
    text = {name: told.get(name, default) or "" for name, default in _DEFAULTS.items()}
    if text["shards"] and not text["shards"].replace(",", "").strip():
        raise RequestError(f"option shards takes names of shards, not {text['shards']!r}")
    for name, words in (("feed", FEEDS), ("acknowledge", ACKNOWLEDGING)):
        if text[name] not in words:
            raise RequestError(f"option {name} takes {' or '.join(words)}, not {text[name]!r}")
    return Options(
        endpoint=parse_endpoint(
            text["proxy"],
            _password(text["password_env"]),
            ("option proxy", "option password_env"),
        ),
        table=text["table"],
        shards=tuple(name for part in text["shards"].split(",") if (name := part.strip())),
        where=text["where"].strip(),
        partitions_per_shard=_whole("partitionsPerShard", text["partitionsPerShard"]),
        max_rows_per_batch=_whole("maxRowsPerBatch", text["maxRowsPerBatch"]),
        lease_s=_seconds("leaseSeconds", text["leaseSeconds"], at_least_s=1),
        feed=text["feed"],
        lag_s=_seconds("lagSeconds", text["lagSeconds"], at_least_s=0),
        acknowledge=text["acknowledge"],
    )


def _password(name: str) -> str:
    if name and name not in os.environ:
        raise RequestError(
            f"option password_env: {name} is not set where the driver runs: export it before Spark starts"
        )
    return os.environ[name] if name else ""


def _whole(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise RequestError(f"option {name} takes a whole number from 1 on, not {text!r}")
    return int(text)


def _seconds(name: str, text: str, at_least_s: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not at_least_s <= seconds < 10**9:
        raise RequestError(f"option {name} takes seconds from {at_least_s:g} on, not {text!r}")
    return seconds
