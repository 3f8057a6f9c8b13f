"""Archived messages come back: all that are published, once, and nothing else."""

import dataclasses

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.archive import ArchiveConfig, run as archive
from streamfrom.spark.jobs.manifest import Manifest
from streamfrom.spark.jobs.replay import ReplayConfig, last_of_each, run
from tests.fixtures.streams import message_table, rows as rows_of, run as execute
from tests.spark.killed import servers_on_mysql_with_kills


S = 10**9
LOW = 1_700_000_000 * S
FUTURE = 4_000_000_000 * S


def test_windows_are_chosen_that_have_part_of_the_asked_time():
    published = [Manifest(low, low + 10, 1, 0) for low in (0, 10, 20)]

    def lows(low, high):
        return [one.low_ns for one in published if one.has_part_of(low, high)]

    assert lows(None, None) == [0, 10, 20]
    assert lows(9, 11) == [0, 10]
    assert lows(10, 20) == [10]
    assert lows(30, None) == []


@pytest.mark.spark
def test_the_last_acknowledged_of_an_id_counts(spark):
    frame = spark.createDataFrame(
        [(1, 5, "a"), (1, 7, "b"), (2, 1, "c")], "id int, time_acked int, x string"
    )
    assert sorted(row.x for row in last_of_each(frame).collect()) == ["b", "c"]


@pytest.mark.spark
@pytest.mark.db
@pytest.mark.slow
@servers_on_mysql_with_kills
def test_what_was_archived_comes_back_as_new_messages(sharded_proxy, spark, tmp_path):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    columns = (
        "tenant_id BIGINT, message JSON, body VARBINARY(9), made DATETIME(6), ratio FLOAT,"
        " wide DECIMAL(65,30), bits BIT(9), seen TIMESTAMP(3) NULL"
    )
    execute(connection, message_table(purge_after=10**9, columns=columns))
    values = ", ".join(
        f"({n}, {n % 9}, 3, NULL, {LOW + n}, {n % 5}, '{{\"n\": {n}}}', 0x00FF27,"
        f" '2026-01-02 03:04:05.6', {n} / 7, -{n}.5, {n}, '2026-10-25 01:30:00.5')"
        for n in range(60)
    )
    names = "id, priority, epoch, time_next, time_acked, tenant_id, message, body, made, ratio, wide, bits, seen"
    execute(connection, f"INSERT INTO my_message ({names}) VALUES {values}")
    endpoint = Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce")
    kept = "SELECT id, priority, tenant_id, message, body, made, ratio + 0e0, wide, bits, seen FROM my_message ORDER BY id"
    before = rows_of(connection, kept)
    archive(spark, ArchiveConfig(endpoint, "my_message", tmp_path, LOW, LOW + 100))
    assert rows_of(connection, kept) == ()
    # What a killed run left beside it is not published, and is nobody's.
    home = tmp_path / "commerce" / "my_message"
    (home / "_staging" / "5-6").mkdir(parents=True)
    (home / "7-8").mkdir()

    config = ReplayConfig(endpoint, "my_message", tmp_path, start_ns=FUTURE)
    few = dataclasses.replace(config, low_ns=LOW + 10, high_ns=LOW + 20, where="tenant_id = 2")
    assert run(spark, few).counts == {
        "windows": 1, "read": 2, "repeated": 0, "inserted": 2, "already_there": 0,
    }  # fmt: skip
    rest = run(spark, config).counts
    assert (rest["read"], rest["inserted"], rest["already_there"]) == (60, 58, 2)
    assert rows_of(connection, kept) == before
    state = "SELECT DISTINCT epoch, time_next, time_acked FROM my_message"
    assert [tuple(map(str, row)) for row in rows_of(connection, state)] == [
        ("0", str(FUTURE), "None")
    ]

    # Copies under new ids, for each label once.
    copies = dataclasses.replace(config, label="tuesday", high_ns=LOW + 5)
    assert run(spark, copies).counts["inserted"] == 5
    assert run(spark, copies).counts["already_there"] == 5
    assert len(rows_of(connection, kept)) == 65

    for wrong, told in (
        ({"low_ns": LOW + 100}, "nothing is published"),
        ({"where": "nonsense = 1"}, "cannot read the archive so"),
        ({"archived": "absent"}, "nothing is published"),
    ):
        with pytest.raises(RequestError, match=told):
            run(spark, dataclasses.replace(config, **wrong))
    execute(connection, "ALTER TABLE my_message DROP COLUMN made")
    with pytest.raises(RequestError, match="'made' is not in the table"):
        run(spark, config)
    assert (
        run(spark, dataclasses.replace(config, without=("made",))).counts["already_there"] == 60
    )
    next((home / f"{LOW}-{LOW + 100}").glob("*/*.parquet")).unlink()
    with pytest.raises(JobError, match="restore it"):
        run(spark, config)
