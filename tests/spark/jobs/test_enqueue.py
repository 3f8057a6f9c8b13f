"""Bulk feeding end to end: files and DataFrames into two shards, and once more."""

import dataclasses
import json

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.enqueue import EnqueueConfig, run
from tests.fixtures.streams import message_table, rows as rows_of, run as execute


S = 10**9
START = 4_000_000_000 * S


@pytest.mark.spark
@pytest.mark.db
@pytest.mark.slow
def test_each_message_is_there_once_however_often_it_is_fed(sharded_proxy, spark, tmp_path):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    execute(
        connection, message_table(columns="tenant_id BIGINT, message JSON, amount DECIMAL(6,2)")
    )
    endpoint = Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce")

    def stored():
        return rows_of(
            connection,
            "SELECT id, time_next, tenant_id, message, amount FROM my_message ORDER BY time_next",
        )

    # JSON lines, two of them the same, ids made of the lines, about two a second.
    lines = tmp_path / "in.jsonl"
    told = [
        {"tenant_id": n, "message": {"n": n, "é": None}, "amount": n / 4} for n in range(99)
    ]
    lines.write_text("\n".join(map(json.dumps, [*told, told[5]])))
    config = EnqueueConfig(endpoint, "my_message", [str(lines)], start_ns=START, rate_per_s=2)
    assert run(spark, config).counts == {
        "read": 100, "repeated": 1, "inserted": 99, "already_there": 0,
    }  # fmt: skip
    first = stored()
    assert all(START <= int(row[1]) < START + 50 * S for row in first)
    assert len({row[1] for row in first}) == 99
    assert {(int(row[2]), float(row[4])) for row in first} == {(n, n / 4) for n in range(99)}
    assert json.loads(first[0][3])["n"] == int(first[0][2])
    again = run(spark, dataclasses.replace(config, start_ns=START + 5 * S))
    assert (again.counts["inserted"], again.counts["already_there"]) == (0, 99)
    assert stored() == first

    # A DataFrame with its own ids: those of before stay as they are.
    known = int(first[0][0])
    frame = spark.createDataFrame([(known, 7), (12, 8)], "key bigint, tenant_id bigint")
    more = EnqueueConfig(endpoint, "my_message", frame, id_column="key", start_ns=START)
    counts = run(spark, more).counts
    assert (counts["inserted"], counts["already_there"]) == (1, 1)
    assert len(stored()) == 100

    # Nothing of what does not fit is written, nor anything beside it.
    csv = tmp_path / "bad.csv"
    csv.write_text('id,amount,message\n900,1.00,"{""a"": ""1,5""}"\n901,1.005,{oops\n')

    def frame_of(name, *values):
        return spark.createDataFrame([(1, value) for value in values], f"id int, {name} int")

    for source, told_then in (
        ([str(csv)], r"'amount' do not fit decimal\(6,2\), such as '1.005'; .*'message'"),
        ([str(tmp_path / "absent.csv")], "cannot read the input"),
        (frame_of("tenant_id", 1, 2), "same id, such as 1"),
        (frame_of("nonsense", 1), "'nonsense' is not in the table"),
        (frame_of("time_next", 1), "has time_next"),
    ):
        with pytest.raises(RequestError, match=told_then):
            run(spark, dataclasses.replace(config, source=source))
    assert len(stored()) == 100
