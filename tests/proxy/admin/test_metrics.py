"""Prometheus's text: its own parser reads it, and the figures are the engine's."""

import math
from dataclasses import replace

from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from streamfrom.engine.messaging.figures.figures import (
    QueueFigures,
    ShardFigures,
    StreamFigures,
)
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.admin.metrics import MetricFamily, MetricsPage, labels
from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus
from tests.sim.memory_store import loaded, raw_table


SECOND_NS = 10**9
MEMBER = MemberStatus("a1", "1.0", 5.0, 3, 2, 99, is_stopping=False, connections_max=7)
SHARD = ShardStatus("ks", "-80", "h:1", "10", "gone", 32, 5, 2, 1, is_dispatched=False)


def on_shard(name, counters, depth=3, streams=1):
    return ShardFigures(name, counters, streams, 0, 2, True, 1, depth, 4 * SECOND_NS)


def samples(*queues, streams=(), member=MEMBER):
    page = MetricsPage([SHARD], member, 10 * SECOND_NS, streams)
    page.add(queues)
    text = page.text().decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_all_figures_are_there():
    counters = Counters(delivered=7, redelivered=1, acked=5, purge_failures=4)
    counters.ack_latency.observe(3 * 10**6, 5)
    table = loaded(raw_table("msg"))
    shards = on_shard("-80", counters), on_shard("80-", Counters(delivered=3))
    found = samples(QueueFigures(table, shards, 2))
    of = ("keyspace", "ks"), ("queue", "msg")
    assert found["streamfrom_messages_delivered_total", *of] == 10
    assert found["streamfrom_messages_acked_total", *of] == 5
    assert found["streamfrom_purge_failures_total", *of] == 4
    assert found["streamfrom_queue_depth", *of] == 6
    assert found["streamfrom_queue_ready", *of] == 4
    assert found["streamfrom_queue_in_flight", *of] == 2
    assert found["streamfrom_queue_oldest_message_age_seconds", *of] == 6
    name = "streamfrom_message_ack_latency_seconds"
    assert found[f"{name}_bucket", *of[:1], ("le", "0.002"), *of[1:]] == 0
    assert found[f"{name}_bucket", *of[:1], ("le", "0.005"), *of[1:]] == 5
    assert found[f"{name}_bucket", *of[:1], ("le", "+Inf"), *of[1:]] == 5
    assert found[f"{name}_count", *of] == 5
    assert found[f"{name}_sum", *of] == 0.015
    assert found["vttablet_messages", ("metric", "Sent"), ("table_name", "msg")] == 10
    assert found["vttablet_messages", ("metric", "ClientCount"), ("table_name", "msg")] == 2
    assert found["streamfrom_shard_up", ("keyspace", "ks"), ("shard", "-80")] == 0
    assert found["streamfrom_shard_dispatched", ("keyspace", "ks"), ("shard", "-80")] == 0
    assert found["streamfrom_connections",] == 3
    assert found["streamfrom_connections_max",] == 7
    assert found["streamfrom_clock_seconds",] == 10
    assert ("streamfrom_certificate_expiry_timestamp_seconds",) not in found
    assert found["streamfrom_questions_total",] == 99


def test_the_stream_that_stands_still_longest_is_told():
    table, other = loaded(raw_table("msg")), loaded(raw_table("other"))
    queues = [QueueFigures(one, (on_shard("0", Counters()),), 1) for one in (table, other)]
    moments = (None, 7 * SECOND_NS, 4 * SECOND_NS)
    streams = [StreamFigures(table, 1, None, 0, 9, 5, 0, 5, moment) for moment in moments]
    found = samples(*queues, streams=streams)
    name = "streamfrom_queue_consumer_stalled_seconds"
    assert found[name, ("keyspace", "ks"), ("queue", "msg")] == 6
    assert found[name, ("keyspace", "ks"), ("queue", "other")] == 0


def test_a_name_that_is_no_text_costs_no_other_figure_and_a_certificates_end_is_told():
    queue = QueueFigures(loaded(raw_table("a\udcff")), (on_shard("0", Counters()),), 1)
    found = samples(queue, member=replace(MEMBER, certificate_expires_s=1234.0))
    assert found["streamfrom_queue_depth", ("keyspace", "ks"), ("queue", "a?")] == 3
    assert found["streamfrom_certificate_expiry_timestamp_seconds",] == 1234


# Prometheus's text: whatever names and numbers go in, its own parser reads them again.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS, st.floats(allow_nan=False) | st.integers(0, 2**53) | st.booleans())
def test_a_sample_is_read_as_it_was_written(text, value):
    family = MetricFamily("depth", "gauge", "How deep it is.")
    family.add(labels(queue=text, keyspace="ks"), value)
    (found,) = text_string_to_metric_families(family.text())
    (sample,) = found.samples
    assert sample.labels == {"queue": text, "keyspace": "ks"}
    assert math.isclose(sample.value, value, abs_tol=0.0, rel_tol=0.0)
