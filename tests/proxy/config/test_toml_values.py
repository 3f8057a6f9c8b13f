"""Typed values out of a TOML table."""

import json
import pickle
import tomllib
from pathlib import Path

import pytest

from streamfrom.proxy.config.toml_values import (
    REQUIRED,
    ConfigError,
    Secret,
    Surroundings,
    TomlTable,
)


def table(text, environ=None):
    return TomlTable(tomllib.loads(text), "top", Surroundings(Path("/"), environ or {}))


@pytest.mark.parametrize("form", ["{}", "{!r}", "{!s}"])
def test_a_secret_is_three_stars_in_every_printed_form(form):
    assert form.format(Secret("hunter2")) == "***"
    assert "hunter2" not in json.dumps([Secret("hunter2")], default=str)


def test_secrets_compare_by_their_text_and_survive_a_copy_out_of_sight():
    assert Secret("a") == Secret("a")
    assert Secret("a") not in (Secret("b"), "a")
    assert len({Secret("a"), Secret("a")}) == 1
    assert "hunter2" not in repr(pickle.loads(pickle.dumps(Secret("hunter2"))))


@pytest.mark.parametrize(
    ("text", "expected"), [("a${A}b${B}", "a1b2"), ("${C}", "${B}"), ("$5 $A", "$5 $A")]
)
def test_a_variable_is_replaced_where_it_stands_and_its_value_is_not_expanded(text, expected):
    variables = {"A": "1", "B": "2", "C": "${B}"}
    assert table(f'x = "{text}"', variables).string("x", REQUIRED) == expected


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1}", "${A B}", "x${A}${", "${NOPE}"])
def test_a_variable_that_is_half_written_or_missing_is_a_fault(text):
    words = "the environment variable NOPE," if "NOPE" in text else "a variable's name"
    with pytest.raises(ConfigError, match=rf"top\.x: expected {words}"):
        table(f'x = "{text}"', {"A": "1"}).string("x", REQUIRED)


def test_a_variable_that_is_no_utf_8_is_a_fault():
    with pytest.raises(
        ConfigError, match=r"top\.x: expected UTF-8 in the environment variable A"
    ):
        table('x = "${A}"', {"A": "\udce9"}).string("x", REQUIRED)
