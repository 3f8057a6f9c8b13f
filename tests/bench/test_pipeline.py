"""What the workload `spark` computes without Spark, and that it runs by its name alone."""

import pytest

from bench.__main__ import _options
from bench.workloads import ON_REQUEST, WORKLOADS


def test_spark_runs_when_it_is_named_alone():
    assert "spark" in ON_REQUEST
    assert "spark" not in WORKLOADS
    assert _options(["spark", "--rows", "10000000"]).rows == 10_000_000


def test_too_few_rows_are_refused(capsys):
    with pytest.raises(SystemExit):
        _options(["spark", "--rows", "999"])
    assert "--rows takes a number from 1,000 on" in capsys.readouterr().err


def test_the_processes_of_a_session_are_those_below_its_jvm():
    pytest.importorskip("pyspark")
    from bench.pipeline.session import descendants

    parents = [(1, 0), (10, 1), (11, 10), (12, 11), (13, 11), (20, 1), (21, 20)]
    assert descendants(10, parents) == {11, 12, 13}
    assert descendants(21, parents) == set()


def test_a_peak_is_what_was_held_at_one_moment():
    pytest.importorskip("pyspark")
    from bench.pipeline.session import Peak

    peak = Peak()
    for jvm, workers in [(100, 5), (40, 50), (90, 30)]:
        peak.note(jvm, workers)
    assert (peak.jvm, peak.workers, peak.together) == (100, 50, 120)
