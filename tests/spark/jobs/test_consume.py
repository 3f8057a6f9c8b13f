"""The consumer's options, and what is refused before anything is taken."""

import argparse
import ast
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.spark.jobs.consume.functions import FUNCTIONS


def asked(*argv):
    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.jobs.consume import add_options, configured

    parser = argparse.ArgumentParser()
    add_options(parser)
    common = argparse.Namespace(table="t", password_env=None)
    options = parser.parse_args(["--checkpoint", "c", *argv], common)
    return configured(options, Endpoint("db", 1, "u", "ks"))


def test_options_become_a_configuration():
    config = asked("--function", f"{FUNCTIONS}:kept", "--out", "o", "--shards=-80, 80-")
    assert (config.out, config.into_table, config.shards) == (Path("o"), None, ("-80", "80-"))
    assert (config.max_attempts, config.retry_s, config.rows) == (3, 30.0, 10_000)
    assert not config.available_now


@cases(argv=ast.literal_eval, said=str)
def test_what_cannot_be_is_refused(argv, said):
    from streamfrom.spark.errors import RequestError

    with pytest.raises(RequestError, match=said):
        asked(*argv)


def test_a_sink_and_a_place_for_dead_letters_are_one_each(capsys):
    for argv in (
        ["--out", "o", "--into-table", "x"],
        ["--dead-letter", "d", "--dead-letter-table", "x"],
    ):
        with pytest.raises(SystemExit):
            asked("--function", "os.path:join", *argv)
        assert "not allowed with" in capsys.readouterr().err


def test_a_password_is_given_by_its_variable():
    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.errors import RequestError
    from streamfrom.spark.jobs.consume import ConsumeConfig, run

    config = ConsumeConfig(Endpoint("h", 1, "u", "ks", "secret"), "t", "m:f", Path("c"))
    nobody: Any = None
    with pytest.raises(RequestError, match="password_env"):
        run(nobody, config)


@cases(text=str, kind=str, said=str)
def test_what_the_source_says_is_told_as_it_said_it(text, kind, said):
    from streamfrom.spark.jobs.consume import _failure

    failure = _failure(text)
    assert (type(failure).__name__, str(failure)) == (kind, said)
