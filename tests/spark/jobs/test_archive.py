"""The archive: whatever kills it, job or proxy, and however often it is run, each message is in one place."""

import dataclasses
import json
import time

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs import archive
from streamfrom.spark.jobs.archive import ArchiveConfig
from tests.fixtures.streams import message_table, rows as rows_of, run as execute
from tests.spark.killed import Acting, on_both, run_killed


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

LOW = 1_700_000_000 * 10**9
HIGH = LOW + 1000
ROWS = 400
EVERYTHING = set(range(1, ROWS + 1))
STAYING = {1001, 1002, 1003}
COLUMNS = "body VARBINARY(40), amount DECIMAL(10,2), at DATETIME, `a.b``c` INT"


@pytest.fixture
def filled(proxy):
    connection = proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table(purge_after=10**9, columns=COLUMNS))
    values = ", ".join(
        f"({n}, {LOW + n}, {'NULL' if n % 3 else '0x00FF27'}, {n}.25, NOW())"
        for n in range(1, ROWS + 1)
    )
    execute(
        connection, f"INSERT INTO my_message (id, time_acked, body, amount, at) VALUES {values}"
    )
    execute(connection, "INSERT INTO my_message (id) VALUES (1001), (1002)")
    execute(connection, f"INSERT INTO my_message (id, time_acked) VALUES (1003, {HIGH})")
    return proxy


def config_of(proxy, folder):
    endpoint = Endpoint("127.0.0.1", proxy.port, "root", "commerce")
    return ArchiveConfig(endpoint, "my_message", folder / "out ü", LOW, HIGH)


def archived(config):
    home = config.out / "commerce" / "my_message"
    return [
        i
        for manifest in home.glob("*/_manifest.json")
        for path in manifest.parent.glob("*/*.parquet")
        for i in ds.dataset(str(path)).to_table(columns=["id"])["id"].to_pylist()
    ]


def in_table(proxy):
    connection = proxy.connect(database="commerce")
    return {int(row[0]) for row in rows_of(connection, "SELECT id FROM my_message")}


def test_what_is_archived_is_as_it_was_and_what_comes_late_stays(
    filled, spark, tmp_path, monkeypatch
):
    config = config_of(filled, tmp_path)
    rename = type(config.out).rename

    def killed_before_the_last(path, target):
        if path.suffix != ".draft":
            raise KeyboardInterrupt
        return rename(path, target)

    # Rows and their manifest, but not under their final name.
    with monkeypatch.context() as patch:
        patch.setattr(type(config.out), "rename", killed_before_the_last)
        with pytest.raises(KeyboardInterrupt):
            archive.run(spark, config)
    assert archived(config) == []
    report = archive.run(spark, config)
    counts = {"archived": ROWS, "purged": ROWS, "gone_before": 0, "left": 0}
    assert report.counts == counts
    data = config.out / "commerce" / "my_message" / f"{LOW}-{HIGH}"
    assert report.wrote == (str(data),)
    table = ds.dataset(str(data), partitioning="hive").to_table(filter=ds.field("id") == 3)
    assert table["body"].to_pylist() == [b"\x00\xff\x27"]
    assert str(table["amount"].to_pylist()[0]) == "3.25"

    connection = filled.connect(database="commerce", autocommit=True)
    # What was acknowledged late is neither purged nor forgotten.
    execute(connection, f"UPDATE my_message SET time_acked = {LOW + 5} WHERE id = 1001")
    again = archive.run(spark, config)
    assert again.counts == {"archived": ROWS, "purged": 0, "gone_before": ROWS, "left": 1}
    assert 1001 in in_table(filled)

    with pytest.raises(JobError, match="--from must lie before --to"):
        archive.run(spark, dataclasses.replace(config, low_ns=HIGH))
    with pytest.raises(JobError, match="part of this window already"):
        archive.run(spark, dataclasses.replace(config, low_ns=LOW + 5))
    with pytest.raises(JobError, match="a minute back by every clock"):
        archive.run(spark, dataclasses.replace(config, high_ns=time.time_ns()))
    with pytest.raises(JobError, match="cannot read"):
        archive.run(spark, dataclasses.replace(config, table="absent"))
    next(data.glob("*/*.parquet")).unlink()
    with pytest.raises(JobError, match="lacks rows of its manifest"):
        archive.run(spark, config)
    assert json.loads(report.json())["job"] == "archive"


def killed_and_run_again(filled, spark, tmp_path, steps):
    config = config_of(filled, tmp_path)
    home = config.out / "commerce" / "my_message"
    points = {
        "stage": home / "_staging" / "*" / "_temporary" / "**" / "*.parquet",
        "verify": "verify",
        "publish": home / f"{LOW}-{HIGH}",
        "purge": "purge.rows",
    }
    for step in steps:
        run_killed("archive", config, points[step], tmp_path)
        assert set(archived(config)) | in_table(filled) == EVERYTHING | STAYING, step
        if step in {"stage", "verify"}:
            assert not archived(config)
    gone = len(EVERYTHING | STAYING) - len(in_table(filled))
    assert 0 < gone < ROWS
    report = archive.run(spark, config)
    assert report.counts == {
        "archived": ROWS, "purged": ROWS - gone, "gone_before": gone, "left": 0,
    }  # fmt: skip
    assert sorted(archived(config)) == sorted(EVERYTHING)
    assert in_table(filled) == STAYING


def test_killed_while_it_purges_it_ends_with_equal_sets(filled, spark, tmp_path):
    killed_and_run_again(filled, spark, tmp_path, ["purge"])


@on_both
@pytest.mark.kills
def test_killed_at_each_step_it_ends_with_equal_sets(filled, spark, tmp_path):
    killed_and_run_again(filled, spark, tmp_path, ["stage", "verify", "publish", "purge"])


def test_a_proxy_that_dies_is_told_with_a_cure_and_the_next_run_ends_it(
    filled, configuration, start_proxy, spark, tmp_path
):
    proxy = filled
    for fatal in ("stage", "verify"):
        with pytest.raises(JobError, match=r"cannot be reached.*start it") as told:
            archive.run(spark, config_of(proxy, tmp_path), Acting(fatal, proxy.kill))
        assert "\n" not in str(told.value)
        proxy = start_proxy(configuration)
        assert in_table(proxy) == EVERYTHING | STAYING
    config = config_of(proxy, tmp_path)
    assert archive.run(spark, config).counts["purged"] == ROWS
    assert sorted(archived(config)) == sorted(EVERYTHING)

    # Rows of the right number that are not those that were published.
    path = next((config.out / "commerce" / "my_message").glob("*/*/*.parquet"))
    rows = ds.dataset(str(path)).to_table()
    place = rows.schema.get_field_index("priority")
    forged = rows.set_column(place, "priority", [[1] * len(rows)])
    pq.write_table(forged, path.with_name("forged.parquet"))
    path.unlink()
    with pytest.raises(JobError, match="lacks rows of its manifest"):
        archive.run(spark, config)
