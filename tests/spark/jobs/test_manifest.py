"""Publication: a window is there, whole and with its manifest, or not at all."""

import pytest

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.manifest import (
    Manifest,
    archive_locked,
    manifests,
    publish,
    published,
    staged_at,
)


def test_a_window_is_published_with_its_manifest(tmp_path):
    window = Manifest(5, 10)
    staged_at(tmp_path, window).mkdir(parents=True)
    assert published(tmp_path, window) is None
    publish(tmp_path, Manifest(5, 10, 7, 3))
    assert published(tmp_path, window) == Manifest(5, 10, 7, 3)
    with pytest.raises(JobError, match="has part of this window"):
        published(tmp_path, Manifest(9, 12))
    (tmp_path / "5-10" / "_manifest.json").write_text("{")
    with pytest.raises(JobError, match="damaged"):
        published(tmp_path, window)
    (tmp_path / "5-10" / "_manifest.json").unlink()
    with pytest.raises(JobError, match=r"5-10 lacks its _manifest\.json: restore it"):
        published(tmp_path, window)


def test_an_archive_of_an_earlier_version_is_refused_with_what_to_move(tmp_path):
    (tmp_path / "_manifests").mkdir()
    with pytest.raises(
        JobError, match=r"move each _manifests/LOW-HIGH\.json to LOW-HIGH/_manifest\.json"
    ):
        manifests(tmp_path)


def test_two_runs_do_not_archive_at_once(tmp_path):
    with (
        archive_locked(tmp_path),
        pytest.raises(JobError, match="another run"),
        archive_locked(tmp_path),
    ):
        pass
