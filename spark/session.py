"""The Spark session of a job: the one place that sets Spark up."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark.errors import RequestError


if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# spark-submit sets it in the processes that it starts.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",  # `spark.jobs.progress` says how far a job is
}


def start_session(
    name: str, master: str | None = None, settings: "Mapping[str, str] | None" = None
) -> "SparkSession":
    """Return a session called *name*.

    master: where it runs; by default what spark-submit says, else `local[*]`.
    settings: Spark settings beside `SETTINGS`.

    Raises:
        RequestError: there is no Java to run it on.
    """
    from pyspark.sql import SparkSession

    if _SUBMITTED not in os.environ and not _has_java():
        raise RequestError(
            "Spark needs Java and there is none: apt-get install default-jre-headless, or set"
            " JAVA_HOME to one"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master or _SUBMITTED not in os.environ:
        builder = builder.master(master or "local[*]")
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
