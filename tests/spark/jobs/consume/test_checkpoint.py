"""What a consumer keeps, and whose it is."""

import pytest

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.consume.checkpoint import BatchOutcome, Checkpoint


def test_a_checkpoint_keeps_its_name_and_is_refused_for_another_table_or_sink(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    name = checkpoint.name_for("ks.t", "--out /a")
    (checkpoint.of_spark / "offsets").mkdir(parents=True)
    (checkpoint.of_spark / "offsets" / "0").touch()
    checkpoint.keep(0, BatchOutcome(1, 1))
    assert checkpoint.name_for("ks.t", "--out /a") == name
    for other in (("ks.other", "--out /a"), ("ks.t", "--out /b")):
        with pytest.raises(RequestError, match=r"a consumer of ks.t into --out /a.*of its own"):
            checkpoint.name_for(*other)


def test_without_sparks_part_batches_begin_anew_and_are_not_taken_for_those_of_before(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    name = checkpoint.name_for("ks.t", "--out /a")
    (checkpoint.of_spark / "offsets").mkdir(parents=True)
    checkpoint.keep(0, BatchOutcome(1, 1))
    again = checkpoint.name_for("ks.t", "--out /a")
    assert again != name
    assert checkpoint.outcome(0) is None


def test_the_checkpoint_of_a_query_that_is_no_consumer_is_refused(tmp_path):
    (tmp_path / "offsets").mkdir()
    with pytest.raises(RequestError, match=r"another query.*--checkpoint of its own"):
        Checkpoint(tmp_path).name_for("ks.t", "--out /a")


def test_a_damaged_one_is_told(tmp_path):
    (tmp_path / "streamfrom.json").write_text('{"table": ')
    with pytest.raises(RequestError, match="damaged"):
        Checkpoint(tmp_path).name_for("ks.t", "--out /a")


def test_two_consumers_do_not_work_with_one(tmp_path):
    first, second = Checkpoint(tmp_path / "new"), Checkpoint(tmp_path / "new")
    with first.locked(), pytest.raises(RequestError, match="another consumer"), second.locked():
        pass
    with second.locked():
        pass


def test_how_a_batch_ended_is_known_of_the_last_one(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    outcome = BatchOutcome(9, 6, (("-80", 2, "poison", [5, 6]), ("80-", 1, None, ["é"])))
    assert checkpoint.outcome(3) is None
    checkpoint.keep(3, outcome)
    assert checkpoint.outcome(3) == outcome
    checkpoint.keep(4, BatchOutcome(1, 1))
    assert checkpoint.outcome(3) is None
    (checkpoint.home / "outcome.json").write_text('{"batch": 5, "outcome": "{}"}')
    with pytest.raises(JobError, match="of an earlier version: remove it"):
        checkpoint.outcome(5)
