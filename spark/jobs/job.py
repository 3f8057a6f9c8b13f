"""What a module of `spark.jobs` has to be a job, and what several of them read from options."""

import argparse
import importlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NamedTuple,
    Protocol,
    Self,
    cast,
    get_args,
    get_origin,
)

from pymysql.err import MySQLError

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.session import SPARK_ERRORS, reason_of


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamfrom.spark.endpoint import Endpoint


@dataclass(frozen=True)
class JobConfig:
    """The table that a job is about; fields of subclasses that an `Option` annotates are the job's options."""

    endpoint: "Endpoint"
    table: str

    @property
    def name(self) -> str:
        """The table with its keyspace."""
        return f"{self.endpoint.keyspace}.{self.table}"

    @classmethod
    def asked(cls, options: "argparse.Namespace") -> Self:
        """Return what the command line asks for, without asking any server.

        Raises:
            RequestError: the options do not fit together.
        """
        return cast("Self", _made(cls, vars(options)))


def _made(config: Any, given: dict[str, Any]) -> Any:
    values = {field.name: given[field.name] for field in fields(config) if field.name in given}
    parts = {
        field.name: _made(field.type, given)
        for field in fields(config)
        if is_dataclass(field.type) and field.name not in given
    }
    return config(**values, **parts)


class Job(Protocol):
    """A module with the class of its configuration and its work."""

    CONFIG: type[JobConfig]

    def run(
        self, spark: "SparkSession", config: Any, progress: Progress | None = None
    ) -> "Report":
        """Do the work and say what was done.

        Raises:
            RequestError: the servers say that it cannot be done as asked; nothing was begun.
            JobError: it broke off; the text says what to do.
        """


def begun(spark: "SparkSession", progress: Progress | None) -> Progress:
    """Return where a job that begins on *spark* says how far it is: *progress*, or one of its own.

    Raises:
        RequestError: it is a session of Spark Connect, where tasks cannot report how far they are and a consumer's batches would be
            worked on by another process.
    """
    # Its class can be imported only where gRPC is installed.
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise RequestError(
            "jobs do not run through Spark Connect: run them by streamfrom-spark or spark-submit, or with a session"
            " of this process"
        )
    return progress or Progress()


@contextmanager
def broken_off() -> "Iterator[None]":
    """Raise as a JobError what Spark, the proxy or a server fails with inside the block."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise JobError(f"Spark gave up: {reason_of(error)}; run it again") from error
    except MySQLError as error:
        raise JobError(f"the proxy or a shard broke off: {error}; run it again") from error


def load_job(name: str) -> Job:
    """Return the job's module, which needs pyspark."""
    return cast("Job", importlib.import_module(f"streamfrom.spark.jobs.{name}"))


def nanoseconds(text: str) -> int:
    """Return an ISO date or time, UTC unless it says otherwise, in nanoseconds since the epoch.

    Raises:
        ArgumentTypeError: it is none, or one that a BIGINT of nanoseconds cannot hold.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"an ISO date or time, such as 2026-11-21 or 2026-11-21T08:00, not {text!r}"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    span = moment - datetime(1970, 1, 1, tzinfo=UTC)
    found = (span.days * 86400 + span.seconds) * 10**9 + span.microseconds * 1000
    if abs(found) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"a time between 1678 and 2262, not {text!r}")
    return found


class Option(NamedTuple):
    """How the command line gives the field of a job's configuration that is annotated with it.

    flag: an argument by its place if it does not begin with a hyphen.
    metavar: nothing for an option without a value: it says true for a bool, else None.
    parse: makes a value of the text; by default the field's own type does.
    group: options of one group exclude one another; one of them is required if their field has no default.
    repeats: the option may be given again, and the field has all values.
    """

    flag: str
    metavar: str
    about: str
    parse: "Callable[[str], Any] | None" = None
    group: str = ""
    choices: "Collection[str]" = ()
    repeats: bool = False


# The window of `time_acked`.
FROM: Final = Option(
    "--from",
    "T0",
    "acknowledged since T0, an ISO date or time, in UTC if it has no zone",
    nanoseconds,
)
TO: Final = Option("--to", "T1", "and before T1", nanoseconds)
# When new messages are due.
START: Final = Option("--start", "T", "when the first is due", nanoseconds)
RATE: Final = Option("--rate", "N", "how many become due each second, from T on", float)


def add_options(parser: "argparse.ArgumentParser", config: Any) -> None:
    """Add the options of a configuration's fields: of one without a default it is required."""
    groups: dict[str, Any] = {}
    for field, kind, option in _options(config):
        is_required = field.default is MISSING
        if option.group and option.group not in groups:
            groups[option.group] = parser.add_mutually_exclusive_group(required=is_required)
        place = groups.get(option.group, parser)
        more: dict[str, Any] = {"metavar": option.metavar or None}
        if option.choices:
            more["choices"] = option.choices
        elif not option.metavar:
            more = {"action": "store_const", "const": True if kind is bool else None}
        elif option.repeats:
            more["action"] = "append"
        else:
            more["type"] = option.parse or _parser_of(kind)
        if option.flag.startswith("-"):
            more |= {"dest": field.name, "required": is_required and not option.group}
            more["default"] = None if is_required else field.default
        place.add_argument(option.flag, help=option.about, **more)


def _options(config: Any) -> "Iterator[tuple[Field[Any], Any, Option]]":
    for field in fields(config):
        if get_origin(field.type) is Annotated:
            kind, *options = get_args(field.type)
            for option in options:
                yield field, kind, option
        elif is_dataclass(field.type):
            yield from _options(field.type)


def _parser_of(kind: Any) -> "Callable[[str], Any]":
    if get_origin(kind) is tuple:
        return lambda text: tuple(name for part in text.split(",") if (name := part.strip()))
    found: Callable[[str], Any] = next(iter(get_args(kind)), kind)  # of `int | None` int
    return found


def check_rate(per_s: float | None) -> None:
    """Raise RequestError unless messages can become due at this rate."""
    if per_s is not None and not per_s > 0:
        raise RequestError("--rate takes a number of messages above 0")


def check_window(low_ns: int | None, high_ns: int | None) -> None:
    """Raise RequestError if the window of `FROM` and `TO`, each None where it was left out, is empty."""
    if low_ns is not None and high_ns is not None and low_ns >= high_ns:
        raise RequestError("--from must lie before --to")
