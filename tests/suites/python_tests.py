"""A run of pytest, and the report that it leaves."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.suites.suite import HOST, Outcome, Outcomes, Run, SuiteError, run_into


def run_pytest(
    run: Run,
    python: Path,
    *words: str,
    environ: Mapping[str, str] | None = None,
    limit_s: float,
) -> Outcomes:
    """Run pytest in the suite's folder, and return how each test ended.

    Raises:
        SuiteError: it did not get as far as the tests.
        subprocess.TimeoutExpired: it takes longer than *limit_s*.
    """
    report = run.log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    run.log.write_bytes(b"")
    command = [str(python), "-m", "pytest", "--quiet", f"--junitxml={report}", *words]
    run_into(run.log, command, limit_s, run.suite_folder, **(environ or {}))
    if not report.exists():
        raise SuiteError(f"pytest wrote no report; see {run.log}")
    return outcomes_of(report.read_text())


def outcomes_of(report: str) -> Outcomes:
    """Read a JUnit report: a test that also failed while it was taken down has failed."""
    outcomes: dict[str, Outcome] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        marks = {child.tag for child in case}
        if marks & {"failure", "error"}:
            outcomes[name] = Outcome.FAILED
        else:
            skipped = Outcome.SKIPPED if "skipped" in marks else Outcome.PASSED
            outcomes.setdefault(name, skipped)
    return outcomes


def broker_url(run: Run, python: Path, database: str) -> str | None:
    """Return the address of streamfrom for its clients; None if a server alone answers at the port."""
    ask = f"import pymysql; pymysql.connect(host='{HOST}', port={run.port}, user='root').cursor().execute('SHOW QUEUES FROM {database}')"
    asked = subprocess.run([str(python), "-c", ask], capture_output=True, check=False)
    return None if asked.returncode else f"streamfrom://root@{HOST}:{run.port}/{database}"
