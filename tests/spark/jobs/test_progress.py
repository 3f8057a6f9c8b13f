"""What is said while a job runs, and when it is done."""

import pytest

from streamfrom.spark.jobs.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    found = [100.0]
    monkeypatch.setattr("streamfrom.spark.jobs.progress.time.monotonic", lambda: found[0])
    return found


def test_into_a_pipe_it_writes_plain_lines_and_not_every_row(capsys):
    progress = Progress()
    progress.enter("purge")
    for done in range(1, 101):
        progress.rows(done, 100)
    progress.leave()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "purge …"
    assert said[-1].startswith("purge: 100 of 100 rows, ")
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
    assert capsys.readouterr().err.splitlines() == [
        "work …", "publish …", "10 rows, 13/s, 1 left", "30 rows, 13/s, 3 left",
    ]  # fmt: skip
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
        "\r\x1b[Kcopy …",
        "\r\x1b[Kcopy: 20 of 100 rows, 20/s, 4 s left"
        "\r\x1b[Kcopy: 50 of 100 rows, 25/s, 2 s left"
        "\r\x1b[Kcopy: 100 of 100 rows, 33/s, 0 s left",
        "verify …",
        "\r\x1b[Kverify: 60 of 100 rows, 30/s, 1 s left",
        "",
    ]
