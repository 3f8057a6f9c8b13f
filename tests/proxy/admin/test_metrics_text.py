"""Prometheus's text: whatever names and numbers go in, its own parser reads them again."""

import math

from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from streamfrom.proxy.admin.metrics import MetricFamily, labels


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def read(family):
    (found,) = text_string_to_metric_families(family.text())
    return found


@given(TEXTS, st.floats(allow_nan=False) | st.integers(0, 2**53) | st.booleans())
def test_a_sample_is_read_as_it_was_written(text, value):
    family = MetricFamily("depth", "gauge", "How deep it is.")
    family.add(labels(queue=text, keyspace="ks"), value)
    (sample,) = read(family).samples
    assert sample.labels == {"queue": text, "keyspace": "ks"}
    assert math.isclose(sample.value, value, abs_tol=0.0, rel_tol=0.0)
