"""Who fails in a batch."""

from hypothesis import given, strategies as st

from streamfrom.spark.jobs.consume.isolation import isolated


def told_of(bad):
    tried = []

    def failure_of(places):
        tried.append(places)
        found = bad & set(places)
        return f"fails on {min(found)}" if found else None

    return failure_of, tried


@given(st.integers(0, 200), st.sets(st.integers(0, 199)))
def test_each_row_that_fails_is_found_alone_and_no_other(count, rows):
    bad = {row for row in rows if row < count}
    failure_of, _ = told_of(bad)
    found = isolated(count, failure_of, probes=10**6)
    assert found == {row: f"fails on {row}" for row in bad}


@given(st.integers(0, 200), st.sets(st.integers(0, 199)), st.integers(0, 60))
def test_however_few_tries_all_that_fail_are_kept_out(count, rows, probes):
    bad = {row for row in rows if row < count}
    failure_of, tried = told_of(bad)
    found = isolated(count, failure_of, probes)
    assert len(tried) <= probes
    assert bad <= set(found)
    assert {row for row, reason in found.items() if reason} <= bad


def test_one_bad_row_among_ten_thousand_takes_about_twenty_tries():
    counts = []
    for row in (0, 5000, 6789, 9999):
        failure_of, tried = told_of({row})
        assert list(isolated(10_000, failure_of)) == [row]
        counts.append(len(tried))
    assert max(counts) <= 30
    assert sum(counts) / len(counts) <= 23


def test_a_group_that_failed_by_chance_blames_nobody():
    tried = []

    def failure_of(places):
        tried.append(places)
        return "a connection broke" if len(tried) == 1 else None

    assert not isolated(64, failure_of)
