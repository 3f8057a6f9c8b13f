"""Publication: a window is there when its manifest is."""

import pytest

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.manifest import ArchiveWindow, Manifest


def test_a_window_is_published_once_its_manifest_is_there(tmp_path):
    window = ArchiveWindow(tmp_path, 5, 10)
    window.staging.mkdir(parents=True)
    assert window.published() is None
    window.publish(Manifest(5, 10, 0, 0))
    assert window.published() == Manifest(5, 10, 0, 0)
    with pytest.raises(JobError, match="has part of this window"):
        ArchiveWindow(tmp_path, 9, 12).published()
    window.manifest.write_text("{")
    with pytest.raises(JobError, match="damaged"):
        window.published()


def test_two_runs_do_not_archive_at_once(tmp_path):
    window = ArchiveWindow(tmp_path, 5, 10)
    with window.locked(), pytest.raises(JobError, match="another run"), window.locked():
        pass
