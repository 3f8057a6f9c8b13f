"""`streamfrom-spark JOB …`: also a spark-submit main, which then says where the job runs."""

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from spark.endpoint import parse_endpoint
from spark.errors import JobError


def nanoseconds(text: str) -> int:
    """Return an ISO date or time, UTC unless it says otherwise, in nanoseconds since the epoch."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    span = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (span.days * 86400 + span.seconds) * 10**9 + span.microseconds * 1000


def parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    result = argparse.ArgumentParser(
        "streamfrom-spark", description=__doc__, allow_abbrev=False
    )
    result.add_argument("job", choices=["archive"])
    result.add_argument("--proxy", required=True, metavar="mysql://user@host:port/keyspace")
    result.add_argument("--table", required=True)
    result.add_argument(
        "--password-env", metavar="V", help="the variable that holds the password"
    )
    result.add_argument("--out", type=Path, required=True, help="a folder all executors share")
    result.add_argument("--from", dest="low_ns", type=nanoseconds, required=True, metavar="T0")
    result.add_argument("--to", dest="high_ns", type=nanoseconds, required=True, metavar="T1")
    result.add_argument("--master", help="default local[*], or what spark-submit says")
    result.add_argument(
        "--report", type=Path, metavar="FILE", help="write the report there, as JSON"
    )
    return result


def main(argv: list[str] | None = None) -> int:
    """Run one job and return 0, 1 if it failed, or 2 if it was asked for wrongly."""
    options = parser().parse_args(argv)
    try:
        password = os.environ[options.password_env] if options.password_env else ""
        endpoint = parse_endpoint(options.proxy, password)
    except KeyError:
        sys.stderr.write(f"--password-env: {options.password_env} is not set\n")
        return 2
    except JobError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    # Only now the seconds that a JVM takes.
    from pyspark.sql import SparkSession

    from spark.jobs.archive import ArchiveConfig, run

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"streamfrom {options.job} {options.table}")
    if options.master or "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(options.master or "local[*]")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    config = ArchiveConfig(
        endpoint, options.table, options.out, options.low_ns, options.high_ns
    )
    try:
        report = run(spark, config)
    except JobError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        spark.stop()
    if options.report:
        options.report.write_text(report.json())
    sys.stdout.write(report.json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
