"""The consumer on real shards, beside others: what was sent is in a sink, the queue's again, or acknowledged by somebody else."""

import dataclasses
import threading

import pyarrow.dataset as ds
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs import consume
from streamfrom.spark.jobs.consume import ConsumeConfig, run
from streamfrom.spark.source import register
from tests.fixtures.streams import (
    WAIT_S,
    eventually,
    message_table,
    rows as rows_of,
    run as execute,
)
from tests.spark.jobs.consume.functions import FUNCTIONS
from tests.spark.killed import Acting, on_both, on_mysql_with_kills, run_killed


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

STEPS = ("read", "work", "isolate", "publish", "acknowledge", "commit")
SENT = {*range(1, 9)}
POISON = {50}
DAY_S = 86400
COLUMNS = "word VARCHAR(20), last_error VARCHAR(50)"


def config_of(proxy, folder, **more):
    settings = {
        "function": f"{FUNCTIONS}:kept", "checkpoint": folder / "checkpoint",
        "retry_s": DAY_S, "available_now": True,
    }  # fmt: skip
    settings["out"] = None if "into_table" in more else folder / "out"
    endpoint = Endpoint("127.0.0.1", proxy.port, "root", "commerce")
    return ConsumeConfig(endpoint, "my_message", **(settings | more))


def feed(connection, ids, word="w"):
    values = ", ".join(f"({ident}, '{word}')" for ident in ids)
    execute(connection, f"INSERT INTO my_message (id, word) VALUES {values}")


def found(folder, column="id"):
    paths = [str(path) for path in folder.glob("streamfrom_batch=*/*.parquet")]
    return ds.dataset(paths).to_table()[column].to_pylist() if paths else []


def waiting(connection):
    told = rows_of(connection, "SELECT id FROM my_message WHERE time_acked IS NULL")
    return {ident for (ident,) in told}


def failed(connection):
    """Return what was put back with the reason."""
    told = rows_of(connection, "SELECT id, last_error FROM my_message WHERE time_acked IS NULL")
    return {ident for ident, error in told if error and "this one is poison" in error}


@on_mysql_with_kills
def test_beside_a_stream_and_another_query_every_message_ends_in_one_place(
    proxy, spark, tmp_path, audit
):
    connection = proxy.connect(database="commerce", autocommit=True)
    limited = message_table(columns=COLUMNS, poller_interval=1, more=",vt_max_attempts=1")
    execute(connection, limited)
    execute(connection, message_table("results", columns="word VARCHAR(20)"))
    feed(connection, SENT)
    feed(connection, POISON, "poison")
    endless = {"available_now": False, "rows": 5, "retry_s": 0.1}
    into_folder = config_of(proxy, tmp_path, **endless)
    into_table = config_of(
        proxy, tmp_path, into_table="results", checkpoint=tmp_path / "second", **endless
    )
    reports = []
    threads = [
        threading.Thread(target=lambda config=config: reports.append(run(spark, config)))
        for config in (into_folder, into_table)
    ]
    try:
        for thread in threads:
            thread.start()
        eventually(lambda: waiting(connection) == POISON, seconds=500)
        # With what they had behind them, a consumer of a STREAM joins, and more comes.
        receiver = audit.receive(proxy.port)
        feed(connection, range(101, 120))
        eventually(lambda: waiting(connection) == POISON, seconds=500)
        # What a message that keeps failing comes to is the queue's affair, which here gives it one attempt.
        parked = "SELECT id FROM my_message WHERE time_next = 9000000000000000000"
        eventually(lambda: rows_of(connection, parked) == ((50,),))
    finally:
        for query in spark.streams.active:
            query.stop()
        for thread in threads:
            thread.join()
    receiver.stopping.set()
    receiver.join(WAIT_S)
    inserted = [ident for (ident,) in rows_of(connection, "SELECT id FROM results")]
    ends = [*found(tmp_path / "out"), *inserted, *receiver.acked]
    assert sorted(ends) == sorted({*SENT, *range(101, 120)})
    assert failed(connection) == POISON
    counts = [report.counts for report in reports]
    assert sum(one["done"] for one in counts) == len(ends) - len(receiver.acked)
    assert sum(one["left"] for one in counts) == len(POISON)
    assert all(one["read"] == one["done"] + one["left"] for one in counts)


def killed_and_run_again(proxy, spark, folder, steps):
    """Kill the consumer at each of *steps*, with more messages each time, and let the last one end."""
    connection = proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table(columns=COLUMNS))
    config = config_of(proxy, folder, lease_s=DAY_S)
    sent, poison = set[int](), set[int]()
    for turn, step in enumerate(steps):
        more, bad = ({100 * turn + ident for ident in ids} for ids in (SENT, POISON))
        feed(connection, more)
        feed(connection, bad, "poison")
        sent, poison = sent | more, poison | bad
        run_killed("consume", config, step, folder)
        assert set(found(config.out)) | waiting(connection) == sent | poison, step
    counts = consume.run(spark, config).counts
    assert sorted(found(config.out)) == sorted(sent)
    assert waiting(connection) == failed(connection) == poison
    assert counts["read"] == counts["done"] + counts["left"] > 0


def test_killed_before_it_acknowledges_it_ends_with_equal_sets(proxy, spark, tmp_path):
    killed_and_run_again(proxy, spark, tmp_path, ["acknowledge"])


@on_both
@pytest.mark.kills
def test_killed_at_each_step_it_ends_with_equal_sets(proxy, spark, tmp_path):
    killed_and_run_again(proxy, spark, tmp_path, STEPS)


def test_a_proxy_that_dies_in_a_batch_is_told_and_the_next_run_goes_on(
    proxy, configuration, start_proxy, spark, tmp_path
):
    connection = proxy.connect(database="commerce", autocommit=True)
    # The original's first layout, which has no priority.
    execute(
        connection,
        "CREATE TABLE my_message (time_scheduled BIGINT, id BIGINT NOT NULL PRIMARY KEY, time_next BIGINT,"
        " epoch BIGINT, time_created BIGINT, time_acked BIGINT, word VARCHAR(20), INDEX (time_next),"
        " INDEX (time_acked)) COMMENT 'vitess_message,vt_ack_wait=30,vt_purge_after=86400,"
        "vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30'",
    )
    feed(connection, SENT)
    feed(connection, POISON, "poison")
    config = config_of(proxy, tmp_path)
    with pytest.raises(JobError, match=r"(run it again|start it)") as told:
        run(spark, config, Acting("publish", proxy.kill))
    assert "\n" not in str(told.value)
    assert sorted(found(config.out)) == sorted(SENT)

    proxy = start_proxy(configuration)
    connection = proxy.connect(database="commerce", autocommit=True)
    assert waiting(connection) == SENT | POISON
    config = config_of(proxy, tmp_path)
    report = run(spark, config)
    assert report.counts == {"read": 9, "done": 8, "left": 1, "rows_out": 8}
    assert waiting(connection) == POISON
    assert sorted(found(config.out)) == sorted(SENT)

    # What is not as it must be is said before anything is taken.
    feed(connection, [77])
    execute(connection, "CREATE TABLE ordinary (id BIGINT PRIMARY KEY)")
    new = tmp_path / "new"
    for change, said in (
        ({"table": "absent"}, "check the table's name"),
        ({"table": "ordinary"}, "no message table"),
        ({"shards": ("-40",)}, "no shard '-40'; it has -80, 80-"),
        ({"out": tmp_path / "elsewhere"}, "--checkpoint of its own"),
        ({"checkpoint": new, "out": None, "into_table": "ordinary"}, "no message table"),
        ({"function": f"{FUNCTIONS}:nothing"}, "a DataFrame is wanted"),
    ):
        with pytest.raises(RequestError, match=said):
            run(spark, dataclasses.replace(config, **change))
    assert waiting(connection) == {77} | POISON
    assert not new.exists()


def test_a_stream_written_into_another_table_is_there_once_however_often_it_runs(
    proxy, spark, tmp_path
):
    register(spark)
    connection = proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table(columns="word VARCHAR(20)"))
    execute(connection, message_table("results", columns="word VARCHAR(20)"))
    source = spark.readStream.format("streamfrom").option(
        "proxy", f"mysql://root@127.0.0.1:{proxy.port}/commerce"
    )
    for first in (1, 11):
        feed(connection, range(first, first + 10))
        messages = source.option("table", "my_message").load().select("id", "word")
        writing = messages.writeStream.format("streamfrom").option("table", "results")
        writing = writing.option("proxy", f"mysql://root@127.0.0.1:{proxy.port}/commerce")
        writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writing.trigger(availableNow=True).start().awaitTermination(300)
    found_ids = rows_of(connection, "SELECT id FROM results ORDER BY id")
    assert [ident for (ident,) in found_ids] == [*range(1, 21)]
    assert not waiting(connection)
