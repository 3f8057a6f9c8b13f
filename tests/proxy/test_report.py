"""The lines of a report, and its document."""

import json

from streamfrom.proxy.report import CheckReport, Finding, Level


def test_nothing_wrong_is_said_in_words_and_names_of_others_make_no_line():
    report = CheckReport()
    report.ok("a", "well")
    assert report.summary == "summary  1 ok, no problems found"
    assert (report.has_errors, report.count(Level.OK)) == (False, 1)
    line = Finding(Level.ERROR, "alpha/0.q\nok       alpha/0", "all\x1b[2J is well").line
    assert line == r"error    alpha/0.q\nok       alpha/0: all\x1b[2J is well"


def test_the_document_has_every_finding_and_counts():
    report = CheckReport()
    report.end()  # nobody to write to
    report.error("kö", 'a "quote"', "run: x")
    assert report.has_errors
    assert json.loads(report.json()) == {
        "findings": [{"level": "error", "place": "kö", "text": 'a "quote"', "fix": "run: x"}],
        "summary": {"ok": 0, "info": 0, "warning": 0, "error": 1},
    }
