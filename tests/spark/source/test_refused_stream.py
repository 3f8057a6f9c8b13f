"""Where a trace is hidden, and where it is kept."""

import os

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.refused_stream import told_plainly


@pytest.fixture
def switch(monkeypatch):
    monkeypatch.delenv("PYTHON_WORKER_FACTORY_SECRET", raising=False)
    monkeypatch.delenv("PYTHON_WORKER_FACTORY_SOCK_DIR", raising=False)
    # What the code sets is taken back in the end.
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    return monkeypatch


def fail(error):
    with pytest.raises(type(error)), told_plainly():
        raise error
    return os.environ["SPARK_HIDE_TRACEBACK"]


@pytest.mark.parametrize(
    "name", ["PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_DIR"]
)
def test_a_worker_that_ends_with_a_sentence_sends_no_trace(switch, name):
    switch.setenv(name, "x")
    assert fail(RequestError("ks has no shard '-8'")) == "1"


def test_what_nobody_foresaw_keeps_its_trace(switch):
    switch.setenv("PYTHON_WORKER_FACTORY_SECRET", "x")
    assert not fail(ZeroDivisionError())


def test_outside_of_a_worker_the_traces_of_others_are_not_touched(switch):
    assert not fail(RequestError("no"))
