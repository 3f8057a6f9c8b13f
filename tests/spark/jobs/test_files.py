"""Files that are there whole or not at all."""

import pytest

from streamfrom.spark.jobs.files import spark_path, written_whole


def test_a_path_is_what_the_user_wrote(tmp_path):
    """Spark would make a folder called `my%20archive`."""
    assert spark_path(tmp_path / "my archive ü") == f"file:{tmp_path}/my archive ü"


def test_a_file_is_replaced_whole_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "a.json"
    written_whole(path, "1")
    written_whole(path, "2")
    assert path.read_text() == "2"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    written_whole(path, "1")

    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        written_whole(path, "2")
    assert path.read_text() == "1"
