"""The Spark session of a job: the one place that configures Spark and extracts the reason from its failures."""

import logging
import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streamfrom.spark.errors import JobError, RequestError


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Set by spark-submit in the processes that it starts.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
# Spark uses the first of these that is set as its driver's address, instead of the machine's name.
_DRIVER_HOSTS: Final = ("SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP")
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
}
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
# The errors of a failed query; the type depends on where it failed.
SPARK_ERRORS: Final = (PySparkException, Py4JError)
_TRACE: Final = "Traceback (most recent call last)"
_CAUSE: Final = "Caused by: "
# An error that this package raised, in a task or while a read was planned, with or without a trace.
_OWN: Final = re.compile(rf"\b{re.escape(JobError.__module__)}\.(JobError|RequestError): (.*)")


def start_session(
    name: str, master: str | None = None, settings: "Mapping[str, str] | None" = None
) -> "SparkSession":
    """Return a session called *name*.

    master: where it runs; by default spark-submit's choice, else `local[*]`.
    settings: Spark settings in addition to `SETTINGS`.

    Raises:
        RequestError: Java is missing, the name of this machine does not resolve, or Spark does not start.
    """
    from pyspark.sql import SparkSession  # an import that takes seconds

    if _SUBMITTED not in os.environ and not _has_java():
        raise RequestError(
            "Spark needs Java and there is none: apt-get install default-jre-headless, or set"
            " JAVA_HOME to one"
        )
    if _SUBMITTED not in os.environ:
        _check_host(os.environ)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master or _SUBMITTED not in os.environ:
        builder = builder.master(master or "local[*]")
        # Its traces would bury the job's own messages. The other extraJavaOptions are left to the user's configuration.
        builder = builder.config(
            "spark.driver.defaultJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
        )
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(_is_not_of_py4j)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except SPARK_ERRORS as error:
        raise RequestError(f"Spark does not start: {reason_of(error)}") from error


def _is_not_of_py4j(record: "logging.LogRecord") -> bool:
    """Return False for py4j's records of the root logger: the traces of a Ctrl-C."""
    return "py4j" not in Path(record.pathname).parts


def _check_host(environ: "Mapping[str, str]") -> None:
    """Raise RequestError if the address of Spark's driver does not resolve.

    Java would end with an UnknownHostException and its traces.
    """
    named = [name for name in _DRIVER_HOSTS if environ.get(name)]
    host = environ[named[0]] if named else socket.gethostname()
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        what = f"{named[0]} is {host!r}" if named else f"this machine is called {host!r}"
        raise RequestError(
            f"{what}, which does not resolve ({error.strerror or error}), and Spark needs an address: add it to"
            " /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1 for a job on this machine alone"
        ) from error


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


def failure_of(error: Exception, otherwise: str) -> JobError:
    """Return this package's own error that *error* reports from a task or a plan; else a JobError with *otherwise* and the reason."""
    if own := _OWN.findall(str(error)):
        kind, text = own[-1]
        return {one.__name__: one for one in (JobError, RequestError)}[kind](text.strip())
    return JobError(f"{otherwise}: {reason_of(error)}; run it again")


def reason_of(error: Exception) -> str:
    """Return the failure of Spark, of this package or of a user's function in one line, without the traces around it."""
    if own := _OWN.findall(str(error)):
        return str(own[-1][1]).strip()
    if not isinstance(error, SPARK_ERRORS):
        return str(error) if isinstance(error, JobError) else f"{type(error).__name__}: {error}"
    lines = [line for line in str(error).splitlines() if line.strip()]
    traces = [place for place, line in enumerate(lines) if _TRACE in line]
    if traces:
        # The lines of a trace are indented, the error is not.
        raised = (line for line in lines[traces[-1] + 1 :] if not line.startswith(" "))
        return next(raised, lines[-1]).strip()
    causes = [line for line in lines if line.startswith(_CAUSE)]
    return causes[-1].removeprefix(_CAUSE).strip() if causes else lines[0].strip()
