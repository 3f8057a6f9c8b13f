"""The protocol for modules of `spark.jobs`, and the options that several of them share."""

import argparse
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Protocol,
    Self,
    cast,
    get_args,
    get_origin,
)

from pymysql.err import MySQLError

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.session import SPARK_ERRORS, failure_of


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamfrom.spark.endpoint import Endpoint


@dataclass(frozen=True)
class JobConfig:
    """The table of a job.

    OPTIONS: a line for each option: the field, the flag, the metavar, the help. A line that begins with | excludes the one
        above; an option without a metavar sets True for a bool, else None; one with … may be repeated; fields
        that end in _ns take a date or time. An option is required if its field has no default.
    LEAST: for numbers, the field, the flag, and the minimum.
    """

    OPTIONS: ClassVar[str] = ""
    LEAST: "ClassVar[tuple[tuple[str, str, float], ...]]" = ()
    endpoint: "Endpoint"
    table: str

    def __post_init__(self) -> None:
        """Raise RequestError if a number is below its minimum in `LEAST`, or the window of `WINDOW` is empty."""
        for name, flag, least in self.LEAST:
            value = getattr(self, name)
            if value is not None and not least <= value < _MOST:
                raise RequestError(f"{flag} takes a number from {least:g} on")
        check_window(getattr(self, "low_ns", None), getattr(self, "high_ns", None))

    @property
    def name(self) -> str:
        """The table with its keyspace."""
        return f"{self.endpoint.keyspace}.{self.table}"

    @classmethod
    def asked(cls, options: "argparse.Namespace") -> Self:
        """Return the configuration from the command line, without contacting a server.

        Raises:
            RequestError: the options contradict each other.
        """
        return cls(**{field.name: getattr(options, field.name) for field in fields(cls)})


_KINDS: Final = frozenset({int, float, Path})
_MOST: Final = 10**9


class Job(Protocol):
    """A module with a configuration class and a function for the work."""

    CONFIG: type[JobConfig]

    def run(
        self, spark: "SparkSession", config: Any, progress: Progress | None = None
    ) -> "Report":
        """Do the work and return a report.

        Raises:
            RequestError: the request cannot be fulfilled on these servers; nothing was begun.
            JobError: it broke off; the text names the fix.
        """


def begun(spark: "SparkSession", progress: Progress | None) -> Progress:
    """Return the progress of a job that begins on *spark*: *progress*, or a new one.

    Raises:
        RequestError: it is a session of Spark Connect, where tasks cannot report progress and a consumer's batches would be
            processed in another process.
    """
    # Its class can be imported only if gRPC is installed.
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise RequestError(
            "jobs do not run through Spark Connect: run them by streamfrom-spark or spark-submit, or with a session"
            " of this process"
        )
    return progress or Progress()


@contextmanager
def broken_off() -> "Iterator[None]":
    """Convert errors of Spark, the proxy or a server inside the block to a JobError."""
    try:
        yield
    except SPARK_ERRORS as error:
        failure = failure_of(error, "Spark gave up")
        raise failure from error
    except MySQLError as error:
        raise JobError(f"the proxy or a shard broke off: {error}; run it again") from error


def load_job(name: str) -> Job:
    """Import and return the job's module, which needs pyspark."""
    return cast("Job", importlib.import_module(f"streamfrom.spark.jobs.{name}"))


def nanoseconds(text: str) -> int:
    """Parse an ISO date or time, in UTC by default; return nanoseconds since the epoch.

    Raises:
        ArgumentTypeError: it is malformed, or outside the range of a BIGINT of nanoseconds.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"an ISO date or time, such as 2026-11-21 or 2026-11-21T08:00, not {text!r}"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    found = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    if abs(found) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"a time between 1678 and 2262, not {text!r}")
    return found


# Options for the window of `time_acked`, and for when new messages are due.
WINDOW: Final = """
  low_ns      --from T0  acknowledged since T0, an ISO date or time, in UTC if it has no zone
  high_ns     --to T1    and before T1
"""
DUE: Final = """
  start_ns    --start T  when the first is due
  rate_per_s  --rate N   how many become due each second, from T on
"""
LEAST_RATE: Final = (("rate_per_s", "--rate", 1e-6),)
_OPTION: Final = re.compile(r"([ |]) (\w+) +(\S+)(?: (\S+))? {2,}(.+)")


def add_options(parser: "argparse.ArgumentParser", config: Any) -> None:
    """Add the options of *config*, as described by `JobConfig.OPTIONS`."""
    group: Any = None
    known = {field.name: field for field in fields(config)}
    rows = [_OPTION.fullmatch(line) for line in config.OPTIONS.splitlines() if line]
    for row, following in zip_longest(rows, rows[1:]):
        assert row is not None
        bar, name, flag, metavar, about = row.groups()
        field = known[name]
        is_required = field.default is MISSING
        if bar == " ":
            starts_group = following is not None and following[1] == "|"
            group = (
                parser.add_mutually_exclusive_group(required=is_required)
                if starts_group
                else None
            )
        more = _taken(field, metavar)
        if flag.startswith("-"):
            more |= {"dest": name, "required": is_required and group is None}
            more["default"] = None if is_required else field.default
        (group or parser).add_argument(flag, help=about, **more)


def _taken(field: "Field[Any]", metavar: str | None) -> dict[str, Any]:
    """Return argparse's arguments for a field, from the metavar and the field's type."""
    kinds = get_args(field.type) or (field.type,)
    if metavar is None:
        return {"action": "store_const", "const": True if bool in kinds else None}
    if metavar.startswith("{"):
        return {"choices": metavar.strip("{}").split(",")}
    if metavar.endswith("…"):
        return {"metavar": metavar.rstrip("…"), "action": "append"}
    if get_origin(field.type) is tuple:
        return {"metavar": metavar, "type": _names}
    if field.name.endswith("_ns"):
        return {"metavar": metavar, "type": nanoseconds}
    return {"metavar": metavar, "type": next((k for k in kinds if k in _KINDS), str)}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def check_window(low_ns: int | None, high_ns: int | None) -> None:
    """Raise RequestError if the window of `WINDOW` is empty; each bound may be None."""
    if low_ns is not None and high_ns is not None and low_ns >= high_ns:
        raise RequestError("--from must lie before --to")
