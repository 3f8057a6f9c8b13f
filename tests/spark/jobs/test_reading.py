"""How a window is cut."""

from streamfrom.spark.jobs.reading import slices


def test_slices_touch_and_do_not_overlap():
    assert slices(0, 10, 4) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert slices(0, 2, 4) == [(0, 1), (1, 2)]
