"""A session without a JVM: what is said then."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from streamfrom.spark.errors import RequestError
from streamfrom.spark.session import reason_of, start_session


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
    asked: dict[str, str] = {}

    class Builder:
        def appName(self, name: str) -> "Builder":
            return self

        def master(self, where: str) -> "Builder":
            return self

        def config(self, key: str, value: str) -> "Builder":
            asked[key] = value
            return self

        def getOrCreate(self) -> None:
            return None

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("streamfrom.spark.session._has_java", lambda: True)
    monkeypatch.setattr(SparkSession, "builder", Builder())
    start_session("test")
    uri = asked["spark.driver.defaultJavaOptions"].removeprefix("-Dlog4j2.configurationFile=")
    lines = Path(urlsplit(uri).path).read_text().splitlines()
    assert "rootLogger.level = warn" in lines
    assert "rootLogger.appenderRef.stderr.level = fatal" in lines
    assert "spark.log.level" not in asked


def test_a_failure_is_told_without_its_traces():
    from_a_task = """Job aborted due to stage failure:
Traceback (most recent call last):
  File "x.py", line 3, in write
    insert()
streamfrom.spark.errors.JobError: 3 of 9 messages were left out
	at org.apache.spark.Worker.run
Caused by: java.lang.Exception"""
    assert (
        reason_of(Exception(from_a_task))
        == "streamfrom.spark.errors.JobError: 3 of 9 messages were left out"
    )
    from_a_source = """[PYTHON_DATA_SOURCE_ERROR] Failed to create a source: Traceback (most recent call last):
  File "x.py", line 3, in schema
    return ddl_of(fields)
streamfrom.spark.errors.RequestError: ks has no shard '-40'
SQLSTATE: 38000"""
    assert (
        reason_of(Exception(from_a_source))
        == "streamfrom.spark.errors.RequestError: ks has no shard '-40'"
    )
    from_a_worker = """An exception was thrown from the Python worker:
streamfrom.spark.errors.JobError: 'ks' refuses a row: (4025, 'a CHECK'); correct the data
\tat org.apache.spark.Worker.run"""
    assert (
        reason_of(Exception(from_a_worker))
        == "streamfrom.spark.errors.JobError: 'ks' refuses a row: (4025, 'a CHECK'); correct the data"
    )
    from_the_engine = "Py4J\n\tat x\nCaused by: A\n\tat y\nCaused by: B: no such file\n\tat z"
    assert reason_of(Exception(from_the_engine)) == "B: no such file"
    assert reason_of(Exception("[TABLE] is not there\nmore")) == "[TABLE] is not there"
