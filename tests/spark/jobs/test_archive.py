"""The archive: whatever kills it, and however often it is run, each message is in one place."""

import dataclasses
import json
import time

import pyarrow.dataset as ds
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs import archive
from streamfrom.spark.jobs.archive import ArchiveConfig
from streamfrom.spark.jobs.manifest import ArchiveWindow
from streamfrom.spark.jobs.progress import Progress
from tests.fixtures.streams import message_table, rows as rows_of, run as execute


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

STEPS = ("stage", "verify", "publish", "check", "purge")
LOW = 1_700_000_000 * 10**9
HIGH = LOW + 1000
ROWS = 400


class Killed(BaseException):
    pass


@pytest.fixture
def job(sharded_proxy, spark, tmp_path):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    execute(
        connection,
        message_table(
            purge_after=10**9, columns="body VARBINARY(40), amount DECIMAL(10,2), `a.b``c` INT"
        ),
    )
    values = ", ".join(
        f"({n}, {LOW + n}, {'NULL' if n % 3 else '0x00FF27'}, {n}.25)"
        for n in range(1, ROWS + 1)
    )
    execute(
        connection, f"INSERT INTO my_message (id, time_acked, body, amount) VALUES {values}"
    )
    execute(connection, "INSERT INTO my_message (id) VALUES (1001), (1002)")
    execute(connection, f"INSERT INTO my_message (id, time_acked) VALUES (1003, {HIGH})")
    endpoint = Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce")
    return connection, ArchiveConfig(endpoint, "my_message", tmp_path / "out ü", LOW, HIGH)


def archived(config):
    home = config.out / "commerce" / "my_message"
    return [
        i
        for manifest in (home / "_manifests").glob("*.json")
        for path in (home / manifest.stem).glob("*/*.parquet")
        for i in ds.dataset(str(path)).to_table(columns=["id"])["id"].to_pylist()
    ]


def ids_of(connection):
    return {int(row[0]) for row in rows_of(connection, "SELECT id FROM my_message")}


def test_killed_at_each_step_and_run_again_it_ends_with_equal_sets(job, spark):
    connection, config = job
    everything = set(range(1, ROWS + 1))
    staying = {1001, 1002, 1003}

    class Killer(Progress):
        def __init__(self, step):
            super().__init__()
            self.fatal = step

        def enter(self, step):
            super().enter(step)
            if step == self.fatal:
                raise Killed

    real_rename = type(config.out).rename

    def kill_before_manifest(path, target):
        if path.suffix == ".draft":
            raise Killed
        return real_rename(path, target)

    for step in STEPS:
        with pytest.raises(Killed):
            archive.run(spark, config, Killer(step))
        assert set(archived(config)) | ids_of(connection) == everything | staying
        if step == "publish":
            # Rows under their final name, and no manifest yet.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(config.out), "rename", kill_before_manifest)
                with pytest.raises(Killed):
                    archive.run(spark, config)
            assert archived(config) == []
    assert ids_of(connection) == everything | staying

    class KilledInPurge(Progress):
        def rows(self, done, total):
            raise Killed

    with pytest.raises(Killed):
        archive.run(spark, config, KilledInPurge())
    gone = (everything | staying) - ids_of(connection)
    assert gone
    assert gone <= set(archived(config))

    report = archive.run(spark, config)
    assert report.counts == {
        "archived": ROWS,
        "purged": ROWS - len(gone),
        "gone_before": len(gone),
        "left": 0,
    }
    assert sorted(archived(config)) == sorted(everything)
    assert ids_of(connection) == staying
    data = ArchiveWindow(config.out / "commerce" / "my_message", LOW, HIGH).data
    assert report.wrote == (str(data),)
    table = ds.dataset(str(data), partitioning="hive").to_table(filter=ds.field("id") == 3)
    assert table["body"].to_pylist() == [b"\x00\xff\x27"]
    assert str(table["amount"].to_pylist()[0]) == "3.25"

    # What was acknowledged late is neither purged nor forgotten.
    execute(connection, f"UPDATE my_message SET time_acked = {LOW + 5} WHERE id = 1001")
    again = archive.run(spark, config)
    assert again.counts == {"archived": ROWS, "purged": 0, "gone_before": ROWS, "left": 1}
    assert 1001 in ids_of(connection)

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
