"""The last hour of a queue."""

from dataclasses import replace

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.figures.figures import QueueFigures
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.messaging.table.table_settings import CONSENT
from streamfrom.proxy.admin import history as history_module
from streamfrom.proxy.admin.history import (
    SAMPLES_MAX,
    History,
    QueueHistory,
    Rates,
    newer,
    queue_records,
    setting_records,
)
from streamfrom.proxy.status.status_rows import queue_rows
from tests.proxy.admin.conftest import figures
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


def test_a_series_is_of_rates_between_two_samples():
    history = History()
    history.sample([figures(depth=5, delivered=10, acked=10)], 100.0)
    history.sample([figures(depth=8, delivered=30, acked=40, deleted=10)], 110.0)
    series = history.series("ks", "msg")
    assert series["at_s"] == [110.0]
    assert series["depth"] == [8.0]
    assert series["in_flight"] == [1.0]
    assert series["delivered_per_s"] == [2.0]
    assert series["out_per_s"] == [4.0]
    assert series["in_per_s"] == [4.3]  # 3 more, and 40 are gone
    assert series["delivery_latency_p99_s"] == [None]


def test_percentiles_are_of_the_time_since_the_sample_before():
    history, queue = History(), figures()
    queue.shards[0].counters.ack_latency.observe(50 * 10**9, 1000)
    history.sample([queue], 0.0)
    queue.shards[0].counters.ack_latency.observe(3 * 10**6, 10)
    history.sample([queue], 10.0)
    (p99_s,) = history.series("ks", "msg")["ack_latency_p99_s"]
    assert p99_s is not None
    assert 0.002 < p99_s <= 0.005


def test_what_is_not_known_is_none_and_nothing_gives_a_negative_rate():
    history = History()
    for at_s in (0.0, 10.0):
        history.sample([figures(depth=None)], at_s)
    series = history.series("ks", "msg")
    assert series["depth"] == series["in_per_s"] == [None]
    assert series["delivered_per_s"] == [0.0]
    history = History()
    # The queue was made again, and the clock set back.
    history.sample([figures(depth=9, delivered=9, acked=9)], 10.0)
    history.sample([figures(depth=0)], 10.0)
    series = history.series("ks", "msg")
    assert series["delivered_per_s"] == series["out_per_s"] == series["in_per_s"] == [0.0]


def test_an_hour_is_kept_in_order_and_rates_are_since_the_last_samples():
    history = QueueHistory()
    for number in range(SAMPLES_MAX + 7):
        history.add(figures(delivered=10 * number), 10.0 * number)
    moments = [sample.at_s for sample in history.samples()]
    assert moments == [10.0 * number for number in range(7, SAMPLES_MAX + 7)]
    newest = SAMPLES_MAX + 6
    rates = history.rates(figures(delivered=10 * newest + 30), 10.0 * newest + 6)
    assert rates is not None
    assert rates.delivered_per_s == 5.0


def test_queues_that_are_gone_are_forgotten_and_their_number_is_bounded(monkeypatch):
    monkeypatch.setattr(history_module, "QUEUES_MAX", 9)
    history = History()
    history.sample([figures("a"), figures("b")], 0.0)
    history.forget_all_but([figures("b")])
    history.sample([figures("b")], 10.0)
    assert history.series("ks", "b")["at_s"] == [10.0]
    assert history.series("ks", "a")["at_s"] == []
    names = [f"q{number}" for number in range(14)]
    for moment_s in (20.0, 25.0):
        history.sample(map(figures, names), moment_s)
    assert sum(bool(history.series("ks", name)["at_s"]) for name in names) == 8
    history.sample([figures("b")], 30.0)
    assert history.series("ks", "b")["at_s"] == [10.0, 30.0]


# What the page is given to show.
def test_a_queue_has_its_row_and_rates_null_for_what_is_not_known_or_the_reason_why_it_fails():
    def records(queue, rates=None, errors=()):
        return queue_records(queue_rows([queue], errors, 0), [queue], lambda _: rates)

    (record,) = records(figures(), Rates(1.0, 2.0, 3.0, 0.0))
    assert (record["depth"], record["scheduled"], record["is_paused"]) == (3, 1, 0)
    assert [record[name] for name in Rates._fields] == [1.0, 2.0, 3.0, 0.0]
    (shard,) = figures().shards
    queue = replace(figures(), streams=0, shards=(replace(shard, streams=0),))
    (record,) = records(queue)
    assert record["scheduled"] is record["in_per_s"] is record["delivered_per_s"] is None
    error = TableLoadError("broken", "no id")
    first, second = records(figures(), errors=[("ks", error)])
    assert (first["queue"], first["error"], first["is_paused"]) == ("broken", "no id", None)
    assert second["error"] is None


def test_settings_have_the_keys_and_values_of_the_comment():
    more = "vt_max_rate=0.5,vt_key=message,vt_max_per_key=2"
    table = loaded(raw_table("msg", f"{DEFAULT_COMMENT},{more}"))
    found = {each["key"]: each["value"] for each in setting_records(QueueFigures(table, (), 0))}
    assert set(found) == KEYS.keys() - {CONSENT}
    assert found["vt_ack_wait"] == table.properties.ack_wait_ns / 10**9
    assert found["vt_batch_size"] == table.properties.batch_size
    assert found["vt_paused"] is False
    assert (found["vt_max_rate"], found["vt_max_per_key"]) == (0.5, 2)
    assert (found["vt_group"], found["vt_after"]) == (None, None)
    kinds = [found[f"vt_{key}"] for key in ("ack", "lease", "order", "prefetch")]
    assert kinds == ["committed", "lazy", "oldest", "auto"]


def test_a_page_that_has_samples_is_given_the_newer_ones():
    series: dict[str, list[float | None]] = {
        "at_s": [10.0, 20.0, 30.0],
        "depth": [1.0, None, 3.0],
    }
    assert newer(series, 0.0) == series
    assert newer(series, 20.0) == {"at_s": [30.0], "depth": [3.0]}
    assert newer(series, 30.0) == {"at_s": [], "depth": []}
