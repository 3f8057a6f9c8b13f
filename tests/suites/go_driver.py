"""The tests of go-sql-driver: what Go programs speak, with and without prepared statements."""

import json
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import go_module
from tests.suites.suite import HOST, Outcome, Outcomes, Run, Suite, SuiteError, run_into


MODULE: Final = "github.com/go-sql-driver/mysql"
VERSION: Final = "1.10.1"
DATABASE: Final = "gotest"
RUN_S: Final = 600.0
# It dials 1.1.1.1 and panics where a firewall answers in its place: no test runs after it.
DIALS_OUT: Final = "^TestConnectorReturnsTimeout$"
ENDS: Final = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}


def _fetch(cache: Path) -> Path:
    return go_module(cache, MODULE, VERSION)


def _run(run: Run) -> Outcomes:
    environ = {
        "MYSQL_TEST_USER": "root",
        "MYSQL_TEST_PASS": "",
        "MYSQL_TEST_PROT": "tcp",
        "MYSQL_TEST_ADDR": f"{HOST}:{run.port}",
        "MYSQL_TEST_DBNAME": DATABASE,
        "MYSQL_TEST_CONCURRENT": "1",
        "GOMODCACHE": str(run.suite_folder.parent / "go"),
        "GOFLAGS": "-modcacherw",
    }
    run.log.write_bytes(b"")
    command = ["go", "test", "-json", "-count=1", f"-skip={DIALS_OUT}", "."]
    run_into(run.log, command, RUN_S, run.suite_folder, **environ)
    outcomes = outcomes_of(run.log.read_text(errors="replace"))
    if not outcomes:
        raise SuiteError(f"go test ran nothing; see {run.log}")
    return outcomes


def outcomes_of(output: str) -> Outcomes:
    """Read what `go test -json` prints: an event a line, and other lines that are none."""
    outcomes = {}
    for line in output.splitlines():
        if line.startswith("{"):
            event = json.loads(line)
            if "Test" in event and event["Action"] in ENDS:
                outcomes[event["Test"]] = ENDS[event["Action"]]
    return outcomes


GO_SQL_DRIVER: Final = Suite(
    name="go-sql-driver",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
