"""What the page is given to show."""

import json
from dataclasses import replace

from streamfrom.engine.errors import TableLoadError
from streamfrom.proxy.admin.history import Rates
from streamfrom.proxy.admin.overview import limits, queue_records, records
from tests.proxy.admin.conftest import figures
from tests.proxy.rigs import SERVER


def test_rows_become_records_by_column():
    (record,) = records("members", [(None, "1.0", 2.0, 3, 4, 5, 0)])
    assert (record["member"], record["uptime_s"], record["is_stopping"]) == (None, 2.0, 0)


def test_a_queue_has_its_row_and_its_rates():
    (record,) = queue_records([figures()], [], lambda _: Rates(1.0, 2.0, 3.0, 0.0), 0)
    assert record["depth"] == 3
    assert record["waiting"] == 4
    assert not record["paused"]
    rates = [record[name] for name in Rates._fields]
    assert rates == [1.0, 2.0, 3.0, 0.0]


def test_what_is_not_known_is_null():
    queue = replace(figures(), streams=0)
    (record,) = queue_records([queue], [], lambda _: None, 0)
    assert record["waiting"] is record["in_per_s"] is record["sent_per_s"] is None


def test_a_table_that_cannot_be_used_has_its_reason():
    error = TableLoadError("broken", "no id")
    first, second = queue_records([figures()], [("ks", error)], lambda _: None, 0)
    assert (first["queue"], first["error"], first["paused"]) == ("broken", "no id", False)
    assert second["error"] is None


def test_hostile_names_are_json_strings():
    name = '</script><img src=x onerror="x()">\u2028'
    made = queue_records([figures(name)], [], lambda _: None, 0)
    assert json.loads(json.dumps(made))[0]["queue"] == name


def test_limits_are_those_in_force():
    found = limits(replace(SERVER, max_connections=7))
    assert found["max_connections"] == 7
    assert found["connection_memory"] == SERVER.connection_memory_bytes
