"""Analytics end to end: two shards through the proxy, results that one can count by hand."""

import dataclasses
import time

import pyarrow.dataset as ds
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.analytics import AnalyticsConfig, run
from tests.fixtures.streams import message_table, run as execute
from tests.spark.killed import servers_on_mysql_with_kills


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

S = 10**9
ACKED = 200


@servers_on_mysql_with_kills
def test_what_is_in_the_table_is_in_the_report(sharded_proxy, spark, tmp_path):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    columns = "tenant_id VARCHAR(40), made BIGINT"
    execute(connection, message_table(purge_after=10**9, columns=columns))
    now = time.time_ns()
    # Each took two seconds, and every tenth was sent three times.
    rows = [
        f"({n}, {3 if n % 10 == 0 else 1}, NULL, {now - 600 * S + n * S}, '<script>{n % 2}',"
        f" {now - 602 * S + n * S})"
        for n in range(1, ACKED + 1)
    ]
    rows.append(f"(901, 1, NULL, {now - 100 * S}, 'skewed', {now - 50 * S})")
    rows.append(f"(902, 0, NULL, {now + 3600 * S}, 'future', {now})")
    # None of these is due, so that nothing takes them meanwhile.
    rows += [
        f"({n}, {n - 950}, {now + 3600 * S}, NULL, NULL, {now - 5 * S})"
        for n in range(950, 960)
    ]
    names = "id, epoch, time_next, time_acked, tenant_id, made"
    execute(connection, f"INSERT INTO my_message ({names}) VALUES {', '.join(rows)}")
    endpoint = Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce")
    config = AnalyticsConfig(endpoint, "my_message", tmp_path, created="made")

    report = run(spark, config)
    assert report.counts == {
        "acked": ACKED + 1, "sent_once": ACKED + 1 - ACKED // 10, "retried": ACKED // 10, "never_sent": 0,
        "skewed": 1, "waiting": 10, "waiting_ready": 0, "waiting_ready_again": 0, "waiting_scheduled": 1,
        "waiting_in_flight": 9, "waiting_blocked": 0, "waiting_parked": 0, "poison": 5,
    }  # fmt: skip
    home = tmp_path / "commerce" / "my_message" / "analytics"
    tenants = {
        row["tenant"]: row for row in ds.dataset(str(home / "by_tenant")).to_table().to_pylist()
    }
    assert tenants["<script>1"]["acked"] == ACKED // 2
    assert tenants["<script>0"]["retried"] == ACKED // 10
    assert tenants["<script>0"]["to_ack_p99_ms"] == 2000.0
    shards = ds.dataset(str(home / "by_shard")).to_table().to_pylist()
    assert sum(row["acked"] for row in shards) == ACKED + 1
    assert {row["shard"] for row in shards} == {"-80", "80-"}
    html = (home / "report.html").read_text()
    assert report.wrote == (str(home / "report.html"),)
    assert "<script" not in html
    assert "&lt;script&gt;1" in html
    assert "1 message was acknowledged before" in html

    with pytest.raises(RequestError, match="has no column 'absent'"):
        run(spark, dataclasses.replace(config, created="absent"))
