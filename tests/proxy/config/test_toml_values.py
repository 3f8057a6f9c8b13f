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
    shown,
)


def table(text, environ=None):
    return TomlTable(tomllib.loads(text), "top", Surroundings(Path("/"), environ or {}))


@pytest.mark.parametrize("form", ["{}", "{!r}", "{!s}"])
def test_a_secret_is_three_stars_in_every_printed_form(form):
    assert form.format(Secret("hunter2")) == "***"
    assert "hunter2" not in json.dumps([Secret("hunter2")], default=str)


def test_secrets_compare_by_their_text():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


def test_a_secret_survives_a_copy_but_not_in_sight():
    assert "hunter2" not in repr(pickle.loads(pickle.dumps(Secret("hunter2"))))


def test_a_variable_is_replaced_wherever_it_stands():
    assert table('x = "a${A}b${B}"', {"A": "1", "B": "2"}).string("x", REQUIRED) == "a1b2"


def test_the_value_of_a_variable_is_not_expanded_again():
    assert table('x = "${A}"', {"A": "${B}", "B": "2"}).string("x", REQUIRED) == "${B}"


def test_a_dollar_alone_is_a_dollar():
    assert table('x = "$5 $A"', {"A": "1"}).string("x", REQUIRED) == "$5 $A"


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1}", "${A B}", "x${A}${"])
def test_a_half_written_variable_is_a_fault(text):
    with pytest.raises(ConfigError, match=r"top\.x: expected a variable's name"):
        table(f'x = "{text}"', {"A": "1"}).string("x", REQUIRED)


def test_a_missing_variable_is_named():
    with pytest.raises(ConfigError, match=r"top\.x: expected the environment variable NOPE,"):
        table('x = "${NOPE}"').string("x", REQUIRED)


@pytest.mark.parametrize("number", ["5", "0.5", "1e3"])
def test_seconds_may_have_a_fraction(number):
    value = table(f"x = {number}").seconds("x", 1)
    assert value == float(number)
    assert type(value) is float


@pytest.mark.parametrize("number", ["0", "-1", "inf", "nan", "true", '"5"', "[5]"])
def test_what_is_not_a_duration_is_refused(number):
    with pytest.raises(ConfigError, match=r"top\.x: expected a number of seconds > 0, got "):
        table(f"x = {number}").seconds("x", 1)


def test_zero_seconds_are_allowed_where_they_mean_at_once():
    assert table("x = 0").seconds("x", 1, zero=True) == 0


@pytest.mark.parametrize("number", ["true", "false", "1.0", '"1"', "[]", "{}", "4", "0"])
def test_what_is_not_an_integer_in_bounds_is_refused(number):
    with pytest.raises(ConfigError, match=r"top\.x: expected an integer from 1 to 3, got "):
        table(f"x = {number}").integer("x", 1, least=1, most=3)


def test_the_first_key_without_a_reader_is_named_with_its_neighbour():
    values = table("pool_sise = 3")
    values.integer("pool_size", 1, least=1)
    with pytest.raises(
        ConfigError, match=r"^top\.pool_sise: unknown key; did you mean pool_size\?$"
    ):
        values.close()


def test_a_key_like_no_other_lists_what_would_be_known():
    values = table("colour = 3")
    assert "name" not in values
    with pytest.raises(ConfigError, match=r"^top\.colour: unknown key; expected one of name$"):
        values.close()


def test_long_values_are_cut_in_errors():
    assert len(shown("x" * 1000)) == 60
