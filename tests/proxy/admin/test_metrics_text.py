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


def test_a_sample_without_labels_has_no_braces_and_a_histogram_a_count_and_a_sum():
    family = MetricFamily("up_total", "counter", "Since the start.")
    family.add("", True)
    assert family.text().endswith("\n# TYPE up_total counter\nup_total 1\n")
    assert read(family).documentation == "Since the start."
    family = MetricFamily("took_seconds", "histogram", "How long it took.")
    family.add_histogram(labels(queue="q"), [("0.5", 2), ("+Inf", 3)], 4.5)
    found = read(family)
    assert found.type == "histogram"
    name = "took_seconds"
    assert [(each.name, each.labels.get("le"), each.value) for each in found.samples] == [
        (f"{name}_bucket", "0.5", 2.0),
        (f"{name}_bucket", "+Inf", 3.0),
        (f"{name}_count", None, 3.0),
        (f"{name}_sum", None, 4.5),
    ]
