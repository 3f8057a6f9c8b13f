"""A session without a JVM: what is said then."""

import pytest

from spark.errors import RequestError
from spark.session import reason_of, start_session


def test_without_java_it_says_where_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequestError, match="default-jre-headless"):
        start_session("test")


def test_a_failure_is_told_without_its_traces():
    from_a_task = """Job aborted due to stage failure:
Traceback (most recent call last):
  File "x.py", line 3, in write
    insert()
spark.errors.JobError: 3 of 9 messages were left out
	at org.apache.spark.Worker.run
Caused by: java.lang.Exception"""
    assert (
        reason_of(Exception(from_a_task))
        == "spark.errors.JobError: 3 of 9 messages were left out"
    )
    from_a_source = """[PYTHON_DATA_SOURCE_ERROR] Failed to create a source: Traceback (most recent call last):
  File "x.py", line 3, in schema
    return ddl_of(fields)
spark.errors.RequestError: ks has no shard '-40'
SQLSTATE: 38000"""
    assert (
        reason_of(Exception(from_a_source))
        == "spark.errors.RequestError: ks has no shard '-40'"
    )
    from_the_engine = "Py4J\n\tat x\nCaused by: A\n\tat y\nCaused by: B: no such file\n\tat z"
    assert reason_of(Exception(from_the_engine)) == "B: no such file"
    assert reason_of(Exception("[TABLE] is not there\nmore")) == "[TABLE] is not there"
