"""What a module of `spark.jobs` has to be a job, and what several of them read from options."""

import argparse
import importlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NamedTuple,
    Protocol,
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


class Job(Protocol):
    """A module that brings its options, its configuration and its work."""

    def add_options(self, parser: "argparse.ArgumentParser") -> None:
        """Add the job's own options; those of every job are there already (`spark.cli`)."""

    def configured(self, options: "argparse.Namespace", endpoint: "Endpoint") -> Any:
        """Return the job's configuration, a frozen dataclass, without asking any server.

        Raises:
            RequestError: the options do not fit together.
        """

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

    parse: makes a value of the text; by default the field's own type does.
    group: options of one group exclude one another.
    """

    flag: str
    metavar: str
    about: str
    parse: "Callable[[str], Any] | None" = None
    group: str = ""


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


def adding(config: type) -> "Callable[[argparse.ArgumentParser], None]":
    """Return what adds the options of a configuration's fields to a parser: of one without a default it is required."""

    def add_options(parser: "argparse.ArgumentParser") -> None:
        groups: defaultdict[str, Any] = defaultdict(parser.add_mutually_exclusive_group)
        for field, kind, option in _options(config):
            place = groups[option.group] if option.group else parser
            read = {"metavar": option.metavar, "type": option.parse or _parser_of(kind)}
            is_required = field.default is MISSING
            place.add_argument(
                option.flag,
                dest=field.name,
                help=option.about,
                required=is_required,
                default=None if is_required else field.default,
                **({"action": "store_true"} if kind is bool else read),
            )

    return add_options


def given(options: "argparse.Namespace", config: type) -> dict[str, Any]:
    """Return the values of the fields that `adding` made options of."""
    return {field.name: getattr(options, field.name) for field, *_ in _options(config)}


def _options(config: type) -> "Iterator[tuple[Field[Any], Any, Option]]":
    for field in fields(config):
        if get_origin(field.type) is Annotated:
            kind, option = get_args(field.type)
            yield field, kind, option


def _parser_of(kind: Any) -> "Callable[[str], Any]":
    if get_origin(kind) is tuple:
        return lambda text: tuple(name for part in text.split(",") if (name := part.strip()))
    found: Callable[[str], Any] = next(iter(get_args(kind)), kind)  # of `int | None` int
    return found


def check_rate(per_s: float | None) -> None:
    """Raise RequestError unless messages can become due at this rate."""
    if per_s is not None and not per_s > 0:
        raise RequestError("--rate takes a number of messages above 0")


def window_of(options: "argparse.Namespace") -> tuple[int | None, int | None]:
    """Return what `FROM` and `TO` read, each end None where it was left out.

    Raises:
        RequestError: it is empty.
    """
    low_ns, high_ns = options.low_ns, options.high_ns
    if low_ns is not None and high_ns is not None and low_ns >= high_ns:
        raise RequestError("--from must lie before --to")
    return low_ns, high_ns
