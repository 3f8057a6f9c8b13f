"""Passwords come from environment variables, because processes show their command lines."""

import os

from streamfrom.spark.errors import RequestError


def password(option: str, variable: str | None) -> str:
    """Return what is in *variable*, which *option* named; empty if it named none.

    Raises:
        RequestError: there is no such variable.
    """
    if not variable:
        return ""
    if variable not in os.environ:
        raise RequestError(f"{option}: {variable} is not set: export it with the password")
    return os.environ[variable]
