"""`python -m tests.suites [name …]`: run suites through the proxy and compare with the base line.

Exit code 1 if a test fails that passes direct and whose failure is not explained. `--store` writes
the base line anew, with the causes that it had; `--direct` runs each suite direct for it as well.
"""

import argparse
import dataclasses
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from streamfrom.proxy.embedded.servers import EmbeddedServerError, Family
from tests.suites.baseline import FOLDER, UNEXPLAINED, Baseline, Comparison, compare, measured
from tests.suites.client_test import MARIADB_CLIENT_TEST
from tests.suites.go_driver import GO_SQL_DRIVER
from tests.suites.lab import place
from tests.suites.python_suites import SUITES as PYTHON
from tests.suites.suite import MissingProgram, Outcomes, Run, Suite, SuiteError
from tests.suites.tools import SUITES as TOOLS


SUITES = {suite.name: suite for suite in (MARIADB_CLIENT_TEST, GO_SQL_DRIVER, *PYTHON, *TOOLS)}
STATE = Path(__file__).parents[2] / ".state/suites"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return the exit code."""
    options = _options(arguments)
    faults = 0
    for name in options.names or SUITES:
        suite = SUITES[name]
        for family in suite.families:
            if options.server in (None, family):
                try:
                    holds = _measure(suite, family, options)
                except MissingProgram as error:
                    print(f"{name} on {family}: skipped: {error}")
                    continue
                except (SuiteError, EmbeddedServerError, subprocess.TimeoutExpired) as error:
                    print(f"{name} on {family}: could not run: {error}")
                    holds = False
                faults += not holds
    return 1 if faults else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="suites", description="Test suites that others wrote, through the proxy."
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which: {', '.join(SUITES)}; none: all"
    )
    parser.add_argument("--server", type=Family, choices=list(Family), help="on this one alone")
    parser.add_argument("--store", action="store_true", help="write the base line anew")
    parser.add_argument("--direct", action="store_true", help="run without the proxy as well")
    parser.add_argument(
        "--own", action="store_true", help="by a user with an account of its own at the server"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    return options


def _measure(suite: Suite, family: Family, options: argparse.Namespace) -> bool:
    path = FOLDER / f"{suite.name}-{family}.json"
    # Of a tool that needs none everything passes.
    before = Baseline.load(path) if path.exists() else Baseline(suite.version)
    if options.direct:
        version, outcomes = _run(suite, family, through=False)
        before = dataclasses.replace(
            measured(suite.version, version, outcomes), differences=before.differences
        )
    version, outcomes = _run(suite, family, through=True, own=options.own)
    if before.server not in ("", version):
        print(f"  the base line is of {before.server}, and this is {version}")
    comparison = compare(before, outcomes)
    _report(comparison)
    if options.store:
        causes = dict(comparison.known)
        if comparison.new:
            causes[UNEXPLAINED] = comparison.new
        before = dataclasses.replace(before, differences=causes)
        if before.not_passed or causes:
            before.store(path)
    return comparison.holds


def _run(
    suite: Suite, family: Family, *, through: bool, own: bool = False
) -> tuple[str, Outcomes]:
    STATE.mkdir(parents=True, exist_ok=True)
    way = "through" if through else "direct"
    logs = STATE / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"{suite.name}-{family}-{way}.log"
    print(f"{suite.name} {suite.version} on {family}, {way} ...", flush=True)
    where = suite.fetch(STATE)
    start = time.monotonic()
    proxy_log = log.with_suffix(".proxy.log")
    with place(family, suite.databases, through=through, own=own, proxy_log=proxy_log) as found:
        outcomes = suite.run(Run(where, family, found.port, log))
    counts = Counter(outcomes.values())
    told = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
    print(f"  {told} in {time.monotonic() - start:.0f} s; {log}", flush=True)
    return found.version, outcomes


def _report(comparison: Comparison) -> None:
    for cause, names in comparison.known.items():
        print(f"  known, {cause}: {', '.join(names)}")
    if comparison.mended:
        print(f"  listed as different, and pass: {', '.join(comparison.mended)}")
    if comparison.missing > 0:
        print(f"  {comparison.missing} tests fewer than direct")
    for name in comparison.new:
        print(f"  PASSES DIRECT, NOT THROUGH: {name}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
