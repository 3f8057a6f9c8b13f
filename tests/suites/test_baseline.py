"""The comparison of a run with its base line, and the reading of what suites print."""

import pytest

from tests.suites.baseline import UNEXPLAINED, Baseline, compare, measured
from tests.suites.client_test import names
from tests.suites.go_driver import outcomes_of as go_outcomes
from tests.suites.python_tests import outcomes_of as pytest_outcomes
from tests.suites.suite import Outcome


PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
DIRECT = {"a": PASSED, "b": PASSED, "c": FAILED, "d": SKIPPED}
BASELINE = Baseline(
    "1", "11.8", 4, measured("1", "11.8", DIRECT).not_passed, {"by intent": ("b",)}
)


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        ({"a": FAILED}, ("a",)),
        ({"a": SKIPPED}, ("a",)),
        ({"c": PASSED, "d": FAILED}, ()),
        ({"c": FAILED, "c/part": FAILED}, ()),
        ({"b": FAILED}, ()),
    ],
)
def test_what_passes_direct_has_to_pass_through_or_to_be_explained(changes, new):
    found = compare(BASELINE, DIRECT | changes)
    assert (found.new, found.holds) == (new, not new)


def test_a_known_difference_is_told_with_its_cause():
    found = compare(BASELINE, DIRECT | {"b": FAILED})
    assert (found.new, found.known, found.mended) == ((), {"by intent": ("b",)}, ())
    assert compare(BASELINE, DIRECT).mended == ("b",)


def test_what_nobody_explained_is_new_again():
    unexplained = Baseline("1.0", "11.8", 4, BASELINE.not_passed, {UNEXPLAINED: ("b",)})
    assert compare(unexplained, DIRECT | {"b": FAILED}).new == ("b",)


def test_a_run_that_breaks_off_does_not_hold():
    found = compare(BASELINE, {"a": PASSED})
    assert found.missing == 3
    assert not found.holds


def test_a_base_line_survives_its_file(tmp_path):
    BASELINE.store(tmp_path / "x.json")
    assert Baseline.load(tmp_path / "x.json") == BASELINE


def test_the_suites_own_words_are_read():
    assert names("All possible test names:\n\ntest_a\nclient_query\n") == [
        "test_a",
        "client_query",
    ]
    events = '{"Action":"run","Test":"A"}\n# building\n{"Action":"fail","Test":"A"}\n{"Action":"fail"}'
    assert go_outcomes(events) == {"A": FAILED}
    report = """<testsuites><testsuite>
        <testcase classname="m.C" name="a"/>
        <testcase classname="m.C" name="a"><error/></testcase>
        <testcase classname="m.C" name="b"><skipped/></testcase>
    </testsuite></testsuites>"""
    assert pytest_outcomes(report) == {"m.C.a": FAILED, "m.C.b": SKIPPED}
