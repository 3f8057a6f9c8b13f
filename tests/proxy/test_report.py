"""The lines of a report, and its document."""

import json

from streamfrom.proxy.report import CheckReport


def test_the_document_has_every_finding_and_counts():
    report = CheckReport()
    report.end()  # nobody to write to
    report.error("kö", 'a "quote"', "run: x")
    assert report.has_errors
    assert json.loads(report.json()) == {
        "findings": [{"level": "error", "place": "kö", "text": 'a "quote"', "fix": "run: x"}],
        "summary": {"ok": 0, "info": 0, "warning": 0, "error": 1},
    }
