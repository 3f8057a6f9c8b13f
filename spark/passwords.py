"""Passwords come from environment variables, because processes show their command lines."""

import os

from streamfrom.spark.errors import RequestError


def password(
    option: str, variable: str, wrong: str = "is not set: export it with the password"
) -> str:
    """Return what is in *variable*, which *option* named; empty if it named none.

    Raises:
        RequestError: there is no such variable; the text ends in *wrong*.
    """
    if variable and variable not in os.environ:
        raise RequestError(f"{option}: {variable} {wrong}")
    return os.environ[variable] if variable else ""
