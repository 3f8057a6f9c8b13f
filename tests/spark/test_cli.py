"""The command line, as far as it goes without a JVM."""

import pytest

from spark.cli import main, nanoseconds


ASKED = ["archive", "--table", "t", "--out", "o", "--from", "2026-01-01", "--to", "2026-01-02"]


def test_times_are_utc_to_the_microsecond():
    assert nanoseconds("1970-01-01T00:00:01.000001") == 1_000_001_000
    assert nanoseconds("1970-01-01T01:00:00+01:00") == 0


def test_a_wrong_address_ends_with_2_and_without_the_password(capsys):
    assert main([*ASKED, "--proxy", "mysql://u:secret@db/ks"]) == 2
    assert "secret" not in capsys.readouterr().err


def test_a_variable_that_is_not_set_is_named(capsys, monkeypatch):
    monkeypatch.delenv("ABSENT", raising=False)
    assert main([*ASKED, "--proxy", "mysql://u@db/ks", "--password-env", "ABSENT"]) == 2
    assert "ABSENT is not set" in capsys.readouterr().err


def test_a_job_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["analytics"])
    assert "archive" in capsys.readouterr().err
