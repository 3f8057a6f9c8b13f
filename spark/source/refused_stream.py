"""What the source refuses, printed in a line: Spark would put the trace of a Python process before it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from streamfrom.spark.errors import JobError


# Spark's own switch, which a worker looks at when it reports what ended it, and with that it ends.
_HIDE_TRACE: Final = "SPARK_HIDE_TRACEBACK"
# Either is set in a worker and nowhere else: elsewhere the switch would hide the traces of other people's functions.
_WORKERS: Final = ("PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_DIR")


@contextmanager
def told_plainly() -> "Iterator[None]":
    """Show a JobError without its trace; an unforeseen error keeps its trace."""
    try:
        yield
    except JobError:
        if any(name in os.environ for name in _WORKERS):
            os.environ[_HIDE_TRACE] = "1"
        raise


class RefusedStream(DataSourceStreamReader):
    """Raises the reason why there is no reader, once Spark uses it: Spark hides what `streamReader` itself raises."""

    def __init__(self, refusal: JobError) -> None:
        self.refusal = refusal

    @told_plainly()
    def _refuse(self, *_: Any, **_more: Any) -> Any:
        raise self.refusal

    initialOffset = latestOffset = partitions = read = _refuse
