"""What the source refuses, told in a line: Spark would put the trace of a Python process before it."""

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from spark.errors import JobError


if TYPE_CHECKING:
    from collections.abc import Iterator

# Spark's own switch, which a worker looks at when it tells what ended it, and with that it ends.
_HIDE_TRACE: Final = "SPARK_HIDE_TRACEBACK"
# Either is set in a worker and nowhere else: elsewhere the switch would hide the traces of other people's functions.
_WORKERS: Final = ("PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_DIR")


@contextmanager
def told_plainly() -> "Iterator[None]":
    """Let a JobError be told without its trace; what nobody foresaw keeps it."""
    try:
        yield
    except JobError:
        if any(name in os.environ for name in _WORKERS):
            os.environ[_HIDE_TRACE] = "1"
        raise
