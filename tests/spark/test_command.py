"""The command line, as far as it goes without a JVM."""

import ast
import re
from importlib.metadata import version

import pytest

from streamfrom.spark.command import run_command
from streamfrom.spark.jobs import JOBS
from tests.cases import cases


ASKED = ["archive", "--table", "t", "--out", "o", "--from", "2026-01-01", "--to", "2026-01-02"]


def told(capsys):
    return capsys.readouterr().err


def ended(argv, capsys):
    """Return the number that argparse ends with, and what is said."""
    with pytest.raises(SystemExit) as end:
        run_command(argv)
    said = capsys.readouterr()
    return end.value.code, said.out + said.err


def test_help_lists_the_jobs_that_are_there(capsys):
    code, said = ended(["--help"], capsys)
    assert code == 0
    assert all(name in said for name in JOBS)


@pytest.mark.parametrize("name", JOBS)
def test_each_job_tells_its_options(name, capsys):
    code, said = ended([name, "--help"], capsys)
    assert code == 0
    for option in ("--proxy", "--table", "--password-env", "--master", "--report"):
        assert option in said


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--version"], 0, f"streamfrom {version('streamfrom')}\n"),
        (["archive", "--version"], 0, f"streamfrom {version('streamfrom')}\n"),
        (["package"], 2, "usage: streamfrom-spark"),
        ([], 2, "usage: streamfrom-spark"),
        (["nonsense"], 2, "usage: streamfrom-spark"),
        (["--proxy", "x"], 2, "usage: streamfrom-spark"),
        (["archive", "--nonsense"], 2, "usage: streamfrom-spark"),
        # A step keeps its place after the job.
        (["reshard", "fly", "--stopped"], 2, "invalid choice: 'fly'"),
        # An archive purges what it has kept: nobody gets one by the name of a folder.
        (["--out", "archive", "analytics", "--table", "t", "--proxy", "mysql://u@db/ks"], 2, "usage: streamfrom-spark"),
    ],
)  # fmt: skip
def test_what_is_no_run_of_a_job_ends_with_what_is_said(argv, code, said, capsys):
    found, text = ended(argv, capsys)
    assert found == code
    assert text == said if code == 0 else said in text


@pytest.mark.parametrize("option", ["--time-unit=ms", "--due-column", "--delivered-column"])
def test_an_option_that_is_gone_names_what_there_is_instead(option, capsys):
    assert run_command(["analytics", "--table", "t", option]) == 2
    assert f"there is no {option.partition('=')[0]} any more: " in told(capsys)


def test_a_wrong_address_ends_with_2_and_without_the_password(capsys):
    assert run_command([*ASKED, "--proxy", "mysql://u:secret@db/ks"]) == 2
    said = told(capsys)
    assert "--password-env" in said
    assert "secret" not in said


def test_a_proxy_that_is_not_there_is_named_before_spark_starts(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("streamfrom.spark.command.start_session", None)
    monkeypatch.chdir(tmp_path)
    assert run_command([*ASKED, "--proxy", "mysql://u@127.0.0.1:1/ks"]) == 2
    assert "the proxy at 127.0.0.1:1" in told(capsys)


@cases(asked=ast.literal_eval, fix=str)
def test_what_cannot_be_written_or_is_empty_is_said_before_anybody_is_asked(
    asked, fix, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    assert run_command([*ASKED, "--proxy", "mysql://u@127.0.0.1:1/ks", *asked]) == 2
    assert re.search(fix, told(capsys))
