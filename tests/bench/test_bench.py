"""The harness itself: its audit, its arithmetic, and one tiny drain from end to end."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bench.messages import AuditError, audit
from bench.report import (
    figure,
    number,
    percentile,
    ratio_at_least,
    ratio_at_most,
    table,
    value_at_most,
)
from bench.workloads import ON_REQUEST, WORKLOADS
from tests.cases import cases


ROOT = Path(__file__).parents[2]
IDS = st.lists(st.integers(1, 50))


@cases(received=ast.literal_eval, acked=ast.literal_eval, says=str)
def test_a_message_lost_or_made_up_fails_the_audit(received, acked, says):
    with pytest.raises(AuditError, match=says):
        audit([1, 2], received, acked)


@given(IDS, IDS, IDS)
def test_the_audit_passes_exactly_when_the_three_sets_are_equal(sent, received, acked):
    if set(sent) == set(received) == set(acked):
        assert audit(sent, received, acked) == len(received) - len(set(received))
    else:
        with pytest.raises(AuditError):
            audit(sent, received, acked)


@given(IDS)
def test_messages_that_come_twice_are_counted(ids):
    assert audit(ids, ids * 2, ids) == 2 * len(ids) - len(set(ids))


@pytest.mark.parametrize(
    ("percent", "value"),
    [(0, 10), (50, 20), (51, 30), (75, 30), (76, 40), (99.9, 40), (100, 40)],
)
def test_a_percentile_is_a_value_by_nearest_rank(percent, value):
    assert percentile([10, 20, 30, 40], percent) == value


def test_no_values_have_no_percentile():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.1, 100))
def test_a_percentile_leaves_enough_values_at_or_below(values, percent):
    ordered = sorted(values)
    found = percentile(ordered, percent)
    share = sum(value <= found for value in ordered) / len(ordered) * 100
    assert share >= percent - 1e-9
    assert found in ordered


@pytest.mark.parametrize(
    ("ours", "theirs", "target", "met"),
    [
        ([30, 32], [10, 8], ratio_at_least(3), True),
        ([29], [10], ratio_at_least(3), False),
        ([10], [100], ratio_at_most(0.1), True),
        ([11], [100], ratio_at_most(0.1), False),
        ([19.9], None, value_at_most(20), True),
        ([20.1], None, value_at_most(20), False),
        ([1], [1], None, None),
    ],
)
def test_a_goal_is_judged_by_the_ratio_or_by_the_figure(ours, theirs, target, met):
    assert figure("f", "ms", ours, "it", theirs, target).is_met is met


@pytest.mark.parametrize(
    ("ours", "theirs", "ratios"),
    [([10, 40, 90], [10, 20, 30], [1, 2, 3]), ([10, 20, 30], [5], [4])],
)
def test_a_ratio_is_of_pairs_or_of_medians(ours, theirs, ratios):
    assert figure("f", "ms", ours, "it", theirs).ratios == ratios


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.588, "0.588"), (103.3, "103"), (3, "3"), (12_345, "12.3k"), (1.5e6, "1.50M")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_the_table_says_what_was_promised_and_whether_it_was_kept():
    text = table([figure("f", "ms", [5], "it", [100], ratio_at_most(0.1))])
    assert " ".join(text.splitlines()[-1].split()) == "f 5 ms 100 ms it 1/20 ≤ 1/10 yes"


def test_the_table_fits_a_hundred_columns_and_loses_no_word():
    name = "a transaction in the way of a drop, longest INSERT beside it, MariaDB"
    against = "SKIP LOCKED loop, same batch, 1 x 16 workers"
    long = figure(name, "ms", [53.8], against, [435.0], ratio_at_most(0.1))
    text = table([long, figure("f", "ms", [5], "it", [100])])
    assert max(map(len, text.splitlines())) <= 100
    words = text.split()
    for cell in long.cells():
        assert all(word in words for word in cell.split())


def test_spark_runs_when_it_is_named_alone():
    assert "spark" in ON_REQUEST
    assert "spark" not in WORKLOADS


def test_an_unknown_workload_is_named():
    done = bench("nonsense")
    assert done.returncode == 2
    assert "no workload nonsense" in done.stderr
    assert all(name in done.stderr for name in WORKLOADS)


@pytest.mark.db
@pytest.mark.slow
def test_a_quick_drain_ends_with_its_ratio():
    from streamfrom.proxy.embedded.servers import find_server

    if find_server() is None:
        pytest.skip("no server on this machine")
    done = bench("drain_single", "--quick")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^drain, an ack", done.stdout, re.MULTILINE)


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
