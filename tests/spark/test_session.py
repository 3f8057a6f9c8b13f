"""A session without a JVM: what is said then."""

import pytest

from spark.errors import RequestError
from spark.session import start_session


def test_without_java_it_says_where_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequestError, match="default-jre-headless"):
        start_session("test")
