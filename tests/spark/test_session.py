"""A session without a JVM: what is said then."""

import logging
from pathlib import Path
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.session import failure_of, reason_of, start_session


def test_without_java_it_says_where_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequestError, match="default-jre-headless"):
        start_session("test")


@pytest.mark.parametrize("name", [None, "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"])
def test_a_host_name_that_does_not_resolve_is_one_line(monkeypatch, name):
    for each in ("PYSPARK_GATEWAY_PORT", "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr("streamfrom.spark.session._has_java", lambda: True)
    host = "no-such-host.invalid"
    monkeypatch.setattr("socket.gethostname", lambda: "localhost" if name else host)
    if name:
        monkeypatch.setenv(name, host)
    with pytest.raises(RequestError) as caught:
        start_session("test")
    text = str(caught.value)
    assert text.startswith(f"{name or 'this machine'} is ")
    assert host in text
    assert "SPARK_LOCAL_IP=127.0.0.1" in text
    assert "\n" not in text


def test_spark_logs_nothing_between_the_lines_of_a_job(monkeypatch):
    """Not even that it sets a level, which it does where the root's is another than its own, nor where its settings come from."""
    builder = MagicMock()
    for step in (builder.appName, builder.master, builder.config):
        step.return_value = builder
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("streamfrom.spark.session._has_java", lambda: True)
    monkeypatch.setattr(SparkSession, "builder", builder)
    start_session("test")
    asked = dict(call.args for call in builder.config.call_args_list)
    uri = asked["spark.driver.defaultJavaOptions"].removeprefix("-Dlog4j2.configurationFile=")
    lines = Path(urlsplit(uri).path).read_text().splitlines()
    assert "rootLogger.level = warn" in lines
    assert "rootLogger.appenderRef.stderr.level = fatal" in lines
    assert "spark.log.level" not in asked
    # What py4j logs by the root when Ctrl-C ends a job.
    for path, is_told in (("/site-packages/py4j/java_gateway.py", False), ("/orders.py", True)):
        record = logging.LogRecord("root", logging.ERROR, path, 1, "x", (), None)
        assert bool(logging.getLogger().filter(record)) is is_told


FROM_A_TASK = """Job aborted due to stage failure:
Traceback (most recent call last):
  File "x.py", line 3, in write
    insert()
{}
	at org.apache.spark.Worker.run
Caused by: java.lang.Exception"""
FROM_A_SOURCE = """[PYTHON_DATA_SOURCE_ERROR] Failed to create a source: Traceback (most recent call last):
  File "x.py", line 3, in schema
    return ddl_of(fields)
{}
SQLSTATE: 38000"""
FROM_A_WORKER = (
    "An exception was thrown from the Python worker:\n{}\n\tat org.apache.spark.Worker.run"
)
FROM_THE_ENGINE = "Py4J\n\tat x\nCaused by: A\n\tat y\nCaused by: {}\n\tat z"


@pytest.mark.parametrize(
    ("text", "raised", "reason"),
    [
        (FROM_A_TASK, "streamfrom.spark.errors.JobError: 3 of 9 were left out", "3 of 9 were left out"),
        (FROM_A_SOURCE, "streamfrom.spark.errors.RequestError: ks has no shard '-40'", "ks has no shard '-40'"),
        (FROM_A_WORKER, "streamfrom.spark.errors.JobError: 'ks' refuses a row", "'ks' refuses a row"),
        (FROM_THE_ENGINE, "B: no such file", "B: no such file"),
        ("{}\nmore", "[TABLE] is not there", "[TABLE] is not there"),
    ],
)  # fmt: skip
def test_a_failure_is_told_without_its_traces_and_keeps_its_kind(text, raised, reason):
    error = PySparkException(text.format(raised))
    assert reason_of(error) == reason
    failure = failure_of(error, "the stream ended")
    if ".errors." in raised:
        assert f"{type(failure).__name__}: {failure}" == raised.rpartition("errors.")[2]
    else:
        assert str(failure) == f"the stream ended: {reason}; run it again"


def test_what_a_function_raised_is_told_with_its_type():
    assert reason_of(ValueError("x")) == "ValueError: x"
    assert reason_of(JobError("x")) == "x"
