"""What makes a module a job, and the options that jobs share."""

import argparse
import ast
import inspect
import shlex
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs import JOBS
from streamfrom.spark.jobs.job import (
    JobConfig,
    add_options,
    check_window,
    load_job,
    nanoseconds,
)
from tests.cases import cases


@pytest.mark.parametrize("name", JOBS)
def test_a_registered_job_has_all_that_a_job_needs(name):
    job = load_job(name)
    assert issubclass(job.CONFIG, JobConfig)
    assert list(inspect.signature(job.run).parameters) == ["spark", "config", "progress"]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_refuses_a_session_of_spark_connect_before_it_asks_any_server(name):
    """Such a session has the classic one's methods and is none: no JVM is at hand, and batches are worked on elsewhere."""
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(RequestError, match="do not run through Spark Connect"):
        load_job(name).run(remote, None)


def asked(name, argv):
    config = load_job(name).CONFIG
    parser = argparse.ArgumentParser()
    add_options(parser, config)
    common = argparse.Namespace(
        table="t", password_env="", endpoint=Endpoint("db", 1, "u", "ks")
    )
    return config.asked(parser.parse_args(argv, common))


@cases(job=str, argv=shlex.split, values=ast.literal_eval)
def test_options_become_a_configuration(job, argv, values):
    config = asked(job, argv)
    found = {name: attrgetter(name)(config) for name in values}
    assert {
        name: str(value) if isinstance(value, Path) else value for name, value in found.items()
    } == values


@cases(job=str, argv=shlex.split, said=str)
def test_what_a_job_cannot_do_is_refused(job, argv, said):
    with pytest.raises(RequestError, match=said):
        asked(job, argv)


@cases(job=str, argv=shlex.split, said=str)
def test_options_that_exclude_one_another_are_wrong_usage(job, argv, said, capsys):
    with pytest.raises(SystemExit):
        asked(job, argv)
    assert said in capsys.readouterr().err


def test_times_are_utc_to_the_microsecond():
    assert nanoseconds("1970-01-01T00:00:01.000001") == 1_000_001_000
    assert nanoseconds("1970-01-01T01:00:00+01:00") == 0


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ("yesterday", "argument --from: an ISO date or time, such as"),
        ("9999-12-31", "argument --from: a time between 1678 and 2262"),
    ],
)
def test_what_is_no_time_is_wrong_usage(wrong, fix, capsys):
    with pytest.raises(SystemExit):
        asked("replay", ["--archive", "a", "--from", wrong])
    assert fix in capsys.readouterr().err


def test_an_empty_window_is_refused():
    for low_ns, high_ns in ((None, None), (None, 5), (5, None), (4, 5)):
        check_window(low_ns, high_ns)
    with pytest.raises(RequestError, match="--from must lie before --to"):
        check_window(5, 5)
