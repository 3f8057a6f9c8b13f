"""An archive whose process is killed, or whose proxy dies, and that is run again."""

import pyarrow.dataset as ds
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs import archive
from streamfrom.spark.jobs.archive import ArchiveConfig
from streamfrom.spark.jobs.progress import Progress
from tests.fixtures.database_servers import fresh_database
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema
from tests.fixtures.streams import message_table, run as execute
from tests.spark.jobs.test_archive import HIGH, LOW, ROWS, archived, ids_of
from tests.spark.killed import on_both, run_killed


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

EVERYTHING = set(range(1, ROWS + 1))
STAYING = {1001}


@pytest.fixture
def configuration(server_pool, job_family, tmp_path):
    servers = [server_pool.server(job_family, index) for index in range(2)]
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    for database in fresh_database(*servers):
        yield keyspace_toml("commerce", servers, database, vschema)


@pytest.fixture
def filled(configuration, start_proxy):
    proxy = start_proxy(configuration)
    connection = proxy.connect(database="commerce", autocommit=True)
    execute(
        connection, message_table(purge_after=10**9, columns="body VARBINARY(40), at DATETIME")
    )
    values = ", ".join(f"({n}, {LOW + n}, 0x00FF27, NOW())" for n in range(1, ROWS + 1))
    execute(connection, f"INSERT INTO my_message (id, time_acked, body, at) VALUES {values}")
    execute(connection, "INSERT INTO my_message (id) VALUES (1001)")
    return proxy


def config_of(proxy, folder):
    endpoint = Endpoint("127.0.0.1", proxy.port, "root", "commerce")
    return ArchiveConfig(endpoint, "my_message", folder / "out", LOW, HIGH)


def in_table(proxy):
    return ids_of(proxy.connect(database="commerce"))


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
        dying = proxy

        class Fatal(Progress):
            def enter(self, step, fatal=fatal, dying=dying):
                super().enter(step)
                if step == fatal:
                    dying.kill()

        with pytest.raises(JobError, match=r"cannot be reached.*run it again") as told:
            archive.run(spark, config_of(proxy, tmp_path), Fatal())
        assert "\n" not in str(told.value)
        proxy = start_proxy(configuration)
        assert in_table(proxy) == EVERYTHING | STAYING
    config = config_of(proxy, tmp_path)
    assert archive.run(spark, config).counts["purged"] == ROWS
    assert sorted(archived(config)) == sorted(EVERYTHING)

    # Rows of the right number that are not those that were published.
    path = next((config.out / "commerce" / "my_message").glob("*/*/*.parquet"))
    rows = ds.dataset(str(path)).to_table()
    forged = rows.set_column(
        rows.schema.get_field_index("priority"), "priority", [[1] * len(rows)]
    )
    ds.write_dataset(
        forged,
        str(path.parent),
        format="parquet",
        basename_template="x{i}.parquet",
        existing_data_behavior="overwrite_or_ignore",
    )
    path.unlink()
    with pytest.raises(JobError, match="lacks rows of its manifest"):
        archive.run(spark, config)
