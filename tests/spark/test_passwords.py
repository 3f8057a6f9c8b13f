"""Passwords from the environment."""

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.passwords import password


def test_a_password_is_what_the_variable_holds(monkeypatch):
    monkeypatch.setenv("SECRET", "sesame")
    assert password("--password-env", "SECRET") == "sesame"
    assert password("--password-env", "") == ""


def test_a_variable_that_is_not_set_is_named_with_its_option(monkeypatch):
    monkeypatch.delenv("SECRET", raising=False)
    with pytest.raises(RequestError, match="--to-password-env: SECRET is not set"):
        password("--to-password-env", "SECRET")
