"""What the page is given to show."""

from dataclasses import replace

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.figures.figures import QueueFigures
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.messaging.table.table_settings import CONSENT
from streamfrom.proxy.admin.history import Rates, newer, queue_records, setting_records
from tests.proxy.admin.conftest import figures
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


def test_a_queue_has_its_row_and_rates_null_for_what_is_not_known_or_the_reason_why_it_fails():
    (record,) = queue_records([figures()], [], lambda _: Rates(1.0, 2.0, 3.0, 0.0), 0)
    assert (record["depth"], record["scheduled"], record["is_paused"]) == (3, 1, 0)
    assert [record[name] for name in Rates._fields] == [1.0, 2.0, 3.0, 0.0]
    (shard,) = figures().shards
    queue = replace(figures(), streams=0, shards=(replace(shard, streams=0),))
    (record,) = queue_records([queue], [], lambda _: None, 0)
    assert record["scheduled"] is record["in_per_s"] is record["delivered_per_s"] is None
    error = TableLoadError("broken", "no id")
    first, second = queue_records([figures()], [("ks", error)], lambda _: None, 0)
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
