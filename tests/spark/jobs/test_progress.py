"""What is said while a job runs, and when it is done."""

import json
import threading
import time
from typing import Any

import pytest

from streamfrom.spark.jobs.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    found = [100.0]
    monkeypatch.setattr("streamfrom.spark.jobs.progress.time.monotonic", lambda: found[0])
    return found


def test_into_a_pipe_it_says_json_lines_and_not_every_row(capsys):
    progress = Progress()
    progress.enter("purge")
    for done in range(1, 101):
        progress.rows(done, 100)
    progress.leave()
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert said[0] == {"step": "purge"}
    assert (said[-1]["rows"], said[-1]["of"]) == (100, 100)
    assert len(said) < 50
    assert list(progress.steps_s) == ["purge"]


def test_a_job_without_an_end_says_what_passed_and_adds_up_its_steps(capsys, clock):
    progress = Progress()
    for turn in range(1, 5):
        progress.enter("work")
        clock[0] += 0.5
        progress.enter("publish")
        clock[0] += 0.25
        progress.passed(turn * 10, {"left": turn})
    progress.leave()
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line.get("step", line.get("rows")) for line in said] == ["work", "publish", 10, 30]
    assert said[-1] == {"rows": 30, "rows_per_s": 13, "left": 3}
    assert progress.steps_s == {"work": 2.0, "publish": 1.0}


def test_on_a_terminal_counts_are_written_over_and_the_last_one_stays(
    capsys, monkeypatch, clock
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress()
    progress.enter("copy")
    for done in (20, 50, 100):
        clock[0] += 1
        progress.rows(done, 100)
    progress.enter("verify")
    clock[0] += 2
    progress.rows(60, 100)
    progress.leave()
    assert capsys.readouterr().err.split("\n") == [
        "copy …",
        "copy: 20 of 100 rows, 20/s, 4 s left"
        "\r\x1b[Kcopy: 50 of 100 rows, 25/s, 2 s left"
        "\r\x1b[Kcopy: 100 of 100 rows, 33/s, 0 s left",
        "verify …",
        "verify: 60 of 100 rows, 30/s, 1 s left",
        "",
    ]


@pytest.mark.spark
def test_while_spark_works_its_tasks_tell_how_far_it_is(spark, capsys, monkeypatch):
    monkeypatch.setattr("streamfrom.spark.jobs.progress._LOOK_S", 0.02)

    def slowly(batches):
        for batch in batches:
            time.sleep(0.2)
            yield batch

    progress = Progress()
    progress.enter("write")
    with progress.watching(spark, 1000):
        spark.range(8).repartition(8).mapInArrow(slowly, "id bigint").collect()
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()[1:]]
    assert {line["of"] for line in said} == {1000}


def test_what_is_counted_is_said_when_it_is_neither_nothing_nor_all(capsys, monkeypatch):
    monkeypatch.setattr("streamfrom.spark.jobs.progress._LOOK_S", 0.001)
    counts = [0, 100, 110, 40]
    looked = threading.Event()

    def passed():
        if not counts:
            looked.set()
            return 0
        return counts.pop(0)

    progress = Progress()
    progress.enter("copy")
    nobody: Any = None
    with progress.watching(nobody, 100, passed):
        assert looked.wait(60)
    progress.rows(100, 100)
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()[1:]]
    assert [line["rows"] for line in said] == [40, 100]
