"""What makes a module a job, and the options that jobs share."""

import argparse
import inspect

import pytest

from spark.jobs import JOBS
from spark.jobs.job import Job, add_window, load_job, nanoseconds


@pytest.mark.parametrize("name", JOBS)
def test_a_registered_job_has_all_that_a_job_needs(name):
    job = load_job(name)
    for function in ("add_options", "configured", "run"):
        wanted = list(inspect.signature(getattr(Job, function)).parameters)[1:]
        assert list(inspect.signature(getattr(job, function)).parameters) == wanted


def test_times_are_utc_to_the_microsecond():
    assert nanoseconds("1970-01-01T00:00:01.000001") == 1_000_001_000
    assert nanoseconds("1970-01-01T01:00:00+01:00") == 0


def test_a_window_may_be_left_out_where_a_job_says_so(capsys):
    free, strict = argparse.ArgumentParser(), argparse.ArgumentParser()
    add_window(free, required=False)
    add_window(strict, required=True)
    assert vars(free.parse_args([])) == {"low_ns": None, "high_ns": None}
    assert strict.parse_args(["--from", "1970-01-01", "--to", "1970-01-02"]).low_ns == 0
    with pytest.raises(SystemExit):
        strict.parse_args(["--from", "yesterday", "--to", "1970-01-02"])
    assert "--from" in capsys.readouterr().err
