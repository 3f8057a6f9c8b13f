"""The command line of `streamfrom-spark`: run a job and turn errors into a sentence and an exit code."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

from streamfrom import __version__
from streamfrom.spark.endpoint import parse_endpoint, password, shards_of
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs import JOBS
from streamfrom.spark.jobs.job import Job, add_options, broken_off, load_job
from streamfrom.spark.jobs.progress import Progress
from streamfrom.spark.session import start_session
from streamfrom.spark.table_schema import declared


# Removed options, and their replacements.
_GONE: Final = {
    "--time-unit": "leave it out, the unit is found",
    "--due-column": "use --created-column",
    "--delivered-column": "the proxy's /metrics have the delivery latency",
}
# The folders that jobs write to, by the options that several jobs share.
_FOLDERS: Final = (("--out", "out"), ("--checkpoint", "checkpoint"))


def parser(jobs: "dict[str, Job]") -> argparse.ArgumentParser:
    """Return the command line's parser, with the options of *jobs*."""
    result = argparse.ArgumentParser(
        "streamfrom-spark",
        description="Spark jobs over the message tables behind streamfrom.",
        epilog="streamfrom-spark JOB --help shows the options of a job.",
        allow_abbrev=False,
    )
    names = result.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, about in JOBS.items():
        job = names.add_parser(name, help=about, description=about, allow_abbrev=False)
        _add_common(job)
        if name in jobs:
            add_options(job, jobs[name].CONFIG)
    for place in (result, *names.choices.values()):
        place.add_argument("--version", action="version", version=f"streamfrom {__version__}")
    return result


def _add_common(job: argparse.ArgumentParser) -> None:
    job.add_argument(
        "--proxy",
        required=True,
        metavar="URL",
        help="mysql://user@host:port/keyspace, without the password",
    )
    job.add_argument("--table", required=True, metavar="T", help="the message table")
    job.add_argument(
        "--password-env", default="", metavar="V", help="the variable that holds the password"
    )
    job.add_argument(
        "--master", metavar="M", help="default local[*], or what spark-submit says"
    )
    job.add_argument(
        "--report", type=Path, metavar="FILE", help="write the report there as well, as JSON"
    )


def run_command(argv: "Sequence[str]") -> int:
    """Run one job; return 0, 1 if it broke off, or 2 if the request cannot be fulfilled."""
    for option in [word.partition("=")[0] for word in argv]:
        if option in _GONE:
            return _ended(2, f"there is no {option} any more: {_GONE[option]}")
    # Import only the job to run; help prints only its options.
    jobs = {name: load_job(name) for name in argv[:1] if name in JOBS}
    options = parser(jobs).parse_args(argv)
    job = jobs[options.job]
    try:
        options.endpoint = parse_endpoint(
            options.proxy, password("--password-env", options.password_env)
        )
        config = job.CONFIG.asked(options)
        # Fail now instead of at the end of the job or after the JVM's start.
        _check_places(options)
        declared(options.endpoint, shards_of(options.endpoint)[0], options.table)
    except JobError as error:
        return _ended(2, str(error))
    try:
        return _run(job, config, options)
    except RequestError as error:
        return _ended(2, str(error))
    except JobError as error:
        return _ended(1, str(error))
    except OSError as error:
        return _ended(1, f"{error}: make room or make it writable, then run it again")
    except KeyboardInterrupt:
        return _ended(130, "stopped; run it again")


def _check_places(options: argparse.Namespace) -> None:
    """Create the folders that a job writes to, and check that they are writable.

    Raises:
        RequestError: a folder cannot be created or written.
    """
    for option, folder in _FOLDERS:
        place = vars(options).get(folder)
        try:
            if place:
                place.mkdir(parents=True, exist_ok=True)
                TemporaryFile(dir=place).close()
        except OSError as error:
            raise RequestError(
                f"{option}: {error}; name a folder that can be written"
            ) from error
    try:
        if options.report:
            options.report.open("a").close()
    except OSError as error:
        raise RequestError(f"--report: {error}; name a file that can be written") from error


def _run(job: "Job", config: Any, options: argparse.Namespace) -> int:
    spark = start_session(f"streamfrom {options.job} {options.table}", options.master)
    progress = Progress()
    try:
        with broken_off():
            report = job.run(spark, config, progress)
    finally:
        # If a job broke off in the middle of a line, end that line first.
        progress.leave()
        spark.stop()
    if options.report:
        options.report.write_text(report.json())
    sys.stdout.write(report.json())
    return 0


def _ended(code: int, text: str) -> int:
    sys.stderr.write(f"streamfrom-spark: {text}\n")
    return code
