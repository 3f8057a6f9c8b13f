"""What a module of `spark.jobs` has to be a job, and what several of them read from options."""

import argparse
import importlib
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from pymysql.err import MySQLError

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.progress import Progress
from streamfrom.spark.session import SPARK_ERRORS, reason_of


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.jobs.progress import Report


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


def add_window(parser: "argparse.ArgumentParser", *, required: bool) -> None:
    """Add `--from T0 --to T1`, which become `low_ns` and `high_ns`."""
    for name, place, metavar, about in (
        (
            "--from",
            "low_ns",
            "T0",
            "acknowledged since T0, an ISO date or time, in UTC if it has no zone",
        ),
        ("--to", "high_ns", "T1", "and before T1"),
    ):
        parser.add_argument(
            name, dest=place, type=nanoseconds, required=required, metavar=metavar, help=about
        )


def window_of(options: "argparse.Namespace") -> tuple[int | None, int | None]:
    """Return what `add_window` read, each end None where it was left out.

    Raises:
        RequestError: it is empty.
    """
    low_ns, high_ns = options.low_ns, options.high_ns
    if low_ns is not None and high_ns is not None and low_ns >= high_ns:
        raise RequestError("--from must lie before --to")
    return low_ns, high_ns
